/* permits.c -- cases of .vec files that are about permits, of a guard and of each key
 * (docs: tests/vectors/README.md).
 *
 *     permits [max=N] [max_per_key=N] [lease=T]
 *     at TIME enter NAME [key KEY] [cost N] -> REASON [limit N] [left N]
 *     at TIME exit NAME -> yes|no
 *     at TIME renew NAME -> yes|no
 *     at TIME out [key KEY] -> N
 *
 * NAME is the permit's, for exit and renew; REASON is granted, busy, key-busy or too-big.
 *
 * They are run on a guard in a table of its own.
 */
#include "vectors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum { PERMITS = 32, WORD_MAX = 24, NUMBER_MAX = 1000000000 };

enum verb { ENTER, EXIT, RENEW, OUT };

struct line {
    enum verb verb;
    char name[WORD_MAX], key[WORD_MAX];
    int64_t cost, limit, left, n; /* -1: not named */
    enum weir_reason reason;      /* expected of enter */
    bool yes;                     /* expected of exit and renew */
};

/* -------------------------------------------------------------- reading ---- */

static int read_number(struct weir__cursor *c, const char *what, int64_t *out)
{
    weir__cursor_end(c);
    const char *start = c->at;
    int code = weir__cursor_count(c, what, 0, out);

    if (code != WEIR_OK || *out <= NUMBER_MAX)
        return code;
    c->at = start;
    return weir__vector_fail(c, "%s must be at most %d", what, (int)NUMBER_MAX);
}

static int read_word(struct weir__cursor *c, const char *what, char out[WORD_MAX])
{
    if (weir__cursor_end(c))
        return weir__vector_fail(c, "%s is missing", what);
    size_t len = strcspn(c->at, " \t");
    if (len >= WORD_MAX)
        return weir__vector_fail(c, "%s must be shorter than %d", what, (int)WORD_MAX);
    memcpy(out, c->at, len);
    out[len] = '\0';
    c->at += len;
    return WEIR_OK;
}

static int read_subject(struct weir__cursor *c, void *out)
{
    struct weir_guard_options *o = out;
    int code = WEIR_OK;

    while (code == WEIR_OK && !weir__cursor_end(c)) {
        if (weir__vector_accept_key(c, "max"))
            code = read_number(c, "max", &o->max);
        else if (weir__vector_accept_key(c, "max_per_key"))
            code = read_number(c, "max_per_key", &o->max_per_key);
        else if (weir__vector_accept_key(c, "lease"))
            code = weir__vector_time(c, "lease", &o->lease);
        else
            return weir__vector_fail(
                c, "'%.20s' is nothing of permits; they have max=, max_per_key= and lease=", c->at);
    }
    return code;
}

static int read_reason(struct weir__cursor *c, struct line *l)
{
    static const enum weir_reason known[] = { WEIR_GRANTED, WEIR_BUSY, WEIR_KEY_BUSY,
                                              WEIR_TOO_BIG };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (weir__vector_accept(c, weir_reason_name(known[i]))) {
            l->reason = known[i];
            return WEIR_OK;
        }
    return weir__vector_fail(c, "expected granted, busy, key-busy or too-big");
}

static int read_enter(struct weir__cursor *c, struct line *l)
{
    int code = read_word(c, "the permit's name", l->name);

    if (code == WEIR_OK && weir__vector_accept(c, "key"))
        code = read_word(c, "the key", l->key);
    if (code == WEIR_OK && weir__vector_accept(c, "cost"))
        code = read_number(c, "cost", &l->cost);
    if (code != WEIR_OK)
        return code;
    if (!weir__vector_accept(c, "->"))
        return weir__vector_fail(c, "expected -> and the reason");
    code = read_reason(c, l);
    if (code == WEIR_OK && weir__vector_accept(c, "limit"))
        code = read_number(c, "limit", &l->limit);
    if (code == WEIR_OK && weir__vector_accept(c, "left"))
        code = read_number(c, "left", &l->left);
    return code;
}

static int read_end_of_work(struct weir__cursor *c, struct line *l)
{
    int code = read_word(c, "the permit's name", l->name);

    if (code != WEIR_OK)
        return code;
    bool arrow = weir__vector_accept(c, "->");
    l->yes = arrow && weir__vector_accept(c, "yes");
    if (!l->yes && !(arrow && weir__vector_accept(c, "no")))
        return weir__vector_fail(c, "expected -> yes or -> no");
    return WEIR_OK;
}

static int read_out(struct weir__cursor *c, struct line *l)
{
    int code = weir__vector_accept(c, "key") ? read_word(c, "the key", l->key) : WEIR_OK;

    if (code != WEIR_OK)
        return code;
    if (!weir__vector_accept(c, "->"))
        return weir__vector_fail(c, "expected -> and how many are out");
    return read_number(c, "how many are out", &l->n);
}

static int read_line(struct weir__cursor *c, const void *subject, void *out)
{
    static const struct {
        const char *name;
        int (*read)(struct weir__cursor *, struct line *);
    } verbs[] = { [ENTER] = { "enter", read_enter },
                  [EXIT] = { "exit", read_end_of_work },
                  [RENEW] = { "renew", read_end_of_work },
                  [OUT] = { "out", read_out } };
    struct line *l = out;

    (void)subject;
    l->cost = 1;
    l->limit = l->left = -1;
    for (l->verb = ENTER; l->verb <= OUT; l->verb++) {
        if (!weir__vector_accept(c, verbs[l->verb].name))
            continue;
        int code = verbs[l->verb].read(c, l);
        return code == WEIR_OK ? weir__vector_end(c) : code;
    }
    return weir__vector_fail(c, "expected enter, exit, renew or out");
}

/* -------------------------------------------------------------- running ---- */

struct run {
    struct weir_table *table;
    struct weir_guard *guard;
    struct {
        char name[WORD_MAX]; /* "": free */
        struct weir_permit permit;
    } permits[PERMITS];
    struct weir_error error;
};

static void close_run(void *run)
{
    struct run *r = run;

    weir_table_destroy(r->table);
    free(r);
}

static void *open_run(const void *subject)
{
    struct run *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    if (weir_table_create(&r->table, &(struct weir_table_options){ .keys = 64, .guards = 1 },
                          &r->error) == WEIR_OK)
        (void)weir_guard_create(&r->guard, r->table, "permits", subject, &r->error);
    return r;
}

/* The permit of this name, or a free place for it. */
static struct weir_permit *find(struct run *r, const char *name, bool make)
{
    for (int i = 0; i < PERMITS; i++)
        if (strcmp(r->permits[i].name, make ? "" : name) == 0) {
            memcpy(r->permits[i].name, name, WORD_MAX);
            return &r->permits[i].permit;
        }
    return NULL;
}

static void tell_enter(char *text, size_t size, enum weir_reason reason, int64_t limit,
                       int64_t left)
{
    int n = snprintf(text, size, "%s", weir_reason_name(reason));

    if (limit >= 0 && (size_t)n < size)
        n += snprintf(text + n, size - (size_t)n, " limit %" PRId64, limit);
    if (left >= 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, " left %" PRId64, left);
}

static void enter(struct run *r, weir_time at, const struct line *l, char *expected, char *got,
                  size_t size)
{
    struct weir_permit *known = find(r, l->name, false), permit;
    struct weir_ask ask = { .key = { l->key, strlen(l->key) }, .cost = l->cost, .now = at };
    struct weir_decision d;

    if (weir_enter(r->guard, &ask, &permit, &d)) {
        known = known ? known : find(r, l->name, true);
        if (known)
            *known = permit;
    }
    tell_enter(expected, size, l->reason, l->limit, l->left);
    tell_enter(got, size, (enum weir_reason)d.reason, l->limit < 0 ? -1 : d.limit,
               l->left < 0 ? -1 : d.remaining);
}

static bool end_or_renew(struct run *r, weir_time at, const struct line *l)
{
    struct weir_permit *permit = find(r, l->name, false), copy;

    if (!permit)
        return false;
    copy = *permit; /* exit zeroes it, and the next exit is to find nothing by itself */
    return l->verb == EXIT ? weir_exit(r->guard, &copy, WEIR_SUCCEEDED, at)
                           : weir_permit_renew(r->guard, permit, at);
}

static int64_t count_out(struct run *r, weir_time at, const struct line *l)
{
    struct weir_guard_info info;

    weir_guard_get(r->guard, at, &info); /* takes back leases that are over */
    return l->key[0]
               ? weir_guard_key_in_flight(r->guard, (struct weir_key){ l->key, strlen(l->key) })
               : info.in_flight;
}

static bool run_line(void *run, weir_time at, const void *line, char *text, size_t size)
{
    struct run *r = run;
    const struct line *l = line;
    char expected[80], got[80];

    if (!r->guard) {
        snprintf(text, size, "expected a guard got %s", r->error.text);
        return false;
    }
    if (l->verb == ENTER) {
        enter(r, at, l, expected, got, sizeof(got));
    } else if (l->verb == OUT) {
        snprintf(expected, sizeof(expected), "%" PRId64, l->n);
        snprintf(got, sizeof(got), "%" PRId64, count_out(r, at, l));
    } else {
        snprintf(expected, sizeof(expected), "%s", l->yes ? "yes" : "no");
        snprintf(got, sizeof(got), "%s", end_or_renew(r, at, l) ? "yes" : "no");
    }
    if (strcmp(expected, got) == 0)
        return true;
    snprintf(text, size, "expected %s got %s", expected, got);
    return false;
}

const struct weir__vector_kind weir__vector_permits = {
    .name = "permits",
    .subject_size = sizeof(struct weir_guard_options),
    .line_size = sizeof(struct line),
    .read_subject = read_subject,
    .read_line = read_line,
    .open = open_run,
    .run = run_line,
    .close = close_run,
};
