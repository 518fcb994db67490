/* adaptive.c -- Weir's own controller.  For now: one more while it is in use, a tenth less when something is lost. */
#include "guard/controller.h"

struct state {
    int64_t limit; /* 0: fresh */
};

static double step(const struct weir__controller_plan *plan, void *state, const struct weir__sample *sample)
{
    struct state *s = state;
    int64_t limit = s->limit ? s->limit : plan->initial;

    if (sample->dropped + sample->timed_out > 0)
        limit -= limit / 10 + 1;
    else if (sample->in_flight_max * 2 >= limit)
        limit++;
    s->limit = limit < plan->min ? plan->min : limit > plan->max ? plan->max : limit;
    return (double)s->limit;
}

const struct weir__controller weir__controller_weir = {
    .name = "weir",
    .summary = "Weir's own: nothing needs to be chosen",
    .defaults = { .initial = 20, .min = 1, .max = 16384, .look = 100 * WEIR_MILLISECOND, .look_samples = 10 },
    .step = step,
};
