/* breaker-thresholds.h -- whether these calls would open a breaker. */
#ifndef WEIR_GUARD_BREAKER_THRESHOLDS_H
#define WEIR_GUARD_BREAKER_THRESHOLDS_H

#include "guard/breaker.h"

struct weir__counts {
    int64_t calls, errors, slow;
};

/* Nothing is above 100 %, so "above" means "at" there. */
static inline bool weir__ratio_reached(const struct weir__breaker_plan *plan, int64_t n, int64_t of,
                                       int32_t percent)
{
    if (percent == 0 || of == 0)
        return false;
    return n * 100 > of * percent || (n * 100 == of * percent && (!plan->above || percent == 100));
}

static inline bool weir__count_reached(const struct weir__breaker_plan *plan, int64_t errors)
{
    return plan->errors != 0 && errors >= plan->errors + plan->above;
}

/* Whether these calls would open it, if there are enough of them. */
static inline bool weir__is_bad(const struct weir__breaker_plan *plan, const struct weir__counts *c)
{
    return weir__ratio_reached(plan, c->errors, c->calls, plan->error_percent) ||
           weir__ratio_reached(plan, c->slow, c->calls, plan->slow_percent) ||
           weir__count_reached(plan, c->errors);
}

static inline bool weir__is_slow(const struct weir__breaker_plan *plan, weir_time took)
{
    return plan->slow != 0 && took > plan->slow;
}

#endif
