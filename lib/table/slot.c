/* slot.c -- making room for a new key.
 *
 * A key lives within 128 slots from its home, in one group.  A new key swaps its tag into the first
 * empty one; the state there is zeros, which is fresh.  If none is empty, another key makes room:
 * victim.c says which.
 *
 * The slot and the group's counter of such changes are changed together, by a hand.  Two threads
 * that make room for the same key at once would change the counter twice, so one of them fails,
 * looks again, and finds the key there.
 */
#include "table/held.h"
#include "table/victim.h"

/* ------------------------------------------------------- empty slots ---- */

static bool fill_slot(const struct weir__space *space, void *slot, uint64_t with, uint32_t version)
{
    uint64_t *tag = slot, full[2] = { with, version };

    if (space->narrow)
        return weir__swap(tag, 0, with);
    uint64_t empty[2] = { 0, weir__load(tag + 1) }; /* 0 as well, but for damage */
    return weir__swap_pair(tag, empty, full);
}

/* True: the key has a slot now. */
static bool fill_empty(struct weir__space *space, const struct weir__part *part)
{
    for (uint64_t n = 0; n < WEIR__WINDOW_SLOTS; n++) {
        uint64_t *tag = weir__slot_at(space, part->home.group, part->home.first + n),
                 there = weir__load(tag);
        if (there == 0 && weir__slot_is_kept(part, part->home.first + n)) {
            (void)fill_slot(space, tag, WEIR__DEAD_TAG, 0); /* or the key would not be found */
            continue;
        }
        if (there == 0 && fill_slot(space, tag, part->home.tag, part->version)) {
            if (space == &space->table->keys)
                weir__count(&space->table->header->keys, 1);
            return true;
        }
        if (weir__load(tag) == part->home.tag)
            return true;
    }
    return false;
}

/* ------------------------------------------------------------ replace ---- */

/* The new key is fresh, but its state is not zeros: it was paid off a little before now (narrow),
 * or last seen a little after the beginning of time.  So a thread that has read the zeros of a key
 * evicted before its first charge cannot mistake the new key for it. */
static void make_fresh(const struct weir__space *space, struct weir__part *part, weir_time now)
{
    const struct weir__header *h = space->table->header;
    uint64_t evicted =
        (uint64_t)weir__get(&h->evicted_idle) + (uint64_t)weir__get(&h->evicted_early);
    weir_time little = (weir_time)(evicted & 0xffff) + 1;

    part->small[0] = (uint64_t)(!space->narrow ? little : now > little ? now - little : 0);
    part->small[1] = 0;
    if (part->limiter == &space->table->held)
        part->small[0] = weir__held_fresh((uint64_t)little);
}

bool weir__slot_read(struct weir__space *space, void *slot, struct weir__part *out)
{
    const struct weir__wide *s = slot;

    out->slot = slot;
    weir__load_pair(weir__slot_pair(space, slot), out->before);
    if (out->before[space->narrow] & WEIR__PIN) {
        weir__hand_settle(space->table, weir__slot_pin(space, slot));
        return false;
    }
    out->tags[0] = space->narrow ? out->before[0] : weir__load(&s->tag);
    out->tags[1] = space->narrow ? 0 : weir__load(&s->meta);
    return space->narrow || weir__slot_is_same(space, out);
}

/* Adds to the hand: the victim's slot becomes the key's, fresh. */
static void replace_raw(struct weir__space *space, struct weir__hand *hand,
                        const struct weir__part *old, const struct weir__part *part, weir_time now)
{
    struct weir__entry e = weir__slot_entry(space, old);
    struct weir_limiter *limiter = weir__slot_limiter(space, old->tags[0]);
    bool narrow = space->narrow, large = part->limiter->kind == WEIR__LARGE;
    struct weir__part fresh = *part;

    make_fresh(space, &fresh, now);
    e.after[0] = narrow ? part->home.tag : large ? 0 : fresh.small[0];
    e.after[1] = large ? 0 : narrow ? fresh.small[0] : 0;
    if (!narrow)
        weir__entry_retag(&e, part->home.tag, part->version);
    if (limiter != NULL && limiter->kind == WEIR__LARGE)
        e.block_before = (uint32_t)old->before[1];
    weir__hand_add(hand, &e);
}

static void count_eviction(struct weir__space *space, const struct weir__victim *v)
{
    struct weir__header *h = space->table->header;
    bool early = v->used > 0;

    if (v->tag == WEIR__DEAD_TAG) /* it was nobody's */
        weir__count(&h->keys, 1);
    else if (space == &space->table->keys)
        weir__count(early ? &h->evicted_early : &h->evicted_idle, 1);
    else if (early)
        weir__count(&h->bans_lost, 1);
}

static void count_change(struct weir__space *space, struct weir__hand *hand, uint64_t group,
                         uint64_t count, uint64_t unused)
{
    struct weir__entry e = { 0 };

    e.at = space->rooms_at + group * sizeof(struct weir__room);
    e.before[0] = count;
    e.after[0] = (count + 1) & ~WEIR__PIN;
    e.before[1] = e.after[1] = unused;
    weir__hand_add(hand, &e);
}

/* What goes with a slot's large state. */
static struct weir__chain_rest rest_of(struct weir__space *space, const struct weir__part *old)
{
    const struct weir_limiter *limiter = weir__slot_limiter(space, old->tags[0]);

    return limiter != NULL && limiter->kind == WEIR__LARGE && limiter->place != NULL
               ? weir__chain_behind(space, old->before[1])
               : (struct weir__chain_rest){ 0, 0 };
}

/* One try.  False: look again. */
static bool replace(struct weir__space *space, struct weir__hand *hand, struct weir__victim v,
                    const struct weir__part *part, weir_time now, struct weir__chain_rest *rest)
{
    struct weir__part victim;

    if (!weir__slot_read(space, v.slot, &victim) || victim.tags[0] != v.tag ||
        (v.used == 0 &&
         weir__victim_judge(space, v.slot, now).used != 0)) /* it was idle, and is in use again */
        return false;
    *rest = rest_of(space, &victim);
    replace_raw(space, hand, &victim, part, now);
    return true;
}

/* The part's key is new and would need a key in use to make room, which it may not. */
static bool is_refused(struct weir__part *part, const struct weir__victim *v)
{
    bool large = part->limiter->kind == WEIR__LARGE,
         new = part->slot == NULL || (large && (uint32_t)part->before[1] == 0);

    if (!part->closed || !new || (v->slot != NULL && v->used == 0))
        return false;
    part->room_at = v->room_at;
    return true;
}

bool weir__slot_claim(struct weir__part *part, weir_time now, struct weir__hand *hand,
                      const uint64_t *mine, size_t n)
{
    struct weir__space *space = part->limiter->space;
    struct weir__room *room =
        (struct weir__room *)(void *)((unsigned char *)space->table->header + space->rooms_at) +
        part->home.group;

    now = now < 0 ? 0 : now;
    for (;;) {
        uint64_t count = weir__load(&room->count);
        if (count & WEIR__PIN) {
            weir__hand_settle(space->table, &room->count);
            continue;
        }
        if (fill_empty(space, part))
            return true;
        weir__look_begin(space->table);
        struct weir__victim v = weir__victim_near(part, now, mine, n);
        bool done = false;
        bool refused = is_refused(part, &v) || v.slot == NULL;
        struct weir__chain_rest rest;
        if (!refused && replace(space, hand, v, part, now, &rest)) {
            count_change(space, hand, part->home.group, count, weir__load(&room->unused));
            done = weir__hand_commit(space->table, hand);
            if (done)
                weir__chain_give(space, rest);
        }
        weir__look_end(space->table);
        if (refused)
            return false;
        if (done) {
            count_eviction(space, &v);
            return true;
        }
    }
}

/* --------------------------------------------------------------- slab ---- */

/* Forgets the candidate's large state, and frees its block.  False: it is not there any more, or in
 * use again. */
static bool free_block(struct weir__space *space, struct weir__hand *hand, struct weir__victim v,
                       weir_time now)
{
    struct weir__part old;
    void *slot = v.slot;

    if (!weir__slot_read(space, slot, &old) || old.tags[0] != v.tag ||
        (v.used == 0 && weir__victim_judge(space, slot, now).used != 0))
        return false;
    struct weir__entry e = weir__slot_entry(space, &old);
    e.after[0] = space->narrow ? old.before[0] : 0;
    e.block_before = (uint32_t)old.before[1];
    struct weir__chain_rest rest = rest_of(space, &old);
    weir__hand_add(hand, &e);
    if (!weir__hand_commit(space->table, hand))
        return false;
    weir__chain_give(space, rest);
    return true;
}

bool weir__slab_make_room(struct weir__part *part, size_t bytes, weir_time now,
                          struct weir__hand *hand)
{
    struct weir__space *space = part->limiter->space;

    bool freed, refused;
    struct weir__victim v;

    now = now < 0 ? 0 : now;
    weir__look_begin(space->table);
    do {
        v = weir__victim_with_block(part, weir__block_round(bytes), now);
        refused = is_refused(part, &v) || v.slot == NULL;
        freed = !refused && free_block(space, hand, v, now);
    } while (!refused && !freed);
    weir__look_end(space->table);
    if (freed)
        count_eviction(space, &v);
    return freed;
}

/* ------------------------------------------------------------ rebuild ---- */

/* The version that the state is kept under tells how large the block is. */
static bool mark_block(struct weir__space *space, struct weir_limiter *limiter, void *slot)
{
    struct weir__part part = { .limiter = limiter };

    if (!weir__slot_read(space, slot, &part))
        return false;
    const struct weir__era *era = weir__acquire(&limiter->era);
    part.version = era->version;
    const struct weir_plan *plan = limiter->place == NULL
                                       ? &era->plan
                                       : weir__limiter_plan(limiter, weir__part_version(&part));
    return plan != NULL &&
           (plan->nodes != NULL) ==
               (limiter->place != NULL && weir__chain_in(space, part.before[1])) &&
           weir__slab_rebuild_mark(&space->slab, (uint32_t)part.before[1], plan->state_size) &&
           (plan->nodes == NULL || weir__chain_mark(space, part.before[1]));
}

static void mark_blocks(struct weir__space *space)
{
    for (uint64_t i = 0; i < space->groups * WEIR__GROUP_SLOTS; i++) {
        void *slot = weir__slot_at(space, i / WEIR__GROUP_SLOTS, i % WEIR__GROUP_SLOTS);
        uint64_t *pair = weir__slot_pair(space, slot), tag = weir__load(slot);
        struct weir_limiter *limiter = tag == 0 ? NULL : weir__slot_limiter(space, tag);
        if (limiter == NULL || limiter->kind != WEIR__LARGE || (uint32_t)pair[1] == 0)
            continue;
        if (!mark_block(space, limiter, slot)) /* damage: fresh again */
            pair[1] = 0;
    }
}

void weir__slots_rebuild(struct weir__space *space)
{
    bool any = space == &space->table->bans;

    for (uint32_t id = 0, n = space->table->limiters.most; id < n && !any; id++) {
        struct weir_limiter *limiter = weir__limiter_by_id(space->table, id);
        any = limiter != NULL && limiter->kind == WEIR__LARGE;
    }
    weir__slab_rebuild_begin(&space->slab);
    if (any)
        mark_blocks(space);
    (void)weir__slab_rebuild_end(&space->slab);
}

/* ------------------------------------------------------------ figures ---- */

weir_time weir__slot_idle_at(struct weir__space *space, uint64_t slot, weir_time now)
{
    void *s = weir__slot_at(space, slot / WEIR__GROUP_SLOTS, slot % WEIR__GROUP_SLOTS);
    struct weir__victim v = weir__victim_judge(space, s, now);

    return v.used == 0 ? now : v.idle_at;
}

bool weir__slot_live(struct weir__space *space, uint64_t slot, weir_time now)
{
    void *s = weir__slot_at(space, slot / WEIR__GROUP_SLOTS, slot % WEIR__GROUP_SLOTS);

    weir__look_begin(space->table);
    bool live = weir__load(s) != 0 && /* its first word is the tag */
                weir__victim_judge(space, s, now).used > 0;
    weir__look_end(space->table);
    return live;
}
