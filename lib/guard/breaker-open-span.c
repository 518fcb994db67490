/* breaker-open-span.c -- how long a breaker stays open: longer after each round of probes that
 * failed, and never the same at two nodes. */
#include "base/hash.h"
#include "guard/breaker.h"

#define OPEN_MAX_TIMES 3 /* open_for: open_max, if it is not given */

weir_time weir__breaker_open_max_default(weir_time open_for)
{
    return open_for * OPEN_MAX_TIMES;
}

/* Doubled back_off times, up to open_max; then plus or minus up to jitter_percent. */
weir_time weir__breaker_open_span(const struct weir__breaker_plan *plan, unsigned back_off,
                                  uint64_t episode)
{
    weir_time span = plan->open_for;

    for (unsigned i = 0; i < back_off && span < plan->open_max; i++)
        span = span > plan->open_max / 2 ? plan->open_max : span * 2;
    weir_time most = span / 100 * plan->jitter_percent + span % 100 * plan->jitter_percent / 100;
    weir__u128 share =
        (weir__u128)weir__mix64((plan->seed ^ weir__mix64(episode + WEIR__GOLDEN)) + WEIR__GOLDEN) *
        (weir__u128)(2 * most + 1);
    span += (weir_time)(share >> 64) - most;
    return span < 1 ? 1 : span;
}
