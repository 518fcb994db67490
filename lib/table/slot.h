/* slot.h -- the path from a key to its slot, taken by every decision. */
#ifndef WEIR_TABLE_SLOT_H
#define WEIR_TABLE_SLOT_H

#include "table/table.h"

#define WEIR__WINDOW_SLOTS 128 /* a key lies at most this far from its home */
#define WEIR__ID_BITS      17

#define WEIR__NARROW_STEP (WEIR__LINE / sizeof(struct weir__narrow))
#define WEIR__WIDE_STEP   (WEIR__LINE / sizeof(struct weir__wide))

/* Bits of the hash stand for the key, the id for its limiter. */
static inline uint64_t weir__tag_of(uint64_t hash, uint32_t id)
{
    uint64_t bits = hash & ~(uint64_t)((1 << WEIR__ID_BITS) - 1);

    return (bits | (uint64_t)(bits == 0) << WEIR__ID_BITS) | id;
}

static inline uint32_t weir__tag_id(uint64_t tag)
{
    return (uint32_t)tag & ((1 << WEIR__ID_BITS) - 1);
}

/* The hash with its tag as slots have it; of a key of this length. */
static inline __attribute__((always_inline)) struct weir__hash
weir__slot_hash_from(const struct weir_limiter *limiter, const struct weir__sums *sums,
                     size_t length)
{
    struct weir__hash h = weir__hash_salted(sums, length, limiter->salt);

    h.tag = weir__tag_of(h.tag, limiter->id);
    return h;
}

static inline __attribute__((always_inline)) struct weir__hash
weir__slot_hash(const struct weir_limiter *limiter, struct weir_key key)
{
    struct weir__sums sums = weir__hash_sums(limiter->table->secrets, key);

    return weir__slot_hash_from(limiter, &sums, key.len);
}

static inline uint64_t weir__line_slots(const struct weir__space *space)
{
    return space->narrow ? WEIR__NARROW_STEP : WEIR__WIDE_STEP;
}

static inline __attribute__((always_inline)) struct weir__home
weir__home_from(const struct weir__space *space, struct weir__hash h)
{
    uint64_t step = weir__line_slots(space);

    return (struct weir__home){
        .tag = h.tag,
        .group = (uint64_t)((weir__u128)h.place * space->groups >> 64),
        .first = h.place % WEIR__GROUP_SLOTS & ~(step - 1),
    };
}

static inline __attribute__((always_inline)) struct weir__home
weir__home_of(const struct weir_limiter *limiter, struct weir_key key)
{
    return weir__home_from(limiter->space, weir__slot_hash(limiter, key));
}

/* The key of a slot, as if it was at home there: it is found at once. */
static inline struct weir__home weir__home_at(const struct weir__space *space, uint64_t slot,
                                              uint64_t tag)
{
    return (struct weir__home){ .tag = tag,
                                .group = slot / WEIR__GROUP_SLOTS,
                                .first =
                                    slot % WEIR__GROUP_SLOTS & ~(weir__line_slots(space) - 1) };
}

static inline struct weir__narrow *weir__narrow_at(const struct weir__space *space, uint64_t group,
                                                   uint64_t i)
{
    return (struct weir__narrow *)(void *)space->slots + group * WEIR__GROUP_SLOTS +
           i % WEIR__GROUP_SLOTS;
}

static inline struct weir__wide *weir__wide_at(const struct weir__space *space, uint64_t group,
                                               uint64_t i)
{
    return (struct weir__wide *)(void *)space->slots + group * WEIR__GROUP_SLOTS +
           i % WEIR__GROUP_SLOTS;
}

static inline void *weir__slot_at(const struct weir__space *space, uint64_t group, uint64_t i)
{
    return space->narrow ? (void *)weir__narrow_at(space, group, i)
                         : (void *)weir__wide_at(space, group, i);
}

/* The line where the search begins, to be prefetched.  (By the caller: gcc takes a function that
 * only prefetches for one that does nothing.) */
static inline void *weir__slot_line(const struct weir__space *space, struct weir__home home)
{
    return weir__slot_at(space, home.group, home.first);
}

/* How many slots from its home a search goes on. */
static inline uint64_t weir__reach(const struct weir__space *space, uint64_t group)
{
    uint64_t reach = weir__load(&space->rooms[group].reach);

    return reach - 1 < WEIR__WINDOW_SLOTS ? reach : WEIR__WINDOW_SLOTS;
}

/* The key's slot in the line, or some other slot of it: look at its tag.  Moves, no branches: which
 * of the four it is cannot be foreseen. */
static inline struct weir__narrow *weir__narrow_in(struct weir__narrow *line, uint64_t tag)
{
    struct weir__narrow *slot = line;

    slot = weir__load(&line[1].tag) == tag ? line + 1 : slot;
    slot = weir__load(&line[2].tag) == tag ? line + 2 : slot;
    return weir__load(&line[3].tag) == tag ? line + 3 : slot;
}

static inline struct weir__wide *weir__wide_in(struct weir__wide *line, uint64_t tag)
{
    return line + (weir__load(&line[1].tag) == tag);
}

static inline void *weir__slot_in(const struct weir__space *space, void *line, uint64_t tag)
{
    return space->narrow ? (void *)weir__narrow_in(line, tag) : (void *)weir__wide_in(line, tag);
}

/* Two lines, before the group's reach is read: it is in another line, and few keys are further. */
static inline struct weir__narrow *weir__narrow_find(const struct weir__space *space,
                                                     struct weir__home home)
{
    uint64_t n = 0;

    do {
        struct weir__narrow *line = weir__narrow_at(space, home.group, home.first + n),
                            *slot = weir__narrow_in(line, home.tag);
        if (weir__load(&slot->tag) == home.tag)
            return slot;
        n += WEIR__NARROW_STEP;
    } while (n <= WEIR__NARROW_STEP || n < weir__reach(space, home.group));
    return NULL;
}

static inline struct weir__wide *weir__wide_find(const struct weir__space *space,
                                                 struct weir__home home)
{
    uint64_t n = 0;

    do {
        struct weir__wide *slot =
            weir__wide_in(weir__wide_at(space, home.group, home.first + n), home.tag);
        if (weir__load(&slot->tag) == home.tag)
            return slot;
        n += WEIR__WIDE_STEP;
    } while (n <= WEIR__WIDE_STEP || n < weir__reach(space, home.group));
    return NULL;
}

static inline void *weir__slot_find(const struct weir__space *space, struct weir__home home)
{
    return space->narrow ? (void *)weir__narrow_find(space, home)
                         : (void *)weir__wide_find(space, home);
}

#define WEIR__FURTHER 6 /* lines behind the first one, which have nearly all other keys */

/* For callers that prefetch: the line where the search for the key begins has come by now.  True:
 * the key is not there, and what the search reads next is on its way. */
static inline __attribute__((always_inline)) bool
weir__fetch_further(const struct weir__space *space, struct weir__hash hash, void *line)
{
    if (weir__load(weir__slot_in(space, line, hash.tag)) == hash.tag) /* its first word */
        return false;
    for (size_t i = 1; i <= WEIR__FURTHER; i++)
        __builtin_prefetch((const char *)line + i * WEIR__LINE, 1);
    __builtin_prefetch(&space->rooms[weir__home_from(space, hash).group]);
    return true;
}

/* The pair of a slot that takes the pin, and the word of it that does. */
static inline uint64_t *weir__slot_pair(const struct weir__space *space, void *slot)
{
    return space->narrow ? &((struct weir__narrow *)slot)->tag : ((struct weir__wide *)slot)->state;
}

static inline uint64_t *weir__slot_pin(const struct weir__space *space, void *slot)
{
    return weir__slot_pair(space, slot) + space->narrow;
}

/* One try of an ask on a wide slot: the step on a copy, and the copy swapped in. */
enum weir__tried {
    WEIR__TRIED_DONE,
    WEIR__TRIED_AGAIN, /* another thread was quicker: look for the slot again */
    WEIR__TRIED_OTHER, /* pinned, or kept under another version: weir__decide_slowly */
};

typedef bool weir__stepper(const struct weir_plan *plan, void *state, const struct weir_ask *ask,
                           bool take, struct weir_decision *d);

static inline __attribute__((always_inline)) enum weir__tried
weir__wide_try(struct weir__wide *slot, uint64_t tag, uint32_t version, weir__stepper *step,
               const struct weir_plan *plan, const struct weir_ask *ask, bool take,
               struct weir_decision *d)
{
    uint64_t before[2], after[2];

    weir__load_pair(slot->state, before);
    if (__builtin_expect(weir__load(&slot->tag) != tag, 0)) /* the state may be another key's */
        return WEIR__TRIED_AGAIN;
    if (__builtin_expect(
            (before[0] & WEIR__PIN) != 0 || (uint32_t)weir__load(&slot->meta) != version, 0))
        return WEIR__TRIED_OTHER;
    after[0] = before[0];
    after[1] = before[1];
    step(plan, after, ask, take, d);
    bool same = after[0] == before[0] && after[1] == before[1];
    /* A swap notices by itself, a refusal must check: the state may have been under another limit
     * when it was read. */
    if (__builtin_expect(same ? weir__load(&slot->state[1]) != before[1]
                              : !weir__swap_pair(slot->state, before, after),
                         0))
        return WEIR__TRIED_AGAIN;
    if (__builtin_expect(
            weir__load(&slot->tag) == tag && (uint32_t)weir__load(&slot->meta) == version, 1))
        return WEIR__TRIED_DONE;
    if (same || weir__swap_pair(slot->state, after, before) || weir__load(&slot->tag) != tag)
        return WEIR__TRIED_AGAIN;
    return WEIR__TRIED_DONE; /* brought over to another limit with its charge */
}

/* slot.c -- a slot for the part's key, which has none: an empty one, or another key's.  The key is
 * fresh then; whole: it has the part's small state.  `mine` are tags that must stay.  The hand is
 * empty before and after. */
enum weir__claimed {
    WEIR__CLAIM_NONE,  /* there is none: permits by key have all that they can have, or their guard
                          its share; or the part is closed, and then its room_at says when */
    WEIR__CLAIM_FOUND, /* another thread was quicker */
    WEIR__CLAIM_DONE,
};
struct weir__part;
enum weir__claimed weir__slot_claim(struct weir__part *part, weir_time now, struct weir__hand *hand,
                                    bool whole, const uint64_t *mine, size_t n);

/* How far the slot is from the key's home, with its line. */
uint64_t weir__slot_distance(const struct weir__space *space, struct weir__home home,
                             const void *slot);
/* A group without any key: searches end in their first line again. */
void weir__group_shrink(struct weir__space *space, uint64_t group);
/* Sets the reach of all groups; for a process that is alone. */
void weir__groups_open(struct weir__space *space, uint64_t reach);

/* The slab has no block for the part: a large state within reach of its key, or elsewhere, is
 * forgotten.  `mine` are tags that must stay.  The hand is empty before and after.  False: there is
 * none to forget; or the part is closed, and then its room_at says when. */
bool weir__slab_make_room(struct weir__part *part, weir_time now, struct weir__hand *hand,
                          const uint64_t *mine, size_t n);

/* For a process that is alone: blocks that no slot has are free again. */
void weir__slots_rebuild(struct weir__space *space);
/* Likewise: keys of limiters that are not there are gone too. */
void weir__slots_empty_orphans(struct weir__space *space);

/* When the state in a slot is idle; not after `now`: it is. */
weir_time weir__slot_idle_at(struct weir__space *space, uint64_t slot, weir_time now);
/* For the figures: whether a slot's key has anything to forget. */
bool weir__slot_live(struct weir__space *space, uint64_t slot, weir_time now);

#endif
