/* breaker.c -- random walks of a breaker beside a plain model of it.
 *
 *     property-breaker SEED ROUNDS    prints the seed on a failure, so that it can be run again
 *
 * The model keeps a list of all calls with their times and looks at the whole list after every
 * single result; the breaker looks only when that can matter.  Both must agree on every answer,
 * every retry, every move, and every figure of a look.  The clock stands still, crawls, jumps
 * ahead, and steps back: by less than a window, and by years.  Probes come back late, twice, or are
 * given back; the breaker is forced.
 *
 * Every transition, and every reason for one, is counted; a run in which one of them did not happen
 * fails.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guard/breaker.h"
#include "rounds.h"

/* ------------------------------------------------------------------ chance ---- */

static void broken(const char *what, int line)
{
    fprintf(stderr,
            "breaker.c:%d: the breaker and the model differ: %s\n  again: property-breaker %" PRIu64
            " 1\n",
            line, what, seed_of_round);
    exit(1);
}

#define SAME(condition) ((condition) ? (void)0 : broken(#condition, __LINE__))

/* ---------------------------------------------------- what must have happened ---- */

enum event {
    OPEN_BY_ERROR_RATIO,
    OPEN_BY_SLOW_RATIO,
    OPEN_BY_ERRORS,
    OPEN_BY_SUCCESS_AT_MIN,
    OPEN_BY_SUCCESS_AFTER_EXPIRY,
    OPEN_IN_COUNT_WINDOW,
    OPEN_AT_EQUAL,
    NOT_OPEN_AT_EQUAL,
    REFUSED_OPEN,
    TRIED_AT_ONCE_AT,
    OPEN_TO_HALF_OPEN,
    TRIED_BECAUSE_TOO_FAR,
    PROBE_MORE,
    REFUSED_PROBES_OUT,
    HALF_OPEN_TO_CLOSED,
    CLOSED_BEFORE_ALL_ARE_BACK,
    HALF_OPEN_TO_OPEN,
    OPENED_BEFORE_ALL_ARE_BACK,
    BACK_OFF_AT_ITS_MOST,
    PROBE_GIVEN,
    LATE_PROBE_TOLD,
    LATE_PROBE_GIVEN,
    OLD_CALL_WHILE_OPEN,
    OLD_CALL_WHILE_HALF_OPEN,
    FORCED_OPEN,
    FORCED_CLOSED,
    UNFORCED,
    REFUSED_FORCED,
    PASSED_FORCED,
    STEPPED_BACK_LITTLE,
    STEPPED_BACK_FAR,
    EVENTS
};

static const char *const event_names[EVENTS] = {
    "closed to open by the ratio of errors",
    "closed to open by the ratio of slow calls",
    "closed to open by the number of errors",
    "closed to open by a success that makes the calls enough",
    "closed to open by a success after others have left the window",
    "closed to open in a count window",
    "opened exactly at a threshold",
    "not opened exactly at a threshold, being `above`",
    "refused while open",
    "tried at the very moment",
    "open to half-open",
    "open to half-open because the clock has stepped back",
    "another probe let out",
    "refused while probes are out",
    "half-open to closed",
    "half-open to closed before all probes are back",
    "half-open to open",
    "half-open to open before all probes are back",
    "open for as long as can be",
    "a probe given back",
    "a probe of an earlier try told",
    "a probe of an earlier try given back",
    "an old call ends while open",
    "an old call ends while half-open",
    "forced open",
    "forced closed",
    "let go",
    "refused, forced open",
    "passed, forced closed",
    "the clock steps back by less than a window",
    "the clock steps back by more",
};

static int64_t happened[EVENTS];

/* --------------------------------------------------------------- the model ---- */

enum { CALLS_MAX = 4096, PENDING = 24 };

struct call {
    int64_t part;
    bool bad, slow;
};

/* Plain: a list of the calls since it last closed, and variables. */
struct model {
    const struct weir_breaker_options *o; /* with all defaults written out */
    enum weir_breaker_state state;
    enum weir_force force;
    weir_time at;
    int try;          /* which half-open stage */
    int times_opened; /* in a row */
    int out, back, bad, slow;
    struct call calls[CALLS_MAX];
    int n;
    int64_t newest, ahead; /* parts: the newest seen; what the clock has lost by stepping back */
};

struct tally {
    double calls, errors, slow;
};

static struct tally model_count(const struct model *m, int64_t part)
{
    struct tally t = { 0, 0, 0 };
    int first = m->o->calls != 0 && m->n > m->o->calls ? m->n - m->o->calls : 0;

    for (int i = first; i < m->n; i++) {
        if (m->o->calls == 0 && m->calls[i].part <= part - 16)
            continue;
        t.calls++;
        t.errors += m->calls[i].bad;
        t.slow += m->calls[i].slow;
    }
    return t;
}

static bool counting; /* not while it is only asked what probes might come to */

static bool beyond(const struct model *m, double value, double threshold, enum event event)
{
    bool equal = value == threshold;
    bool yes = value > threshold ||
               (equal && (!m->o->above || (threshold == 100 && event != OPEN_BY_ERRORS)));

    happened[event] += counting && yes;
    happened[OPEN_AT_EQUAL] += counting && yes && equal;
    happened[NOT_OPEN_AT_EQUAL] += counting && !yes && equal;
    return yes;
}

/* Hundredfold counts over whole calls are exact enough in a double: 100 * 4096 / n differs from a
 * whole percentage by more than its error. */
static bool model_bad(const struct model *m, struct tally t)
{
    const struct weir_breaker_options *o = m->o;
    bool bad = false;

    if (t.calls == 0)
        return false;
    bad |= o->error_percent != 0 &&
           beyond(m, t.errors * 100 / t.calls, o->error_percent, OPEN_BY_ERROR_RATIO);
    bad |= o->slow != 0 && beyond(m, t.slow * 100 / t.calls, o->slow_percent, OPEN_BY_SLOW_RATIO);
    bad |= o->errors != 0 && beyond(m, t.errors, o->errors, OPEN_BY_ERRORS);
    return bad;
}

/* How long it should stay open but for the jitter. */
static weir_time model_span(const struct model *m)
{
    double span = (double)m->o->open_for;

    for (int i = 1; i < m->times_opened; i++)
        span *= 2;
    happened[BACK_OFF_AT_ITS_MOST] += span > (double)m->o->open_max;
    return span > (double)m->o->open_max ? m->o->open_max : (weir_time)span;
}

static void model_open(struct model *m)
{
    m->state = WEIR_BREAKER_OPEN;
    m->times_opened++;
}

static void model_close(struct model *m, enum weir_force force, weir_time now)
{
    m->state = WEIR_BREAKER_CLOSED;
    m->force = force;
    m->at = now;
    m->n = m->times_opened = 0;
}

static int64_t model_part(struct model *m, weir_time now)
{
    int64_t part = now / (m->o->window / 16) + m->ahead;

    if (part <= m->newest - 16) {
        happened[STEPPED_BACK_FAR]++;
        m->ahead += m->newest - part;
        part = m->newest;
    }
    happened[STEPPED_BACK_LITTLE] += part < m->newest;
    return part;
}

static void model_tell(struct model *m, bool bad, bool slow, weir_time now)
{
    happened[OLD_CALL_WHILE_OPEN] += m->state == WEIR_BREAKER_OPEN && !m->force;
    happened[OLD_CALL_WHILE_HALF_OPEN] += m->state == WEIR_BREAKER_HALF_OPEN && !m->force;
    if (m->state != WEIR_BREAKER_CLOSED || m->force == WEIR_FORCE_OPEN)
        return;
    int64_t part = m->o->calls != 0 ? 0 : model_part(m, now);
    int64_t before = m->newest;
    m->newest = part > m->newest ? part : m->newest;
    m->calls[m->n++] = (struct call){ part, bad, slow };
    struct tally t = model_count(m, m->newest);
    counting = m->force == WEIR_UNFORCED;
    bool opens = counting && t.calls >= m->o->min_calls && model_bad(m, t);
    counting = false;
    if (!opens)
        return;
    happened[OPEN_IN_COUNT_WINDOW] += m->o->calls != 0;
    happened[OPEN_BY_SUCCESS_AT_MIN] += !bad && !slow && t.calls == m->o->min_calls;
    happened[OPEN_BY_SUCCESS_AFTER_EXPIRY] +=
        !bad && !slow && t.calls > m->o->min_calls && m->newest > before;
    model_open(m);
}

/* Good or bad for certain: what the worst and the best end would be. */
static void model_probes(struct model *m, weir_time now)
{
    int left = m->o->probes - m->back;
    struct tally best = { m->o->probes, m->bad, m->slow },
                 worst = { m->o->probes, m->bad + left, m->slow + left };

    if (model_bad(m, best) || (m->o->errors != 0 && m->bad > 0)) {
        happened[HALF_OPEN_TO_OPEN]++;
        happened[OPENED_BEFORE_ALL_ARE_BACK] += left > 0;
        model_open(m);
    } else if (!model_bad(m, worst) && (m->o->errors == 0 || left == 0)) {
        happened[HALF_OPEN_TO_CLOSED]++;
        happened[CLOSED_BEFORE_ALL_ARE_BACK] += left > 0;
        model_close(m, WEIR_UNFORCED, now);
    }
}

/* --------------------------------------------------------------- both at once ---- */

/* A call under way. */
struct pending {
    bool used;
    uint32_t probe;
    int try; /* the model's; 0: not a probe */
    weir_time since;
};

struct walk {
    struct weir__breaker breaker;
    struct weir__breaker_plan plan;
    struct weir_breaker_options o;
    struct model m;
    struct pending pending[PENDING];
    weir_time now;
    int64_t slowness; /* steps from one move of the clock to the next, about */
};

static struct weir_breaker_options random_options(void)
{
    static const int32_t percents[] = { 1, 10, 20, 25, 33, 50, 50, 60, 75, 100 };
    struct weir_breaker_options o = { .above = one_in(2) };

    if (!one_in(3))
        o.error_percent = percents[between(0, 9)];
    if (one_in(3))
        o.errors = (int32_t)between(1, 12);
    if (one_in(2) || (!o.errors && !o.error_percent)) {
        o.slow = between(1, 100) * WEIR_MILLISECOND;
        o.slow_percent = percents[between(0, 9)];
    }
    o.calls = one_in(3) ? (int32_t)(one_in(4) ? between(1, 1024) : between(1, 40)) : 0;
    o.window = o.calls     ? 0
               : one_in(2) ? 16 * WEIR_MILLISECOND
                           : between(1, 20) * WEIR_SECOND + between(0, 99);
    o.min_calls = (int32_t)between(1, one_in(4) ? 60 : 8);
    o.open_for = between(1, 5000) * WEIR_MILLISECOND;
    o.open_max = o.open_for * between(1, 20);
    o.jitter_percent = one_in(2) ? -1 : (int32_t)between(1, 100);
    o.probes = (int32_t)(one_in(8) ? between(1, 255) : between(1, 8));
    return o;
}

static void walk_begin(struct walk *w)
{
    struct weir_error error = { 0 };

    memset(w, 0, sizeof(*w));
    w->o = random_options();
    if (weir__breaker_plan_make(&w->plan, &w->o, roll(), &error) != WEIR_OK)
        broken(error.text, __LINE__);
    if (w->o.calls != 0 && w->o.min_calls > w->o.calls)
        w->o.min_calls = w->o.calls;
    w->m.o = &w->o;
    w->slowness = between(3, 20);
    w->now = one_in(2) ? between(0, 100) : between(0, INT64_MAX / 4);
}

/* When it opens, `at` is the span give or take the jitter; from there on the model takes it as it
 * came. */
static void check_opened(struct walk *w)
{
    double span = (double)model_span(&w->m),
           jitter = w->o.jitter_percent < 0 ? 0 : w->o.jitter_percent / 100.0;
    double took = (double)(w->breaker.at - w->now);

    SAME(took >= span - span * jitter - 1 && took <= span + span * jitter + 1);
    SAME(jitter > 0 || w->breaker.at == w->now + model_span(&w->m));
    w->m.at = w->breaker.at;
}

static void check_look(const struct walk *w)
{
    struct weir__breaker_view v;
    const struct model *m = &w->m;
    struct tally t = { 0, 0, 0 };

    weir__breaker_look(&w->plan, &w->breaker, w->now, &v);
    SAME(v.force == m->force);
    SAME(v.state == (m->force == WEIR_FORCE_OPEN ? WEIR_BREAKER_OPEN : m->state));
    bool far = m->at - w->now > 4 * m->o->open_max + WEIR_SECOND; /* then it is tried at once */
    SAME(v.retry_at == (m->force == WEIR_FORCE_OPEN     ? WEIR_NEVER
                        : m->state == WEIR_BREAKER_OPEN ? (far ? w->now : m->at)
                                                        : 0));
    if (m->state == WEIR_BREAKER_OPEN)
        return;
    if (m->state == WEIR_BREAKER_HALF_OPEN)
        t = (struct tally){ m->back, m->bad, m->slow };
    else if (m->o->calls != 0)
        t = model_count(m, 0);
    else
        t = model_count(m, w->now / w->plan.part + m->ahead > m->newest
                               ? w->now / w->plan.part + m->ahead
                               : m->newest);
    SAME(v.calls == (int64_t)t.calls && v.errors == (int64_t)t.errors && v.slow == (int64_t)t.slow);
}

static bool model_ask(struct model *m, weir_time now, weir_time *retry, int *try)
{
    *retry = *try = 0;
    if (m->force == WEIR_FORCE_OPEN) {
        happened[REFUSED_FORCED]++;
        *retry = WEIR_NEVER;
        return false;
    }
    happened[PASSED_FORCED] += m->force == WEIR_FORCE_CLOSED;
    if (m->force == WEIR_FORCE_CLOSED || m->state == WEIR_BREAKER_CLOSED)
        return true;
    if (m->state == WEIR_BREAKER_OPEN) {
        bool far = m->at - now > 4 * m->o->open_max + WEIR_SECOND;
        *retry = m->at - now;
        happened[REFUSED_OPEN] += now < m->at && !far;
        if (now < m->at && !far)
            return false;
        happened[OPEN_TO_HALF_OPEN]++;
        happened[TRIED_BECAUSE_TOO_FAR] += far;
        happened[TRIED_AT_ONCE_AT] += now == m->at;
        m->state = WEIR_BREAKER_HALF_OPEN;
        m->try++;
        m->out = m->back = m->bad = m->slow = 0;
    } else if (m->out + m->back >= m->o->probes) {
        happened[REFUSED_PROBES_OUT]++;
        *retry = -1; /* an estimate */
        return false;
    }
    happened[PROBE_MORE] += m->out > 0;
    m->out++;
    *try = m->try;
    return true;
}

static void walk_ask(struct walk *w)
{
    struct weir__breaker_move move;
    weir_time retry, expected;
    uint32_t probe;
    int i = (int)between(0, PENDING - 1), try;
    enum weir_breaker_state before = w->m.state;

    if (w->pending[i].used)
        return;
    bool yes = weir__breaker_ask(&w->plan, &w->breaker, w->now, &probe, &retry, &move);
    SAME(yes == model_ask(&w->m, w->now, &expected, &try));
    SAME((probe != 0) == (yes && try != 0) && probe <= WEIR__PROBE_MAX);
    SAME(yes ? retry == 0 : expected == -1 ? retry > 0 : retry == expected);
    SAME((move.from != move.to) == (before != w->m.state));
    SAME(move.from == move.to || (move.from == before && move.to == w->m.state));
    if (yes)
        w->pending[i] =
            (struct pending){ .used = true, .probe = probe, .try = try, .since = w->now };
}

static void model_end(struct model *m, const struct pending *p, bool bad, bool slow, weir_time now)
{
    if (p->try == 0) {
        model_tell(m, bad, slow, now);
        return;
    }
    if (m->force != WEIR_UNFORCED || m->state != WEIR_BREAKER_HALF_OPEN || p->try != m->try) {
        happened[LATE_PROBE_TOLD]++;
        return;
    }
    m->out--;
    m->back++;
    m->bad += bad;
    m->slow += slow;
    model_probes(m, now);
}

static void walk_tell(struct walk *w, const struct pending *p, int64_t bad_in_ten)
{
    enum weir_breaker_state before = w->m.state;
    bool bad = between(1, 10) <= bad_in_ten;
    weir_time took = w->o.slow == 0                 ? between(0, WEIR_SECOND)
                     : one_in(3)                    ? w->o.slow
                     : between(1, 10) <= bad_in_ten ? w->o.slow + 1
                                                    : 0;
    struct weir__breaker_move move =
        weir__breaker_tell(&w->plan, &w->breaker, p->probe, bad, took, w->now);

    model_end(&w->m, p, bad, w->o.slow != 0 && took > w->o.slow, w->now);
    SAME((move.from != move.to) == (before != w->m.state));
    SAME(move.from == move.to || (move.from == before && move.to == w->m.state));
    if (before != w->m.state && w->m.state == WEIR_BREAKER_OPEN)
        check_opened(w);
}

static void walk_give(struct walk *w, const struct pending *p)
{
    bool ours = p->try != 0 && p->try == w->m.try && w->m.state == WEIR_BREAKER_HALF_OPEN &&
                w->m.force == WEIR_UNFORCED;

    weir__breaker_give(&w->breaker, p->probe);
    happened[PROBE_GIVEN] += ours;
    happened[LATE_PROBE_GIVEN] += p->try != 0 && !ours;
    w->m.out -= ours;
}

/* Of a probe that is 40 tries old the number has not come round yet; of an older one it may
 * have. */
static void walk_end(struct walk *w, int64_t bad_in_ten)
{
    struct pending *p = &w->pending[between(0, PENDING - 1)];

    if (!p->used)
        return;
    p->used = false;
    if (p->try != 0 && w->m.try - p->try > 40)
        return;
    if (one_in(10))
        walk_give(w, p);
    else
        walk_tell(w, p, bad_in_ten);
}

static void walk_force(struct walk *w)
{
    enum weir_force force = (enum weir_force)between(0, 2);

    happened[force == WEIR_FORCE_OPEN     ? FORCED_OPEN
             : force == WEIR_FORCE_CLOSED ? FORCED_CLOSED
                                          : UNFORCED]++;
    weir__breaker_force(&w->breaker, force, w->now);
    model_close(&w->m, force, w->now);
}

static void walk_time(struct walk *w)
{
    weir_time part = w->o.window != 0 ? w->o.window / 16 : WEIR_SECOND, now = w->now;

    if (one_in(w->slowness))
        now += between(0, 2 * part);
    else if (one_in(60))
        now += between(0, 40 * part);
    else if (one_in(30) && w->m.state == WEIR_BREAKER_OPEN)
        now = w->m.at - between(0, 1);
    else if (one_in(100))
        now -= between(0, 14 * part);
    else if (one_in(400))
        now = between(0, now);
    w->now = now < 0 ? 0 : now;
}

static int64_t steps;

static void play(void)
{
    static struct walk w;
    int64_t bad_in_ten = between(0, 10);

    walk_begin(&w);
    for (int i = 0; i < 1000 && w.m.n < CALLS_MAX - 1; i++, steps++) {
        if (one_in(50))
            bad_in_ten = between(0, 10);
        if (one_in(2))
            walk_ask(&w);
        else
            walk_end(&w, bad_in_ten);
        if (one_in(300) || (w.m.force && one_in(30)))
            walk_force(&w);
        check_look(&w);
        walk_time(&w);
    }
}

int main(int argc, char **argv)
{
    uint64_t rounds = play_rounds(argc, argv, 1000, play);
    int missing = 0;

    for (int i = 0; i < EVENTS; i++) {
        printf("%10" PRId64 "  %s\n", happened[i], event_names[i]);
        missing += happened[i] == 0 && rounds > 1;
    }
    printf("%" PRId64 " steps; %d passed, %d failed\n", steps, EVENTS - missing, missing);
    return missing != 0;
}
