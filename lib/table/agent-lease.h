/* agent-lease.h -- the process that is a host's agent in a fleet, and what it tells all processes
 * of the host: until when purses are filled, and the host's part of the limits.
 */
#ifndef WEIR_TABLE_AGENT_LEASE_H
#define WEIR_TABLE_AGENT_LEASE_H

#include "algo/share.h"
#include "table/table.h"

/* The agent's place.  A holder has it as long as it says so again within a lease; one that was
 * stopped for longer finds another there.  `me`: its place among the holders.  False: another has
 * it. */
#define WEIR__AGENT_TICK  (100 * WEIR_MILLISECOND)
#define WEIR__AGENT_LEASE 6 /* ticks, and up to one more */
bool weir__fleet_claim(struct weir_table *table, uint32_t me, weir_time now);
void weir__fleet_yield(struct weir_table *table, uint32_t me);
/* This host leaves the fleet for good: unless another process is the agent, it is in none.  Rules
 * that are put in force from now on count here alone, with their whole limits. */
void weir__fleet_forget(struct weir_table *table, weir_time now);

/* The agent of the table says how long its purses are filled: every 50 ms, for 0.7 s.
 * When it is gone or has no answers, that time passes, and no process asks purses any more. */
#define WEIR__FLEET_UNTIL_MAX (10 * WEIR_SECOND) /* longer: damaged, or the clock stepped back */
#define WEIR__FLEET_AWAY      ((weir_time)1)     /* in a fleet, but nobody fills purses */

/* It never moves backwards, but to 0 and to AWAY. */
void weir__fleet_renew(struct weir_table *table, weir_time until);

static inline weir_time weir__fleet_until(const struct weir_table *table)
{
    return __atomic_load_n(&table->header->fleet_until, __ATOMIC_ACQUIRE);
}

/* Whether purses are asked.  This is what decides, in every process of the host. */
static inline bool weir__fleet_is_near(const struct weir_table *table, weir_time now)
{
    return (uint64_t)weir__fleet_until(table) - (uint64_t)now - 1 < WEIR__FLEET_UNTIL_MAX;
}

/* The word of the part; a process that begins goes on with a part that Redis has told, or that
 * follows from the number of nodes there, and not with the guess of the one before. */
#define WEIR__FLEET_GUESS ((uint32_t)1 << 31)
static inline uint32_t weir__fleet_part_word(const struct weir_table *table)
{
    return __atomic_load_n(&table->header->fleet_part, __ATOMIC_RELAXED);
}

/* Millionths; all of them if this host is in no fleet. */
static inline uint32_t weir__fleet_part(const struct weir_table *table)
{
    uint32_t part = weir__fleet_part_word(table) & ~WEIR__FLEET_GUESS;

    return weir__fleet_until(table) == 0 || part > WEIR__FLEET_WHOLE ? WEIR__FLEET_WHOLE : part;
}

#endif
