/* breaker.c -- cases of .vec files that are about a circuit breaker (docs:
 * tests/vectors/README.md).
 *
 *     breaker [errors=P%] [errors=N] [slow=T] [ratio=P%] [window=T|calls=N] [min_calls=N]
 *             [open_for=T] [open_max=T] [jitter=P%] [probes=N] [above]
 *     at TIME ask -> ok|no [retry T|never] [state S]
 *         a call begins; asks are numbered from 1
 *     at TIME end N OUTCOME [took T] [-> state S]
 *         the call of ask N ends
 *     at TIME call OUTCOME [took T] [xN] -> ok|no [state S]
 *         a call begins and ends at once, N times
 *     at TIME state -> S [calls N] [errors N] [slow N]
 *     at TIME force open|closed|none
 *
 * They are run on the bare state machine.
 */
#include "vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guard/breaker.h"

enum { ASKS_MAX = 1000, TIMES_MAX = 10000 };

enum verb { ASK, END, CALL, STATE, FORCE };

/* What a line expects; each only if it was named. */
struct expected {
    bool has_passed, has_state, has_retry, has_counts[3];
    bool passed;
    enum weir_breaker_state state;
    weir_time retry;
    int64_t counts[3]; /* calls, errors, slow */
};

struct line {
    enum verb verb;
    enum weir_outcome outcome;
    enum weir_force force;
    int64_t number, times;
    bool has_took;
    weir_time took;
    struct expected expected;
};

/* ------------------------------------------------------------- the breaker ---- */

/* A number up to what fits, and whether a % follows it. */
static int read_small(struct weir__cursor *c, const char *what, int32_t *out, bool *percent)
{
    const char *at = c->at;
    int64_t n = 0;

    while (*at >= '0' && *at <= '9' && n <= INT32_MAX / 10)
        n = n * 10 + (*at++ - '0');
    *percent = at > c->at && *at == '%';
    if (at == c->at || !strchr(" \t", at[*percent]) || n > INT32_MAX || n == 0)
        return weir__vector_fail(c, "%s: '%.20s' is no number from 1 on", what, c->at);
    c->at = at + *percent;
    *out = (int32_t)n;
    return WEIR_OK;
}

static int read_count(struct weir__cursor *c, const char *what, int32_t *out)
{
    const char *start = c->at;
    bool percent;
    int code = read_small(c, what, out, &percent);

    if (code != WEIR_OK || !percent)
        return code;
    c->at = start;
    return weir__vector_fail(c, "%s is a number, not a share: '%.20s'", what, start);
}

static int read_percent(struct weir__cursor *c, const char *what, int32_t *out)
{
    const char *start = c->at;
    bool percent;
    int code = read_small(c, what, out, &percent);

    if (code != WEIR_OK || percent)
        return code;
    c->at = start;
    return weir__vector_fail(c, "%s is a share, as in 50%%: '%.20s'", what, start);
}

static int read_errors(struct weir__cursor *c, struct weir_breaker_options *o)
{
    int32_t n;
    bool percent;
    int code = read_small(c, "errors", &n, &percent);

    if (code == WEIR_OK)
        *(percent ? &o->error_percent : &o->errors) = n;
    return code;
}

static int read_option(struct weir__cursor *c, struct weir_breaker_options *o)
{
    const struct {
        const char *name;
        int (*read)(struct weir__cursor *c, const char *what, int32_t *out);
        int32_t *number;
        weir_time *time;
    } rows[] = {
        { "slow", NULL, NULL, &o->slow },
        { "ratio", read_percent, &o->slow_percent, NULL },
        { "window", NULL, NULL, &o->window },
        { "calls", read_count, &o->calls, NULL },
        { "min_calls", read_count, &o->min_calls, NULL },
        { "open_for", NULL, NULL, &o->open_for },
        { "open_max", NULL, NULL, &o->open_max },
        { "jitter", read_percent, &o->jitter_percent, NULL },
        { "probes", read_count, &o->probes, NULL },
    };

    if (weir__vector_accept_key(c, "errors"))
        return read_errors(c, o);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (weir__vector_accept_key(c, rows[i].name))
            return rows[i].time ? weir__vector_time(c, rows[i].name, rows[i].time)
                                : rows[i].read(c, rows[i].name, rows[i].number);
    }
    o->above = weir__vector_accept(c, "above");
    return o->above ? WEIR_OK
                    : weir__vector_fail(c,
                                        "'%.20s' is nothing of a breaker; it has errors=, slow=, "
                                        "ratio=, window=, calls=, min=, open=, open-max=, "
                                        "jitter=, probes= and above",
                                        c->at);
}

/* Without jitter, unless the line says so: a vector names the nanosecond. */
static int read_subject(struct weir__cursor *c, void *out)
{
    struct weir_breaker_options o = { .jitter_percent = -1 };
    int code = WEIR_OK;

    weir__cursor_end(c);
    int column = weir__cursor_column(c);
    while (code == WEIR_OK && !weir__cursor_end(c))
        code = read_option(c, &o);
    if (code != WEIR_OK)
        return code;
    code = weir__breaker_plan_make(out, &o, 0, c->error);
    if (code != WEIR_OK && c->error)
        c->error->column = column;
    return code;
}

/* ---------------------------------------------------------------- the lines ---- */

static int read_state(struct weir__cursor *c, struct expected *e)
{
    static const char *const names[] = { [WEIR_BREAKER_CLOSED] = "closed",
                                         [WEIR_BREAKER_OPEN] = "open",
                                         [WEIR_BREAKER_HALF_OPEN] = "half-open" };

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (weir__vector_accept(c, names[i])) {
            e->has_state = true;
            e->state = (enum weir_breaker_state)i;
            return WEIR_OK;
        }
    }
    return weir__vector_fail(c, "expected a state: closed, open or half-open");
}

static int read_retry(struct weir__cursor *c, struct expected *e)
{
    e->has_retry = true;
    if (!weir__vector_accept(c, "never"))
        return weir__vector_time(c, "retry", &e->retry);
    e->retry = WEIR_NEVER;
    return WEIR_OK;
}

static const char *const count_names[3] = { "calls", "errors", "slow" };

/* retry, state, counts: whatever the line names of those it may. */
static int read_fields(struct weir__cursor *c, bool retry, bool counts, struct expected *e)
{
    int code = WEIR_OK;

    while (code == WEIR_OK && !weir__cursor_end(c)) {
        unsigned i = 0;
        while (counts && i < 3 && !weir__vector_accept(c, count_names[i]))
            i++;
        if (counts && i < 3) {
            e->has_counts[i] = true;
            code = weir__cursor_count(c, count_names[i], 0, &e->counts[i]);
        } else if (!counts && weir__vector_accept(c, "state")) {
            code = read_state(c, e);
        } else if (retry && weir__vector_accept(c, "retry")) {
            code = read_retry(c, e);
        } else {
            code = weir__vector_fail(c, "'%.20s' is nothing to expect here; it can be %s", c->at,
                                     counts  ? "calls, errors and slow"
                                     : retry ? "retry and state"
                                             : "state");
        }
    }
    return code;
}

static int read_answer(struct weir__cursor *c, bool retry, struct expected *e)
{
    if (!weir__vector_accept(c, "->"))
        return weir__vector_fail(c, "expected -> and what must come back: -> ok, or -> no");
    e->has_passed = true;
    e->passed = weir__vector_accept(c, "ok");
    if (!e->passed && !weir__vector_accept(c, "no"))
        return weir__vector_fail(c, "expected ok or no after ->");
    return read_fields(c, retry, false, e);
}

static int read_outcome(struct weir__cursor *c, struct line *l)
{
    static const char *const names[] = { [WEIR_SUCCEEDED] = "ok",
                                         [WEIR_FAILED] = "error",
                                         [WEIR_TIMED_OUT] = "timeout",
                                         [WEIR_DROPPED] = "dropped",
                                         [WEIR_IGNORED] = "ignored" };
    unsigned i = 0;

    while (i < sizeof(names) / sizeof(names[0]) && !weir__vector_accept(c, names[i]))
        i++;
    if (i == sizeof(names) / sizeof(names[0]))
        return weir__vector_fail(c, "expected an outcome: ok, error, timeout, dropped or ignored");
    l->outcome = (enum weir_outcome)i;
    l->has_took = weir__vector_accept(c, "took");
    return l->has_took ? weir__vector_time(c, "took", &l->took) : WEIR_OK;
}

static int read_ask(struct weir__cursor *c, struct line *l)
{
    return read_answer(c, true, &l->expected);
}

static int read_end(struct weir__cursor *c, struct line *l)
{
    int code = weir__cursor_count(c, "the number of the ask", 1, &l->number);

    if (code == WEIR_OK && l->number > ASKS_MAX)
        return weir__vector_fail(c, "asks are numbered 1 to %d", ASKS_MAX);
    if (code == WEIR_OK)
        code = read_outcome(c, l);
    if (code != WEIR_OK || !weir__vector_accept(c, "->"))
        return code == WEIR_OK ? weir__vector_end(c) : code;
    return read_fields(c, false, false, &l->expected);
}

static int read_call(struct weir__cursor *c, struct line *l)
{
    int code = read_outcome(c, l);

    l->times = 1;
    if (code == WEIR_OK && !weir__cursor_end(c) && *c->at == 'x') {
        c->at++;
        code = weir__cursor_count(c, "how many times", 1, &l->times);
        if (code == WEIR_OK && l->times > TIMES_MAX)
            return weir__vector_fail(c, "a call can be made 1 to %d times", TIMES_MAX);
    }
    return code == WEIR_OK ? read_answer(c, false, &l->expected) : code;
}

static int read_look(struct weir__cursor *c, struct line *l)
{
    if (!weir__vector_accept(c, "->"))
        return weir__vector_fail(c, "expected -> and the state");
    int code = read_state(c, &l->expected);
    return code == WEIR_OK ? read_fields(c, false, true, &l->expected) : code;
}

static int read_force(struct weir__cursor *c, struct line *l)
{
    if (weir__vector_accept(c, "open"))
        l->force = WEIR_FORCE_OPEN;
    else if (weir__vector_accept(c, "closed"))
        l->force = WEIR_FORCE_CLOSED;
    else if (!weir__vector_accept(c, "none"))
        return weir__vector_fail(c, "expected open, closed or none");
    return weir__vector_end(c);
}

static int read_line(struct weir__cursor *c, const void *subject, void *out)
{
    static const struct {
        const char *name;
        int (*read)(struct weir__cursor *c, struct line *l);
    } verbs[] = { [ASK] = { "ask", read_ask },
                  [END] = { "end", read_end },
                  [CALL] = { "call", read_call },
                  [STATE] = { "state", read_look },
                  [FORCE] = { "force", read_force } };
    struct line *l = out;

    (void)subject;
    for (unsigned i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (weir__vector_accept(c, verbs[i].name)) {
            l->verb = (enum verb)i;
            return verbs[i].read(c, l);
        }
    }
    return weir__vector_fail(c, "expected ask, end, call, state or force");
}

/* --------------------------------------------------------------- running ---- */

struct ask {
    bool under_way;
    uint32_t probe;
    weir_time since;
};

struct run {
    struct weir__breaker breaker;
    struct weir__breaker_plan plan;
    struct ask asks[ASKS_MAX];
    int64_t asked;
};

/* What came, in the members of what was expected. */
static void look(const struct run *r, weir_time at, struct expected *got)
{
    struct weir__breaker_view v;

    weir__breaker_look(&r->plan, &r->breaker, at, &v);
    got->state = v.state;
    got->counts[0] = v.calls;
    got->counts[1] = v.errors;
    got->counts[2] = v.slow;
}

static void begin(struct run *r, weir_time at, struct ask *ask, struct expected *got)
{
    struct weir__breaker_move move;

    got->passed = weir__breaker_ask(&r->plan, &r->breaker, at, &ask->probe, &got->retry, &move);
    ask->under_way = got->passed;
    ask->since = at;
}

/* As a guard does it: a timeout is an error and slow, and what is ignored gives its probe back. */
static void end(struct run *r, weir_time at, const struct ask *ask, const struct line *l)
{
    weir_time took = l->has_took ? l->took : at - ask->since;

    if (l->outcome == WEIR_IGNORED) {
        weir__breaker_give(&r->breaker, ask->probe);
        return;
    }
    if (l->outcome == WEIR_TIMED_OUT && took <= r->plan.slow)
        took = r->plan.slow + 1;
    weir__breaker_tell(&r->plan, &r->breaker, ask->probe, l->outcome != WEIR_SUCCEEDED, took, at);
}

/* All of them must come out as expected; what came is told of the first that did not. */
static void call(struct run *r, weir_time at, const struct line *l, struct expected *got)
{
    for (int64_t i = 0; i < l->times; i++) {
        struct ask ask;
        begin(r, at, &ask, got);
        if (got->passed)
            end(r, at, &ask, l);
        if (got->passed != l->expected.passed)
            return;
    }
}

/* False: there is no such ask. */
static bool act(struct run *r, weir_time at, const struct line *l, struct expected *got)
{
    switch (l->verb) {
    case ASK:
        if (r->asked == ASKS_MAX)
            return false;
        begin(r, at, &r->asks[r->asked++], got);
        break;
    case END:
        if (!r->asks[l->number - 1].under_way)
            return false;
        r->asks[l->number - 1].under_way = false;
        end(r, at, &r->asks[l->number - 1], l);
        break;
    case CALL:
        call(r, at, l, got);
        break;
    case FORCE:
        weir__breaker_force(&r->breaker, l->force, at);
        break;
    case STATE:
        break;
    }
    look(r, at, got);
    return true;
}

static bool meets(const struct expected *e, const struct expected *got)
{
    bool good = (!e->has_passed || e->passed == got->passed) &&
                (!e->has_state || e->state == got->state) &&
                (!e->has_retry || e->retry == got->retry);

    for (int i = 0; i < 3; i++)
        good = good && (!e->has_counts[i] || e->counts[i] == got->counts[i]);
    return good;
}

/* `of`, in the fields that `named` names. */
static void describe(const char *word, const struct expected *named, const struct expected *of,
                     char *text, size_t size)
{
    static const char *const states[] = { "closed", "open", "half-open" };
    char time[64];
    size_t n = strlen(text);

#define ADD(...) n += n < size ? (size_t)snprintf(text + n, size - n, __VA_ARGS__) : 0
    ADD("%s", word);
    if (named->has_passed)
        ADD(" %s", of->passed ? "ok" : "no");
    if (named->has_retry) {
        weir_time_print(time, sizeof(time), of->retry);
        ADD(" retry %s", time);
    }
    if (named->has_state)
        ADD(" state %s", states[of->state]);
    for (int i = 0; i < 3; i++)
        if (named->has_counts[i])
            ADD(" %s %lld", count_names[i], (long long)of->counts[i]);
#undef ADD
}

static bool run_line(void *run, weir_time at, const void *line, char *text, size_t size)
{
    const struct line *l = line;
    struct expected got = { 0 };

    text[0] = '\0';
    if (!act(run, at, l, &got)) {
        snprintf(text, size,
                 l->verb == ASK ? "expected no more than %lld asks got another"
                                : "expected ask %lld to be under way got none",
                 (long long)(l->verb == ASK ? ASKS_MAX : l->number));
        return false;
    }
    if (meets(&l->expected, &got))
        return true;
    describe("expected", &l->expected, &l->expected, text, size);
    describe(" got", &l->expected, &got, text, size);
    return false;
}

static void *open_run(const void *subject)
{
    struct run *r = aligned_alloc(_Alignof(struct run), sizeof(*r));

    if (r) {
        memset(r, 0, sizeof(*r));
        memcpy(&r->plan, subject, sizeof(r->plan));
    }
    return r;
}

const struct weir__vector_kind weir__vector_breaker = {
    .name = "breaker",
    .subject_size = sizeof(struct weir__breaker_plan),
    .line_size = sizeof(struct line),
    .read_subject = read_subject,
    .read_line = read_line,
    .open = open_run,
    .run = run_line,
    .close = free,
};
