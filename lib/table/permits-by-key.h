/* permits-by-key.h -- how many permits of a guard each key holds.  permits-by-key.c says how
 * they are counted.
 *
 * A seat's word is the permit's (lib/guard/guard.h).  Its ref:
 *
 *     63      counted for certain; if not: if the key's count says so
 *     62..48  how many permits
 *     47..38  the process that entered: its place among the holders
 *     37      0
 *     36..0   the key's slot + 1; 0: it has no key
 *
 * The ref of a permit that was renewed, with a key or without one:
 *
 *     63      1
 *     62..42  the time that its word had before (word 63..43)
 *     41..38  0
 *     37      1
 *     36..0   the key's slot + 1; 0: it has no key
 */
#ifndef WEIR_TABLE_PERMITS_BY_KEY_H
#define WEIR_TABLE_PERMITS_BY_KEY_H

#include "table/hand.h"
#include "table/slot.h"

#define WEIR__HELD_ID      0x10000u /* in the place of a limiter's id: this + the guard's place */
#define WEIR__HELD_MOST    0x7fff   /* permits that one key can have out */
#define WEIR__HELD_COUNTED ((uint64_t)1 << 63)
#define WEIR__HELD_RENEWED ((uint64_t)1 << 37)

_Static_assert(WEIR__HELD_ID >= WEIR__LIMITERS_MAX &&
                   WEIR__HELD_ID + WEIR__GUARDS_MAX < (1 << WEIR__ID_BITS) - 2,
               "guards have ids of their own");

static inline bool weir__tag_is_held(uint64_t tag)
{
    return weir__tag_id(tag) - WEIR__HELD_ID < WEIR__GUARDS_MAX;
}

static inline uint32_t weir__permit_weight(uint64_t word) /* 0: a free seat */
{
    return (uint32_t)(word >> 28) & 0x7fff;
}
static inline uint64_t weir__held_key(uint64_t ref) /* the key's slot + 1; 0: none */
{
    return ref & (WEIR__HELD_RENEWED - 1);
}
static inline uint64_t weir__permit_freed(uint64_t word) /* its seat's word afterwards */
{
    return word & 0xfff;
}
#define WEIR__PERMIT_RENEWED 0x800u /* an odd number of times */
/* The last bits of the next permit in a seat. */
static inline uint64_t weir__permit_use(uint64_t free)
{
    return (free + 1) & 0x7ff;
}

/* A guard's counts. */
struct weir__held {
    struct weir_table *table;
    struct weir__seat *seats;
    uint32_t id; /* the guard's */
};

static inline struct weir__held weir__held_of(struct weir_table *table, uint32_t guard)
{
    unsigned char *bytes = table->guard_bytes + guard * WEIR__GUARD_BYTES + WEIR__SEATS_OFFSET;

    return (struct weir__held){ table, (struct weir__seat *)(void *)bytes, guard };
}

static inline struct weir__home weir__held_home(const struct weir__held *t, uint64_t salt,
                                                struct weir_key key)
{
    struct weir__hash h = weir__hash_key(t->table->secrets, salt, key);

    h.tag = weir__tag_of(h.tag, WEIR__HELD_ID + t->id);
    return weir__home_from(&t->table->keys, h);
}

static inline int64_t weir__held_in(uint64_t word) /* of a slot */
{
    return (int64_t)(word & WEIR__HELD_MOST);
}

/* Permits that the key has out; *slot is its slot, NULL: it has none. */
static inline int64_t weir__held_count(const struct weir__held *t, struct weir__home home,
                                       void **slot)
{
    const struct weir__space *space = &t->table->keys;

    while ((*slot = weir__slot_find(space, home)) != NULL) {
        uint64_t *word = weir__slot_pin(space, *slot), seen = weir__load(word);
        if (__builtin_expect((seen & WEIR__PIN) != 0, 0))
            weir__hand_settle(t->table, word);
        else if (__builtin_expect(weir__load(*slot) == home.tag, 1))
            return weir__held_in(seen);
    }
    return 0;
}

/* A slot for the key, if it has none; NULL: there is no room. */
void *weir__held_slot(const struct weir__held *t, struct weir__home home, weir_time now);

/* Its number in the table + 1. */
static inline uint64_t weir__held_number(const struct weir__held *t, const void *slot)
{
    uint64_t bytes = (uint64_t)((const unsigned char *)slot - t->table->keys.slots);

    return 1 + (t->table->keys.narrow ? bytes / sizeof(struct weir__narrow)
                                      : bytes / sizeof(struct weir__wide));
}

/* What goes into the seat, together with the permit's word, before it is counted. */
static inline uint64_t weir__held_ref(const struct weir__held *t, const void *slot, int64_t permits,
                                      uint32_t holder)
{
    return (uint64_t)permits << 48 | (uint64_t)holder << 38 | weir__held_number(t, slot);
}

enum weir__held_added {
    WEIR__HELD_ADDED,
    WEIR__HELD_FULL,  /* more than `max` */
    WEIR__HELD_MOVED, /* the slot is not the key's any more */
};
/* Counts the permits of a seat; *out is how many the key has out now. */
enum weir__held_added weir__held_add(const struct weir__held *t, struct weir__home home, void *slot,
                                     uint32_t seat, int64_t permits, int64_t max, int64_t *out);

/* Frees a seat that has this word, and lowers its key's count.  False: it has another word. */
bool weir__held_free(const struct weir__held *t, uint32_t seat, uint64_t word);
/* The same for a seat whose permits were not counted. */
void weir__held_cancel(const struct weir__held *t, uint32_t seat, uint64_t word);
/* Gives a seat another word.  Its ref keeps the time of the one before; `again`: it does. */
bool weir__held_renew(const struct weir__held *t, uint32_t seat, uint64_t word, uint64_t renewed,
                      bool again);
/* What the ref of a permit says that was renewed when its word was this one. */
static inline uint64_t weir__held_renewed(uint64_t ref, uint64_t word)
{
    return WEIR__HELD_COUNTED | word >> 43 << 42 | WEIR__HELD_RENEWED | weir__held_key(ref);
}

/* Finishes what a process has begun with this seat and may never end.  If the seat was taken by a
 * process that is dead and had not counted it, it is free now, and the word is returned; else 0. */
uint64_t weir__held_settle(const struct weir__held *t, uint32_t seat);
/* The seat is not just being taken, by a process that may still count it. */
static inline bool weir__held_is_certain(const struct weir__held *t, uint32_t seat)
{
    uint64_t ref = weir__load(&t->seats[seat].ref);

    return ref == 0 || (ref & WEIR__HELD_COUNTED) != 0;
}
/* Before the guard goes: no key has permits out. */
void weir__held_end(const struct weir__held *t);

/* For a process that is alone: all counts again, from the seats. */
void weir__held_rebuild(struct weir_table *table);

/* A count of 0 that has changed this often. */
static inline uint64_t weir__held_fresh(uint64_t changes)
{
    return (changes << 31) & ~WEIR__PIN;
}

/* For eviction.c: the key in the slot has no permits out. */
bool weir__held_is_idle(struct weir_table *table, uint64_t tag, void *slot);

#endif
