/* smooth.c -- the pre-borrowing bucket: an ask waits for the debt of those before it, and leaves
 * its own cost to the next.
 *
 * So a key that owes nothing lets in even a very large ask at once, and the asks after it wait.
 * Unused time is saved up, to at most burst units' worth, and pays for later asks.
 *
 *     state   struct weir__debt (debt.h): owed > 0 is debt, owed < 0 is saved up
 *     bound   counted at the moments of use, burst + rate * T plus the one ask that borrows, in any
 *             interval of length T
 *
 * Guava's RateLimiter ("SmoothBursty").  A state of zeros owed nothing and had nothing saved at
 * time 0, like a RateLimiter created then; so on any clock that has run for a while a fresh key has
 * its burst saved up, like one that was idle for long.  Deviations: nothing is rounded to
 * microseconds; the burst is a member of the limit, not one second's worth.
 */
#include "algo/debt.h"

static int prepare(struct weir_plan *plan, struct weir_error *error)
{
    int code = weir__debt_prepare(plan, plan->limit.burst, error);

    plan->packs = false; /* savings would be lost */
    return code;
}

static bool step(const struct weir_plan *plan, void *state, const struct weir_ask *ask, bool take,
                 struct weir_decision *d)
{
    struct weir__debt s = *(struct weir__debt *)state;

    if (weir__debt_reckon(plan, &s, ask->now, -plan->capacity) && take)
        *(struct weir__debt *)state = s;
    /* over: beyond the largest debt. */
    weir__i128 price = (weir__i128)ask->cost * plan->price, over = s.owed + price - WEIR__OWED_MAX;
    weir_time wait = weir__parts_time(plan, s.owed);
    bool granted = wait <= ask->wait_max && over <= 0;
    if (granted)
        s.owed += (int64_t)price;
    d->remaining = weir__parts_units(plan, -s.owed);
    d->reset = weir__parts_time(plan, s.owed + plan->capacity);
    if (price > WEIR__OWED_MAX)
        return weir__refuse(d, WEIR_NEVER);
    if (!granted) {
        weir_time until_turn = wait - ask->wait_max,
                  until_room = weir__parts_time(plan, over > 0 ? (int64_t)over : 0);
        return weir__refuse(d, until_turn > until_room ? until_turn : until_room);
    }
    if (take && ask->cost > 0)
        *(struct weir__debt *)state = s;
    return weir__grant(d, wait);
}

static void give(const struct weir_plan *plan, void *state, int64_t units, weir_time now)
{
    struct weir__debt *s = state;

    weir__debt_reckon(plan, s, now, -plan->capacity);
    weir__i128 owed = (weir__i128)s->owed - (weir__i128)units * plan->price;
    s->owed = owed < -plan->capacity  ? -plan->capacity
              : owed > WEIR__OWED_MAX ? WEIR__OWED_MAX
                                      : (int64_t)owed;
}

static void give_unused(const struct weir_plan *plan, void *state,
                        const struct weir__unused *unused, weir_time now)
{
    struct weir__debt *s = state;

    weir__debt_reckon(plan, s, now, -plan->capacity);
    int64_t owed = s->owed - weir__debt_unused(plan, unused, s->at);
    s->owed = owed < -plan->capacity ? -plan->capacity : owed;
}

/* As in Guava, savings stay the same share of their maximum, and debt the same time. */
static void change(const struct weir_plan *old_plan, const struct weir_plan *new_plan,
                   const void *from, void *to, weir_time now)
{
    struct weir__debt *s = to;

    *s = *(const struct weir__debt *)from;
    weir__debt_reckon(old_plan, s, now > s->at ? now : s->at, -old_plan->capacity);
    s->owed = s->owed < 0 ? weir__scale_up(s->owed, new_plan->capacity, old_plan->capacity)
                          : weir__scale_up(s->owed, (int64_t)new_plan->by_scale.by,
                                           (int64_t)old_plan->by_scale.by);
}

static weir_time idle_at(const struct weir_plan *plan, const void *state)
{
    struct weir__debt s = *(const struct weir__debt *)state;
    weir_time at = s.at & INT64_MAX;

    weir__debt_reckon(plan, &s, at, -plan->capacity); /* only cuts it to bounds */
    weir_time span = weir__parts_time(plan, s.owed + plan->capacity);
    return span > INT64_MAX - at ? INT64_MAX : at + span;
}

const struct weir__algo weir__smooth = {
    .name = "smooth",
    .summary =
        "pre-borrowing, as Guava's RateLimiter: an ask waits for the debt of those before it",
    .borrows = true,
    .prepare = prepare,
    .step = step,
    .give = give,
    .give_unused = give_unused,
    .change = change,
    .idle_at = idle_at,
};
