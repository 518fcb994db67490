/* purse-limit.c -- the purse that goes with a limit whose units are drawn from an account. */
#include "algo/purse.h"

#define LIFE_LEAST  (5 * WEIR_MILLISECOND)
#define METER_LEAST (20 * WEIR_MILLISECOND)
#define LIFE_MOST   (10 * WEIR_SECOND)

static weir_time least(weir_time a, weir_time b)
{
    return a < b ? a : b;
}

static weir_time greatest(weir_time a, weir_time b)
{
    return a > b ? a : b;
}

bool weir__is_window(const struct weir_plan *plan)
{
    return plan->algo == &weir__fixed_window || plan->algo == &weir__calendar ||
           plan->algo == &weir__sliding_window || plan->algo == &weir__sliding_log;
}

weir_time weir__window_longest(const struct weir_plan *plan)
{
    return plan->algo == &weir__calendar ? weir__calendar_longest(plan) : plan->limit.period;
}

weir_time weir__purse_life(const struct weir_plan *plan)
{
    weir_time period = weir__window_longest(plan);

    if (plan->algo == &weir__fixed_window || plan->algo == &weir__calendar)
        return greatest(LIFE_LEAST, least(period / 16, LIFE_MOST));
    if (plan->algo == &weir__sliding_window)
        return greatest(least(period / 100, (weir_time)plan->by_bucket.by), LIFE_LEAST);
    if (weir__is_window(plan))
        return greatest(period / 100, LIFE_LEAST);
    weir__i128 quarter = (weir__i128)plan->most * period / plan->limit.count / 4;
    return quarter > LIFE_MOST ? LIFE_MOST : greatest((weir_time)quarter, METER_LEAST);
}

struct weir_limit weir__purse_limit(const struct weir_plan *plan)
{
    return (struct weir_limit){ weir__purse.name, .count = plan->most,
                                .period = weir__purse_life(plan) };
}
