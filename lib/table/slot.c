/* slot.c -- where a key lives.
 *
 * A key's hash names a group of 256 slots and a cache line in it.  The search goes from that line
 * on, at most 128 slots, round the end of the group if need be, and stops at the first empty slot:
 * slots are filled once and never become empty again.  Nearly always the first line is the only one
 * touched.
 *
 * A new key takes an empty slot by swapping its tag in; the state there is zeros, which is fresh.
 * If no slot within reach is empty, the idlest key makes room, at the group's desk: only one
 * process at a time makes room in a group, so a key never gets two slots.
 *
 * A victim is pinned, its state made fresh, its tag replaced, and the pin lifted, in this order.  A
 * process killed in between leaves a fresh key: the old one or the new one.
 */
#include <sched.h>
#include <string.h>

#include "table/carried.h"
#include "table/slot.h"

static struct weir__large *large_at(const struct weir_limiter *limiter, uint64_t group, uint64_t i)
{
    const struct weir__era *era = __atomic_load_n(&limiter->era, __ATOMIC_ACQUIRE);

    return (struct weir__large *)(void *)(era->large +
                                          (group * WEIR__LARGE_GROUP + i % WEIR__LARGE_GROUP) *
                                              era->large_stride);
}

struct weir__large *weir__large_find_locked(const struct weir_limiter *limiter,
                                            struct weir__home home)
{
    for (uint64_t i = 0; i < WEIR__LARGE_GROUP; i++) {
        struct weir__large *slot = large_at(limiter, home.group, home.first + i);
        if (slot->tag == home.tag)
            return slot;
        if (slot->tag == 0)
            return NULL;
    }
    return NULL;
}

/* The slot behind the last group is never used: it stands for a key that has no slot. */
struct weir__large *weir__large_fresh(const struct weir_limiter *limiter)
{
    return large_at(limiter, limiter->record->large_groups, 0);
}

static bool is_mine(const void *slot, void *const *mine, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (mine[i] == slot)
            return true;
    return false;
}

/* A hand's pin lasts for a few cache misses, unless its holder lost the processor. */
#define PIN_PAUSES 100

static bool is_lifted_soon(const uint64_t *word)
{
    for (int i = 0; i < PIN_PAUSES; i++) {
        if ((weir__load(word) & WEIR__PIN) == 0)
            return true;
        __builtin_ia32_pause();
    }
    return false;
}

/* For the holder of the desk: the pin is a hand's, or was left by a process that died. */
static void wait_for_hands_locked(struct weir_table *table, uint64_t *word)
{
    if (is_lifted_soon(word))
        return;
    if (table->fd < 0) { /* private: the holder is alive, and only lost the processor */
        while (weir__load(word) & WEIR__PIN)
            sched_yield();
        return;
    }
    weir__hands_take_all(table);
    if (weir__load(word) & WEIR__PIN) {
        __atomic_fetch_and(word, ~WEIR__PIN, __ATOMIC_ACQ_REL);
        weir__count(&table->header->recovered, 1);
    }
    weir__hands_give_all(table);
}

void weir__slot_wait(struct weir_table *table, uint64_t group, uint64_t *word)
{
    if (is_lifted_soon(word))
        return;
    weir__desk_lock(table, weir__desk_of(group));
    wait_for_hands_locked(table, word);
    weir__desk_unlock(table, weir__desk_of(group));
}

/* The word of a small slot that carries the pin. */
static uint64_t *pin_word(const struct weir_table *table, void *slot)
{
    return table->narrow ? &((struct weir__narrow *)slot)->word
                         : &((struct weir__wide *)slot)->state[0];
}

void weir__slot_pin_locked(struct weir_table *table, void *slot)
{
    uint64_t *word = pin_word(table, slot);

    while (__atomic_fetch_or(word, WEIR__PIN, __ATOMIC_ACQ_REL) & WEIR__PIN)
        wait_for_hands_locked(table, word);
}

void weir__slot_unpin_locked(struct weir_table *table, void *slot)
{
    __atomic_fetch_and(pin_word(table, slot), ~WEIR__PIN, __ATOMIC_ACQ_REL);
}

const struct weir__era *weir__slot_open_locked(struct weir_limiter *limiter, void *slot,
                                               weir_time now, uint64_t state[2])
{
    struct weir_table *table = limiter->table;
    struct weir__wide *s = slot;

    now = now < 0 ? 0 : now;
    weir__slot_pin_locked(table, slot);
    uint64_t first = weir__load(pin_word(table, slot)) & ~WEIR__PIN,
             owner = table->narrow ? 0 : weir__load(&s->owner);
    /* Read after the owner, so never older than the limit that the slot is kept under. */
    const struct weir__era *era = weir__limiter_era(limiter);
    if (table->narrow) {
        bool stepped;
        state[0] = (uint64_t)now;
        state[1] = (uint64_t)weir__unpack(&era->plan, first, now, &stepped);
        return era;
    }
    uint64_t kept[2] = { first, weir__load(&s->state[1]) };
    state[0] = kept[0];
    state[1] = kept[1];
    if (owner != era->owner)
        weir__limiter_convert(limiter, era, owner, kept, state);
    return era;
}

void weir__slot_close_locked(struct weir_limiter *limiter, const struct weir__era *era, void *slot,
                             const uint64_t state[2])
{
    if (limiter->table->narrow) {
        int64_t owed = (int64_t)state[1],
                most = era->plan.capacity +
                       WEIR__PACKED_WAIT_MAX; /* more would look like a clock that stepped back */
        __atomic_store_n(&((struct weir__narrow *)slot)->word,
                         weir__pack((weir_time)state[0], owed < most ? owed : most),
                         __ATOMIC_RELEASE);
        return;
    }
    struct weir__wide *s = slot;
    __atomic_store_n(&s->owner, era->owner, __ATOMIC_RELEASE);
    weir__wide_write(s, state);
}

/* -------------------------------------------------- empty slots ---- */

/* Makes an empty slot the key's.  False: it is in use, perhaps by this very key since a moment. */
static bool fill_slot(const struct weir_table *table, void *slot, struct weir__home home,
                      uint64_t owner)
{
    uint64_t *tag = slot, empty[2] = { 0, 0 }, full[2] = { home.tag, owner };

    if (weir__load(tag) != 0)
        return false;
    return table->narrow ? weir__swap(tag, 0, home.tag) : weir__swap_pair(tag, empty, full);
}

/* Is the slot the key's already?  Another thread may just have put it there. */
static bool is_at(const struct weir_table *table, const void *slot, struct weir__home home,
                  uint64_t owner)
{
    const struct weir__wide *s = slot; /* the tag is the first word of either kind */

    return weir__load(&s->tag) == home.tag &&
           (table->narrow || weir__load(&s->owner) >> 32 == owner >> 32);
}

/* Puts the key in the first empty slot of its window.  NULL if there is none. */
static void *fill_empty(struct weir_table *table, struct weir__home home, uint64_t owner)
{
    for (uint64_t n = 0; n < WEIR__WINDOW_SLOTS; n++) {
        void *slot = weir__small_at(table, home.group, home.first + n);
        if (fill_slot(table, slot, home, owner)) {
            weir__count(&table->header->keys, 1);
            return slot;
        }
        if (is_at(table, slot, home, owner))
            return slot;
    }
    return NULL;
}

/* -------------------------------------------------- making room ---- */

/* When the key in this slot will have nothing to forget. */
static weir_time idle_at(struct weir_table *table, void *slot)
{
    if (table->narrow)
        return (weir_time)(weir__load(&((struct weir__narrow *)slot)->word) & ~WEIR__PIN);
    struct weir__wide *s = slot;
    uint64_t state[2], owner = weir__load(&s->owner);
    weir__load_pair(s->state, state);
    state[0] &= ~WEIR__PIN;
    if (owner >> 32 == WEIR__CARRIED_ID)
        return weir__carried_idle_at(owner, state);
    struct weir_limiter *other = weir__limiter_by_id(table, (uint32_t)(owner >> 32));
    return other == NULL || other->kind == WEIR__LARGE
               ? 0
               : weir_step_idle_at(&__atomic_load_n(&other->era, __ATOMIC_ACQUIRE)->plan, state);
}

/* The nearest idle slot of the window, or the one that will be idle first. */
static void *find_victim(struct weir_table *table, struct weir__home home, weir_time now,
                         void *const *mine, size_t n, bool *early)
{
    void *best = NULL;
    weir_time best_at = 0;

    for (uint64_t i = 0; i < WEIR__WINDOW_SLOTS; i++) {
        void *slot = weir__small_at(table, home.group, home.first + i);
        if (is_mine(slot, mine, n))
            continue;
        weir_time at = idle_at(table, slot);
        if (at <= now) {
            *early = false;
            return slot;
        }
        if (best == NULL || at < best_at) {
            best = slot;
            best_at = at;
        }
    }
    *early = true;
    return best;
}

/* The new key is fresh, but its state is not zeros: it was paid off a little before now (narrow),
 * or last seen a little after the beginning of time.  So a thread that has read the zeros of a key
 * evicted before its first charge cannot mistake the new key for it. */
static uint64_t fresh_state(const struct weir_table *table, weir_time now)
{
    const struct weir__header *h = table->header;
    int64_t evictions = __atomic_load_n(&h->evicted_idle, __ATOMIC_RELAXED) +
                        __atomic_load_n(&h->evicted_early, __ATOMIC_RELAXED);
    weir_time little = (evictions & 0xffff) + 1;

    return (uint64_t)(!table->narrow ? little : now > little ? now - little : 0);
}

/* Makes a slot the new key's.  False if its old key, thought idle, was used before the pin: choose
 * again. */
static bool replace(struct weir_table *table, void *slot, struct weir__home home, uint64_t owner,
                    weir_time now, bool early)
{
    uint64_t fresh = fresh_state(table, now), *word = pin_word(table, slot);

    weir__slot_pin_locked(table, slot);
    if (!early && idle_at(table, slot) > now) {
        weir__slot_unpin_locked(table, slot);
        return false;
    }
    if (table->narrow) {
        struct weir__narrow *s = slot;
        __atomic_store_n(word, fresh | WEIR__PIN, __ATOMIC_RELEASE);
        __atomic_store_n(&s->tag, home.tag, __ATOMIC_RELEASE);
    } else {
        struct weir__wide *s = slot;
        uint64_t was[2] = { weir__load(&s->tag), weir__load(&s->owner) },
                 is[2] = { home.tag, owner };
        __atomic_store_n(&s->state[1], 0, __ATOMIC_RELEASE);
        __atomic_store_n(word, fresh | WEIR__PIN, __ATOMIC_RELEASE);
        weir__swap_pair(&s->tag, was, is);
    }
    __atomic_store_n(word, fresh, __ATOMIC_RELEASE);
    return true;
}

static void *find_small(const struct weir_table *table, uint32_t id, struct weir__home home)
{
    return table->narrow ? (void *)weir__narrow_find(table, home)
                         : (void *)weir__wide_find(table, id, home);
}

void *weir__slot_find(const struct weir_limiter *limiter, struct weir__home home)
{
    return find_small(limiter->table, limiter->id, home);
}

static void *claim_locked(struct weir_table *table, struct weir__home home, uint64_t owner,
                          weir_time now, void *const *mine, size_t n)
{
    now = now < 0 ? 0 : now;
    bool early;
    void *slot = find_small(table, (uint32_t)(owner >> 32), home);
    if (slot == NULL)
        slot = fill_empty(table, home, owner);
    if (slot != NULL)
        return slot;
    do
        slot = find_victim(table, home, now, mine, n, &early);
    while (slot != NULL && !replace(table, slot, home, owner, now, early));
    if (slot != NULL)
        weir__count(early ? &table->header->evicted_early : &table->header->evicted_idle, 1);
    return slot;
}

void *weir__slot_claim_locked(struct weir_limiter *limiter, struct weir__home home, weir_time now,
                              void *const *mine, size_t n)
{
    return claim_locked(limiter->table, home, weir__limiter_era(limiter)->owner, now, mine, n);
}

void *weir__slot_claim_as(struct weir_table *table, struct weir__home home, uint64_t owner,
                          weir_time now)
{
    void *slot = fill_empty(table, home, owner);

    if (slot != NULL)
        return slot;
    weir__desk_lock(table, weir__desk_of(home.group));
    slot = claim_locked(table, home, owner, now, NULL, 0);
    weir__desk_unlock(table, weir__desk_of(home.group));
    return slot;
}

void *weir__slot_claim(struct weir_limiter *limiter, struct weir__home home, weir_time now)
{
    return weir__slot_claim_as(limiter->table, home, weir__limiter_era(limiter)->owner, now);
}

/* -------------------------------------------------- large slots ---- */

static struct weir__large *large_victim(const struct weir_limiter *limiter, struct weir__home home,
                                        weir_time now, void *const *mine, size_t n)
{
    struct weir__large *best = NULL;
    weir_time best_at = 0;
    bool early = true;

    for (uint64_t i = 0; early && i < WEIR__LARGE_GROUP; i++) {
        struct weir__large *slot = large_at(limiter, home.group, home.first + i);
        if (is_mine(slot, mine, n))
            continue;
        weir_time at =
            weir_step_idle_at(&__atomic_load_n(&limiter->era, __ATOMIC_ACQUIRE)->plan, slot->state);
        early = at > now;
        if (best == NULL || at < best_at || !early) {
            best = slot;
            best_at = at;
        }
    }
    if (best != NULL)
        weir__count(early ? &limiter->table->header->evicted_early
                          : &limiter->table->header->evicted_idle,
                    1);
    return best;
}

struct weir__large *weir__large_claim_locked(struct weir_limiter *limiter, struct weir__home home,
                                             weir_time now, void *const *mine, size_t n)
{
    now = now < 0 ? 0 : now;
    for (uint64_t i = 0; i < WEIR__LARGE_GROUP; i++) {
        struct weir__large *slot = large_at(limiter, home.group, home.first + i);
        if (slot->tag == 0)
            weir__count(&limiter->table->header->large_keys, 1);
        if (slot->tag == 0 || slot->tag == home.tag) {
            slot->tag = home.tag;
            return slot;
        }
    }
    struct weir__large *slot = large_victim(limiter, home, now, mine, n);
    if (slot != NULL) {
        memset(slot->state, 0, __atomic_load_n(&limiter->era, __ATOMIC_ACQUIRE)->plan.state_size);
        slot->tag = home.tag;
    }
    return slot;
}

/* ------------------------------------------------------ figures ---- */

bool weir__slot_live(struct weir_table *table, uint64_t slot, weir_time now)
{
    void *s = weir__small_at(table, slot / WEIR__GROUP_SLOTS, slot % WEIR__GROUP_SLOTS);

    return weir__load(s) != 0 && idle_at(table, s) > now; /* the tag is a slot's first word */
}

int64_t weir__large_live(struct weir_limiter *limiter, weir_time now)
{
    int64_t live = 0;

    for (uint64_t group = 0; group < limiter->record->large_groups; group++) {
        weir__desk_lock(limiter->table, weir__desk_of(group));
        const struct weir_plan *plan = &weir__limiter_era(limiter)->plan;
        for (uint64_t i = 0; i < WEIR__LARGE_GROUP; i++) {
            struct weir__large *slot = large_at(limiter, group, i);
            live += slot->tag != 0 && weir_step_idle_at(plan, slot->state) > now;
        }
        weir__desk_unlock(limiter->table, weir__desk_of(group));
    }
    return live;
}
