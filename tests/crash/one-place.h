/* one-place.h -- a process is stopped wherever it is with what it does to a name, in a table that
 * has one place for limiters and one for guards.  For stop-drop.c and stop-join.c. */
#ifndef WEIR_TESTS_CRASH_ONE_PLACE_H
#define WEIR_TESTS_CRASH_ONE_PLACE_H

#include <stdio.h>

#include "crash/stepping.h"
#include "guard/guard.h"
#include "table/registry.h"

static struct weir_table *table;

struct story {
    const char *program, *file;
    bool (*begin)(void); /* after the table was made; false: it cannot */
    void (*be_victim)(void *context);
    const int *done;                                                /* set by the victim */
    const char *(*go_on)(struct stepped *victim, enum stepping at); /* NULL: all is well */
};

__attribute__((noreturn)) static void die(const struct story *story, const char *what)
{
    printf("%s: %s\n", story->program, what);
    exit(1);
}

static void make_table(const struct story *story)
{
    const struct weir_table_options options = {
        .path = story->file, .keys = 16, .slab = 1 << 16, .limiters = 1, .guards = 1, .bans = 1
    };

    unlink(story->file);
    if (weir_table_create(&table, &options, NULL) != WEIR_OK || !story->begin())
        die(story, "there is no table");
}

static void remove_table(const struct story *story)
{
    weir_table_destroy(table);
    unlink(story->file);
}

static const char *stop_after(const struct story *story, const struct path *steps, size_t n)
{
    struct stepped victim;

    make_table(story);
    if (!stepping_start(&victim, story->be_victim, NULL, story->done))
        die(story, "it cannot be traced");
    const char *wrong = story->go_on(&victim, stepping_run(&victim, steps, n));
    stepping_kill(&victim);
    remove_table(story);
    return wrong;
}

/* Returns how often it went wrong, five times at most. */
static int stop_everywhere(const struct story *story, size_t stride, const char *what)
{
    struct path steps = { 0 };
    int failed = 0;

    make_table(story);
    if (stepping_record(story->be_victim, NULL, story->done, &steps) != STEPPING_ENDED)
        die(story, "the path cannot be recorded");
    remove_table(story);
    for (size_t n = 0; n < steps.length && failed < 5; n += stride) {
        const char *wrong = stepping_is_near(&steps, n) ? stop_after(story, &steps, n) : NULL;
        failed += wrong != NULL;
        if (wrong != NULL)
            printf("%s: %s, stopped after %zu of %zu instructions: %s\n", story->program, what, n,
                   steps.length, wrong);
    }
    stepping_forget(&steps);
    return failed;
}

#endif
