/* leaky-bucket.c -- a bucket that leaks at the rate: as a meter, and with a queue as a shaper.
 *
 * The meter pours the ask's units in, and refuses an ask that would overflow it: the same decisions
 * as gcra.c.  The shaper is a queue with constant outflow: an ask is told its turn, which comes
 * when everything granted before it has drained, and is refused if more than `queue` units would
 * have to wait.  With a burst b, the first b units go at once (nginx: delay=b-1); without one, each
 * waits for the one before.
 *
 *     state   struct weir__debt (debt.h): owed = the bucket's content
 *     bound   burst + rate * T in any interval of length T, counted at the turns; as a
 *             shaper plus the one ask that goes when the bucket is empty
 */
#include <inttypes.h>

#include "algo/debt.h"

static int prepare(struct weir_plan *plan, struct weir_error *error)
{
    const struct weir_limit *l = &plan->limit;

    if (l->queue == 0)
        return weir__debt_prepare(plan, l->burst, error);
    int64_t queue = l->queue == WEIR_NO_QUEUE ? 0 : l->queue;
    if (queue > INT64_MAX - l->burst)
        return weir__fail(error, WEIR_INVALID, "queue %" PRId64 " is too long", queue);
    int code = weir__debt_prepare(plan, queue + l->burst, error);
    if (code == WEIR_OK)
        plan->credit_free = (l->burst - 1) * plan->price;
    plan->packs = false;
    return code;
}

static bool shape(const struct weir_plan *plan, struct weir__debt *state,
                  const struct weir_ask *ask, bool take, struct weir_decision *d)
{
    struct weir__debt s = *state;

    if (weir__debt_reckon(plan, &s, ask->now, 0) && take)
        *state = s;
    bool fits = ask->cost <= plan->most;
    int64_t after = fits ? s.owed + ask->cost * plan->price : 0;
    weir_time turn = weir__parts_time(plan, s.owed - plan->credit_free);
    weir_time overflow = weir__parts_time(plan, after - plan->capacity);
    if (!fits || turn > ask->wait_max || overflow > 0) {
        d->remaining = weir__parts_units(plan, plan->capacity - s.owed);
        d->reset = weir__parts_time(plan, s.owed);
        weir_time until_turn = turn - ask->wait_max;
        return weir__refuse(d, !fits ? WEIR_NEVER : overflow > until_turn ? overflow : until_turn);
    }
    s.owed = after;
    d->remaining = weir__parts_units(plan, plan->capacity - after);
    d->reset = weir__parts_time(plan, after);
    if (take && ask->cost > 0)
        *state = s;
    return weir__grant(d, turn);
}

static bool step(const struct weir_plan *plan, void *state, const struct weir_ask *ask, bool take,
                 struct weir_decision *d)
{
    return plan->limit.queue == 0 ? weir__debt_step(plan, state, ask, take, d)
                                  : shape(plan, state, ask, take, d);
}

/* The content of the bucket stays, and drains at the new rate. */
static void change(const struct weir_plan *old_plan, const struct weir_plan *new_plan,
                   const void *from, void *to, weir_time now)
{
    weir__gcra.change(old_plan, new_plan, from, to, now);
}

const struct weir__algo weir__leaky_bucket = {
    .name = "leaky-bucket",
    .summary = "constant outflow: refuses the overflow, or with a queue gives each ask its turn",
    .prepare = prepare,
    .step = step,
    .give = weir__debt_give,
    .give_unused = weir__debt_give_unused,
    .change = change,
    .idle_at = weir__debt_idle_at,
};
