/* part.c -- states read, changed and written back: the general way.
 *
 * Read the slot, bring its state to the present limit, work on the copy, and have a hand write it
 * if the slot has not changed; else begin again.  A large state is a block: the copy goes into
 * another block, and the hand trades the two.  A block that is read may be another key's by then;
 * the slot's pair, read again, tells.  Of a long sliding log the newest node is copied (chain.h).
 */
#include <stdlib.h>
#include <string.h>

#include "table/cl-throttle-limits.h"
#include "table/part.h"

void weir__part_begin(struct weir__part *part, struct weir_limiter *limiter, struct weir__home home)
{
    const struct weir__era *era = limiter->place == NULL
                                      ? limiter->era
                                      : weir__limiter_era(limiter); /* bans: never changes */

    part->limiter = limiter;
    part->plan = &era->plan;
    part->version = era->version;
    part->era = era;
    part->home = home;
    part->closed = part->gives = part->forgone = false;
    part->room_at = 0;
}

/* The same again, under the present limit. */
static void begin_anew(struct weir__part *part)
{
    bool closed = part->closed, gives = part->gives;

    part->forgone = false;
    if (part->limiter->place == NULL)
        return;
    weir__part_begin(part, part->limiter, part->home);
    part->closed = closed;
    part->gives = gives;
}

/* ---------------------------------------------------------------- read ---- */

static bool is_large(const struct weir__part *part)
{
    return part->limiter->kind == WEIR__LARGE;
}

/* A narrow slot has no room for more than the version's last bits. */
uint32_t weir__part_version(const struct weir__part *part)
{
    uint32_t last = (uint32_t)(part->before[1] >> 32) & 0xff;

    return part->limiter->space->narrow ? part->version - ((part->version - last) & 0xff)
                                        : (uint32_t)part->tags[1];
}

/* The limit is still the one that the part began with: then the slot, which was read before, is not
 * under a later one. */
static bool is_present(const struct weir__part *part)
{
    return part->era == NULL || weir__limiter_era(part->limiter) == part->era;
}

/* Where the copy goes. */
static void place_copy(struct weir__part *part, struct weir__hand *hand, size_t i,
                       struct weir__copies *copies)
{
    size_t size = part->plan->state_size, room = (size + 15) & ~(size_t)15,
           most = size <= WEIR__NODE_BYTES ? sizeof(copies->bytes) : WEIR__COPIES_WINDOWS;

    part->block = 0;
    part->state = part->small;
    if (!is_large(part))
        return;
    if (copies->used + room <= most) {
        part->state = copies->bytes + copies->used;
        copies->used += room;
        return;
    }
    part->block =
        hand ? weir__hand_block(part->limiter->space, hand, i, size, part->limiter->guest) : 0;
    part->state =
        part->block == 0 ? NULL : weir__block_at(&part->limiter->space->slab, part->block);
}

/* Of a node only what means anything. */
static void copy_state(const struct weir_plan *plan, void *to, const void *from)
{
    size_t head = (offsetof(struct weir__log_node, entries) + 7) & ~(size_t)7;

    if (plan->nodes == NULL) {
        weir__copy_words(to, from, plan->state_size);
        return;
    }
    weir__copy_words(to, from, head);
    weir__copy_words((unsigned char *)to + head, (const unsigned char *)from + head,
                     weir__node_bytes(to) - head);
}

/* Without a block it is fresh; unless it was lost in a rebuild because nobody remembers its limit:
 * then more of its word is left. */
static void read_large(struct weir__part *part)
{
    uint32_t block = (uint32_t)part->before[1];
    size_t bytes = weir__block_bytes(&part->limiter->space->slab, block);

    if (bytes == 0 && (block != 0 || part->before[1] == 0)) {
        weir__zero_words(part->state, part->plan->state_size);
        return;
    }
    const void *from = block ? weir__block_at(&part->limiter->space->slab, block) : NULL;
    uint32_t version = weir__part_version(part);
    const struct weir_plan *plan = version == part->version || part->limiter->place == NULL
                                       ? part->plan
                                       : weir__limiter_plan(part->limiter, version);
    bool chain = weir__chain_in(part->limiter->space, part->before[1]);
    if (plan != NULL && (plan->nodes != NULL) != chain)
        weir__zero_words(part->state, part->plan->state_size); /* damage */
    else if (plan == part->plan && plan->state_size > bytes)
        weir__zero_words(part->state, plan->state_size); /* damage */
    else if (plan == NULL || plan->state_size > bytes)
        weir__limiter_convert(part->limiter, part->era, version, NULL, part->state);
    else if (plan == part->plan)
        copy_state(plan, part->state, from);
    else
        weir__limiter_convert(part->limiter, part->era, version, from, part->state);
}

static void read_narrow(struct weir__part *part, weir_time now)
{
    part->small[1] =
        (uint64_t)weir__unpack(part->plan, part->before[1] & ~WEIR__PIN, &now, &part->stepped);
    part->small[0] = (uint64_t)now;
}

static void read_wide(struct weir__part *part, weir_time now)
{
    uint32_t version = (uint32_t)part->tags[1];

    part->small[0] = part->before[0];
    part->small[1] = part->before[1];
    if (version == part->version)
        return;
    if (part->limiter->id == WEIR__CARRIED_ID) {
        weir__i128 owed =
            weir__carried_convert(part->plan, version, part->before, part->small, now);
        part->owed = owed > WEIR__OWED_MAX ? owed : 0;
        part->state = owed > WEIR__OWED_MAX ? NULL : part->state;
    } else {
        weir__limiter_convert(part->limiter, part->era, version, part->before, part->small);
    }
}

void weir__part_copy(struct weir__part *part, weir_time now)
{
    if (is_large(part))
        read_large(part);
    else if (part->limiter->space->narrow)
        read_narrow(part, now);
    else
        read_wide(part, now);
}

static bool read_slot(struct weir__part *part)
{
    weir__load_pair(weir__slot_pair(part->limiter->space, part->slot), part->before);
    if (__builtin_expect((part->before[part->limiter->space->narrow] & WEIR__PIN) != 0, 0)) {
        weir__hand_settle(part->limiter->table, weir__slot_pin(part->limiter->space, part->slot));
        return false;
    }
    if (part->limiter->space->narrow)
        return part->before[0] == part->home.tag;
    const struct weir__wide *s = part->slot;
    part->tags[0] = weir__load(&s->tag);
    part->tags[1] = weir__load(&s->meta);
    return part->tags[0] == part->home.tag;
}

bool weir__slot_is_same(const struct weir__space *space, const struct weir__part *part)
{
    const struct weir__wide *s = part->slot;
    uint64_t now[2];

    weir__load_pair(weir__slot_pair(space, part->slot), now);
    return now[0] == part->before[0] && now[1] == part->before[1] &&
           (space->narrow ||
            (weir__load(&s->tag) == part->tags[0] && weir__load(&s->meta) == part->tags[1]));
}

/* A log that was brought over is written first: its newest node must be in the table before another
 * can follow it.  True: it is, or the slot has changed; read again. */
static bool write_converted(struct weir__part *part, struct weir__hand *hand, size_t i)
{
    const struct weir__log_node *node = part->state;

    if (hand == NULL || node == NULL || part->plan->nodes == NULL || node->n == 0 ||
        node->self != 0 || !weir__part_write(part, hand, i))
        return false;
    if (weir__hand_commit(part->limiter->table, hand))
        weir__part_done(part);
    return true;
}

bool weir__part_read(struct weir__part *part, struct weir__hand *hand, size_t i,
                     struct weir__copies *copies, weir_time now)
{
    part->slot = weir__slot_find(part->limiter->space, part->home);
    part->stepped = false;
    part->owed = 0;
    part->rest.block = 0;
    place_copy(part, hand, i, copies);
    if (part->slot == NULL) {
        part->before[0] = part->before[1] = 0;
        if (part->state != NULL)
            weir__zero_words(part->state, part->plan->state_size);
        return true;
    }
    if (!read_slot(part) || !is_present(part))
        return false;
    if (part->state != NULL)
        weir__part_copy(part, now < 0 ? 0 : now);
    if (!is_large(part))
        return true;
    return weir__part_is_same(part) && !write_converted(part, hand, i);
}

void *weir__part_copy_apart(struct weir__part *part, weir_time now)
{
    part->state = part->owed == 0 ? calloc(1, part->plan->state_size) : NULL;
    if (part->state != NULL && part->slot != NULL)
        weir__part_copy(part, now < 0 ? 0 : now);
    return part->state;
}

/* There is no room: nothing is remembered, unless the part is refused for it. */
static void forgo(struct weir__part *part)
{
    part->forgone = part->room_at == 0;
}

void weir__part_count_lost(const struct weir__part *part)
{
    struct weir__header *h = part->limiter->table->header;

    weir__count(part->limiter == &part->limiter->table->banned ? &h->bans_lost : &h->evicted_early,
                1);
}

/* Of the hand's spare blocks the part needs the first. */
static bool make_room(struct weir__part *part, struct weir__hand *hand, weir_time now)
{
    return weir__hand_shed(part->limiter->space, hand, 1,
                           weir__block_round(part->plan->state_size)) ||
           weir__slab_make_room(part, now, hand, &part->home.tag, 1);
}

/* There is no copy, because the slab is full.  True: another key's block has been freed, read
 * again. */
static bool finds_room(struct weir__part *part, struct weir__hand *hand, weir_time now)
{
    if (make_room(part, hand, now))
        return true;
    forgo(part);
    return false;
}

bool weir__part_peek(struct weir__part *part, void *out)
{
    part->slot = weir__slot_find(part->limiter->space, part->home);
    part->state = out;
    memset(out, 0, part->plan->state_size);
    if (part->slot == NULL)
        return true;
    if (!read_slot(part))
        return false;
    read_large(part);
    return weir__part_is_same(part);
}

/* --------------------------------------------------------------- write ---- */

/* A log's newest node, and what becomes of those before it. */
static void write_node(struct weir__part *part, uint32_t block, struct weir__entry *e)
{
    struct weir__log_node *node = part->state;
    bool keeps;

    part->rest = weir__chain_before(part->limiter->space, part->before[1], node, &keeps);
    if (keeps)
        e->block_before = 0;
    node->self = block;
}

static bool write_large(struct weir__part *part, struct weir__hand *hand, size_t i,
                        struct weir__entry *e)
{
    struct weir__space *space = part->limiter->space;
    size_t size = part->plan->state_size;
    uint32_t block =
        part->block ? part->block : weir__hand_block(space, hand, i, size, part->limiter->guest);
    uint64_t chain = weir__chain_bit(space),
             number = (part->before[1] & ~chain) >> (space->narrow ? 40 : 32);

    if (block == 0)
        return false;
    e->block_before = (uint32_t)part->before[1];
    e->block_after = block;
    if (space->narrow) {
        e->after[0] = part->home.tag;
        e->after[1] = (number + 1) << 40 | (uint64_t)(part->version & 0xff) << 32 | block;
    } else {
        e->after[0] = (uint64_t)weir_step_idle_at(part->plan, part->state) & INT64_MAX;
        e->after[1] = (number + 1) << 32 | block;
    }
    e->after[1] = part->plan->nodes != NULL ? e->after[1] | chain : e->after[1] & ~chain;
    if (space->narrow)
        e->after[1] &= ~WEIR__PIN;
    if (part->plan->nodes != NULL) {
        write_node(part, block, e);
        size = weir__node_bytes(part->state);
    } else {
        part->rest = weir__chain_behind(space, part->before[1]);
    }
    if (part->block == 0)
        weir__copy_words(weir__block_at(&space->slab, block), part->state, size);
    return true;
}

bool weir__part_write(struct weir__part *part, struct weir__hand *hand, size_t i)
{
    const struct weir__space *space = part->limiter->space;
    struct weir__entry e = weir__slot_entry(space, part);

    if (!space->narrow && (uint32_t)part->tags[1] != part->version)
        weir__entry_retag(&e, part->home.tag, part->version);
    if (!is_large(part)) {
        e.after[0] = space->narrow ? part->home.tag : part->small[0];
        e.after[1] = space->narrow ? weir__part_packed(part) : part->small[1];
    } else if (!write_large(part, hand, i, &e)) {
        return false;
    }
    weir__hand_add(hand, &e);
    return true;
}

/* A large state that is fresh again needs no block, and so no room for a copy.  The slot's meta
 * counts on: what was prepared before fails. */
static bool write_fresh(struct weir__part *part, struct weir__hand *hand)
{
    struct weir__space *space = part->limiter->space;
    struct weir__entry e = weir__slot_entry(space, part);

    if (space->narrow)
        e.after[0] = part->before[0];
    else
        weir__entry_retag(&e, part->tags[0], part->version);
    e.block_before = (uint32_t)part->before[1];
    part->rest = weir__chain_behind(space, part->before[1]);
    weir__hand_add(hand, &e);
    bool done = weir__hand_commit(part->limiter->table, hand);
    if (done)
        weir__part_done(part);
    return done;
}

static bool is_fresh(const struct weir__part *part)
{
    return is_large(part) && weir__is_all_fresh(part->plan, part->state);
}

/* The part has no slot: it gets one, with its state if that is small.  False: begin again. */
static bool write_new(struct weir__part *part, struct weir__hand *hand, weir_time now)
{
    enum weir__claimed claimed =
        weir__slot_claim(part, now, hand, !is_large(part), &part->home.tag, 1);

    if (claimed == WEIR__CLAIM_NONE)
        forgo(part);
    return claimed == WEIR__CLAIM_NONE || (claimed == WEIR__CLAIM_DONE && !is_large(part));
}

/* Writes one part.  False: begin again. */
static bool write_alone(struct weir__part *part, struct weir__hand *hand, weir_time now)
{
    if (weir__part_write(part, hand, 0)) {
        bool done = weir__hand_commit(part->limiter->table, hand);
        if (done)
            weir__part_done(part);
        return done;
    }
    weir__hand_clear(hand);
    if (is_fresh(part))
        return write_fresh(part, hand);
    if (make_room(part, hand, now))
        return false;
    forgo(part);
    return true;
}

/* -------------------------------------------------------------- change ---- */

/* There is no block for a copy, and after the change none is needed. */
static bool becomes_fresh(struct weir__part *part, weir__changer *change, void *context,
                          weir_time now)
{
    if (part->state != NULL || part->slot == NULL)
        return false;
    void *apart = weir__part_copy_apart(part, now);
    bool fresh = apart != NULL && change(part->plan, apart, context) && is_fresh(part);
    part->state = NULL;
    free(apart);
    return fresh;
}

/* One round; true: done. */
static bool change_once(struct weir__part *part, struct weir__hand *hand, weir__changer *change,
                        void *context, bool make, weir_time now)
{
    struct weir__copies copies;

    copies.used = 0;
    if (!weir__part_read(part, hand, 0, &copies, now))
        return false;
    if (part->slot == NULL && !make)
        return true;
    if (becomes_fresh(part, change, context, now))
        return write_fresh(part, hand);
    if (part->state == NULL && part->owed == 0 && finds_room(part, hand, now))
        return false;
    if (part->state == NULL || (!change(part->plan, part->state, context) && !part->stepped))
        return weir__part_is_same(part);
    bool narrow = part->limiter->space->narrow; /* no meta: with a block, what was prepared fails */
    return part->slot == NULL          ? write_new(part, hand, now)
           : !narrow && is_fresh(part) ? write_fresh(part, hand)
                                       : write_alone(part, hand, now);
}

void weir__part_change(struct weir__part *part, weir__changer *change, void *context, bool make,
                       weir_time now)
{
    struct weir__hand *hand = weir__hand_take(part->limiter->table);

    while (!change_once(part, hand, change, context, make, now))
        begin_anew(part);
    if (part->forgone)
        weir__part_count_lost(part);
    weir__hand_give(hand);
}

static bool is_older(const struct weir_plan *plan, void *state, void *context)
{
    (void)plan;
    (void)state;
    return weir__part_version(context) != ((const struct weir__part *)context)->version;
}

void weir__parts_renew(struct weir_limiter *limiter, weir_time now)
{
    struct weir__space *space = limiter->space;
    struct weir__part part;

    for (uint64_t i = 0; i < space->groups * WEIR__GROUP_SLOTS; i++) {
        uint64_t tag =
            weir__load(weir__slot_at(space, i / WEIR__GROUP_SLOTS, i % WEIR__GROUP_SLOTS));
        if (tag == 0 || weir__tag_id(tag) != limiter->id)
            continue;
        weir__part_begin(&part, limiter, weir__home_at(space, i, tag));
        weir__part_change(&part, is_older, &part, false, now);
    }
}

/* -------------------------------------------------------------- decide ---- */

static weir_time deep_time(const struct weir_plan *plan, weir__i128 parts)
{
    weir__i128 scale = (weir__i128)plan->by_scale.by;

    return (weir_time)((parts + scale - 1) / scale);
}

/* More is owed than can be told in the plan's parts, and so far more than the plan allows. */
static void refuse_deep(const struct weir__part *part, const struct weir_ask *ask,
                        struct weir_decision *d)
{
    const struct weir_plan *plan = part->plan;
    weir__i128 missing = part->owed + (weir__i128)ask->cost * plan->price - plan->capacity;
    bool never = ask->cost > plan->most || ask->cost < 0;

    d->remaining = 0;
    d->reset = deep_time(plan, part->owed);
    weir__refuse(d, never ? WEIR_NEVER : deep_time(plan, missing));
}

/* With the slab full a key is as good as fresh, and nothing is kept. */
void weir__part_answer(const struct weir__part *part, const struct weir_ask *ask,
                       struct weir_decision *d)
{
    weir__decision_begin(part->plan, d);
    d->remaining = part->plan->most;
    d->reset = 0;
    if (part->owed > 0)
        refuse_deep(part, ask, d);
    else if (ask->cost > part->plan->most || ask->cost < 0)
        weir__refuse(d, WEIR_NEVER);
    else
        weir__grant(d, 0);
    if (ask->cost < 0)
        d->reason = WEIR_BAD_ASK;
}

/* Where nobody can tell when there is room, as on a full disk: what nobody uses goes that often. */
#define ROOM_LOOK (10 * WEIR_SECOND)

void weir__part_say_no_room(const struct weir__part *part, const struct weir_ask *ask,
                            struct weir_decision *d)
{
    weir_time now = ask->now < 0 ? 0 : ask->now;

    weir__decision_begin(part->plan, d);
    weir__refuse_until(d, part->room_at == INT64_MAX ? ROOM_LOOK : part->room_at - now);
    d->reason = WEIR_NO_ROOM;
    d->remaining = d->reset = 0;
}

void weir__part_refuse(const struct weir__part *part, const struct weir_ask *ask,
                       struct weir_decision *d)
{
    weir__part_say_no_room(part, ask, d);
    weir__count(&part->limiter->table->header->no_room, 1);
}

/* A round that is over, but for want of room. */
static bool end_round(const struct weir__part *part, const struct weir_ask *ask, bool done,
                      struct weir_decision *d)
{
    if (part->room_at != 0)
        weir__part_refuse(part, ask, d);
    return done || part->room_at != 0;
}

/* One round; true: done.  Without a block for the copy the state is decided on in memory first:
 * nobody makes room for a refusal. */
static bool decide_once(struct weir__part *part, struct weir__hand *hand,
                        const struct weir_ask *ask, bool take, struct weir_decision *d)
{
    struct weir__copies copies;

    copies.used = 0;
    if (!weir__part_read(part, hand, 0, &copies, ask->now))
        return false;
    bool full = part->state == NULL && part->owed == 0;
    void *apart = full ? weir__part_copy_apart(part, ask->now) : NULL;
    bool changed = weir__part_step(part, ask, take, d) ||
                   (full && apart == NULL && d->allowed && ask->cost > 0);
    free(apart);
    part->state = full ? NULL : part->state;
    if (!take || !changed || (part->slot == NULL && !d->allowed))
        return weir__part_is_same(part);
    if (full && finds_room(part, hand, ask->now))
        return false;
    if (full && part->slot == NULL)
        weir__part_answer(part, ask, d);
    if (full)
        return end_round(part, ask, weir__part_is_same(part), d);
    bool done =
        part->slot != NULL ? write_alone(part, hand, ask->now) : write_new(part, hand, ask->now);
    return end_round(part, ask, done, d);
}

bool weir__decide_slowly(struct weir__part *part, const struct weir_ask *ask, bool take,
                         struct weir_decision *d)
{
    struct weir__hand *hand = take ? weir__hand_take(part->limiter->table) : NULL;

    while (!decide_once(part, hand, ask, take, d))
        begin_anew(part);
    if (part->forgone && d->allowed && ask->cost > 0)
        weir__part_count_lost(part);
    if (hand != NULL)
        weir__hand_give(hand);
    return d->allowed;
}
