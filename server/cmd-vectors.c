/* cmd-vectors.c -- `weir vectors`: replays .vec files at one door or at all. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "file.h"
#include "options.h"
#include "replay.h"
#include "text.h"
#include "vectors.h"

struct options {
    const char *door;
};

const struct weir__option weir__cmd_vectors_options[] = {
    { "door", 0, WEIR__OPTION_TEXT, offsetof(struct options, door), 0, "NAME",
      "step (the bare algorithm; default), table, shm, or all of them" },
    { 0 },
};

struct tally {
    const char *command, *file;
    const struct weir__door *door;
    bool name_door; /* more than one is tried: say which */
    long passed, failed;
    bool unreadable;
};

static void print_mismatch(void *context, int line, const char *text)
{
    struct tally *t = context;

    printf("%s:%d: %s%s%s%s\n", t->file, line, text, t->name_door ? " (door " : "", t->name_door ? t->door->name : "",
           t->name_door ? ")" : "");
}

static void replay_all(struct tally *t, const struct weir__vectors *vectors)
{
    for (size_t i = 0; i < vectors->case_count; i++) {
        bool passed = weir__replay(t->door, vectors, &vectors->cases[i], print_mismatch, t);
        t->passed += passed;
        t->failed += !passed;
    }
}

static void check_file(struct tally *t, const char *door)
{
    struct weir__vectors vectors;
    struct weir_error error = { 0 };
    size_t len;
    int line = 0;
    char *text = weir__file_read(t->file, SIZE_MAX / 2, &len);

    if (!text) {
        weir__complain(t->command, "%s: %s", t->file, strerror(errno));
        t->unreadable = true;
        return;
    }
    if (weir__vectors_parse(&vectors, text, len, &line, &error) != WEIR_OK) {
        fprintf(stderr, "%s:%d:%d: %s\n", t->file, line, error.column, error.text);
        t->unreadable = true;
        free(text);
        return;
    }
    for (const struct weir__door *const *d = weir__doors(); *d; d++) {
        t->door = *d;
        if (t->name_door || strcmp((*d)->name, door) == 0)
            replay_all(t, &vectors);
    }
    weir__vectors_clear(&vectors);
    free(text);
}

int weir__cmd_vectors(const struct weir__command *self, int argc, char **argv)
{
    struct options o = { .door = "step" };
    struct tally t = { .command = self->name };
    int files;
    int code = weir__options_parse(self, argc, argv, &o, &files);

    if (code != WEIR__GO_ON)
        return code;
    t.name_door = strcmp(o.door, "all") == 0;
    if (!t.name_door && !weir__door_find(o.door)) {
        weir__complain(self->name, "there is no door '%s'; the doors are step, table, shm, and all for each of them", o.door);
        return WEIR__EXIT_WRONG;
    }
    if (files == 0) {
        weir__complain(self->name, "which files? usage: weir %s %s", self->name, self->arguments);
        return WEIR__EXIT_WRONG;
    }
    for (int i = 0; i < files; i++) {
        t.file = argv[i];
        check_file(&t, o.door);
    }
    printf("%ld passed, %ld failed\n", t.passed, t.failed);
    return t.unreadable ? WEIR__EXIT_WRONG : t.failed ? WEIR__EXIT_NO : WEIR__EXIT_OK;
}
