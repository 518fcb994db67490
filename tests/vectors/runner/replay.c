/* replay.c -- runs the cases of a .vec file through a door and compares.
 *
 * A case goes on after a mismatch: the lines that follow show whether one answer was wrong or the
 * key went astray.
 */
#include "replay.h"

#include <stdarg.h>
#include <stdio.h>

enum { ABOUT_NS = 10000 }; /* ~T: to within 10 us */

/* One line of text that grows, and is cut when full. */
struct text {
    char bytes[512];
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int n = vsnprintf(t->bytes + t->len, sizeof(t->bytes) - t->len, format, args);
    va_end(args);
    t->len += n > 0 ? (size_t)n : 0;
    if (t->len >= sizeof(t->bytes))
        t->len = sizeof(t->bytes) - 1;
}

static int64_t value_of(const struct weir_decision *d, enum weir__vector_field field)
{
    switch (field) {
    case WEIR__VECTOR_LIMIT:
        return d->limit;
    case WEIR__VECTOR_REMAINING:
        return d->remaining;
    case WEIR__VECTOR_WAIT:
        return d->wait;
    case WEIR__VECTOR_RETRY:
        return d->retry;
    case WEIR__VECTOR_RESET:
    case WEIR__VECTOR_FIELDS:
        break;
    }
    return d->reset;
}

static bool meets(const struct weir__expectation *e, int64_t got, weir_time most)
{
    int64_t off;

    if (!e->named || got == e->value)
        return true;
    if (__builtin_sub_overflow(got, e->value, &off))
        return false;
    most = e->about && most < ABOUT_NS ? ABOUT_NS : most;
    return off >= -most && off <= most;
}

static bool line_meets(const struct weir__vector_line *l, const struct weir_decision *d,
                       weir_time resolution)
{
    bool good = d->allowed == l->allowed;

    for (unsigned i = 0; i < WEIR__VECTOR_FIELDS; i++)
        good = good && meets(&l->fields[i], value_of(d, i), i < WEIR__VECTOR_WAIT ? 0 : resolution);
    return good;
}

static void add_field(struct text *t, enum weir__vector_field field, int64_t value, bool about)
{
    char time[64];

    if (field == WEIR__VECTOR_LIMIT || field == WEIR__VECTOR_REMAINING) {
        add(t, " %s %lld", weir__vector_field_name(field), (long long)value);
        return;
    }
    if (value < 0) /* no time of ours is; one that is must be seen as it is */
        snprintf(time, sizeof(time), "%lldns", (long long)value);
    else
        weir_time_print(time, sizeof(time), value);
    add(t, " %s %s%s", weir__vector_field_name(field), about ? "~" : "", time);
}

/* What came is told in the fields that the line names, and the one that says most about an answer
 * of the other kind. */
static bool worth_telling(const struct weir__vector_line *l, const struct weir_decision *d,
                          unsigned field)
{
    if (d->allowed == l->allowed)
        return l->fields[field].named;
    return field == (d->allowed ? WEIR__VECTOR_WAIT : WEIR__VECTOR_RETRY) ||
           (l->fields[field].named && field != WEIR__VECTOR_WAIT);
}

static void describe(struct text *t, const struct weir__vector_line *l,
                     const struct weir_decision *d)
{
    add(t, "expected %s", l->allowed ? "ok" : "no");
    for (unsigned i = 0; i < WEIR__VECTOR_FIELDS; i++) {
        if (l->fields[i].named)
            add_field(t, i, l->fields[i].value, l->fields[i].about);
    }
    add(t, " got %s", d->allowed ? "ok" : "no");
    for (unsigned i = 0; i < WEIR__VECTOR_FIELDS; i++) {
        if (worth_telling(l, d, i))
            add_field(t, i, value_of(d, i), false);
    }
}

/* One line; false if it went otherwise, and then `t` says how. */
static bool replay_line(const struct weir__door *door, void *run, const struct weir__vector_line *l,
                        struct text *t)
{
    struct weir_ask ask = { .cost = l->cost, .wait_max = l->wait_max, .now = l->at };
    struct weir_decision d = { 0 };
    struct weir_error error = { 0 };

    if (l->verb == WEIR__VECTOR_GIVE) {
        door->give(run, &ask);
        return true;
    }
    if (l->verb == WEIR__VECTOR_CHANGE) {
        if (door->change(run, &l->limit, l->at, &error) == WEIR_OK)
            return true;
        add(t, "expected a change of the limit got an error: %s", error.text);
        return false;
    }
    bool allowed = door->ask(run, l->verb, &ask, &d);
    if (allowed == d.allowed && line_meets(l, &d, door->resolution))
        return true;
    describe(t, l, &d);
    if (allowed != d.allowed)
        add(t, " (but the call returned %s)", allowed ? "true" : "false");
    return false;
}

/* A case of another kind than a limit is run on the thing itself, whatever the door. */
static bool replay_kind(const struct weir__vectors *vectors, const struct weir__vector_case *c,
                        weir__mismatch *mismatch, void *context)
{
    void *run = c->kind->open(c->subject);
    bool passed = run != NULL;

    if (!run)
        mismatch(context, c->line, "expected a case that can be run got no memory");
    for (size_t i = c->first; run && i < c->first + c->count; i++) {
        struct text t = { .len = 0 };
        if (!c->kind->run(run, vectors->lines[i].at, vectors->lines[i].body, t.bytes,
                          sizeof(t.bytes))) {
            mismatch(context, vectors->lines[i].line, t.bytes);
            passed = false;
        }
    }
    if (run)
        c->kind->close(run);
    return passed;
}

bool weir__vectors_replay(const struct weir__door *door, const struct weir__vectors *vectors,
                          const struct weir__vector_case *c, weir__mismatch *mismatch,
                          void *context)
{
    void *run = NULL;
    struct weir_error error = { 0 };
    bool passed = true;

    if (c->kind)
        return replay_kind(vectors, c, mismatch, context);
    if (door->open(door, &run, vectors, c, &error) != WEIR_OK) {
        struct text t = { .len = 0 };
        add(&t, "expected a limit that works got an error: %s", error.text);
        mismatch(context, c->line, t.bytes);
        return false;
    }
    for (size_t i = c->first; i < c->first + c->count; i++) {
        struct text t = { .len = 0 };
        if (!replay_line(door, run, &vectors->lines[i], &t)) {
            mismatch(context, vectors->lines[i].line, t.bytes);
            passed = false;
        }
    }
    door->close(run);
    return passed;
}
