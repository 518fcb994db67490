/* shed-by-host-load.h -- the share of asks to keep out so that the host is just not overloaded,
 * without swinging.  Pure: host-load.h reads.
 */
#ifndef WEIR_GUARD_SHED_BY_HOST_LOAD_H
#define WEIR_GUARD_SHED_BY_HOST_LOAD_H

#include "guard/host-load.h"

/* All zeros: nothing is kept out. */
struct weir__pressure {
    double shed;          /* 0 to 0.95 of all asks */
    weir_time looked;     /* last step; 0: none yet */
    weir_time over_since; /* when the overload began */
    uint32_t over;        /* 1: overloaded */
    uint32_t looks;       /* in a row at or above the threshold */
    int32_t degradation;
    float rate; /* as it is compared */
};

struct weir__pressure_plan {
    struct weir_system_options options;
    bool on;
};

static inline bool weir__pressure_is_due(const struct weir__pressure *p, weir_time now)
{
    return p->looked == 0 || now < p->looked || now - p->looked >= WEIR__LOAD_LOOK;
}

/* One step; returns permille.  mean: the guard's mean time; 0: not known. */
int32_t weir__pressure_step(const struct weir__pressure_plan *plan, struct weir__pressure *p,
                            const struct weir__reading *reading, weir_time mean, weir_time now);
/* degradation.c -- the degradation that a pressure asks for.  Each level begins at a higher
 * pressure than it ends at, so that it does not flutter. */
int32_t weir__degradation_for(const struct weir__pressure *p, weir_time now);
/* The degradation it asks for: 0, or 1 to 3 with higher and longer pressure. */
int weir__pressure_degradation(const struct weir__pressure *p, weir_time now);

#endif
