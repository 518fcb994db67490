/* queue-options.c -- what a queue may be told, and what it does without being told. */
#include <string.h>

#include "queue/queue.h"

int weir__queue_options_check(const struct weir_queue_options *o, struct weir_error *error)
{
    if (o->max < 0 || o->max > WEIR__QUEUE_MAX)
        return weir__fail(error, WEIR_INVALID, "a queue of %lld: 1 to %d may wait",
                          (long long)o->max, WEIR__QUEUE_MAX);
    if ((unsigned)o->order > WEIR_WEIGHTED)
        return weir__fail(error, WEIR_INVALID,
                          "order %d of a queue: it is FIFO (0), by priority (1) or weighted (2)",
                          (int)o->order);
    for (int i = 0; i < WEIR_CLASSES; i++)
        if (o->weights[i] < 0 || o->weights[i] > WEIR__WEIGHT_MAX)
            return weir__fail(error, WEIR_INVALID, "weight %d of class %d: it is 1 to %d",
                              (int)o->weights[i], i, WEIR__WEIGHT_MAX);
    if (o->target < 0 || o->interval < 0)
        return weir__fail(error, WEIR_INVALID, "a queue's %s is a time from now on, not one before",
                          o->target < 0 ? "target" : "interval");
    if (o->newest_first_when_late && o->target == 0)
        return weir__fail(error, WEIR_INVALID, "newest first when late needs a target");
    return WEIR_OK;
}

struct weir_queue_options weir__queue_options_fill(const struct weir_queue_options *options)
{
    struct weir_queue_options o = *options;

    o.max = options->max > 0 ? options->max : 1024;
    o.interval = options->interval > 0 ? options->interval : 100 * WEIR_MILLISECOND;
    for (int i = 0; i < WEIR_CLASSES; i++)
        o.weights[i] = options->weights[i] > 0 ? options->weights[i] : 1;
    return o;
}

bool weir__queue_options_are_same(const struct weir_queue_options *a,
                                  const struct weir_queue_options *b)
{
    return a->max == b->max && a->order == b->order &&
           memcmp(a->weights, b->weights, sizeof(a->weights)) == 0 &&
           a->newest_first_when_late == b->newest_first_when_late && a->target == b->target &&
           a->interval == b->interval;
}
