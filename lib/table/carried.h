/* carried.h -- the limits of CL.THROTTLE: no limiter is made of them, so there may be any number,
 * another one with every ask.
 *
 * A key keeps the time that it owes, whatever the limit that made it owe, so one key may be asked
 * under another limit at any time.  What it owes is kept exactly, in parts of 1/scale ns (algo.h);
 * a slot's owner says in which parts, so that the next limit can bring it over. (WEIR.TAKE's limits
 * are limiters, which stay in the table for ever, with states of their own for each key.)
 */
#ifndef WEIR_TABLE_CARRIED_H
#define WEIR_TABLE_CARRIED_H

#include "table/table.h"

/* The upper half of their slots' owner; the lower half is the scale. */
#define WEIR__CARRIED_ID 0xffffffffu

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

/* For slot.c: when such a slot's key will have nothing to forget. */
weir_time weir__carried_idle_at(uint64_t owner, const uint64_t state[2]);

#endif
