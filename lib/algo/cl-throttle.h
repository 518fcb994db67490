/* cl-throttle.h -- CL.THROTTLE as redis-cell has it, for each door that answers it: the limit that
 * its three numbers mean, its seconds, its errors. */
#ifndef WEIR_ALGO_CL_THROTTLE_H
#define WEIR_ALGO_CL_THROTTLE_H

#include "weir.h"

/* redis-cell says "Store error" of all that is wrong; what only we refuse goes without. */
#define WEIR__CELL_STORE "Store error: "
#define WEIR__CELL_USAGE \
    WEIR__CELL_STORE     \
    "Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"
#define WEIR__CELL_NO_INTEGER WEIR__CELL_STORE "Couldn't parse as integer"
#define WEIR__CELL_INEXACT \
    "This limit is beyond exact arithmetic; fewer units or a shorter period would do"

/* NULL, or what is wrong with the numbers, none of which is negative. */
static inline const char *weir__cell_limit(struct weir_limit *out, int64_t burst, int64_t count,
                                           int64_t period)
{
    *out = (struct weir_limit){ .algorithm = "gcra", .count = count };
    if (count == 0 || period == 0)
        return WEIR__CELL_STORE "Zero rates are not supported";
    if (__builtin_add_overflow(burst, 1, &out->burst))
        return "The burst is too large";
    if (__builtin_mul_overflow(period, WEIR_SECOND, &out->period))
        return "The period is too long";
    return NULL;
}

/* The part below a second counts if it holds a whole millisecond. */
static inline int64_t weir__cell_seconds(weir_time t)
{
    return t / WEIR_SECOND + (t % WEIR_SECOND >= WEIR_MILLISECOND);
}

/* The answer's fourth number; -1: the ask passed, or never will. */
static inline int64_t weir__cell_retry(const struct weir_decision *d)
{
    return d->allowed || d->retry == WEIR_NEVER ? -1 : weir__cell_seconds(d->retry);
}

#endif
