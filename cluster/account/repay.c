/* repay.c -- units that a node has drawn and does not need count again: the rules are in
 * draw-size.h. */
#include "algo/debt.h"
#include "algo/window.h"
#include "cluster/account/draw-size.h"
#include "cluster/account/layout.h"

static int64_t less(int64_t a, int64_t b)
{
    return a > b ? a - b : 0;
}

/* --------------------------------------------------------------- meters ---- */

static int64_t owed_at(const struct weir_plan *plan, const struct weir__debt *s, weir_time now)
{
    struct weir__debt copy = *s;

    weir__debt_reckon(plan, &copy, now, 0);
    return copy.owed;
}

/* The debt only shrinks until somebody draws.  So the least of an epoch is found before each draw,
 * and at the first look into the next epoch. */
void weir__demand_look(struct weir__demand *d, const struct weir_plan *plan, const void *state,
                       weir_time now)
{
    int64_t epoch = weir__draw_terms(plan).life / WEIR_MICROSECOND, us = now / WEIR_MICROSECOND;
    int64_t start = us - us % epoch;
    int64_t owed = weir__int_least(owed_at(plan, state, now) / weir__account_rate(plan),
                                   WEIR__DEMAND_DEBT_MAX);

    if (start == d->life_since) {
        d->least = weir__int_least(d->least, owed);
        return;
    }
    d->life_since = start;
    d->least_before = d->least;
    d->least = owed;
}

/* In us: what was owed all the time since these units were drawn.  A node that stood still may pay
 * back late, and what was owed before the last epoch nobody knows. */
static int64_t owed_since(const struct weir_plan *plan, const struct weir__demand *d,
                          const struct weir__repay *repay)
{
    int64_t epoch = weir__draw_terms(plan).life / WEIR_MICROSECOND;

    return repay->drawn_at / WEIR_MICROSECOND < d->life_since - epoch
               ? 0
               : weir__int_least(d->least_before, d->least);
}

/* Parts that count again. */
static weir__i128 parts_back(const struct weir_plan *plan, const struct weir__demand *d,
                             const struct weir__repay *repay, weir_time now)
{
    weir__i128 rate = weir__account_rate(plan), price = (weir__i128)repay->units * plan->price;
    weir__i128 always = owed_since(plan, d, repay) * rate;
    weir_time age = now - repay->drawn_at;
    weir__i128 since = age > weir__draw_terms(plan).life
                           ? 0
                           : price - (age + WEIR_MICROSECOND - 1) / WEIR_MICROSECOND * rate;
    weir__i128 back = always > since ? always : since;

    return back < price ? back : price;
}

static int64_t repay_meter(const struct weir_plan *plan, struct weir__debt *s,
                           struct weir__demand *d, const struct weir__repay *repay, weir_time now)
{
    weir__i128 rate = weir__account_rate(plan), back = parts_back(plan, d, repay, now);
    int64_t owed = owed_at(plan, s, now);

    back = back < owed ? back : owed;
    if (back == 0)
        return 0;
    weir__debt_reckon(plan, s, now, 0);
    s->owed -= (int64_t)back;
    int64_t us = (int64_t)((back + rate - 1) / rate);
    d->least_before = less(d->least_before, us);
    d->least = less(d->least, us);
    return (int64_t)((back + plan->price - 1) / plan->price);
}

/* -------------------------------------------------------------- windows ---- */

static bool is_of_window(const struct weir_plan *plan, weir_time end, weir_time drawn_at)
{
    weir_time start;

    if (plan->algo == &weir__fixed_window)
        return drawn_at < end && drawn_at >= end - plan->limit.period;
    weir_time length = weir__calendar_window(plan, drawn_at, &start);
    return start + length == end;
}

static int64_t repay_window(const struct weir_plan *plan, struct weir__window_state *s,
                            const struct weir__repay *repay, weir_time now)
{
    if (now >= s->end || s->used > plan->limit.count ||
        !is_of_window(plan, s->end, repay->drawn_at))
        return 0;
    int64_t back = weir__int_least(repay->units, s->used);
    s->used -= back;
    return back;
}

int64_t weir__draw_repay(const struct weir_plan *plan, void *state, struct weir__demand *demand,
                         const struct weir__repay *repay, weir_time now)
{
    if (weir__is_meter(plan))
        weir__demand_look(demand, plan, state, now);
    if (repay->units < 1 || repay->drawn_at < 0 || repay->drawn_at > now)
        return 0;
    if (weir__is_meter(plan))
        return repay_meter(plan, state, demand, repay, now);
    if (plan->algo == &weir__fixed_window || plan->algo == &weir__calendar)
        return repay_window(plan, state, repay, now);
    if (plan->algo == &weir__sliding_window)
        return weir__buckets_return(plan, state, repay->units, repay->drawn_at);
    if (plan->algo == &weir__sliding_log)
        return weir__log_return(plan, state, repay->units, repay->drawn_at);
    return 0;
}
