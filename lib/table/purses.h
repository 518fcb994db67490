/* purses.h -- purses in a table: filled and closed by the process that draws for them.
 *
 * Asks take from a purse as from any limiter.  To fill and to close carry the present beside the
 * time that they write, which may lie in the past or in the future.
 */
#ifndef WEIR_TABLE_PURSES_H
#define WEIR_TABLE_PURSES_H

#include "algo/share.h"
#include "table/table.h"

/* Units that were drawn at `drawn`: their life counts from then. */
void weir__purse_fill(struct weir_limiter *limiter, struct weir_key key, int64_t units,
                      weir_time drawn, weir_time now);
/* Nothing is to be had until then, or for a life if that is shorter: asks are refused, and told to
 * come again at `told`.  A purse that has units stays open. */
void weir__purse_close(struct weir_limiter *limiter, struct weir_key key, weir_time until,
                       weir_time told, weir_time now);

/* Gives back all that a share owes, and returns it: of several that do so at once, one gets it. */
int64_t weir__share_empty(struct weir_limiter *limiter, struct weir_key key, weir_time now);

/* ------------------------------------------------------------- the host ---- */

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

#endif
