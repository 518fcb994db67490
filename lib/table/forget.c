/* forget.c -- a key of a limiter is fresh again, whatever it has used.
 *
 * All zeros is a fresh state, so that is what is written.  Not weir_give of everything: a window
 * that has begun would go on, and a key that was warm would stay so.
 */
#include "table/part.h"

struct forgotten {
    weir_time now;
    bool was_used;
};

static bool forget_state(const struct weir_plan *plan, void *state, void *context)
{
    struct forgotten *f = context;

    f->was_used = weir_step_idle_at(plan, state) > f->now;
    weir__zero_words(state, plan->state_size);
    return true;
}

bool weir_forget(struct weir_limiter *limiter, struct weir_key key, weir_time now)
{
    struct weir__part part;
    struct forgotten f = { .now = now };

    weir__part_begin(&part, limiter, weir__home_of(limiter, key));
    weir__part_change(&part, forget_state, &f, false, now);
    return f.was_used;
}
