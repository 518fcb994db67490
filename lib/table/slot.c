/* slot.c -- a slot for a new key.
 *
 * A key lives within 128 slots from its home, in one group.  A new key gets the nearest empty one;
 * if there is none, another key makes room: eviction.c says which.  The group knows how far from
 * its home a key was ever put, its reach, and a search ends there, whatever slots are empty: so a
 * slot can become empty again.
 *
 * The slot, the group's reach and its counter of such changes are changed together, by a hand.  Two
 * threads that claim a slot for the same key at once would change the counter twice, so one of them
 * fails, looks again, and finds the key there.
 */
#include "table/cl-throttle-limits.h"
#include "table/eviction.h"
#include "table/permits-by-key.h"

/* -------------------------------------------------------- empty slots ---- */

/* The nearest to the key's home that it may have; or none. */
static struct weir__victim nearest_empty(const struct weir__part *part)
{
    for (uint64_t n = 0; n < WEIR__WINDOW_SLOTS; n++) {
        uint64_t i = part->home.first + n;
        void *slot = weir__slot_at(part->limiter->space, part->home.group, i);
        if (weir__load(slot) == 0 && !weir__slot_is_kept(part, i))
            return (struct weir__victim){ .slot = slot };
    }
    return (struct weir__victim){ .slot = NULL };
}

/* ------------------------------------------------------------ replace ---- */

/* A new key is fresh, but its state is not zeros: it was paid off a little before now (narrow), or
 * last seen a little after the beginning of time.  So a thread that has read the zeros of a key
 * that went before its first charge cannot mistake the new key for it. */
static uint64_t fresh_word(const struct weir__part *part, const struct weir__part *old,
                           weir_time now, uint64_t count)
{
    const struct weir__space *space = part->limiter->space;
    weir_time little = (weir_time)(count & 0xffff) + 1;

    if (part->limiter == &space->table->held)
        return weir__held_fresh((uint64_t)little);
    if (space->narrow)
        return now > little ? (uint64_t)(now - little) : 0;
    bool used = (old->tags[0] | old->tags[1]) != 0; /* it has had a key before */
    return used ? (uint64_t)little : 0;
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

/* The claim of a slot. */
struct claim {
    struct weir__part *part;
    struct weir__hand *hand;
    weir_time now;
    uint64_t count; /* the group's */
    bool whole;     /* the key gets the part's state, not a fresh one */
};

/* Adds to the hand: the slot becomes the key's. */
static void replace_raw(const struct claim *c, const struct weir__part *old)
{
    const struct weir__part *part = c->part;
    struct weir__space *space = part->limiter->space;
    struct weir__entry e = weir__slot_entry(space, old);
    struct weir_limiter *limiter = weir__slot_limiter(space, old->tags[0]);
    bool large = part->limiter->kind == WEIR__LARGE;
    uint64_t fresh = large ? 0 : fresh_word(part, old, c->now, c->count);

    if (space->narrow) {
        e.after[0] = part->home.tag;
        e.after[1] = c->whole ? weir__part_packed(part) : fresh;
    } else {
        e.after[0] = c->whole ? part->small[0] : fresh;
        e.after[1] = c->whole ? part->small[1] : 0;
        weir__entry_retag(&e, part->home.tag, part->version);
    }
    if (limiter != NULL && limiter->kind == WEIR__LARGE)
        e.block_before = (uint32_t)old->before[1];
    weir__hand_add(c->hand, &e);
}

static void count_eviction(struct weir__space *space, const struct weir__victim *v)
{
    struct weir__header *h = space->table->header;
    bool early = v->used > 0;

    if (space == &space->table->keys)
        weir__count(v->tag == 0 ? &h->keys : early ? &h->evicted_early : &h->evicted_idle, 1);
    else if (early)
        weir__count(&h->bans_lost, 1);
}

uint64_t weir__slot_distance(const struct weir__space *space, struct weir__home home,
                             const void *slot)
{
    uint64_t size = space->narrow ? sizeof(struct weir__narrow) : sizeof(struct weir__wide),
             i = (uint64_t)((const unsigned char *)slot - space->slots) / size;

    return ((i - home.first) % WEIR__GROUP_SLOTS / weir__line_slots(space) + 1) *
           weir__line_slots(space);
}

/* Adds to the hand: one more change of the group, whose searches go on for this many slots. */
static void count_change(struct weir__space *space, struct weir__hand *hand, uint64_t group,
                         uint64_t count, uint64_t distance)
{
    struct weir__entry e = { 0 };
    uint64_t reach = weir__load(&space->rooms[group].reach);

    e.at = space->rooms_at + group * sizeof(struct weir__room);
    e.before[0] = count;
    e.after[0] = (count + 1) & ~WEIR__PIN;
    e.before[1] = reach;
    e.after[1] = reach != 0 && reach < distance ? distance : reach;
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
static bool replace(const struct claim *c, struct weir__victim v)
{
    struct weir__space *space = c->part->limiter->space;
    struct weir__part victim;

    if (!weir__slot_read(space, v.slot, &victim) || victim.tags[0] != v.tag)
        return false;
    if (v.tag != 0 && v.used == 0 && weir__victim_judge(space, v.slot, c->now).used != 0)
        return false; /* it was idle, and is in use again */
    struct weir__chain_rest rest = rest_of(space, &victim);
    replace_raw(c, &victim);
    count_change(space, c->hand, c->part->home.group, c->count,
                 weir__slot_distance(space, c->part->home, v.slot));
    if (!weir__hand_commit(space->table, c->hand))
        return false;
    weir__chain_give(space, rest);
    count_eviction(space, &v);
    return true;
}

/* A key in use would have to make room, and may not: the part's key is new, or units come back. */
static bool is_refused(struct weir__part *part, const struct weir__victim *v)
{
    bool large = part->limiter->kind == WEIR__LARGE,
         new = part->slot == NULL || (large && (uint32_t)part->before[1] == 0);

    if ((!part->gives && (!part->closed || !new)) || (v->slot != NULL && v->used == 0))
        return false;
    part->room_at = part->gives ? 0 : v->room_at;
    return true;
}

enum weir__claimed weir__slot_claim(struct weir__part *part, weir_time now, struct weir__hand *hand,
                                    bool whole, const uint64_t *mine, size_t n)
{
    struct weir__space *space = part->limiter->space;
    struct weir__room *room = &space->rooms[part->home.group];
    struct claim c = { part, hand, now < 0 ? 0 : now, 0, whole };

    for (bool done = false; !done;) {
        c.count = weir__load(&room->count);
        if (c.count & WEIR__PIN) {
            weir__hand_settle(space->table, &room->count);
            continue;
        }
        if (weir__slot_find(space, part->home) != NULL)
            return WEIR__CLAIM_FOUND;
        struct weir__victim v = nearest_empty(part);
        if (v.slot != NULL) {
            done = replace(&c, v);
            continue;
        }
        weir__look_begin(space->table);
        v = weir__victim_near(part, c.now, mine, n);
        bool refused = is_refused(part, &v) || v.slot == NULL;
        done = !refused && replace(&c, v);
        weir__look_end(space->table);
        if (refused)
            return WEIR__CLAIM_NONE;
    }
    return WEIR__CLAIM_DONE;
}

/* -------------------------------------------------------------- reach ---- */

void weir__group_shrink(struct weir__space *space, uint64_t group)
{
    uint64_t count = weir__load(&space->rooms[group].count);
    struct weir__entry e = { .at = space->rooms_at + group * sizeof(struct weir__room) };

    for (uint64_t i = 0; i < WEIR__GROUP_SLOTS; i++)
        if (weir__load(weir__slot_at(space, group, i)) != 0)
            return;
    if (count & WEIR__PIN) /* a key is coming */
        return;
    e.before[0] = count;
    e.after[0] = (count + 1) & ~WEIR__PIN;
    e.before[1] = weir__load(&space->rooms[group].reach);
    e.after[1] = weir__line_slots(space);
    struct weir__hand *hand = weir__hand_take(space->table);
    weir__hand_add(hand, &e);
    (void)weir__hand_commit(space->table, hand);
    weir__hand_give(hand);
}

void weir__groups_open(struct weir__space *space, uint64_t reach)
{
    for (uint64_t group = 0; group < space->groups; group++)
        space->rooms[group].reach = reach;
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

bool weir__slab_make_room(struct weir__part *part, weir_time now, struct weir__hand *hand,
                          const uint64_t *mine, size_t n)
{
    struct weir__space *space = part->limiter->space;
    size_t bytes = weir__block_round(part->plan->state_size);
    bool freed, refused;
    struct weir__victim v;

    if (!part->limiter->guest && weir__hands_shed(space, bytes))
        return true;
    now = now < 0 ? 0 : now;
    weir__look_begin(space->table);
    do {
        v = weir__victim_with_block(part, bytes, now, mine, n);
        refused = is_refused(part, &v) || v.slot == NULL;
        freed = !refused && free_block(space, hand, v, now);
    } while (!refused && !freed);
    weir__look_end(space->table);
    if (freed)
        count_eviction(space, &v);
    return freed;
}

/* ------------------------------------------------------------ rebuild ---- */

/* The version that the state is kept under tells how large the block is.  If nobody remembers that,
 * the state goes, and the rest of its word stays: so it counts as spent (read_large in part.c). */
static void mark_block(struct weir__space *space, struct weir_limiter *limiter, void *slot)
{
    struct weir__part part = { .limiter = limiter };
    uint64_t *word = &weir__slot_pair(space, slot)[1];
    const struct weir__era *era = weir__acquire(&limiter->era);
    bool read = weir__slot_read(space, slot, &part);

    part.version = era->version;
    const struct weir_plan *plan = limiter->place == NULL
                                       ? &era->plan
                                       : weir__limiter_plan(limiter, weir__part_version(&part));
    if (read && plan == NULL)
        *word &= ~(weir__chain_bit(space) | UINT32_MAX);
    else if (!read ||
             (plan->nodes != NULL) !=
                 (limiter->place != NULL && weir__chain_in(space, part.before[1])) ||
             !weir__slab_rebuild_mark(&space->slab, (uint32_t)part.before[1], plan->state_size) ||
             (plan->nodes != NULL && !weir__chain_mark(space, part.before[1])))
        *word = 0; /* damage: fresh again */
}

static void mark_blocks(struct weir__space *space)
{
    for (uint64_t i = 0; i < space->groups * WEIR__GROUP_SLOTS; i++) {
        void *slot = weir__slot_at(space, i / WEIR__GROUP_SLOTS, i % WEIR__GROUP_SLOTS);
        uint64_t *pair = weir__slot_pair(space, slot), tag = weir__load(slot);
        struct weir_limiter *limiter = weir__slot_limiter(space, tag);
        if (limiter != NULL && limiter->kind == WEIR__LARGE && (uint32_t)pair[1] != 0)
            mark_block(space, limiter, slot);
    }
}

/* Another limiter that gets the place would take their words for its own. */
void weir__slots_empty_orphans(struct weir__space *space)
{
    size_t bytes = space->narrow ? sizeof(struct weir__narrow) : sizeof(struct weir__wide);

    for (uint64_t i = 0; i < space->groups * WEIR__GROUP_SLOTS; i++) {
        void *slot = weir__slot_at(space, i / WEIR__GROUP_SLOTS, i % WEIR__GROUP_SLOTS);
        uint64_t tag = weir__load(slot);
        if (tag == 0 || weir__tag_is_held(tag) || weir__tag_id(tag) == WEIR__CARRIED_ID ||
            weir__slot_limiter(space, tag) != NULL)
            continue;
        memset(slot, 0, bytes);
        weir__count(&space->table->header->keys, -1);
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
    bool live = weir__victim_judge(space, s, now).used > 0;
    weir__look_end(space->table);
    return live;
}
