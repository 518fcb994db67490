/* breaker-gate.h -- the words that a breaker's state is in: see breaker.c. */
#ifndef WEIR_GUARD_BREAKER_GATE_H
#define WEIR_GUARD_BREAKER_GATE_H

#include "guard/breaker.h"
#include "table/table.h"

enum {
    WEIR__GATE_FORCE = 2,
    WEIR__GATE_BACK_OFF = 4,
    WEIR__GATE_OUT = 10,
    WEIR__GATE_BACK = 18,
    WEIR__GATE_BAD = 26,
    WEIR__GATE_SLOW = 34,
    WEIR__GATE_IDLE = 42,
    WEIR__GATE_EPISODE = 44
}; /* where its fields begin */

#define WEIR__GATE_EPISODES ((uint64_t)1 << 20)

static inline unsigned weir__gate_state(uint64_t gate)
{
    return gate & 3;
}

static inline unsigned weir__gate_force(uint64_t gate)
{
    return gate >> WEIR__GATE_FORCE & 3;
}

static inline unsigned weir__gate_byte(uint64_t gate, int at)
{
    return gate >> at & 0xFF;
}

static inline uint64_t weir__gate_episode(uint64_t gate)
{
    return gate >> WEIR__GATE_EPISODE;
}

static inline uint32_t weir__gate_probe(uint64_t gate)
{
    return 1 + (uint32_t)(weir__gate_episode(gate) % WEIR__PROBE_MAX);
}

/* It is half-open, and a probe of this number is out. */
static inline bool weir__gate_has_out(uint64_t gate, uint32_t probe)
{
    return (gate & WEIR__BREAKER_EVENTFUL) == WEIR_BREAKER_HALF_OPEN &&
           weir__gate_probe(gate) == probe && weir__gate_byte(gate, WEIR__GATE_OUT) > 0;
}

static inline uint64_t weir__gate_make(enum weir_breaker_state state, enum weir_force force,
                                       unsigned back_off, uint64_t episode)
{
    return (uint64_t)state | (uint64_t)force << WEIR__GATE_FORCE |
           (uint64_t)back_off << WEIR__GATE_BACK_OFF |
           episode % WEIR__GATE_EPISODES << WEIR__GATE_EPISODE;
}

static inline bool weir__gate_swap(struct weir__breaker *b, const uint64_t seen[2], uint64_t gate,
                                   weir_time at)
{
    return weir__swap_pair(&b->gate, seen, (const uint64_t[2]){ gate, (uint64_t)at });
}

/* A call has ended that was not slow, or has succeeded.  Every millisecond at most, since all
 * threads read this line; back only if the clock has been set back. */
static inline void weir__breaker_note_moved(struct weir__breaker *b, weir_time took, weir_time now)
{
    uint64_t since = (uint64_t)now - (uint64_t)weir__get(&b->moved);
    weir_time from = now - took, latest = weir__get(&b->moved_from);

    if (__builtin_expect(since + WEIR_SECOND > WEIR_SECOND + WEIR_MILLISECOND, 0))
        weir__set(&b->moved, now);
    if (__builtin_expect(latest < from - WEIR_MILLISECOND || latest > now + WEIR_SECOND, 0))
        weir__set(&b->moved_from, from);
}

#endif
