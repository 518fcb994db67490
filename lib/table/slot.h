/* slot.h -- the path from a key to its slot, taken by every decision; slot.c explains it all. */
#ifndef WEIR_TABLE_SLOT_H
#define WEIR_TABLE_SLOT_H

#include "table/table.h"

#define WEIR__WINDOW_SLOTS 128 /* a key lies at most this far from its home */

#define WEIR__NARROW_STEP (WEIR__LINE / sizeof(struct weir__narrow))
#define WEIR__WIDE_STEP   (WEIR__LINE / sizeof(struct weir__wide))

static inline __attribute__((always_inline)) struct weir__home
weir__home_from(struct weir__hash h, uint64_t groups, uint64_t step)
{
    return (struct weir__home){
        .tag = h.tag | (h.tag == 0),
        .group = (uint64_t)((weir__u128)h.place * groups >> 64),
        .first = h.place % WEIR__GROUP_SLOTS & ~(step - 1),
    };
}

static inline __attribute__((always_inline)) struct weir__home
weir__home_of(const struct weir_limiter *limiter, struct weir_key key)
{
    const struct weir_table *table = limiter->table;
    struct weir__hash h = weir__hash_key(table->secrets, limiter->salt, key);
    uint64_t groups = limiter->kind == WEIR__LARGE ? limiter->record->large_groups : table->groups;
    uint64_t step = limiter->kind == WEIR__NARROW ? WEIR__NARROW_STEP : WEIR__WIDE_STEP;

    return weir__home_from(h, groups, step);
}

static inline struct weir__narrow *weir__narrow_at(const struct weir_table *table, uint64_t group,
                                                   uint64_t i)
{
    return (struct weir__narrow *)(void *)table->slots + group * WEIR__GROUP_SLOTS +
           i % WEIR__GROUP_SLOTS;
}

static inline struct weir__wide *weir__wide_at(const struct weir_table *table, uint64_t group,
                                               uint64_t i)
{
    return (struct weir__wide *)(void *)table->slots + group * WEIR__GROUP_SLOTS +
           i % WEIR__GROUP_SLOTS;
}

static inline void *weir__small_at(const struct weir_table *table, uint64_t group, uint64_t i)
{
    return table->narrow ? (void *)weir__narrow_at(table, group, i)
                         : (void *)weir__wide_at(table, group, i);
}

/* The line where the search begins, or one further on, to be prefetched.  (By the caller: gcc takes
 * a function that only prefetches for one that does nothing.) */
static inline const void *weir__slot_line(const struct weir_limiter *limiter,
                                          struct weir__home home, uint64_t further)
{
    uint64_t step = limiter->kind == WEIR__NARROW ? WEIR__NARROW_STEP : WEIR__WIDE_STEP;

    return limiter->kind == WEIR__LARGE
               ? NULL
               : weir__small_at(limiter->table, home.group, home.first + further * step);
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

static inline struct weir__narrow *weir__narrow_find(const struct weir_table *table,
                                                     struct weir__home home)
{
    for (uint64_t n = 0; n < WEIR__WINDOW_SLOTS; n += WEIR__NARROW_STEP) {
        struct weir__narrow *line = weir__narrow_at(table, home.group, home.first + n),
                            *slot = weir__narrow_in(line, home.tag);
        if (weir__load(&slot->tag) == home.tag)
            return slot;
        if (weir__load(&line[3].tag) == 0) /* a line fills from its front */
            return NULL;
    }
    return NULL;
}

/* Writes a pinned slot, which lifts the pin.  The time goes first: a process killed in between
 * leaves the old debt as of the new time, which gives nothing away. */
static inline void weir__wide_write(struct weir__wide *slot, const uint64_t state[2])
{
    __atomic_store_n(&slot->state[0], state[0] | WEIR__PIN, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->state[1], state[1], __ATOMIC_RELEASE);
    __atomic_store_n(&slot->state[0], state[0], __ATOMIC_RELEASE);
}

static inline struct weir__wide *weir__wide_find(const struct weir_table *table, uint32_t id,
                                                 struct weir__home home)
{
    for (uint64_t n = 0; n < WEIR__WINDOW_SLOTS; n++) {
        struct weir__wide *slot = weir__wide_at(table, home.group, home.first + n);
        uint64_t tag = weir__load(&slot->tag);
        if (tag == home.tag && weir__load(&slot->owner) >> 32 == id)
            return slot;
        if (tag == 0)
            return NULL;
    }
    return NULL;
}

/* One try of an ask on a wide slot: the step on a copy, and the copy swapped in. */
enum weir__tried {
    WEIR__TRIED_DONE,
    WEIR__TRIED_AGAIN,  /* another thread was quicker: look for the slot again */
    WEIR__TRIED_PINNED, /* weir__slot_wait, and look again */
    WEIR__TRIED_OTHER,  /* the state is kept under another owner */
};

typedef bool weir__stepper(const struct weir_plan *plan, void *state, const struct weir_ask *ask,
                           bool take, struct weir_decision *d);

static inline __attribute__((always_inline)) enum weir__tried
weir__wide_try(struct weir__wide *slot, uint64_t tag, uint64_t owner, weir__stepper *step,
               const struct weir_plan *plan, const struct weir_ask *ask, bool take,
               struct weir_decision *d)
{
    uint64_t before[2], after[2];

    weir__load_pair(slot->state, before);
    if (__builtin_expect((before[0] & WEIR__PIN) != 0, 0))
        return WEIR__TRIED_PINNED;
    if (__builtin_expect(weir__load(&slot->tag) != tag, 0)) /* the state may be another key's */
        return WEIR__TRIED_AGAIN;
    if (__builtin_expect(weir__load(&slot->owner) != owner, 0)) /* or be kept under another limit */
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
    if (__builtin_expect(weir__load(&slot->tag) == tag, 1))
        return WEIR__TRIED_DONE;
    if (!same)
        (void)weir__swap_pair(slot->state, after, before);
    return WEIR__TRIED_AGAIN;
}

#endif
