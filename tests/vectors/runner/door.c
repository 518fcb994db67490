/* door.c -- the ways in that the command line can open by itself: the bare step, a private table, a
 * table file shared by two.
 *
 * The shared one attaches the same file twice, as two processes would, and sends the asks of a case
 * through them by turns: what one side writes the other must find.
 */
#include "replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

/* ------------------------------------------------------------ the step ---- */

struct step_run {
    struct weir_plan *plan;
    void *state;
};

static void step_close(void *run)
{
    struct step_run *s = run;

    weir_plan_destroy(s->plan);
    free(s->state);
    free(s);
}

/* A plan and a fresh state under it. */
static int step_make(struct step_run *s, const struct weir_limit *limit, struct weir_error *error)
{
    int code = weir_plan_create(&s->plan, limit, error);

    if (code != WEIR_OK)
        return code;
    s->state = calloc(1, weir_plan_state_size(s->plan));
    if (s->state)
        return WEIR_OK;
    weir_plan_destroy(s->plan);
    return weir__fail(error, WEIR_NO_MEMORY, "no memory for a state of that size");
}

static int step_open(const struct weir__door *self, void **run, const struct weir__vectors *vectors,
                     const struct weir__vector_case *c, struct weir_error *error)
{
    struct step_run *s = calloc(1, sizeof(*s));
    int code = s ? step_make(s, &c->limit, error) : weir__fail(error, WEIR_NO_MEMORY, "no memory");

    (void)self;
    (void)vectors;
    if (code == WEIR_OK)
        *run = s;
    else
        free(s);
    return code;
}

static bool step_ask(void *run, enum weir__vector_verb verb, const struct weir_ask *ask,
                     struct weir_decision *d)
{
    struct step_run *s = run;

    if (verb == WEIR__VECTOR_PEEK)
        return weir_step_peek(s->plan, s->state, ask, d);
    return weir_step(s->plan, s->state, ask, d);
}

static void step_give(void *run, const struct weir_ask *ask)
{
    struct step_run *s = run;

    weir_step_give(s->plan, s->state, ask);
}

static int step_change(void *run, const struct weir_limit *limit, weir_time now,
                       struct weir_error *error)
{
    struct step_run *s = run;
    struct step_run to;
    int code = step_make(&to, limit, error);

    if (code != WEIR_OK)
        return code;
    weir_step_change(s->plan, to.plan, s->state, to.state, now);
    weir_plan_destroy(s->plan);
    free(s->state);
    *s = to;
    return WEIR_OK;
}

static const struct weir__door step = {
    .name = "step",
    .open = step_open,
    .ask = step_ask,
    .give = step_give,
    .change = step_change,
    .close = step_close,
};

/* ---------------------------------------------------------- the tables ---- */

enum { SLAB_KEYS = 1 };

struct table_run {
    struct weir_table *tables[2]; /* the second only if shared */
    struct weir_limiter *limiters[2];
    unsigned sides, turn;
    char directory[256], path[272]; /* empty: private */
};

static void table_close(void *run)
{
    struct table_run *t = run;

    for (unsigned i = 0; i < 2; i++) {
        if (t->tables[i])
            weir_table_destroy(t->tables[i]);
    }
    if (t->path[0])
        unlink(t->path);
    if (t->directory[0])
        rmdir(t->directory);
    free(t);
}

static size_t state_size(const struct weir_limit *limit)
{
    struct weir_plan *plan;

    if (weir_plan_create(&plan, limit, NULL) != WEIR_OK)
        return 0;
    size_t size = weir_plan_state_size(plan);
    weir_plan_destroy(plan);
    return size;
}

/* Room for the large states of all the limits that the case goes through; a table keeps such states
 * in groups of 64 slots, and some to spare: what is not used costs nothing. */
static int64_t slab_for(const struct weir__vectors *vectors, const struct weir__vector_case *c)
{
    size_t bytes = state_size(&c->limit);

    for (size_t i = c->first; i < c->first + c->count; i++) {
        if (vectors->lines[i].verb == WEIR__VECTOR_CHANGE)
            bytes += state_size(&vectors->lines[i].limit) + 64;
    }
    return (int64_t)bytes * 80 + ((int64_t)1 << 20);
}

static const char *temporary(void)
{
    const char *wanted = getenv("TMPDIR");

    if (wanted && *wanted)
        return wanted;
    return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

static int make_directory(struct table_run *t, struct weir_error *error)
{
    char name[sizeof(t->directory)];
    int n = snprintf(name, sizeof(name), "%s/weir-vectors-XXXXXX", temporary());

    if (n >= (int)sizeof(name))
        return weir__fail(error, WEIR_INVALID, "TMPDIR is too long");
    if (!mkdtemp(name))
        return weir__fail(error, WEIR_SYSTEM, "mkdtemp %s: %s", name, strerror(errno));
    memcpy(t->directory, name, sizeof(name));
    snprintf(t->path, sizeof(t->path), "%s/table", t->directory);
    return WEIR_OK;
}

static int open_side(struct table_run *t, const struct weir_limit *limit, struct weir_error *error)
{
    int code =
        weir_limiter_create(&t->limiters[t->sides], t->tables[t->sides], "case", limit, error);

    t->sides += code == WEIR_OK;
    return code;
}

static int open_sides(struct table_run *t, bool shared, int64_t slab,
                      const struct weir_limit *limit, struct weir_error *error)
{
    int code = shared ? make_directory(t, error) : WEIR_OK;
    struct weir_table_options options = { .path = shared ? t->path : NULL,
                                          .keys = 64,
                                          .slab = slab };

    if (code == WEIR_OK)
        code = weir_table_create(&t->tables[0], &options, error);
    if (code == WEIR_OK)
        code = open_side(t, limit, error);
    if (code == WEIR_OK && shared)
        code = weir_table_attach(&t->tables[1], t->path, error);
    if (code == WEIR_OK && shared)
        code = open_side(t, limit, error);
    return code;
}

static int tables_open(void **run, bool shared, const struct weir__vectors *vectors,
                       const struct weir__vector_case *c, struct weir_error *error)
{
    struct table_run *t = calloc(1, sizeof(*t));

    if (!t)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory");
    int code = open_sides(t, shared, slab_for(vectors, c), &c->limit, error);
    if (code == WEIR_OK)
        *run = t;
    else
        table_close(t);
    return code;
}

static int table_open(const struct weir__door *self, void **run,
                      const struct weir__vectors *vectors, const struct weir__vector_case *c,
                      struct weir_error *error)
{
    (void)self;
    return tables_open(run, false, vectors, c, error);
}

static int shm_open_both(const struct weir__door *self, void **run,
                         const struct weir__vectors *vectors, const struct weir__vector_case *c,
                         struct weir_error *error)
{
    (void)self;
    return tables_open(run, true, vectors, c, error);
}

static struct weir_limiter *next_side(struct table_run *t)
{
    return t->limiters[t->turn++ % t->sides];
}

static struct weir_ask with_key(const struct weir_ask *ask)
{
    struct weir_ask keyed = *ask;

    keyed.key = (struct weir_key){ .bytes = "key", .len = 3 };
    return keyed;
}

static bool table_ask(void *run, enum weir__vector_verb verb, const struct weir_ask *ask,
                      struct weir_decision *d)
{
    struct weir_ask keyed = with_key(ask);
    struct weir_limiter *limiter = next_side(run);

    return verb == WEIR__VECTOR_PEEK ? weir_peek(limiter, &keyed, d)
                                     : weir_take(limiter, &keyed, d);
}

static void table_give(void *run, const struct weir_ask *ask)
{
    struct weir_ask keyed = with_key(ask);

    weir_give(next_side(run), &keyed);
}

static int table_change(void *run, const struct weir_limit *limit, weir_time now,
                        struct weir_error *error)
{
    return weir_limiter_change(next_side(run), limit, now, error);
}

static const struct weir__door table = {
    .name = "table",
    .open = table_open,
    .ask = table_ask,
    .give = table_give,
    .change = table_change,
    .close = table_close,
};

static const struct weir__door shm = {
    .name = "shm",
    .open = shm_open_both,
    .ask = table_ask,
    .give = table_give,
    .change = table_change,
    .close = table_close,
};

/* ------------------------------------------------------------ the list ---- */

const struct weir__door *const *weir__doors(void)
{
    static const struct weir__door *const doors[] = { &step, &table, &shm, NULL };

    return doors;
}

const struct weir__door *weir__door_find(const char *name)
{
    for (const struct weir__door *const *d = weir__doors(); *d; d++) {
        if (strcmp((*d)->name, name) == 0)
            return *d;
    }
    return NULL;
}
