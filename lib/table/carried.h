/* carried.h -- limits that come with the ask, as CL.THROTTLE's do: any number of them, another one
 * with every ask.
 *
 * A key keeps the time that it owes, whatever the limit that made it owe, so one key may be asked
 * under another limit at any time.  What it owes is kept exactly, in parts of 1/scale ns (algo.h);
 * a slot says in which parts, where others say the version of their limit, so that the next limit
 * can bring it over.
 */
#ifndef WEIR_TABLE_CARRIED_H
#define WEIR_TABLE_CARRIED_H

#include "table/table.h"

#define WEIR__CARRIED_ID 0x1ffffu /* in the place of a limiter's id */

struct weir__carried_item {
    const struct weir_plan *plan; /* one that weir__plan_is_carried says yes to */
    struct weir_ask ask;          /* wait_max counts as 0 */
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
/* Gives back item->ask.cost units at the plan's price. */
void weir__carried_give(struct weir_table *table, const struct weir__carried_item *item);
/* The key is fresh again; false: it was. */
bool weir__carried_forget(struct weir_table *table, struct weir_key key, weir_time now);

/* The limiter that stands for them all. */
void weir__carried_open(struct weir_table *table, struct weir_limiter *out);
/* When a state counted in these parts has nothing to forget. */
weir_time weir__carried_idle_at(uint32_t scale, const uint64_t state[2]);
/* A state counted in other parts, as of now, in the plan's.  Returns what it owes: `to` may not be
 * able to tell. */
weir__i128 weir__carried_convert(const struct weir_plan *plan, uint32_t scale,
                                 const uint64_t from[2], uint64_t to[2], weir_time now);

#endif
