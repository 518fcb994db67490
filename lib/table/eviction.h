/* eviction.h -- which key makes room when a table is full.  eviction.c says why that one. */
#ifndef WEIR_TABLE_EVICTION_H
#define WEIR_TABLE_EVICTION_H

#include "table/part.h"

#define WEIR__VICTIM_NEVER UINT32_MAX /* in `used`: it cannot make room */

struct weir__victim {
    void *slot;     /* NULL: there is none */
    uint64_t tag;   /* that the slot had */
    uint32_t share; /* whose room it takes: a limiter's, or a rule's bans' */
    bool guest;     /* of a limit that a client brought */
    uint32_t used;  /* part of its limit; 0: idle, so nothing is lost */
    weir_time idle_at;
    weir_time room_at; /* when one within reach is idle, and this one goes for nothing */
};

/* Keys with permits out never make room, so an eighth of the slots is kept from them: this is one,
 * and the part's key would be such a key. */
static inline bool weir__slot_is_kept(const struct weir__part *part, uint64_t slot)
{
    return slot % 8 == 7 && part->limiter == &part->limiter->table->held;
}

/* The key in a slot, as of now. */
struct weir__victim weir__victim_judge(struct weir__space *space, void *slot, weir_time now);

/* One whose slot the part's key can have.  `mine` are tags that must stay. */
struct weir__victim weir__victim_near(const struct weir__part *part, weir_time now,
                                      const uint64_t *mine, size_t n);

/* One with a block of this size, wherever its slot is; likewise. */
struct weir__victim weir__victim_with_block(const struct weir__part *part, size_t bytes,
                                            weir_time now, const uint64_t *mine, size_t n);

/* The limiter of a slot's key; NULL: a limit that came with the ask, or nobody's. */
struct weir_limiter *weir__slot_limiter(struct weir__space *space, uint64_t tag);

#endif
