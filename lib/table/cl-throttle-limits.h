/* cl-throttle-limits.h -- limits that come with the ask, as CL.THROTTLE's do: any number of them,
 * another one with every ask.
 *
 * A key keeps the time that it owes, whatever the limit that made it owe, so one key may be asked
 * under another limit at any time.  What it owes is kept exactly, in parts of 1/scale ns (algo.h).
 * Where others say the version of their limit, a slot says in which parts, so that the next limit
 * can bring it over; and its limit's class, so that it can be told how much of the limit is used:
 *
 *     0..25   scale
 *     26..31  class: a key may owe less than 2^class ns, and at least half of that
 */
#ifndef WEIR_TABLE_CL_THROTTLE_LIMITS_H
#define WEIR_TABLE_CL_THROTTLE_LIMITS_H

#include "table/table.h"

#define WEIR__CARRIED_ID         0x1ffffu /* in the place of a limiter's id */
#define WEIR__CARRIED_SCALE_BITS 26

struct weir__carried_item {
    /* One that weir__plan_is_carried says yes to, with the table's clock. */
    const struct weir_plan *plan;
    struct weir_ask ask; /* wait_max counts as 0 */
};

/* Can asks carry such a plan?  A meter can (gcra, token-bucket, leaky-bucket without a queue), if
 * its scale fits. */
bool weir__plan_is_carried(const struct weir_plan *plan);

/* Decides each for itself, hiding the memory's latency; those on one key in their order.  Not for
 * narrow tables. */
size_t weir__carried_take_many(struct weir_table *table, const struct weir__carried_item *items,
                               size_t n, struct weir_decision *decisions);
bool weir__carried_peek(struct weir_table *table, const struct weir__carried_item *item,
                        struct weir_decision *decision);
/* The key is fresh again; false: it was. */
bool weir__carried_forget(struct weir_table *table, struct weir_key key, weir_time now);

/* The limiter that stands for them all. */
void weir__carried_open(struct weir_table *table, struct weir_limiter *out);
static inline uint32_t weir__carried_class(uint32_t version)
{
    return version >> WEIR__CARRIED_SCALE_BITS;
}
/* When a state under this version has nothing to forget. */
weir_time weir__carried_idle_at(uint32_t version, const uint64_t state[2]);
/* A state under another version, as of now, in the plan's parts.  Returns what it owes: `to` may
 * not be able to tell. */
weir__i128 weir__carried_convert(const struct weir_plan *plan, uint32_t version,
                                 const uint64_t from[2], uint64_t to[2], weir_time now);

#endif
