/* vegas.c -- like TCP Vegas: estimates the queue from how much longer work takes than without one.
 *
 *     queue = ceil(limit * (1 - base / rtt))
 *
 * With log = the digits of the limit after the first, at least 1: a queue of at most log is nobody
 * (6 log more); less than 3 log is short (log more); more than 6 log is long (log less); something
 * dropped is too (log less).  Nothing changes while less than half of the limit is in use. The base
 * is the shortest rtt seen; after every 15 to 30 times `limit` samples it is replaced by the next
 * rtt, or it could never rise.
 *
 * Like Netflix's VegasLimit (concurrency-limits 0.5): initial 20, max 1000, no smoothing, and the
 * windows of its WindowedLimit (1 s, at least 10 results, their mean).
 *
 * Deviations: the jitter of the probe comes from a fixed sequence, so that a run can be repeated; a
 * sample with no rtt at all (everything was dropped) lowers the limit; a time-out counts as
 * dropped.
 * Known, and kept: a base taken under load is too long, and the limit drifts up
 * (concurrency-limits#165); the sample that sets the base has no other effect, even if it was a
 * drop.
 */
#include "guard/controller.h"

#include <stdio.h>

#include "guard/arithmetic.h"

#define PROBE 30

struct state {
    double limit;    /* 0: fresh */
    weir_time base;  /* 0: none yet */
    int64_t samples; /* since the last probe */
    uint64_t probes;
};

/* max(1, whole part of log10) */
static int64_t digits(double limit)
{
    int64_t n = 0;

    for (int64_t rest = (int64_t)limit; rest >= 10; rest /= 10)
        n++;
    return n ? n : 1;
}

/* From 0.5 to 1, spread evenly by the golden ratio. */
static double jitter(uint64_t probes)
{
    uint64_t turn = (probes + 1) * 0x9e3779b97f4a7c15u;

    return 0.5 + (double)(turn >> 11) * 0x1p-54;
}

static bool probe_is_due(struct state *s)
{
    s->samples++;
    if (jitter(s->probes) * PROBE * s->limit > (double)s->samples)
        return false;
    s->probes++;
    s->samples = 0;
    return true;
}

static int64_t queue_of(const struct state *s, weir_time rtt)
{
    double queue = s->limit * (1 - (double)s->base / (double)rtt);
    int64_t whole = (int64_t)queue;

    return whole + ((double)whole < queue);
}

static double change(const struct state *s, int64_t queue)
{
    int64_t log = digits(s->limit);

    if (queue <= log)
        return (double)(6 * log);
    if (queue < 3 * log)
        return (double)log;
    return queue > 6 * log ? (double)-log : 0;
}

static double step(const struct weir__controller_plan *plan, void *state,
                   const struct weir__sample *sample)
{
    struct state *s = state;
    weir_time rtt = sample->mean;
    bool dropped = sample->dropped > 0 || sample->timed_out > 0;

    if (!(s->limit > 0))
        s->limit = (double)plan->initial;
    if (rtt <= 0 && !dropped)
        return s->limit;
    if (rtt > 0 && (probe_is_due(s) || s->base == 0 || rtt < s->base)) {
        s->base = rtt;
        return s->limit;
    }
    if (dropped)
        s->limit -= (double)digits(s->limit);
    else if (!((double)sample->in_flight_max * 2 < s->limit))
        s->limit += change(s, queue_of(s, rtt));
    s->limit = weir__between((double)plan->min, s->limit, (double)plan->max);
    return s->limit;
}

static void tell(const void *state, char *out, size_t size)
{
    const struct state *s = state;
    char base[32];

    weir_time_print(base, sizeof(base), weir__three_digits(weir__int_most(s->base, 0)));
    snprintf(out, size, "base %s", base);
}

_Static_assert(sizeof(struct state) <= WEIR__CONTROLLER_OWN, "fits");

const struct weir__controller weir__controller_vegas = {
    .name = "vegas",
    .summary = "as TCP Vegas: estimates how many wait from how much longer it takes (Netflix)",
    .defaults = { .initial = 20,
                  .min = 1,
                  .max = 1000,
                  .sample_span = WEIR_SECOND,
                  .sample_count = 10 },
    .step = step,
    .tell = tell,
};
