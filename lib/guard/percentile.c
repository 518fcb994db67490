/* percentile.c -- keeps a percentile of the time below a target: halve, slow start, settle.
 *
 * The percentile is over the last `window` (10 s), or the part of it since the limit changed:
 * earlier samples say nothing about the present limit.  Dropped and timed-out work counts as
 * slowest.
 *
 *     above the target     it has broken: note where, and take a half off; the next time a quarter,
 *                          then an eighth, ... at least 1/32
 *     above it once more   although it went down: the cut was too small; from 1/32 to 1/8 to 1/2
 *     clearly below it     slow start: up by a quarter of the cut, then twice that, ... and
 *                          stop where it broke
 *     still below there    the backend has become faster: on, each time by twice as much, up to
 *                          doubling, until it breaks again
 *     in between           hold: from 7/8 of the target to the target is as close as it should get
 *
 * So if every rise ends at the same place, the swings become smaller and, because it waits 1, 2, 4,
 * ... 16 looks before it rises again, rarer: it settles.  It rises only while the limit is in use,
 * so it does not drift away from demand; and it cuts the actual use: a limit of 1000 with 10 at
 * work becomes 5, not 500.
 *
 * All this is the same for a concurrency limit and for a rate.
 *
 *     state   the limit, where it broke, the next step up, the last cut (as a power of two), and
 *             how many were lost in each part of the window (the histogram has only those that
 *             succeeded)
 *
 * TCP Reno's slow start and threshold, with a damped cut.  Why not a proportional step: how times
 * depend on the limit is not known, and it is a cliff as often as a slope; bisection ends close to
 * either.
 */
#include "guard/controller.h"

#include <stdio.h>

#include "guard/arithmetic.h"

#define CUT_MAX 5 /* 1/32 */

enum phase { FRESH, RISING, HOLDING, CUT };

struct state {
    double limit; /* 0: fresh */
    double broke; /* where; 0: not known */
    double rise;  /* the next step up */
    uint32_t cut; /* the last one was 2^-cut; 0: none yet */
    uint32_t phase;
    uint32_t rose;     /* since the last cut */
    uint32_t patience; /* looks until it may rise */
    uint32_t sees;     /* there are samples of this limit */
    weir_time settled; /* samples that begin from then on are of this limit */
    weir_time since;   /* when the first of those began */
    weir_time seen;    /* the last percentile; WEIR_NEVER: lost */
    int64_t lost_part;
    uint32_t lost[WEIR__RECENT_PARTS];
};

_Static_assert(sizeof(struct state) <= WEIR__CONTROLLER_OWN, "fits");

/* ------------------------------------------------------------------- lost ---- */

/* Stuck work counts as lost too: something is at work, but nothing has come or gone for longer than
 * the target. */
static int64_t lost_in(const struct weir__controller_plan *plan, const struct weir__sample *sample)
{
    int64_t ended = sample->succeeded + sample->failed + sample->timed_out + sample->dropped;
    bool stuck =
        ended == 0 && sample->entered == 0 && sample->in_flight > 0 && sample->span > plan->target;

    return stuck ? sample->in_flight : sample->timed_out + sample->dropped;
}

static void note_lost(const struct weir__controller_plan *plan, struct state *s,
                      const struct weir__sample *sample)
{
    int64_t part = weir__recent_part(plan->window, sample->now), lost = lost_in(plan, sample);
    int64_t gone = part < s->lost_part || part - s->lost_part > WEIR__RECENT_PARTS
                       ? WEIR__RECENT_PARTS
                       : part - s->lost_part;

    for (int64_t i = 0; i < gone; i++)
        s->lost[(part % WEIR__RECENT_PARTS + WEIR__RECENT_PARTS - i) % WEIR__RECENT_PARTS] = 0;
    s->lost_part = part;
    uint32_t *here = &s->lost[part % WEIR__RECENT_PARTS];
    *here = lost > (int64_t)(UINT32_MAX - *here) ? UINT32_MAX : *here + (uint32_t)lost;
}

static int64_t count_lost(const struct weir__controller_plan *plan, const struct state *s)
{
    int64_t n = 0, first = weir__recent_part(plan->window, s->since) + (s->since > 0);
    int64_t last = s->lost_part;

    for (int64_t i = 0; i < WEIR__RECENT_PARTS && last - i >= first; i++)
        n += s->lost[(last - i) % WEIR__RECENT_PARTS];
    return n;
}

/* ------------------------------------------------------------------ judge ---- */

enum verdict { UNKNOWN, BAD, CLOSE, GOOD };

/* The percentile of all that ended; lost work is slowest. */
static weir_time look(const struct weir__controller_plan *plan, const struct state *s,
                      const struct weir__sample *sample, int64_t ended, int64_t lost)
{
    int64_t all = ended + lost, rank = (all * plan->percentile + 99) / 100; /* from 1 */

    if (rank > ended)
        return WEIR_NEVER;
    int64_t permille = (rank * 1000 + ended / 2) / ended;
    return weir__recent_quantile_since(sample->recent, plan->window, sample->now, s->since,
                                       (int)permille);
}

/* A percentile of a few samples says little: it takes enough for two above it, or a whole
 * window. */
static bool is_enough(const struct weir__controller_plan *plan, const struct state *s,
                      const struct weir__sample *sample, int64_t n)
{
    return n >= 200 / (100 - plan->percentile) || (n > 0 && sample->now - s->since >= plan->window);
}

static enum verdict judge(const struct weir__controller_plan *plan, struct state *s,
                          const struct weir__sample *sample)
{
    weir_time begun = sample->now - sample->span;

    if (!s->sees && begun < s->settled && s->settled - begun <= plan->window)
        return UNKNOWN;
    if (!s->sees || s->since > sample->now)
        s->since = begun > 0 ? begun : 0;
    s->sees = 1;
    int64_t ended = weir__recent_count_since(sample->recent, plan->window, sample->now, s->since),
            lost = count_lost(plan, s);
    if (!is_enough(plan, s, sample, ended + lost))
        return UNKNOWN;
    s->seen = look(plan, s, sample, ended, lost);
    return s->seen > plan->target ? BAD : s->seen > plan->target / 8 * 7 ? CLOSE : GOOD;
}

/* ------------------------------------------------------------------- move ---- */

static double in_use(const struct weir__controller_plan *plan, const struct weir__sample *sample)
{
    return !plan->rate        ? (double)sample->in_flight_max
           : sample->span > 0 ? (double)sample->entered * 1e9 / (double)sample->span
                              : 0;
}

static bool is_needed(const struct weir__controller_plan *plan, const struct state *s,
                      const struct weir__sample *sample)
{
    return sample->refused > 0 || in_use(plan, sample) >= s->limit * 0.75;
}

/* Sets another limit.  Work in progress still belongs to the old one, for as long as work takes. */
static void move(const struct weir__controller_plan *plan, struct state *s,
                 const struct weir__sample *sample, double limit, enum phase phase)
{
    weir_time rest = s->seen < plan->window / 2 ? s->seen : plan->window / 2;

    s->limit = weir__between((double)plan->min, limit, (double)plan->max);
    s->phase = phase;
    s->settled = sample->now < WEIR_NEVER - rest ? sample->now + rest : WEIR_NEVER;
    s->sees = 0;
}

static void cut(const struct weir__controller_plan *plan, struct state *s,
                const struct weir__sample *sample)
{
    double used = in_use(plan, sample);

    if (s->cut == 0)
        s->cut = 1;
    else if (s->rose)
        s->cut += s->cut < CUT_MAX;
    else
        s->cut = s->cut > 2 ? s->cut - 2 : 1;
    s->broke = used >= 1 && used < s->limit ? used : s->limit;
    double limit = s->broke - weir__most(s->broke / (double)(1u << s->cut), 1);
    s->rise = (s->broke - limit) / 4;
    s->rose = 0;
    s->patience = 1u << (s->cut - 1);
    move(plan, s, sample, limit, CUT);
}

/* Up to where it broke, then beyond; each step is twice the last. */
static void rise(const struct weir__controller_plan *plan, struct state *s,
                 const struct weir__sample *sample)
{
    double step = weir__between(1, s->rise, weir__most(s->limit, 1)), limit = s->limit + step;

    if (s->broke > 0 && s->limit >= s->broke) {
        s->broke = 0; /* it holds there now */
        s->cut -= s->cut > 1;
    } else if (s->broke > 0 && limit > s->broke)
        limit = s->broke;
    s->rise = step * 2;
    s->rose = 1;
    move(plan, s, sample, limit, RISING);
}

static double step(const struct weir__controller_plan *plan, void *state,
                   const struct weir__sample *sample)
{
    struct state *s = state;

    if (s->phase == FRESH) {
        s->limit = s->rise = (double)plan->initial;
        s->phase = RISING;
    }
    /* The bounds may have changed. */
    s->limit = weir__between((double)plan->min, s->limit, (double)plan->max);
    note_lost(plan, s, sample);
    enum verdict verdict = judge(plan, s, sample);
    if (verdict == BAD)
        cut(plan, s, sample);
    else if (verdict == GOOD && s->patience > 0)
        s->patience--;
    else if (verdict == GOOD && is_needed(plan, s, sample) && s->limit < (double)plan->max)
        rise(plan, s, sample);
    else if (verdict == CLOSE)
        s->phase = HOLDING;
    return s->limit;
}

static int check(const struct weir__controller_plan *plan, struct weir_error *error)
{
    if (plan->target == 0)
        return weir__fail(
            error, WEIR_INVALID,
            "percentile needs a target: the time that must not be exceeded, such as 200ms");
    return WEIR_OK;
}

static void tell(const void *state, char *out, size_t size)
{
    static const char *const phases[] = { "fresh", "rising", "holding", "cut" };
    const struct state *s = state;
    char seen[32] = "lost";

    if (s->seen != WEIR_NEVER)
        weir_time_print(seen, sizeof(seen), weir__three_digits(weir__int_most(s->seen, 0)));
    snprintf(out, size, "%s, at %s", phases[s->phase & 3], seen);
}

const struct weir__controller weir__controller_percentile = {
    .name = "percentile",
    .summary = "keeps the 99th (or another) percentile of the time below a target: halve, slow "
               "start, settle",
    .defaults = { .initial = 20,
                  .min = 1,
                  .max = 16384,
                  .window = 10 * WEIR_SECOND,
                  .sample_count = 1,
                  .percentile = 99 },
    .check = check,
    .step = step,
    .tell = tell,
};
