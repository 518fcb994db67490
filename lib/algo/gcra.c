/* gcra.c -- Generic Cell Rate Algorithm.
 *
 * Each key owes time.  A unit costs period/count of debt, debt drains one nanosecond per
 * nanosecond, and an ask is let in while the debt it would leave is no more than burst units'
 * worth.  Limit, remaining, retry and reset are those of redis-cell's CL.THROTTLE.
 *
 *     state   struct weir__debt (debt.h)
 *     bound   burst + rate * T in any interval of length T
 *
 * From ITU-T I.371 (the virtual scheduling algorithm).  Where it deviates: the price of a unit is
 * kept exactly, not rounded to a clock tick; and the state is the debt and its time rather than the
 * theoretical arrival time (debt.h says why).
 */
#include "algo/debt.h"

static int prepare(struct weir_plan *plan, struct weir_error *error)
{
    return weir__debt_prepare(plan, plan->limit.burst, error);
}

/* The units a key has used stay used, at the new price. */
static void change(const struct weir_plan *old_plan, const struct weir_plan *new_plan,
                   const void *from, void *to, weir_time now)
{
    struct weir__debt *s = to;

    *s = *(const struct weir__debt *)from;
    weir__debt_reckon(old_plan, s, now > s->at ? now : s->at, 0);
    s->owed = weir__scale_up(s->owed, new_plan->price, old_plan->price);
}

const struct weir__algo weir__gcra = {
    .name = "gcra",
    .summary = "cell-rate meter: a burst at once, then evenly spaced; as CL.THROTTLE",
    .prepare = prepare,
    .step = weir__debt_step,
    .give = weir__debt_give,
    .give_unused = weir__debt_give_unused,
    .change = change,
    .idle_at = weir__debt_idle_at,
};
