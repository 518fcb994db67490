/* fixed-window.c -- a count per period, from 0 again in each (window.h).
 *
 * Windows begin at multiples of the period on the clock's axis, or (align=first) with the first ask
 * after the last window ended.  The price of its simplicity is up to twice the limit across an
 * edge; sliding-window and sliding-log prevent that.
 */
#include "algo/window.h"

static int prepare(struct weir_plan *plan, struct weir_error *error)
{
    plan->by_period = weir__divisor_make((uint64_t)plan->limit.period);
    return weir__window_prepare(plan, error);
}

static weir_time add_time(weir_time a, weir__u128 b)
{
    return b > (weir__u128)(INT64_MAX - a) ? INT64_MAX : a + (weir_time)b;
}

static weir_time longest(const struct weir_plan *plan)
{
    return plan->limit.period;
}

static weir_time start_of(const struct weir_plan *plan, weir_time end)
{
    return end - plan->limit.period;
}

static weir_time end_of(const struct weir_plan *plan, weir_time now)
{
    weir_time period = plan->limit.period;
    weir_time start = plan->limit.align_first
                          ? now
                          : (weir_time)weir__divide((uint64_t)now, &plan->by_period) * period;

    return add_time(start, (uint64_t)period);
}

static weir_time end_after(const struct weir_plan *plan, weir_time end, int64_t windows)
{
    return add_time(end, (weir__u128)(uint64_t)windows * (uint64_t)plan->limit.period);
}

static int64_t passed(const struct weir_plan *plan, weir_time end, weir_time now)
{
    return (int64_t)weir__divide((uint64_t)(now - end), &plan->by_period) + 1;
}

static bool same(const struct weir_plan *a, const struct weir_plan *b)
{
    return a->limit.period == b->limit.period && a->limit.align_first == b->limit.align_first;
}

static const struct weir__edges edges = { longest, start_of, end_of, end_after, passed, same };

static bool step(const struct weir_plan *plan, void *state, const struct weir_ask *ask, bool take,
                 struct weir_decision *d)
{
    return weir__window_step(&edges, plan, state, ask, take, d);
}

static void give(const struct weir_plan *plan, void *state, int64_t units, weir_time now)
{
    weir__window_give(&edges, plan, state, units, now);
}

static void give_unused(const struct weir_plan *plan, void *state,
                        const struct weir__unused *unused, weir_time now)
{
    weir__window_give_unused(&edges, plan, state, unused, now);
}

static void change(const struct weir_plan *old_plan, const struct weir_plan *new_plan,
                   const void *from, void *to, weir_time now)
{
    *(struct weir__window_state *)to = *(const struct weir__window_state *)from;
    weir__window_change(&edges, old_plan, new_plan, to, now);
}

static weir_time idle_at(const struct weir_plan *plan, const void *state)
{
    return weir__window_idle_at(&edges, plan, state);
}

const struct weir__algo weir__fixed_window = {
    .name = "fixed-window",
    .summary = "a count per period, begun anew each period: simplest, up to twice the limit "
               "across an edge",
    .prepare = prepare,
    .step = step,
    .give = give,
    .give_unused = give_unused,
    .change = change,
    .idle_at = idle_at,
};
