/* controller.h -- controllers: samples of finished work in, a limit out.
 *
 * A controller is a pure step: (plan, state, sample) -> limit.  It reads no clock and takes no
 * lock; its state is at most WEIR__CONTROLLER_OWN bytes, and all zeros is a fresh one.  One file
 * each, ending in its row; controller.c has the list.
 *
 * Floating point is fine here: decisions use the integer that comes out.
 */
#ifndef WEIR_GUARD_CONTROLLER_H
#define WEIR_GUARD_CONTROLLER_H

#include "guard/histogram.h"

#define WEIR__RATE_MAX         1000000000 /* an adaptive rate, per second */
#define WEIR__CONTROLLER_STATE 512
#define WEIR__CONTROLLER_OWN \
    (WEIR__CONTROLLER_STATE - 8) /* the last 8 bytes are the step's own: a check of the others */

struct weir__controller;

/* All defaults are filled in. */
struct weir__controller_plan {
    const struct weir__controller *row; /* NULL: no adaptive limit */
    int64_t initial, min, max;
    weir_time target, window; /* see struct weir_adaptive_options */
    weir_time sample_span;    /* a sample is at least this long ... */
    /* ... and has at least this many results, or is a second long and ten times `sample_span`. */
    int64_t sample_count;
    int32_t percentile;
    bool rate;
    int64_t kind; /* of limit, in a guard's record: which controller's, and whether it is a rate */
};

/* A stretch of time. */
struct weir__sample {
    weir_time now, span;        /* when it ended, and how long it was */
    int64_t succeeded, failed;  /* results */
    int64_t timed_out, dropped; /* results that say: too much */
    int64_t entered, refused;   /* asks let in; asks refused for lack of permits */
    int64_t queued;             /* asks that found no permit and wait, or in shadow would */
    int64_t shed;               /* asks refused because others are more important */
    int64_t full;               /* succeeded and failed work that ended while no permit was free */
    int64_t in_flight_max;      /* largest number at work */
    int64_t in_flight;          /* at its end */
    int64_t limit;              /* in force */
    weir_time min, mean;        /* time of those that succeeded; 0: none did */
    double area;                /* times of all results together */
    double out;                 /* permits out times ns: out / span is their mean number */
    const struct weir__histogram *times; /* of the succeeded ones */
    const struct weir__recent *recent;   /* of the last plan->window, with this sample */
};

struct weir__controller {
    const char *name, *summary;
    struct weir__controller_plan defaults; /* for options that are 0 */
    /* Checks its own options; may be NULL. */
    int (*check)(const struct weir__controller_plan *plan, struct weir_error *error);
    /* The new limit, any number; the caller keeps it between min and max. */
    double (*step)(const struct weir__controller_plan *plan, void *state,
                   const struct weir__sample *sample);
    /* A few words for people: "rising, at 12ms", "base 12ms"; may be NULL. */
    void (*tell)(const void *state, char *out, size_t size);
};

extern const struct weir__controller weir__controller_weir, weir__controller_percentile,
    weir__controller_aimd, weir__controller_vegas, weir__controller_gradient2;

/* controller.c */
int weir__controller_plan_make(struct weir__controller_plan *out,
                               const struct weir_adaptive_options *options, int64_t permits_max,
                               struct weir_error *error);
const struct weir__controller *weir__controller_find(const char *name);
/* Its place in the list; the same in every process. */
int weir__controller_index(const struct weir__controller *row);
/* One step: the limit within its bounds, an integer.  A damaged state (a process died while writing
 * it) becomes a fresh one. */
int64_t weir__controller_step(const struct weir__controller_plan *plan, void *state,
                              const struct weir__sample *sample);
void weir__controller_forget(void *state); /* makes it fresh; a concurrent reader sees nothing */
/* Its row's `tell`, for a state that another thread may be stepping; "": nothing to say, or not
 * now. */
void weir__controller_tell(const struct weir__controller_plan *plan, const void *state, char *out,
                           size_t size);

#endif
