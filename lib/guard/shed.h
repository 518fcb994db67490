/* shed.h -- which asks are let in under overload.
 *
 * Every ask has a rank: its priority, and below that one of 64 cohorts that its user is hashed into
 * (differently every hour, so that it is not always the same users who suffer).  Each class of
 * users counts the asks of each rank.  A tick finds how many can be let in, gives each class its
 * share by weight (others get the rest), and sets the class's cut: the rank from which asks are let
 * in.  At the cut itself a part is let in, evenly, so shedding is gradual.
 */
#ifndef WEIR_GUARD_SHED_H
#define WEIR_GUARD_SHED_H

#include "base/base.h"

#define WEIR__PRIORITIES (WEIR_PRIORITY_MAX - WEIR_PRIORITY_MIN + 1)
#define WEIR__COHORTS    64
#define WEIR__RANKS      (WEIR__PRIORITIES * WEIR__COHORTS)

struct weir__shed_plan {
    bool on;         /* sheds when permits run out; without it, only under pressure */
    int32_t classes; /* at least 1 */
    int32_t weights[WEIR_CLASSES];
};

/* Shared by threads and processes; all zeros: nobody is shed. */
struct weir__shed {
    uint64_t cuts[WEIR_CLASSES]; /* rank << 32 | part of 2^32 that is let in at that rank; 0:
                                    everybody is let in */
    uint16_t spares[WEIR_CLASSES]
                   [WEIR__PRIORITIES]; /* permits to leave to others: weir__shed_spare */
    /* Sum of the parts at the cut: at each overflow one ask is let in. */
    uint32_t turns[WEIR_CLASSES];
    /* the ticker's; means of about the last half second, per second */
    double room; /* asks that can be let in per second; 0: nobody is shed for lack of permits */
    double gain; /* room over capacity */
    double calm; /* seconds without a need to shed */
    /* Means: asks that found a permit, that found none, that gave it back. */
    double entered, busy, done;
    double at_work;               /* mean of in_flight */
    double offered[WEIR_CLASSES]; /* means of arrivals */
    double kept[WEIR_CLASSES];    /* sum of a class's arrivals after the last tick */
    int64_t in_flight;            /* at the last tick */
    int64_t spare;                /* the most of the spares */
    int32_t out;                  /* permille kept out since the last tick */
    uint32_t warm;                /* ticks, up to 2: then there are means */
    uint32_t arrivals[WEIR_CLASSES]
                     [WEIR__RANKS]; /* of about the last second, 16 for each: atomic */
};

/* The time since the last tick. */
struct weir__shed_sample {
    weir_time now, span;
    int64_t entered;          /* let in, and found a permit */
    int64_t refused_busy;     /* let in, but all permits were out */
    int64_t in_flight, limit; /* limit 0: a rate is the bound, not permits */
    int32_t pressure;         /* permille of asks to keep out because of the host's load */
    bool waits;               /* those that matter most wait for a permit: none is spared */
};

static inline uint32_t weir__shed_step(int8_t priority)
{
    return priority < WEIR_PRIORITY_MIN   ? 0
           : priority > WEIR_PRIORITY_MAX ? WEIR__PRIORITIES - 1
                                          : (uint32_t)(priority - WEIR_PRIORITY_MIN);
}

/* 0 to WEIR__RANKS - 1, the highest first. */
uint32_t weir__shed_rank(struct weir_key user, int8_t priority, weir_time now, uint64_t salt);
/* Counts the ask; false: it is shed.  user_class: less than plan->classes. */
bool weir__shed_pass(struct weir__shed *shed, uint32_t user_class, uint32_t rank);
/* Permits that an ask of this rank must leave to more important ones; 0 unless shedding.  However
 * well the cut is chosen, random traffic sometimes takes all permits; without spares the most
 * important asks would be refused as often as the others. */
int64_t weir__shed_spare(const struct weir__shed *shed, uint32_t user_class, uint32_t rank);
/* While it sheds: each class's lowest priority that fits into the capacity as a whole, with those
 * above it.  From 0 to WEIR__PRIORITIES, which is none. */
void weir__shed_fitting(const struct weir__shed_plan *plan, const struct weir__shed *shed,
                        int64_t limit, uint8_t out[WEIR_CLASSES]);
/* Whether an ask may wait in a queue in which `waiting` of `places` are taken.  While nothing is
 * shed: half of the places are for priorities above 0, and each of these leaves some to those above
 * it; the highest finds any. */
bool weir__shed_has_place(int8_t priority, int64_t waiting, int64_t places);
/* While it sheds: what fits, and some of the next priority.  lowest: of its class, as above. */
bool weir__shed_fits(int8_t priority, uint32_t lowest, int64_t waiting, int64_t places);
/* Sets the cuts; returns the permille of asks let in.  shed->room > 0 says that it is shedding for
 * lack of permits; that swings less than the returned value. */
int32_t weir__shed_tick(const struct weir__shed_plan *plan, struct weir__shed *shed,
                        const struct weir__shed_sample *sample);

#endif
