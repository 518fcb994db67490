/* debt.h -- the arithmetic of algorithms in which a key owes time: gcra, token-bucket, leaky-bucket and smooth.
 *
 * Each unit taken adds plan->price parts of debt, each nanosecond pays off plan->scale parts (algo.h says what a part is).  The state is
 * the debt and the moment it was reckoned at:
 *
 *     0  int64  at      the latest moment this key has seen
 *     8  int64  owed    parts owed at that moment; below zero: saved up (smooth only)
 *
 * Why not one time, "paid off at", as GCRA is usually told?  Because an ask from a thread that was overtaken would look like more debt,
 * and after the clock is set back a key would be locked out until it catches up.  A table with narrow slots does keep only that one time
 * (weir__pack), and pays this price.
 *
 * No overflow: a plan's capacity is at most 2^60 parts (weir__debt_prepare sees to it), debt is cut at 2^61.
 */
#ifndef WEIR_ALGO_DEBT_H
#define WEIR_ALGO_DEBT_H

#include "algo/algo.h"

#define WEIR__OWED_MAX ((int64_t)1 << 61)
#define WEIR__CAPACITY_MAX ((int64_t)1 << 60)

struct weir__debt {
    weir_time at;
    int64_t owed;
};

int weir__debt_prepare(struct weir_plan *plan, int64_t most, struct weir_error *error);

/* Brings the debt up to `now`, down to `floor` at the least.  True if the clock has stepped back: then the debt stays what it was, and time
 * goes on from the new now.  A damaged state may hold anything: whatever it is comes out within bounds. */
static inline bool weir__debt_reckon(const struct weir_plan *plan, struct weir__debt *s, weir_time now, int64_t floor)
{
    weir_time passed = now - (s->at & INT64_MAX);
    bool stepped = passed < -WEIR__LATE_MAX;
    weir__i128 owed = s->owed;
    if (__builtin_expect(passed >= 0, 1))
        owed -= (weir__i128)((weir__u128)(uint64_t)passed * plan->by_scale.by);
    s->owed = owed < floor ? floor : owed > WEIR__OWED_MAX ? WEIR__OWED_MAX : (int64_t)owed;
    if (passed >= 0 || stepped)
        s->at = now;
    return stepped;
}

/* Parts as a span, rounded up. */
static inline weir_time weir__parts_time(const struct weir_plan *plan, int64_t parts)
{
    return parts <= 0 ? 0 : plan->by_scale.by == 1 ? parts : (weir_time)weir__divide_up((uint64_t)parts, &plan->by_scale);
}

static inline int64_t weir__parts_units(const struct weir_plan *plan, int64_t parts)
{
    return parts <= 0 ? 0 : (int64_t)weir__divide((uint64_t)parts, &plan->by_price);
}

/* The meter: an ask passes once the debt it would leave is within the capacity.  gcra, token-bucket, and leaky-bucket without a queue. */
static inline bool weir__debt_meter(const struct weir_plan *plan, struct weir__debt *state, const struct weir_ask *ask, bool take,
                                    struct weir_decision *d)
{
    struct weir__debt s = *state;
    bool stepped = weir__debt_reckon(plan, &s, ask->now, 0);
    if (__builtin_expect(stepped && take, 0))
        *state = s;
    if (ask->cost > plan->most) {
        d->remaining = weir__parts_units(plan, plan->capacity - s.owed);
        d->reset = weir__parts_time(plan, s.owed);
        return weir__refuse(d, WEIR_NEVER);
    }
    int64_t after = s.owed + ask->cost * plan->price;
    weir_time wait = weir__parts_time(plan, after - plan->capacity);
    if (wait > ask->wait_max || after > WEIR__OWED_MAX) {
        d->remaining = weir__parts_units(plan, plan->capacity - s.owed);
        d->reset = weir__parts_time(plan, s.owed);
        weir_time over = weir__parts_time(plan, after - WEIR__OWED_MAX);
        return weir__refuse(d, wait - ask->wait_max > over ? wait - ask->wait_max : over);
    }
    s.owed = after;
    d->remaining = weir__parts_units(plan, plan->capacity - after);
    d->reset = weir__parts_time(plan, after);
    if (take && ask->cost > 0)
        *state = s;
    return weir__grant(d, wait);
}

void weir__debt_give(const struct weir_plan *plan, void *state, int64_t units, weir_time now);
weir_time weir__debt_idle_at(const struct weir_plan *plan, const void *state);

/* a * b / c, rounded up; b and c positive; cut to the int64 that debt may be. */
static inline int64_t weir__scale_up(int64_t a, int64_t b, int64_t c)
{
    weir__i128 product = (weir__i128)a * b;
    weir__i128 q = product / c;
    q += q * c != product && product > 0;
    return q > WEIR__OWED_MAX ? WEIR__OWED_MAX : q < -WEIR__OWED_MAX ? -WEIR__OWED_MAX : (int64_t)q;
}

/* One word for a narrow slot: the moment the debt is paid off.  Only where a part is a nanosecond (scale 1), and only for meters, which save
 * nothing up.  Unpacking makes the debt that of `now`; more than could have been granted means that the clock has stepped back, and is
 * cut to a spent key's. */
#define WEIR__PACKED_WAIT_MAX (60 * WEIR_SECOND)

static inline uint64_t weir__pack(const void *state)
{
    const struct weir__debt *s = state;
    return s->owed <= 0 ? 0 : s->owed > INT64_MAX - s->at ? INT64_MAX : (uint64_t)(s->at + s->owed);
}

static inline void weir__unpack(const struct weir_plan *plan, uint64_t word, weir_time now, void *state)
{
    struct weir__debt *s = state;
    weir_time owed = (weir_time)(word & INT64_MAX) - now;
    *s = (struct weir__debt){ 0, 0 };
    if (owed > 0)
        *s = (struct weir__debt){ now, owed > plan->capacity + WEIR__PACKED_WAIT_MAX + WEIR__LATE_MAX ? plan->capacity : owed };
}

#endif
