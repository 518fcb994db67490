/* permits-by-key.c -- how many permits of a guard each key holds.
 *
 * The count is a word in the key's slot, and changes by one swap:
 *
 *     63      pin (hand.c)
 *     62..31  how often it has changed
 *     30      0: the seat below was counted; 1: it was given back
 *     29..15  the seat that changed it last, + 1; 0: none
 *     14..0   permits out
 *
 * A permit is in two places, the count and its seat, and its process may be killed between the two.
 * But the count names the seat that changed it last, and every thread marks that seat before it
 * changes the count again:
 *
 *     seat                      the count names it        it does not
 *     taken, not marked         it is counted             it is not, or not yet
 *     taken, marked             it is counted             it is counted
 *     free, marked              it was given back         it is still counted
 *
 * So each seat tells whether it is in the count, and any thread can go on where another was stopped
 * or killed: the count's change number lets only one of them succeed.  Not marked and not counted
 * is the one state that its process alone can leave, unless it is dead.
 *
 * A slot with a count above 0 never makes room for another key, so the seats find it by its number.
 */
#include "table/permits-by-key.h"

#include "table/part.h"

#define NAMED(seat) ((uint64_t)((seat) + 1) << 15)
#define NAME_MASK   ((uint64_t)0x7fff << 15)
#define LEFT        ((uint64_t)1 << 30)
#define CHANGE      ((uint64_t)1 << 31)
#define HOLDER_MASK ((uint64_t)0x3ff << 38)

static uint64_t changed(uint64_t word, int64_t count, uint64_t name)
{
    uint64_t number = (word & ~(CHANGE - 1)) + CHANGE;

    return (number & ~WEIR__PIN) | name | (uint64_t)count;
}

static bool names(uint64_t word, uint32_t seat, uint64_t how)
{
    return (word & (NAME_MASK | LEFT)) == (NAMED(seat) | how);
}

/* ---------------------------------------------------------------- slots ---- */

/* NULL: damage. */
static void *slot_in(const struct weir__held *t, uint64_t ref)
{
    const struct weir__space *space = &t->table->keys;
    uint64_t slot = weir__held_key(ref) - 1;

    size_t size = space->narrow ? sizeof(struct weir__narrow) : sizeof(struct weir__wide);

    return slot < space->groups * WEIR__GROUP_SLOTS ? space->slots + slot * size : NULL;
}

/* It has a key of this guard. */
static bool is_its(const struct weir__held *t, const void *slot)
{
    return weir__tag_id(weir__load(slot)) == WEIR__HELD_ID + t->id;
}

static uint64_t permits_in(uint64_t ref)
{
    return ref >> 48 & 0x7fff;
}

static uint32_t holder_in(uint64_t ref)
{
    return (uint32_t)(ref >> 38) & 0x3ff;
}

void *weir__held_slot(const struct weir__held *t, struct weir__home home, weir_time now)
{
    struct weir__part part = { .limiter = &t->table->held, .home = home, .closed = false };
    struct weir__hand *hand = weir__hand_take(t->table);
    void *slot = NULL;

    while (slot == NULL &&
           weir__slot_claim(&part, now, hand, false, &home.tag, 1) != WEIR__CLAIM_NONE)
        slot = weir__slot_find(&t->table->keys, home);
    weir__hand_give(hand);
    if (slot == NULL)
        weir__count(&t->table->header->no_room, 1);
    return slot;
}

/* ----------------------------------------------------------------- marks ---- */

static bool load_seat(const struct weir__held *t, uint32_t seat, uint64_t pair[2])
{
    weir__load_pair(&t->seats[seat].word, pair);
    return pair[1] != 0;
}

static bool swap_seat(const struct weir__held *t, uint32_t seat, const uint64_t before[2],
                      uint64_t word, uint64_t ref)
{
    return weir__swap_pair(&t->seats[seat].word, before, (const uint64_t[2]){ word, ref });
}

/* Marks the seat that the count names: `seen` is about to change, and then nobody could tell. */
static void mark(const struct weir__held *t, const void *slot, const uint64_t *word, uint64_t seen)
{
    uint32_t seat = (uint32_t)(seen >> 15) & 0x7fff;
    uint64_t pair[2], mine = weir__held_number(t, slot);

    if (seat == 0 || seat > WEIR__GUARD_SEATS)
        return;
    for (seat--; load_seat(t, seat, pair) && weir__load(word) == seen;) {
        bool counted = (pair[1] & WEIR__HELD_COUNTED) != 0,
             free = weir__permit_weight(pair[0]) == 0;
        if (weir__held_key(pair[1]) != mine || (seen & LEFT ? !counted || !free : counted))
            return; /* it was marked */
        if (swap_seat(t, seat, pair, pair[0], seen & LEFT ? 0 : pair[1] | WEIR__HELD_COUNTED))
            return;
    }
}

/* The seat itself is marked when it is given back, and when it is taken nothing is left of its last
 * use. */
static inline void mark_other(const struct weir__held *t, void *slot, uint32_t seat, uint64_t seen)
{
    uint64_t name = seen & NAME_MASK;

    if (name != 0 && name != NAMED(seat))
        mark(t, slot, weir__slot_pin(&t->table->keys, slot), seen);
}

/* --------------------------------------------------------- add and leave ---- */

enum weir__held_added weir__held_add(const struct weir__held *t, struct weir__home home, void *slot,
                                     uint32_t seat, int64_t permits, int64_t max, int64_t *out)
{
    uint64_t *word = weir__slot_pin(&t->table->keys, slot);

    for (;;) {
        uint64_t seen = weir__load(word);
        if (__builtin_expect((seen & WEIR__PIN) != 0, 0)) {
            weir__hand_settle(t->table, word);
            continue;
        }
        if (__builtin_expect(weir__load(slot) != home.tag, 0))
            return WEIR__HELD_MOVED;
        *out = weir__held_in(seen) + permits;
        if (*out > max && weir__load(word) == seen)
            return WEIR__HELD_FULL;
        if (*out > max)
            continue;
        mark_other(t, slot, seat, seen);
        uint64_t next = changed(seen, *out, NAMED(seat));
        if (!weir__swap(word, seen, next))
            continue;
        if (__builtin_expect(weir__load(slot) == home.tag, 1))
            return WEIR__HELD_ADDED;
        (void)weir__swap(word, next, seen); /* another key had got the slot */
        return WEIR__HELD_MOVED;
    }
}

/* Lowers the count by the seat's permits.  False: the count has changed, or is pinned. */
static bool lower(const struct weir__held *t, void *slot, uint32_t seat, uint64_t seen,
                  uint64_t ref)
{
    uint64_t *word = weir__slot_pin(&t->table->keys, slot);
    int64_t left = weir__held_in(seen) - (int64_t)permits_in(ref);

    if (names(seen, seat, LEFT))
        return true; /* it is */
    mark_other(t, slot, seat, seen);
    return weir__swap(word, seen, changed(seen, left > 0 ? left : 0, NAMED(seat) | LEFT));
}

/* The word counts uses, so if it is the same the ref is of the same moment. */
static inline bool is_same(const struct weir__held *t, uint32_t seat, const uint64_t pair[2])
{
    return weir__load(&t->seats[seat].ref) == pair[1] &&
           weir__load(&t->seats[seat].word) == pair[0];
}

/* A seat that is free, and marked (`pair`): takes its permits out of the count, and the mark
 * away. */
static void leave(const struct weir__held *t, uint32_t seat, uint64_t pair[2])
{
    do {
        void *slot = slot_in(t, pair[1]);
        uint64_t *word = slot ? weir__slot_pin(&t->table->keys, slot) : NULL,
                 seen = slot ? weir__load(word) : 0;
        bool its = slot != NULL && is_its(t, slot);
        if (__builtin_expect((seen & WEIR__PIN) != 0, 0)) {
            weir__hand_settle(t->table, word);
        } else if (is_same(t, seat, pair) && (!its || lower(t, slot, seat, seen, pair[1]))) {
            (void)weir__swap(&t->seats[seat].ref, pair[1], 0);
            return;
        }
    } while (load_seat(t, seat, pair) && weir__permit_weight(pair[0]) == 0);
}

/* Who entered does not matter any more, nor that it was renewed.  How often the seat was used takes
 * its place, so that the ref alone tells this use from the next. */
static uint64_t left_ref(uint64_t ref, uint64_t word)
{
    return WEIR__HELD_COUNTED | (uint64_t)weir__permit_weight(word) << 48 |
           (word << 38 & HOLDER_MASK) | weir__held_key(ref);
}

/* The caller has the permit, so it was counted. */
bool weir__held_free(const struct weir__held *t, uint32_t seat, uint64_t word)
{
    uint64_t pair[2], ref;

    do {
        load_seat(t, seat, pair);
        if (pair[0] != word)
            return false;
        ref = weir__held_key(pair[1]) == 0 ? 0 : left_ref(pair[1], word);
    } while (!swap_seat(t, seat, pair, weir__permit_freed(word), ref));
    if (ref != 0)
        leave(t, seat, (uint64_t[2]){ weir__permit_freed(word), ref });
    return true;
}

void weir__held_cancel(const struct weir__held *t, uint32_t seat, uint64_t word)
{
    uint64_t pair[2];

    load_seat(t, seat, pair);
    (void)(pair[0] == word && swap_seat(t, seat, pair, weir__permit_freed(word), 0));
}

/* Likewise. */
bool weir__held_renew(const struct weir__held *t, uint32_t seat, uint64_t word, uint64_t renewed,
                      bool again)
{
    uint64_t pair[2];

    do {
        load_seat(t, seat, pair);
    } while (pair[0] == word && !swap_seat(t, seat, pair, renewed,
                                           again ? pair[1] : weir__held_renewed(pair[1], word)));
    return pair[0] == word;
}

/* ---------------------------------------------------------------- settle ---- */

static bool is_dead(const struct weir__held *t, uint32_t holder)
{
    return holder != 0 && weir__get(&t->table->holders[holder].pid) == 0;
}

/* A seat that is taken, and not marked. */
static uint64_t settle_taken(const struct weir__held *t, uint32_t seat, const uint64_t pair[2])
{
    bool dead = is_dead(t, holder_in(pair[1])); /* from then on it counts nothing */
    void *slot = slot_in(t, pair[1]);
    uint64_t *word = slot ? weir__slot_pin(&t->table->keys, slot) : NULL,
             seen = slot ? weir__load(word) : 0;

    if (seen & WEIR__PIN)
        return 0; /* the next sweep looks again */
    if (slot != NULL && is_its(t, slot) && names(seen, seat, 0)) {
        mark(t, slot, word, seen);
        return 0;
    }
    return dead && swap_seat(t, seat, pair, weir__permit_freed(pair[0]), 0) ? pair[0] : 0;
}

uint64_t weir__held_settle(const struct weir__held *t, uint32_t seat)
{
    uint64_t pair[2];

    if (!load_seat(t, seat, pair))
        return 0;
    if (weir__permit_weight(pair[0]) == 0)
        leave(t, seat, pair);
    else if (!(pair[1] & WEIR__HELD_COUNTED))
        return settle_taken(t, seat, pair);
    return 0;
}

void weir__held_end(const struct weir__held *t)
{
    for (uint32_t seat = 0; seat < WEIR__GUARD_SEATS; seat++) {
        uint64_t word = weir__load(&t->seats[seat].word);
        if (weir__load(&t->seats[seat].ref) == 0)
            continue;
        (void)weir__held_settle(t, seat);
        if (weir__permit_weight(word) != 0)
            (void)weir__held_free(t, seat, word);
    }
}

/* ---------------------------------------------------------------- rebuild ---- */

static void count_seat(const struct weir__held *t, uint32_t i)
{
    struct weir__seat *seat = &t->seats[i];
    void *slot = slot_in(t, seat->ref);

    if (weir__permit_weight(seat->word) == 0 || slot == NULL || !is_its(t, slot)) {
        bool renewed = weir__permit_weight(seat->word) != 0 && seat->ref & WEIR__HELD_RENEWED;
        seat->ref = renewed ? seat->ref & ~weir__held_key(seat->ref) : 0;
        return;
    }
    uint64_t *word = weir__slot_pin(&t->table->keys, slot);
    int64_t n = weir__held_in(*word) + weir__permit_weight(seat->word);
    seat->ref |= WEIR__HELD_COUNTED;
    *word = weir__held_fresh(1) | (uint64_t)(n < WEIR__HELD_MOST ? n : WEIR__HELD_MOST);
}

void weir__held_rebuild(struct weir_table *table)
{
    const struct weir__space *space = &table->keys;

    for (uint64_t i = 0; i < space->groups * WEIR__GROUP_SLOTS; i++) {
        void *slot = weir__slot_at(space, i / WEIR__GROUP_SLOTS, i % WEIR__GROUP_SLOTS);
        if (weir__load(slot) != 0 && weir__tag_is_held(weir__load(slot)))
            *weir__slot_pin(space, slot) = weir__held_fresh(1);
    }
    for (uint32_t id = 0; id < table->guards.most; id++) {
        struct weir__held t = weir__held_of(table, id);
        bool used = table->places[table->guards.first + id].word != 0;
        for (uint32_t i = 0; used && i < WEIR__GUARD_SEATS; i++)
            if (t.seats[i].ref != 0)
                count_seat(&t, i);
    }
}

/* ------------------------------------------------------------------- idle ---- */

/* The last seat that was given back loses its mark: if the key came back to this slot, the seat
 * would look as if it was still counted. */
bool weir__held_is_idle(struct weir_table *table, uint64_t tag, void *slot)
{
    uint32_t guard = weir__tag_id(tag) - WEIR__HELD_ID;
    uint64_t *word = weir__slot_pin(&table->keys, slot), seen = weir__load(word);

    if (guard >= table->guards.most)
        return true; /* damage */
    if ((seen & WEIR__PIN) != 0 || weir__held_in(seen) != 0)
        return false;
    struct weir__held t = weir__held_of(table, guard);
    mark(&t, slot, word, seen);
    return weir__load(word) == seen;
}
