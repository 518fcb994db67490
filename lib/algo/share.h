/* share.h -- a node that cannot reach an account: its part of the limit, by itself.
 *
 * A rule says what happens then (when_alone): all pass, none passes, or the node goes by its share:
 * the same limit with the node's part of the rate and of the burst, in its own table.  It begins
 * with the node's part of what was left in the account when that was last heard of, not full.  When
 * the account is back, it is charged with what the share still owes, at most what passed alone:
 * with all that passed, nobody would get anything for a while; with nothing, a burst would be given
 * away.
 *
 *     bound   each share its part of the limit, and all together the limit; in a time in which
 *             units of the account pass too, a limit times (1 + the parts of the nodes that go by
 *             their shares)
 *
 * Pure numbers.  A part is in millionths.
 */
#ifndef WEIR_ALGO_SHARE_H
#define WEIR_ALGO_SHARE_H

#include "algo/algo.h"

#define WEIR__FLEET_WHOLE 1000000

/* False: the part of a window is less than one unit, or that of a meter slower than time can count;
 * nothing passes. */
bool weir__fleet_has_share(const struct weir_limit *limit, bool meter, uint32_t part);
/* The limit of a share, if there is one. */
bool weir__fleet_share_limit(struct weir_limit *out, const struct weir_limit *limit, uint32_t part);

/* Units that a fresh share is charged with when it begins, if `left` were left in the account. */
int64_t weir__fleet_share_begin(const struct weir_plan *share, uint32_t part, int64_t left);
/* Units that a share owes: all that it does not have. */
int64_t weir__fleet_share_owed(const struct weir_plan *share, const void *state, weir_time now);

#endif
