/* aimd.c -- additive increase, multiplicative decrease.
 *
 * One more when all went well and at least half of the limit was in use; a tenth less when
 * something was dropped or took longer than 5 s.
 *
 * Like Netflix's AIMDLimit (concurrency-limits 0.5): initial and min 20, max 200, ratio 0.9,
 * timeout 5 s, integers throughout, and the windows of its WindowedLimit (1 s, at least 10 results,
 * their mean).
 *
 * Deviations: a time-out always counts as dropped; rtts below 100 us stay in the window; min may
 * not be 0.  Known, and kept: it sees only drops, so a backend that queues instead of refusing is
 * filled up to max, or until 5 s.
 */
#include "guard/controller.h"
#include "guard/arithmetic.h"

#define RATIO   0.9
#define TIMEOUT (5 * WEIR_SECOND)

struct state {
    int64_t limit; /* 0: fresh */
};

static double step(const struct weir__controller_plan *plan, void *state,
                   const struct weir__sample *sample)
{
    struct state *s = state;
    int64_t limit = s->limit ? s->limit : plan->initial;

    if (sample->dropped > 0 || sample->timed_out > 0 || sample->mean > TIMEOUT)
        limit = (int64_t)((double)limit * RATIO);
    else if (sample->succeeded > 0 && sample->in_flight_max * 2 >= limit)
        limit++;
    s->limit = weir__int_between(plan->min, limit, plan->max);
    return (double)s->limit;
}

const struct weir__controller weir__controller_aimd = {
    .name = "aimd",
    .summary = "one more while nothing is dropped, a tenth less when something is (Netflix)",
    .defaults = { .initial = 20,
                  .min = 20,
                  .max = 200,
                  .sample_span = WEIR_SECOND,
                  .sample_count = 10 },
    .step = step,
};
