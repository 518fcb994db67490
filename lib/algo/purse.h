/* purse.h -- the purse that goes with a limit whose units are drawn from an account. */
#ifndef WEIR_ALGO_PURSE_H
#define WEIR_ALGO_PURSE_H

#include "algo/algo.h"

bool weir__is_meter(const struct weir_plan *plan); /* gcra, token-bucket, leaky-bucket */
bool weir__is_window(const struct weir_plan *plan);
weir_time weir__window_longest(const struct weir_plan *plan); /* its period; a calendar's longest */

/* Units drawn under this limit may be spent for this long:
 *
 *     meters                    a quarter of the time in which the burst fills, 20 ms to 10 s
 *     fixed-window, calendar    a sixteenth of the window, up to 10 s
 *     sliding-window            a hundredth of the period, and no more than a bucket
 *     sliding-log               a hundredth of the period
 *
 * and 5 ms at least. */
weir_time weir__purse_life(const struct weir_plan *plan);

/* A purse without units is closed until it opens, and tells those whom it refuses another time. */
void weir__purse_shut(const struct weir_plan *plan, void *state, weir_time opens, weir_time told);

/* Of a meter it tells when one unit is there, since the next ask may want no more.  This much later
 * all `units` are there: by the plan's algorithm, and the limit's rate. */
weir_time weir__purse_later(const struct weir_plan *plan, const struct weir_limit *limit,
                            int64_t units);

/* The limit of a purse that holds as much as this one passes at once. */
struct weir_limit weir__purse_limit(const struct weir_plan *plan);

#endif
