/* agent-lease.c -- which process of a host is its agent in a fleet, and how long that holds. */
#include "table/agent-lease.h"

/* The word: ticks << 12 | the holder.  Ticks come again after a day: a holder that is long dead
 * keeps others waiting for one lease then. */
#define HOLDER 0xfffu
#define TICKS  0xfffffu

static uint32_t ticks_of(weir_time now)
{
    return (uint32_t)(now / WEIR__AGENT_TICK) & TICKS;
}

bool weir__fleet_claim(struct weir_table *table, uint32_t me, weir_time now)
{
    uint32_t *word = &table->header->fleet_agent, was = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    uint32_t wanted = ticks_of(now) << 12 | me, age = (ticks_of(now) - (was >> 12)) & TICKS;

    if (was == wanted)
        return true;
    if (was != 0 && (was & HOLDER) != me && age <= WEIR__AGENT_LEASE)
        return false;
    return __atomic_compare_exchange_n(word, &was, wanted, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

void weir__fleet_yield(struct weir_table *table, uint32_t me)
{
    uint32_t *word = &table->header->fleet_agent, was = __atomic_load_n(word, __ATOMIC_ACQUIRE);

    if ((was & HOLDER) == me)
        __atomic_compare_exchange_n(word, &was, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void weir__fleet_forget(struct weir_table *table, weir_time now)
{
    uint32_t agent = __atomic_load_n(&table->header->fleet_agent, __ATOMIC_ACQUIRE);

    if (agent == 0 || ((ticks_of(now) - (agent >> 12)) & TICKS) > WEIR__AGENT_LEASE)
        weir__fleet_renew(table, 0);
}

/* Not backwards: an agent that was stopped in here may go on when another is long at work.  Further
 * ahead than it can be: damaged. */
void weir__fleet_renew(struct weir_table *table, weir_time until)
{
    weir_time *word = &table->header->fleet_until, was = __atomic_load_n(word, __ATOMIC_ACQUIRE);

    do {
        if (until > WEIR__FLEET_AWAY && was > until && was - until <= WEIR__FLEET_UNTIL_MAX)
            return;
    } while (
        !__atomic_compare_exchange_n(word, &was, until, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}
