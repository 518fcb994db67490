/* shed.h -- under overload: which asks are let in.
 *
 * Every ask has a rank: its priority, and below that one of 64 cohorts that its user is hashed into
 * (anew every hour, so that the same users do not always suffer).  Each class of users counts the
 * asks of each rank.  A tick finds how many can be let in, gives every class its share by weight
 * (others get the rest of it), and sets the rank from which on the class is let in.  At that very
 * rank a part is let in, evenly, so shedding is gradual.
 */
#ifndef WEIR_GUARD_SHED_H
#define WEIR_GUARD_SHED_H

#include "base/base.h"

#define WEIR__PRIORITIES (WEIR_PRIORITY_MAX - WEIR_PRIORITY_MIN + 1)
#define WEIR__COHORTS    64
#define WEIR__RANKS      (WEIR__PRIORITIES * WEIR__COHORTS)

struct weir__shed_plan {
    bool on; /* shed by itself when permits run out; pressure from outside is always obeyed */
    int32_t classes; /* at least 1 */
    int32_t weights[WEIR_CLASSES];
};

/* Shared by threads and processes; all zeros: nobody is shed. */
struct weir__shed {
    uint64_t cuts[WEIR_CLASSES]; /* rank << 32 | part of 2^32 that is let in at that rank; 0:
                                    everybody is let in */
    uint16_t spares[WEIR_CLASSES][WEIR__PRIORITIES]; /* permits that they leave: weir__shed_spare */
    uint32_t turns[WEIR_CLASSES]; /* parts of those at the cut, summed: each time it runs over one
                                     is let in */
    /* the ticker's; means of about the last half second, per second */
    double room; /* how many can be let in per second; 0: nobody is shed for want of permits */
    double gain; /* room over capacity */
    double calm; /* seconds without need to shed */
    double entered, busy, done;   /* means: found a permit, found none, gave theirs back */
    double at_work;               /* mean of in_flight */
    double offered[WEIR_CLASSES]; /* means of how many came */
    double kept[WEIR_CLASSES];    /* sum of a class's arrivals after the last tick */
    int64_t in_flight;            /* at the last tick */
    int64_t spare;                /* the most of the spares */
    int32_t out;                  /* permille that were kept out from the last tick on */
    uint32_t warm;                /* ticks, up to 2: there are means */
    uint32_t arrivals[WEIR_CLASSES]
                     [WEIR__RANKS]; /* those of the last second or so, 16 for one: atomic */
};

/* The time since the last tick. */
struct weir__shed_sample {
    weir_time now, span;
    int64_t entered;          /* let in, and found a permit */
    int64_t refused_busy;     /* let in, but all permits were out */
    int64_t in_flight, limit; /* limit 0: it is not permits that bound (but a rate) */
    int32_t pressure;         /* permille of asks to keep out because of the host */
};

/* 0 to WEIR__RANKS - 1, the highest first. */
uint32_t weir__shed_rank(struct weir_key user, int8_t priority, weir_time now, uint64_t salt);
/* Counts the ask; false: it is shed.  user_class: less than plan->classes. */
bool weir__shed_pass(struct weir__shed *shed, uint32_t user_class, uint32_t rank);
/* Permits that an ask of this rank must leave to more important ones; 0 unless shedding.  However
 * well the cut is chosen, random traffic takes all permits now and then; without spares the most
 * important would be refused as often as the others. */
int64_t weir__shed_spare(const struct weir__shed *shed, uint32_t user_class, uint32_t rank);
/* Sets the cuts; returns the permille of asks that are let in.  shed->room > 0: it is shedding for
 * want of permits; that swings less than the returned value. */
int32_t weir__shed_tick(const struct weir__shed_plan *plan, struct weir__shed *shed,
                        const struct weir__shed_sample *sample);

#endif
