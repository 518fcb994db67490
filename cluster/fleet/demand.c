/* demand.c -- the demand at this node: how much is asked for, and so how much to draw and when. */
#include "cluster/fleet/demand.h"

#include "algo/purse.h"

#define RATE_SPAN  (1000 * WEIR_SECOND) /* rates are units in this time */
#define RATE_MAX   ((int64_t)1 << 50)
#define FAST_MOST  (200 * WEIR_MILLISECOND)
#define PAUSE_MOST 4 /* paces */
#define WHOLE      1000000
#define SHIFT_MOST 16
#define FALL       (10 * WEIR_SECOND)

/* From empty to full. */
static weir_time fill_time(const struct weir_plan *plan)
{
    weir__i128 span = (weir__i128)plan->most * plan->limit.period / plan->limit.count;

    return span > INT64_MAX ? INT64_MAX : (weir_time)span;
}

int weir__fleet_limit_make(struct weir__fleet_limit *out, const struct weir_plan *plan,
                           struct weir_error *error)
{
    struct weir__fleet_limit l = { .plan = plan, .terms = weir__draw_terms(plan) };
    struct weir_limit purse = weir__purse_limit(plan);
    int code = weir__plan_make(&l.purse, &purse, error);

    if (code)
        return code;
    l.slow_span = 2 * l.terms.horizon;
    l.fast_span = weir__int_least(l.slow_span, FAST_MOST);
    l.pause_most = l.terms.window ? WEIR_NEVER : fill_time(plan) / 3;
    *out = l;
    return WEIR_OK;
}

static int64_t average(int64_t rate, weir_time span, int64_t units, weir_time passed)
{
    weir__i128 sum = (weir__i128)rate * span + (weir__i128)units * RATE_SPAN;

    sum /= (weir__i128)span + passed;
    return sum > RATE_MAX ? RATE_MAX : (int64_t)sum;
}

void weir__fleet_rate_count(struct weir__fleet_rate *r, const struct weir__fleet_limit *limit,
                            int64_t units, weir_time now)
{
    weir_time passed = now > r->at ? now - r->at : 0;

    if (passed > RATE_SPAN) /* long ago, or never */
        r->fast = r->slow = 0;
    units = weir__int_most(0, units);
    r->fast = average(r->fast, limit->fast_span, units, passed > RATE_SPAN ? 0 : passed);
    r->slow = average(r->slow, limit->slow_span, units, passed > RATE_SPAN ? 0 : passed);
    r->at = now;
}

static int64_t without(int64_t rate, weir_time span, int64_t units)
{
    weir__i128 part = (weir__i128)units * RATE_SPAN / span;

    return part < rate ? rate - (int64_t)part : 0;
}

void weir__fleet_rate_uncount(struct weir__fleet_rate *r, const struct weir__fleet_limit *limit,
                              int64_t units)
{
    r->fast = without(r->fast, limit->fast_span, units);
    r->slow = without(r->slow, limit->slow_span, units);
}

static int64_t in_span(int64_t rate, weir_time span)
{
    return (int64_t)((weir__i128)rate * span / RATE_SPAN);
}

int64_t weir__fleet_coming(const struct weir__fleet_limit *limit,
                           const struct weir__fleet_rate *rate)
{
    return in_span(rate->slow, limit->terms.horizon);
}

int64_t weir__fleet_low_water(const struct weir__fleet_limit *limit,
                              const struct weir__fleet_rate *rate, weir_time round_trip,
                              int64_t share)
{
    return weir__int_least(
        weir__int_most(2 * in_span(rate->slow, round_trip), weir__fleet_coming(limit, rate) / 4),
        share / 4);
}

weir_time weir__fleet_pause(const struct weir__fleet_limit *limit, const struct weir__draw *draw,
                            const struct weir__drawn *drawn, uint32_t chance)
{
    weir_time pace = limit->terms.pace, pause = PAUSE_MOST * pace;
    int64_t units = weir__int_most(drawn->units, draw->need);

    if (drawn->share > 0 && units / drawn->share < PAUSE_MOST)
        pause = weir__int_most(pace, (weir_time)((weir__i128)pace * units / drawn->share));
    pause = weir__int_least(pause, limit->pause_most);
    /* 0.9 to 1.1 of it */
    return pause - pause / 10 + (weir_time)((weir__i128)(pause / 5) * chance >> 32);
}

/* ------------------------------------------------------------------ parts ---- */

int64_t weir__fleet_part_asked(const struct weir__fleet_limit *limit,
                               const struct weir__fleet_rate *rate)
{
    const struct weir_limit *l = &limit->plan->limit;
    weir__i128 units = (weir__i128)rate->slow * weir__window_longest(limit->plan) / RATE_SPAN;

    return units >= l->count ? WHOLE : (int64_t)(units * WHOLE / l->count);
}

int64_t weir__fleet_want(struct weir__fleet_want *want, int64_t asked, weir_time now)
{
    while (want->shift > 0 && 2 * asked > WHOLE >> want->shift) {
        want->shift--;
        want->since = now;
    }
    if (4 * asked > WHOLE >> want->shift || want->shift == SHIFT_MOST || want->since == 0)
        want->since = now;
    if (now - want->since >= FALL) {
        want->shift++;
        want->since = now;
    }
    return WHOLE >> want->shift;
}
