/* purse-limit.c -- the purse that goes with a limit whose units are drawn from an account. */
#include "algo/purse.h"

#define LIFE_LEAST  (5 * WEIR_MILLISECOND)
#define METER_LEAST (20 * WEIR_MILLISECOND)
#define LIFE_MOST   (10 * WEIR_SECOND)

bool weir__is_meter(const struct weir_plan *plan)
{
    return plan->algo == &weir__gcra || plan->algo == &weir__token_bucket ||
           plan->algo == &weir__leaky_bucket;
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
        return weir__int_most(LIFE_LEAST, weir__int_least(period / 16, LIFE_MOST));
    if (plan->algo == &weir__sliding_window)
        return weir__int_most(weir__int_least(period / 100, (weir_time)plan->by_bucket.by),
                              LIFE_LEAST);
    if (weir__is_window(plan))
        return weir__int_most(period / 100, LIFE_LEAST);
    weir__i128 quarter = (weir__i128)plan->most * period / plan->limit.count / 4;
    return quarter > LIFE_MOST ? LIFE_MOST : weir__int_most((weir_time)quarter, METER_LEAST);
}

weir_time weir__purse_later(const struct weir_plan *plan, const struct weir_limit *limit,
                            int64_t units)
{
    if (!weir__is_meter(plan) || units < 2)
        return 0;
    weir__i128 span = (weir__i128)(units - 1) * limit->period / limit->count;
    return span > WEIR_NEVER ? WEIR_NEVER : (weir_time)span;
}

struct weir_limit weir__purse_limit(const struct weir_plan *plan)
{
    return (struct weir_limit){ weir__purse.name, .count = plan->most,
                                .period = weir__purse_life(plan) };
}
