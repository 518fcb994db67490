/* debt.h -- the arithmetic of algorithms in which a key owes time: gcra, token-bucket, leaky-bucket
 * and smooth.
 *
 * Each unit taken adds plan->price parts of debt, each nanosecond pays off plan->scale parts
 * (algo.h explains parts).  The state is the debt and its time:
 *
 *     0  int64  at      the latest moment this key has seen
 *     8  int64  owed    parts owed at that moment; below zero: saved up (smooth only)
 *
 * Why not one time, "paid off at", as in most descriptions of GCRA? Because an ask from a thread
 * that was overtaken would look like more debt, and after the clock is set back a key would be
 * locked out until it catches up.  A table with narrow slots does keep only that one time
 * (weir__pack), and pays this price.
 *
 * No overflow: weir__debt_prepare bounds a plan's capacity by 2^60 parts, and debt is cut at 2^61.
 */
#ifndef WEIR_ALGO_DEBT_H
#define WEIR_ALGO_DEBT_H

#include "algo/algo.h"

#define WEIR__OWED_MAX     ((int64_t)1 << 61)
#define WEIR__CAPACITY_MAX ((int64_t)1 << 60)

struct weir__debt {
    weir_time at;
    int64_t owed;
};

int weir__debt_prepare(struct weir_plan *plan, int64_t most, struct weir_error *error);

/* The debt at `now`, at least `floor`.  *at, the time of the debt, moves on to now, or to the
 * present if the asker was stopped; or back, if the clock has stepped back, and then the debt
 * stays.  A damaged state comes out within bounds. */
static inline int64_t weir__debt_at(const struct weir_plan *plan, weir_time *at, int64_t owed,
                                    weir_time now, int64_t floor)
{
    weir_time passed = now - (*at & INT64_MAX);
    int64_t paid;

    owed = owed > WEIR__OWED_MAX ? WEIR__OWED_MAX : owed < floor ? floor : owed;
    if (__builtin_expect(passed < -WEIR__LATE_MAX, 0)) {
        now = weir__moment(plan->clock, *at & INT64_MAX, now);
        passed = now - (*at & INT64_MAX);
    }
    if (__builtin_expect(passed < 0, 0)) {
        *at = passed < -WEIR__LATE_MAX ? now : *at & INT64_MAX;
        return owed;
    }
    *at = now;
    if (__builtin_expect(__builtin_mul_overflow(passed, (int64_t)plan->by_scale.by, &paid), 0))
        return floor;
    return paid < owed - floor ? owed - paid : floor;
}

/* The same on a state.  True if the clock has stepped back. */
static inline bool weir__debt_reckon(const struct weir_plan *plan, struct weir__debt *s,
                                     weir_time now, int64_t floor)
{
    weir_time was = s->at & INT64_MAX;

    s->owed = weir__debt_at(plan, &s->at, s->owed, now, floor);
    return s->at < was;
}

/* Parts as a span, rounded up. */
static inline weir_time weir__parts_time(const struct weir_plan *plan, int64_t parts)
{
    return parts <= 0               ? 0
           : plan->by_scale.by == 1 ? parts
                                    : (weir_time)weir__divide_up((uint64_t)parts, &plan->by_scale);
}

static inline int64_t weir__parts_units(const struct weir_plan *plan, int64_t parts)
{
    return parts < plan->price ? 0 : (int64_t)weir__divide((uint64_t)parts, &plan->by_price);
}

/* The meter: an ask passes once the debt it would leave is within the capacity.  gcra,
 * token-bucket, and leaky-bucket without a queue.
 *
 * weir__debt_meter is all of it.  weir__debt_quick has only the cases that make the speed of a
 * decision: an ask that passes at once, or is refused because it would have to wait and will
 * not. */
enum weir__quick { WEIR__QUICK_NO, WEIR__QUICK_YES, WEIR__NOT_QUICK };

static inline __attribute__((always_inline)) enum weir__quick
weir__debt_quick(const struct weir_plan *plan, int64_t owed, const struct weir_ask *ask,
                 struct weir_decision *d, int64_t *after)
{
    int64_t room = plan->capacity - owed, price;

    if (__builtin_expect(__builtin_mul_overflow(ask->cost, plan->price, &price), 0))
        return WEIR__NOT_QUICK;
    if (price <= room) {
        *after = owed + price;
        d->remaining = weir__parts_units(plan, room - price);
        d->reset = weir__parts_time(plan, owed + price);
        weir__grant(d, 0);
        return WEIR__QUICK_YES;
    }
    if (ask->wait_max != 0 || ask->cost > plan->most)
        return WEIR__NOT_QUICK;
    *after = owed;
    d->remaining = weir__parts_units(plan, room);
    d->reset = weir__parts_time(plan, owed);
    weir__refuse_until(d, weir__parts_time(plan, price - room));
    return WEIR__QUICK_NO;
}

bool weir__debt_meter(const struct weir_plan *plan, int64_t owed, const struct weir_ask *ask,
                      struct weir_decision *d, int64_t *after);

/* The same on a state. */
bool weir__debt_step_slow(const struct weir_plan *plan, struct weir__debt *state,
                          const struct weir_ask *ask, bool take, struct weir_decision *d);

static inline bool weir__debt_step(const struct weir_plan *plan, void *state,
                                   const struct weir_ask *ask, bool take, struct weir_decision *d)
{
    struct weir__debt *s = state;
    weir_time now = ask->now;
    int64_t owed = s->owed, paid, after;
    bool odd = (uint64_t)s->at > (uint64_t)now ||
               (uint64_t)owed > (uint64_t)WEIR__OWED_MAX; /* late, stepped back, or damaged */

    if (__builtin_expect(
            odd || __builtin_mul_overflow(now - s->at, (int64_t)plan->by_scale.by, &paid), 0))
        return weir__debt_step_slow(plan, state, ask, take, d);
    owed = paid < owed ? owed - paid : 0;
    enum weir__quick quick = weir__debt_quick(plan, owed, ask, d, &after);
    if (__builtin_expect(quick == WEIR__NOT_QUICK, 0))
        return weir__debt_step_slow(plan, state, ask, take, d);
    if (quick == WEIR__QUICK_YES && take && ask->cost > 0) {
        s->at = now;
        s->owed = after;
    }
    return quick == WEIR__QUICK_YES;
}

void weir__debt_give(const struct weir_plan *plan, void *state, int64_t units, weir_time now);
void weir__debt_give_unused(const struct weir_plan *plan, void *state,
                            const struct weir__unused *unused, weir_time now);
/* The parts of an ask's debt that only its unused units have left.  Had it taken `kept` alone, the
 * key could not have been free of debt before these were paid; since then, it may have been all the
 * time, and time that passes without debt is lost. */
int64_t weir__debt_unused(const struct weir_plan *plan, const struct weir__unused *unused,
                          weir_time now);
weir_time weir__debt_idle_at(const struct weir_plan *plan, const void *state);

/* a * b / c, rounded up; b and c positive; cut to the bounds of a debt. */
static inline int64_t weir__scale_up(int64_t a, int64_t b, int64_t c)
{
    weir__i128 product = (weir__i128)a * b;
    weir__i128 q = product / c;

    q += q * c != product && product > 0;
    return q > WEIR__OWED_MAX ? WEIR__OWED_MAX : q < -WEIR__OWED_MAX ? -WEIR__OWED_MAX : (int64_t)q;
}

/* One word for a narrow slot: the moment the debt is paid off.  Only where a part is a nanosecond
 * (scale 1), and only for meters, which save nothing up.  Unpacking gives the debt at *now.  More
 * than could have been granted means that the asker was stopped, and then *now becomes the present;
 * or that the clock has stepped back, and then it becomes the debt of a spent key. */
#define WEIR__PACKED_WAIT_MAX (60 * WEIR_SECOND)

static inline uint64_t weir__pack(weir_time now, int64_t owed)
{
    uint64_t paid_off = (uint64_t)now + (uint64_t)owed;

    return paid_off > INT64_MAX ? INT64_MAX : paid_off;
}

int64_t weir__unpack_late(const struct weir_plan *plan, uint64_t word, weir_time *now,
                          bool *stepped);

static inline int64_t weir__unpack(const struct weir_plan *plan, uint64_t word, weir_time *now,
                                   bool *stepped)
{
    int64_t owed = (int64_t)(word & INT64_MAX) - *now;

    *stepped = false;
    if (__builtin_expect(owed > plan->capacity + WEIR__PACKED_WAIT_MAX + WEIR__LATE_MAX, 0))
        return weir__unpack_late(plan, word, now, stepped);
    return owed < 0 ? 0 : owed;
}

#endif
