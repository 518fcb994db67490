/* token-bucket.c -- a bucket of burst tokens, refilled at the rate; an ask takes its cost or is
 * refused.
 *
 * Seen from the other side it is a debt: the tokens missing from the bucket.  So there is no timer,
 * no refill to forget, and a full bucket is a state of zeros.  Decisions are those of gcra.c; a
 * change of the limit keeps tokens, not units used.
 *
 *     state   struct weir__debt (debt.h): owed = (burst - tokens) * price
 *     bound   burst + rate * T in any interval of length T
 *
 * Where it deviates from Go's x/time/rate: a clock that runs back and forth does not mint tokens
 * (golang/go#71360).
 */
#include "algo/debt.h"

static int prepare(struct weir_plan *plan, struct weir_error *error)
{
    return weir__debt_prepare(plan, plan->limit.burst, error);
}

/* Keeps the tokens that fit in the new bucket, each at the new price.  A full bucket, which is as
 * good as a fresh one, stays full. */
static void change(const struct weir_plan *old_plan, const struct weir_plan *new_plan,
                   const void *from, void *to, weir_time now)
{
    struct weir__debt *s = to;

    *s = *(const struct weir__debt *)from;
    weir__debt_reckon(old_plan, s, now > s->at ? now : s->at, 0);
    if (s->owed == 0)
        return;
    int64_t tokens = old_plan->capacity - s->owed;
    int64_t owed = new_plan->capacity + weir__scale_up(-tokens, new_plan->price, old_plan->price);
    s->owed = owed < 0 ? 0 : owed > WEIR__OWED_MAX ? WEIR__OWED_MAX : owed;
}

const struct weir__algo weir__token_bucket = {
    .name = "token-bucket",
    .summary = "a bucket of burst tokens, refilled evenly; the everyday choice",
    .prepare = prepare,
    .step = weir__debt_step,
    .give = weir__debt_give,
    .give_unused = weir__debt_give_unused,
    .change = change,
    .idle_at = weir__debt_idle_at,
};
