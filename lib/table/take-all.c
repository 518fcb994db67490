/* take-all.c -- several limits at once: every item is taken, or none is.
 *
 *     1. Items on one key of one limiter become one ask with their total cost.
 *     2. Read each state, and run its step on the copy.  A refusal is the answer, and nothing was
 *        taken.
 *     3. Keys that have no slot get one: then read again.
 *     4. A hand writes all the copies, if no slot has changed since it was read; else read again.
 *
 * Nearly always a state is small, under the present limit, and in the first slot of its line:
 * look_quick.  Everything else goes the general way (part.c).
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "table/combined-answer.h"
#include "table/eviction.h"
#include "table/take-all.h"

/* An item on its way. */
struct part {
    struct weir__part p;
    const struct weir__item *of;
    const struct weir_ask *ask; /* the caller's, or `own` if that costs something else */
    size_t item;                /* the first that asks it */
    size_t spare;               /* which of the hand's spare blocks it may use */
    bool quick;                 /* by look_quick */
    bool changed;               /* the copy: there is something to write */
    bool refused;
    bool blockless; /* not quick: there would be, but the slab has no block for the copy */
    struct weir_ask own;
};

/* One more item on the same key: costs add up, the shortest patience and the latest time count. */
static void add_item(struct weir_ask *together, const struct weir_ask *more)
{
    if (more->cost < 0 || together->cost < 0)
        together->cost = -1; /* a mistake stays one */
    else
        together->cost =
            more->cost > INT64_MAX - together->cost ? INT64_MAX : together->cost + more->cost;
    together->wait_max = more->wait_max < together->wait_max ? more->wait_max : together->wait_max;
    together->now = more->now > together->now ? more->now : together->now;
}

/* Makes parts of the items, each aimed in `own`; returns their number. */
static size_t join(const struct weir_item *items, size_t n, struct weir__item *own,
                   struct part *parts)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        size_t p = 0;
        weir__item_aim(&own[count], items[i].limiter, items[i].ask.key);
        while (own[p].hash.tag != own[count].hash.tag || own[p].hash.place != own[count].hash.place)
            p++;
        if (p < count) {
            add_item(&parts[p].own, &items[i].ask);
            continue;
        }
        parts[p].of = &own[p];
        parts[p].own = items[i].ask;
        parts[p].ask = &parts[p].own;
        parts[p].item = i;
        count++;
    }
    return count;
}

/* Member by member: zeroing the rest would cost more than everything else here. */
static inline void begin_part(struct part *p, const struct weir__item *item,
                              const struct weir_ask *ask, size_t i)
{
    p->of = item;
    p->ask = ask;
    p->item = i;
    if (__builtin_expect(item->cost == ask->cost, 1))
        return;
    p->own = *ask;
    p->own.cost = item->cost;
    p->ask = &p->own;
}

/* No wait in a narrow slot is longer than it can tell from a clock that has stepped back. */
static void shorten_waits(const struct weir_table *table, struct part *parts, size_t n)
{
    for (struct part *p = parts; table->keys.narrow && p < parts + n; p++) {
        if (p->of->limiter->kind == WEIR__LARGE || p->ask->wait_max <= WEIR__PACKED_WAIT_MAX)
            continue;
        p->own = *p->ask;
        p->own.wait_max = WEIR__PACKED_WAIT_MAX;
        p->ask = &p->own;
    }
}

/* ---------------------------------------------------------------- read ---- */

/* All slots of a table are of one layout, so the usual way is compiled once for each. */
#define EITHER static inline __attribute__((always_inline))

EITHER bool read_narrow(struct weir__part *p, uint64_t tag, weir_time now)
{
    const struct weir__narrow *s = p->slot;

    p->before[0] = tag;
    p->before[1] = weir__load(&s->word);
    if (p->before[1] & WEIR__PIN || weir__load(&s->tag) != tag)
        return false;
    p->small[1] = (uint64_t)weir__unpack(p->plan, p->before[1], &now, &p->stepped);
    p->small[0] = (uint64_t)now;
    return true;
}

EITHER bool read_wide(struct weir__part *p, uint64_t tag, uint32_t version)
{
    const struct weir__wide *s = p->slot;
    uint64_t before[2];

    weir__load_pair(s->state, before);
    p->before[0] = p->small[0] = before[0];
    p->before[1] = p->small[1] = before[1];
    p->tags[1] = weir__load(&s->meta);
    p->stepped = false;
    return (before[0] & WEIR__PIN) == 0 && weir__load(&s->tag) == tag &&
           (uint32_t)p->tags[1] == version;
}

/* The step on a copy, if that is as simple as it nearly always is. */
EITHER bool look_quick(struct part *part, bool narrow, struct weir_decision *d)
{
    struct weir__part *p = &part->p;
    const struct weir__item *item = part->of;
    const struct weir_ask *ask = part->ask;

    if (item->limiter->kind == WEIR__LARGE || ask->now < 0)
        return false;
    const struct weir__era *era = weir__limiter_era(item->limiter);
    p->plan = &era->plan;
    p->slot = item->line;
    if (narrow ? !read_narrow(p, item->hash.tag, ask->now) ||
                     weir__get(&item->limiter->place->edition) != weir__get(&era->edition)
               : !read_wide(p, item->hash.tag, era->version))
        return false;
    p->state = p->small;
    part->changed = weir__part_step(p, ask, ask->cost != 0, d);
    part->quick = true;
    return true;
}

/* What a call needs for the rare cases. */
struct aid {
    struct weir_table *table;
    const struct part *parts;
    size_t n;
    struct weir__hand *hand;    /* NULL until it is needed */
    struct part *full;          /* that is closed and found no room; NULL: none */
    bool missing;               /* a part that will be written has no slot yet */
    bool slow;                  /* some part was read by way of part.c */
    uint64_t forgone;           /* a bit for each part that has no slot and gets none, */
    uint64_t unkept;            /* or that gets no block */
    struct weir_decision *each; /* the parts' own, by item; NULL: not wanted */
    struct weir__copies copies;
};

static struct weir__hand *hand_of(struct aid *aid)
{
    if (aid->hand == NULL)
        aid->hand = weir__hand_take(aid->table);
    return aid->hand;
}

static bool note_full(struct aid *aid, struct part *part)
{
    if (part->p.room_at != 0)
        aid->full = part;
    return part->p.room_at != 0;
}

/* Of the first i parts. */
static size_t count_large(const struct part *parts, size_t i)
{
    size_t n = 0;

    for (const struct part *p = parts; p < parts + i; p++)
        n += p->of->limiter->kind == WEIR__LARGE;
    return n;
}

static void list_tags(const struct aid *aid, uint64_t tags[WEIR_ALL_MAX])
{
    for (size_t i = 0; i < aid->n; i++)
        tags[i] = aid->parts[i].of->hash.tag;
}

/* The slab has no block for the part.  False: nobody but the parts themselves could make room.  Of
 * several large ones none passes then: it would every time.  On a full disk they do. */
static bool find_block(struct aid *aid, struct part *part)
{
    struct weir__part *p = &part->p;
    uint64_t mine[WEIR_ALL_MAX];
    size_t large = count_large(aid->parts, aid->n);

    list_tags(aid, mine);
    if (weir__hand_shed(p->limiter->space, aid->hand, large,
                        weir__block_round(p->plan->state_size)) ||
        weir__slab_make_room(p, part->ask->now, aid->hand, mine, aid->n))
        return true;
    if (p->room_at == 0 && large > 1 &&
        !weir__slab_has_room(&p->limiter->space->slab, p->plan->state_size))
        p->room_at = INT64_MAX;
    (void)note_full(aid, part);
    return false;
}

/* False: look again. */
static __attribute__((noinline)) bool look_slowly(struct aid *aid, struct part *part, size_t i,
                                                  struct weir_decision *d)
{
    struct weir__part *p = &part->p;

    aid->slow = true;
    weir__part_begin(p, part->of->limiter, weir__item_home(part->of));
    p->closed = part->of->closed;
    part->spare = count_large(aid->parts, i); /* a hand keeps its first spare blocks */
    if (!weir__part_read(p, hand_of(aid), part->spare, &aid->copies, part->ask->now))
        return false;
    bool full = p->state == NULL && p->owed == 0, unkept = (aid->unkept >> i & 1) != 0;
    void *apart =
        full && (p->slot != NULL || !unkept) ? weir__part_copy_apart(p, part->ask->now) : NULL;
    bool changed = weir__part_step(p, part->ask, part->ask->cost != 0, d) ||
                   (full && apart == NULL && d->allowed && part->ask->cost > 0);
    part->blockless = changed && full && !unkept;
    part->changed = changed && !full && (p->slot != NULL || (aid->forgone >> i & 1) == 0);
    if (apart != NULL)
        p->state = NULL;
    free(apart);
    part->quick = false;
    aid->missing = aid->missing || (part->changed && p->slot == NULL);
    return true;
}

enum outcome { REFUSED, GRANTED, AGAIN, NO_ROOM };

/* The steps, on copies. */
EITHER enum outcome look(struct aid *aid, struct part *parts, size_t n, bool narrow,
                         struct weir_decision *all)
{
    aid->copies.used = 0;
    aid->missing = false;
    for (size_t i = 0; i < n; i++) {
        struct part *p = &parts[i];
        struct weir_decision own, *d = i == 0 ? all : &own; /* the answer begins as the first */
        if (__builtin_expect(!look_quick(p, narrow, d), 0) && !look_slowly(aid, p, i, d))
            return AGAIN;
        p->refused = !d->allowed;
        if (__builtin_expect(aid->each != NULL, 0))
            aid->each[p->item] = *d;
        if (i == 0)
            all->item = (uint16_t)p->item;
        else
            weir__answer_add(all, d, p->item);
    }
    return weir__answer_end(all) ? GRANTED : REFUSED;
}

/* --------------------------------------------------------------- write ---- */

/* Slots for keys that have none. */
static __attribute__((noinline)) void claim_slots(struct aid *aid, struct part *parts, size_t n)
{
    uint64_t mine[WEIR_ALL_MAX];

    list_tags(aid, mine);
    for (size_t i = 0; i < n; i++)
        if (parts[i].changed && parts[i].p.slot == NULL &&
            weir__slot_claim(&parts[i].p, parts[i].ask->now, hand_of(aid), false, mine, n) ==
                WEIR__CLAIM_NONE) {
            if (note_full(aid, &parts[i]))
                break;
            aid->forgone |= (uint64_t)1 << i;
        }
}

/* A block for a copy that lacks one, now that all is granted.  True: look again. */
static __attribute__((noinline)) bool wants_block(struct aid *aid, struct part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (parts[i].quick || !parts[i].blockless)
            continue;
        if (!find_block(aid, &parts[i]))
            aid->unkept |= (uint64_t)1 << i;
        return true;
    }
    return false;
}

_Static_assert(WEIR_ALL_MAX < WEIR__WINDOW_SLOTS, "a slot for every item, wherever their keys lie");

/* weir__part_write, of a part that look_quick has read. */
EITHER void write_quick(const struct weir_table *table, struct weir__hand *hand,
                        const struct part *part, bool narrow)
{
    const struct weir__part *p = &part->p;
    struct weir__entry e = { .before = { p->before[0], p->before[1] } };

    e.at = weir__offset_of(table, p->slot) + (narrow ? 8 : 16);
    e.after[0] = narrow ? p->before[0] : p->small[0];
    e.after[1] = narrow ? weir__part_packed(p) : p->small[1];
    e.tag_before[0] = narrow ? 0 : part->of->hash.tag;
    e.tag_before[1] = narrow ? 0 : p->tags[1];
    weir__hand_add(hand, &e);
}

/* The slab is full.  True: look again; else the part is not remembered. */
static __attribute__((noinline)) bool forgo(struct aid *aid, struct part *p)
{
    weir__hand_clear(aid->hand);
    if (find_block(aid, p) || aid->full != NULL)
        return true;
    p->changed = false;
    return false;
}

/* Writes all, or nothing. */
EITHER bool write_all(struct aid *aid, struct part *parts, size_t n, bool narrow)
{
    struct weir__hand *hand = hand_of(aid);

    for (struct part *p = parts, *end = parts + n; p < end;) {
        if (__builtin_expect(p->changed && p->quick, 1)) {
            write_quick(aid->table, hand, p++, narrow);
        } else if (!p->changed || weir__part_write(&p->p, hand, p->spare)) {
            p++;
        } else {
            if (forgo(aid, p))
                return false;
            p = parts; /* all over again, without it */
        }
    }
    bool done = weir__hand_commit(aid->table, hand);
    for (size_t i = 0; __builtin_expect(aid->slow, 0) && done && i < n; i++)
        if (parts[i].changed && !parts[i].quick)
            weir__part_done(&parts[i].p);
    return done;
}

/* What was granted, and there was no room to remember it. */
static __attribute__((noinline)) void count_lost(const struct part *parts, size_t n)
{
    for (const struct part *p = parts; p < parts + n; p++)
        if (p->ask->cost > 0 && !p->changed)
            weir__part_count_lost(&p->p);
}

/* A clock that has stepped back is written down even by a refusal.  It may have if the state's
 * first word, a time, lies ahead.  A bit for each of these, as long as the copies are there. */
static uint64_t find_steps(const struct part *parts, size_t n)
{
    uint64_t stepped = 0;

    for (size_t i = 0; i < n; i++) {
        const struct part *p = &parts[i];
        bool ahead = p->p.state == NULL || *(const weir_time *)p->p.state > p->ask->now;
        if (p->refused && (p->changed || p->p.stepped || ahead))
            stepped |= (uint64_t)1 << i;
    }
    return stepped;
}

static void note_steps(const struct part *parts, uint64_t stepped)
{
    for (; stepped != 0; stepped &= stepped - 1) {
        const struct part *p = &parts[__builtin_ctzll(stepped)];
        struct weir_ask nothing = { .now = p->ask->now };
        struct weir_decision d;
        weir__decide(p->of->limiter, weir__item_home(p->of), &nothing, true, &d);
    }
}

/* The steps have read logs where they lie. */
static __attribute__((noinline)) bool are_same(const struct part *parts, size_t n)
{
    for (const struct part *p = parts; p < parts + n; p++)
        if (!p->quick && p->p.limiter->kind == WEIR__LARGE && !weir__part_is_same(&p->p))
            return false;
    return true;
}

EITHER bool is_same_quick(const struct part *part, bool narrow)
{
    const struct weir__part *p = &part->p;
    const struct weir__narrow *n = p->slot;
    const struct weir__wide *w = p->slot;

    if (narrow)
        return weir__load(&n->word) == p->before[1] && weir__load(&n->tag) == p->before[0];
    return weir__load(&w->state[0]) == p->before[0] && weir__load(&w->state[1]) == p->before[1] &&
           weir__load(&w->tag) == part->of->hash.tag;
}

/* A refusal writes nothing that would fail: a state that was read may be that of the key which the
 * slot had before. */
EITHER bool are_refused_same(const struct part *parts, size_t n, bool narrow)
{
    for (const struct part *p = parts; p < parts + n; p++)
        if (p->refused && !(p->quick ? is_same_quick(p, narrow) : weir__part_is_same(&p->p)))
            return false;
    return true;
}

EITHER enum outcome take_once(struct aid *aid, struct part *parts, size_t n, bool narrow,
                              struct weir_decision *all)
{
    enum outcome out = look(aid, parts, n, narrow, all);

    if (__builtin_expect(aid->slow, 0) && out != AGAIN && !are_same(parts, n)) {
        out = AGAIN;
    } else if (out == REFUSED && !are_refused_same(parts, n, narrow)) {
        out = AGAIN;
    } else if (__builtin_expect(aid->slow, 0) && out == GRANTED && wants_block(aid, parts, n)) {
        out = AGAIN;
    } else if (__builtin_expect(out == GRANTED && aid->missing, 0)) {
        claim_slots(aid, parts, n);
        out = AGAIN;
    } else if (out == GRANTED && !write_all(aid, parts, n, narrow)) {
        out = AGAIN;
    }
    if (__builtin_expect(aid->full != NULL, 0)) {
        weir__part_refuse(&aid->full->p, aid->full->ask, all);
        all->item = (uint16_t)aid->full->item;
        out = NO_ROOM;
    }
    return out;
}

/* Others want the same keys: let them. */
static void stand_back(unsigned tries)
{
    unsigned pauses = 1u << (tries < 8 ? tries : 8);

    for (uint64_t i = weir__thread_hint(8) % pauses; i < pauses; i++)
        __builtin_ia32_pause();
}

static bool take_parts(struct weir_table *table, struct part *parts, size_t n,
                       struct weir_decision *all, struct weir_decision *each)
{
    struct aid aid;
    enum outcome out = AGAIN;

    aid.table = table;
    aid.parts = parts;
    aid.n = n;
    aid.hand = NULL;
    aid.full = NULL;
    aid.slow = false;
    aid.forgone = aid.unkept = 0;
    aid.each = each;
    shorten_waits(table, parts, n);
    for (unsigned tries = 0; out == AGAIN; tries++) {
        out = table->keys.narrow ? take_once(&aid, parts, n, true, all)
                                 : take_once(&aid, parts, n, false, all);
        if (__builtin_expect(out == AGAIN, 0))
            stand_back(tries);
    }
    uint64_t stepped = __builtin_expect(out == REFUSED, 0) ? find_steps(parts, n) : 0;
    if (__builtin_expect(aid.slow, 0) && out == GRANTED)
        count_lost(parts, n);
    if (__builtin_expect(aid.slow, 0)) /* refused, it has used none of the blocks of its copies */
        weir__hand_drop_spares(table, aid.hand, n);
    if (aid.hand != NULL)
        weir__hand_give(aid.hand);
    if (__builtin_expect(stepped != 0, 0))
        note_steps(parts, stepped);
    return out == GRANTED;
}

/* --------------------------------------------------------------- public ---- */

static bool take_all(const struct weir_item *items, size_t n, struct weir_decision *decision,
                     struct weir_decision *each)
{
    struct part parts[WEIR_ALL_MAX];
    struct weir__item own[WEIR_ALL_MAX];

    assert(n <= WEIR_ALL_MAX);
    if (n == 0) {
        *decision = (struct weir_decision){ .allowed = true };
        return true;
    }
    if (n == 1)
        return weir_take(items[0].limiter, &items[0].ask, decision);
    struct weir_table *table = items[0].limiter->table;
    for (size_t i = 0; i < n; i++)
        assert(items[i].limiter->table == table);
    return take_parts(table, parts, join(items, n, own, parts), decision, each);
}

bool weir_take_all(const struct weir_item *items, size_t n, struct weir_decision *decision)
{
    return take_all(items, n, decision, NULL);
}

bool weir_take_all_each(const struct weir_item *items, size_t n, struct weir_decision *decision,
                        struct weir_decision *each)
{
    if (n == 1) {
        bool allowed = weir_take(items[0].limiter, &items[0].ask, decision);
        each[0] = *decision;
        return allowed;
    }
    for (size_t i = 0; i < n; i++)
        each[i] = (struct weir_decision){ .allowed = false };
    return take_all(items, n, decision, each);
}

/* The key has no state yet. */
static bool is_new(const struct weir__item *item)
{
    const struct weir__space *space = item->limiter->space;
    void *slot = weir__slot_find(space, weir__item_home(item));

    return slot == NULL || (item->limiter->kind == WEIR__LARGE &&
                            (uint32_t)weir__load(weir__slot_pair(space, slot) + 1) == 0);
}

/* A single one needs no hand.  If it is not the first of its line or anything is in its way, take.c
 * has the rest. */
static bool take_one(const struct weir__item *item, const struct weir_ask *ask,
                     struct weir_decision *d)
{
    struct weir_ask own = { .cost = item->cost, .wait_max = ask->wait_max, .now = ask->now };

    if (item->limiter->kind == WEIR__WIDE) {
        const struct weir__era *era = weir__limiter_era(item->limiter);
        if (weir__wide_try(item->line, item->hash.tag, era->version, weir__step, &era->plan, &own,
                           true, d) == WEIR__TRIED_DONE)
            return d->allowed;
    }
    if (__builtin_expect(item->closed, 0) && is_new(item)) {
        struct weir__part part;
        weir__part_begin(&part, item->limiter, weir__item_home(item));
        part.closed = true;
        return weir__decide_slowly(&part, &own, true, d);
    }
    return weir__decide(item->limiter, weir__item_home(item), &own, true, d);
}

static inline __attribute__((always_inline)) bool take_items(const struct weir__item *items,
                                                             size_t n, const struct weir_ask *ask,
                                                             struct weir_decision *decision,
                                                             struct weir_decision *each)
{
    struct part parts[WEIR_ALL_MAX];

    assert(n > 0 && n <= WEIR_ALL_MAX);
    if (n == 1)
        return take_one(items, ask, decision);
    for (size_t i = 0; i < n; i++)
        begin_part(&parts[i], &items[i], ask, i);
    return take_parts(items->limiter->table, parts, n, decision, each);
}

bool weir__all_take(const struct weir__item *items, size_t n, const struct weir_ask *ask,
                    struct weir_decision *decision)
{
    return take_items(items, n, ask, decision, NULL);
}

/* An item, the salt of its limiter, which tells it from another at the same place, and its turn. */
static void note(struct weir_taken *taken, const struct weir__item *item, weir_time turn)
{
    const uint64_t own[] = { item->hash.tag, item->hash.place, item->limiter->salt,
                             (uint64_t)item->cost, (uint64_t)turn };

    if (item->cost > 0 && taken->n < WEIR_ALL_MAX)
        memcpy(taken->items[taken->n++].own, own, sizeof(own));
}

bool weir__all_take_noted(const struct weir__item *items, size_t n, const struct weir_ask *ask,
                          struct weir_decision *decision, struct weir_taken *taken)
{
    struct weir_decision each[WEIR_ALL_MAX];
    weir_time now = ask->now < 0 ? 0 : ask->now;

    if (!take_items(items, n, ask, decision, each))
        return false;
    for (size_t i = 0; i < n; i++) {
        weir_time wait = n == 1 ? decision->wait : each[i].wait;
        note(taken, &items[i], wait > INT64_MAX - now ? INT64_MAX : now + wait);
    }
    return true;
}

/* What a take of a new key would find: a slot, and a block for a large state; or none. */
static bool has_room(struct weir__part *part, weir_time now)
{
    struct weir__space *space = part->limiter->space;
    size_t bytes = part->plan->state_size;
    struct weir__victim v = { .used = 0 };
    bool room = true;

    if (weir__slot_find(space, part->home) == NULL) {
        v = weir__victim_near(part, now, NULL, 0);
        room = v.slot != NULL && v.used == 0;
    }
    if (room && part->limiter->kind == WEIR__LARGE && !weir__slab_has_room(&space->slab, bytes)) {
        v = weir__victim_with_block(part, weir__block_round(bytes), now, &part->home.tag, 1);
        room = v.slot != NULL && v.used == 0;
    }
    part->room_at = v.room_at;
    return room;
}

static void look_for_room(const struct weir__item *item, const struct weir_ask *ask,
                          struct weir_decision *d)
{
    struct weir__part part;

    if (!is_new(item))
        return;
    weir__look_begin(item->limiter->table);
    weir__part_begin(&part, item->limiter, weir__item_home(item));
    part.closed = true;
    if (!has_room(&part, ask->now < 0 ? 0 : ask->now))
        weir__part_say_no_room(&part, ask, d);
    weir__look_end(item->limiter->table);
}

bool weir__all_peek(const struct weir__item *items, size_t n, const struct weir_ask *ask,
                    struct weir_decision *decision)
{
    assert(n > 0 && n <= WEIR_ALL_MAX);
    for (size_t i = 0; i < n; i++) {
        struct weir_ask own = { .cost = items[i].cost, .wait_max = ask->wait_max, .now = ask->now };
        struct weir_decision d;
        struct weir_decision *to = i == 0 ? decision : &d;
        weir__decide(items[i].limiter, weir__item_home(&items[i]), &own, false, to);
        if (__builtin_expect(items[i].closed, 0) && to->allowed && own.cost > 0)
            look_for_room(&items[i], &own, to);
        if (i == 0)
            decision->item = 0;
        else
            weir__answer_add(decision, &d, i);
    }
    return weir__answer_end(decision);
}
