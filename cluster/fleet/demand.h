/* demand.h -- how much is asked for at this node, and what follows from it: pure numbers.
 *
 * Rates are in units per 1000 s, as in a draw (cluster/account/draw-size.h).
 */
#ifndef WEIR_CLUSTER_FLEET_DEMAND_H
#define WEIR_CLUSTER_FLEET_DEMAND_H

#include "cluster/account/draw-size.h"

/* A limit of a fleet, as a node sees it.  Made once, and shared by its keys. */
struct weir__fleet_limit {
    const struct weir_plan *plan; /* of the account */
    struct weir__draw_terms terms;
    struct weir_plan purse;
    weir_time fast_span, slow_span; /* of the two averages */
    weir_time pause_most; /* between draws: a bucket that is full meanwhile loses what comes in */
};
/* WEIR_INVALID: no purse can hold what this limit passes at once. */
int weir__fleet_limit_make(struct weir__fleet_limit *out, const struct weir_plan *plan,
                           struct weir_error *error);

/* The rate of asks over two spans: an average in which a batch of n units after a time t weighs
 * t / (span + t), so that asks need not be told one by one. */
struct weir__fleet_rate {
    int64_t fast, slow;
    weir_time at;
};
void weir__fleet_rate_count(struct weir__fleet_rate *rate, const struct weir__fleet_limit *limit,
                            int64_t units, weir_time now);
/* They were counted just now. */
void weir__fleet_rate_uncount(struct weir__fleet_rate *rate, const struct weir__fleet_limit *limit,
                              int64_t units);

/* Units that will be asked for within the horizon: 1 or more makes a key hot. */
int64_t weir__fleet_coming(const struct weir__fleet_limit *limit,
                           const struct weir__fleet_rate *rate);

/* With no more than this in the purse it is time to draw again. */
int64_t weir__fleet_low_water(const struct weir__fleet_limit *limit,
                              const struct weir__fleet_rate *rate, weir_time round_trip,
                              int64_t share);

/* From a draw that found the account spent, sent then, to the next.  `chance` is below 2^32: when
 * thousands of nodes find it spent at once, they do not come back at once. */
weir_time weir__fleet_pause(const struct weir__fleet_limit *limit, const struct weir__draw *draw,
                            const struct weir__drawn *drawn, uint32_t chance);

/* The part of the limit that is asked for, in millionths. */
int64_t weir__fleet_part_asked(const struct weir__fleet_limit *limit,
                               const struct weir__fleet_rate *rate);

/* The part of every limit that a node wants (member-shares.h): twice that of its busiest key,
 * rounded up to a half, a quarter and so on of the whole.  It begins with the whole, rises at once,
 * and falls by half in ten seconds: it is needed when nobody can be asked for more. */
struct weir__fleet_want {
    int shift;       /* of the whole */
    weir_time since; /* half of it would have been enough */
};
int64_t weir__fleet_want(struct weir__fleet_want *want, int64_t asked, weir_time now);

#endif
