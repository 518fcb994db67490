/* gradient2.c -- follows the gradient: the recent time of work against its long-term average.
 *
 *     gradient = 1.5 * long / short, from 0.5 to 1
 *     limit    = 0.8 * limit + 0.2 * (limit * gradient + 4)
 *
 * The long time is an exponential average over 600 samples, the plain one over the first 10.  While
 * it is more than twice the short one (load has gone) it shrinks by 5 % a sample.  Nothing changes
 * while less than half of the limit is in use.
 *
 * Like Netflix's Gradient2Limit (concurrency-limits 0.5): initial and min 20, max 200, and the
 * windows of its WindowedLimit (1 s, at least 10 results, their mean).
 *
 * Deviations: a sample with no rtt at all changes nothing.
 * Known, and kept: drops are ignored; constantly bad times are a gradient of 1, so the limit climbs
 * for ever (concurrency-limits#137: 20 to 52 in 40 windows); below 1 it settles at 4 / (1 -
 * gradient), whatever the backend can do.
 */
#include "guard/controller.h"

#include <stdio.h>

#include "guard/arithmetic.h"

#define SMOOTHING 0.2
#define TOLERANCE 1.5
#define QUEUE     4.0
#define WARMUP    10
#define FACTOR    (2.0 / 601)

struct state {
    double limit;  /* 0: fresh */
    double longer; /* the long time, ns */
    double sum;    /* of the first ones */
    int64_t count;
};

static double average(struct state *s, double rtt)
{
    if (s->count < WARMUP) {
        s->count++;
        s->sum += rtt;
        s->longer = s->sum / (double)s->count;
    } else
        s->longer = s->longer * (1 - FACTOR) + rtt * FACTOR;
    return s->longer;
}

static double step(const struct weir__controller_plan *plan, void *state,
                   const struct weir__sample *sample)
{
    struct state *s = state;
    double rtt = (double)sample->mean;

    if (!(s->limit > 0))
        s->limit = (double)plan->initial;
    if (sample->mean <= 0)
        return s->limit;
    double ratio = average(s, rtt) / rtt;
    if (ratio > 2)
        s->longer *= 0.95;
    if ((double)sample->in_flight_max < s->limit / 2)
        return s->limit;
    double gradient = weir__between(0.5, TOLERANCE * ratio, 1);
    double limit = s->limit * (1 - SMOOTHING) + (s->limit * gradient + QUEUE) * SMOOTHING;
    s->limit = weir__between((double)plan->min, limit, (double)plan->max);
    return s->limit;
}

static void tell(const void *state, char *out, size_t size)
{
    const struct state *s = state;
    char base[32];

    weir_time_print(base, sizeof(base),
                    weir__three_digits((weir_time)weir__between(0, s->longer, 1e15)));
    snprintf(out, size, "long %s", base);
}

_Static_assert(sizeof(struct state) <= WEIR__CONTROLLER_OWN, "fits");

const struct weir__controller weir__controller_gradient2 = {
    .name = "gradient2",
    .summary = "compares the time now with the time on the long run (Netflix)",
    .defaults = { .initial = 20,
                  .min = 20,
                  .max = 200,
                  .sample_span = WEIR_SECOND,
                  .sample_count = 10 },
    .step = step,
    .tell = tell,
};
