/* breaker-gate.h -- the word that a breaker's state is in, and its fields: see breaker.c. */
#ifndef WEIR_GUARD_BREAKER_GATE_H
#define WEIR_GUARD_BREAKER_GATE_H

#include "guard/breaker.h"
#include "table/table.h"

enum {
    FORCE = 2,
    BACK_OFF = 4,
    OUT = 10,
    BACK = 18,
    BAD = 26,
    SLOW = 34,
    EPISODE = 44
}; /* where its fields begin */

#define EPISODES ((uint64_t)1 << 20)

static inline unsigned state_of(uint64_t gate)
{
    return gate & 3;
}

static inline unsigned force_of(uint64_t gate)
{
    return gate >> FORCE & 3;
}

static inline unsigned byte_of(uint64_t gate, int at)
{
    return gate >> at & 0xFF;
}

static inline uint64_t episode_of(uint64_t gate)
{
    return gate >> EPISODE;
}

static inline uint32_t probe_of(uint64_t gate)
{
    return 1 + (uint32_t)(episode_of(gate) % WEIR__PROBE_MAX);
}

static inline uint64_t gate_make(enum weir_breaker_state state, enum weir_force force,
                                 unsigned back_off, uint64_t episode)
{
    return (uint64_t)state | (uint64_t)force << FORCE | (uint64_t)back_off << BACK_OFF |
           episode % EPISODES << EPISODE;
}

static inline bool gate_swap(struct weir__breaker *b, const uint64_t seen[2], uint64_t gate,
                             weir_time at)
{
    return weir__swap_pair(&b->gate, seen, (const uint64_t[2]){ gate, (uint64_t)at });
}

#endif
