/* hand.c -- several pairs of words changed together, or none of them.
 *
 * A hand lists what it will change, in the table, where everybody can read it:
 *
 *     preparing   the owner writes the entries
 *     undecided   it pins the pairs one by one: the pin names the hand and its sequence number
 *     committed   all are pinned, and get their new values; or
 *     aborted     they get their old values back
 *
 * Undecided becomes committed or aborted by one swap, so a hand is decided once.  A thread that
 * meets a pin waits for a moment; then it aborts the hand if that is undecided, and writes the
 * pair's new or old value itself.  So a process that was stopped or killed at any point delays
 * nobody, and one that goes on finds its hand aborted, or its work done.
 *
 * The sequence number, part of every pin, grows with each use of the hand: a thread that was
 * stopped with an old entry in its registers swaps nothing, because that pin is gone.  A wide
 * slot's tag is changed while its state is pinned; its meta counts the changes, so that an old swap
 * of the tag fails too.
 *
 * Blocks: a spare block belongs to the hand; committing an entry trades it for the pair's old one.
 * The status says which of the two is the hand's, so a killed process loses none.
 *
 * (Several words changed by a shared descriptor: Harris, Fraser, Pratt 2002.)
 */
#include <sched.h>
#include <string.h>

#include "table/hand.h"
#include "table/holders.h"

/* ------------------------------------------------------------ entries ---- */

static struct weir__hand *hand_at(const struct weir_table *table, uint64_t i)
{
    return (struct weir__hand *)(void *)((unsigned char *)table->header + WEIR__HANDS_AT +
                                         i * WEIR__HAND_BYTES);
}

static uint64_t pin_of(const struct weir_table *table, const struct weir__hand *hand,
                       uint64_t sequence)
{
    const unsigned char *first = (const unsigned char *)table->header + WEIR__HANDS_AT;
    uint64_t i = (uint64_t)((const unsigned char *)hand - first) / WEIR__HAND_BYTES;

    return WEIR__PIN | i << (63 - WEIR__HAND_BITS) | sequence;
}

/* `region`: the table's first byte, read once for all entries. */
static inline uint64_t *pair_of(unsigned char *region, const struct weir__entry *e)
{
    return (uint64_t *)(void *)(region + (e->at & ~(uint64_t)15));
}

static inline void pinned_value(const struct weir__entry *e, uint64_t pin, uint64_t out[2])
{
    out[0] = e->at & 8 ? e->before[0] : pin;
    out[1] = e->at & 8 ? pin : e->before[1];
}

static struct weir__space *space_of(struct weir_table *table, const struct weir__entry *e)
{
    return e->at < table->names.end       ? &table->names
           : e->at < table->keys.rooms_at ? &table->bans
                                          : &table->keys;
}

/* An entry from a damaged file must not reach outside of rooms, slots and places. */
static bool is_sound(struct weir_table *table, const struct weir__entry *e)
{
    const struct weir__space *space = space_of(table, e);

    return e->at >= space->rooms_at && e->at < space->end && (e->at & 7) == 0;
}

static inline bool pin_entry(unsigned char *region, const struct weir__entry *e, uint64_t pin)
{
    uint64_t pinned[2];

    pinned_value(e, pin, pinned);
    return weir__swap_pair(pair_of(region, e), e->before, pinned);
}

/* The slot that was pinned must still be the key's. */
static inline bool tag_is_same(unsigned char *region, const struct weir__entry *e)
{
    const uint64_t *tag = pair_of(region, e) - 2;

    return e->tag_before[0] == 0 ||
           (weir__load(tag) == e->tag_before[0] && weir__load(tag + 1) == e->tag_before[1]);
}

/* By anybody, any number of times: the first succeeds. */
static inline void finish_entry(unsigned char *region, const struct weir__entry *e, uint64_t pin,
                                bool committed)
{
    uint64_t pinned[2], *pair = pair_of(region, e);

    pinned_value(e, pin, pinned);
    if (committed && (e->tag_after[0] | e->tag_after[1]) != 0)
        (void)weir__swap_pair(pair - 2, e->tag_before, e->tag_after);
    (void)weir__swap_pair(pair, pinned, committed ? e->after : e->before);
}

/* ------------------------------------------------------------- owners ---- */

static uint64_t own_mark(struct weir_table *table)
{
    return (table->fd < 0 ? 0 : weir__holder_me(table)) + (uint64_t)1;
}

_Static_assert(WEIR__HANDS_READY == 1 << 6 && WEIR__HANDS % WEIR__HANDS_READY == 0 &&
                   WEIR__HANDS <= 1 << WEIR__HAND_BITS,
               "the hint below chooses among 64, and a pin names any hand");

/* Hands that have their bytes. */
static uint32_t hands_of(const struct weir_table *table)
{
    uint32_t n = weir__acquire(&table->header->hands) / WEIR__HANDS_READY * WEIR__HANDS_READY;

    return n < WEIR__HANDS_READY ? WEIR__HANDS_READY : n > WEIR__HANDS ? WEIR__HANDS : n;
}

/* All are in use, by threads that do not run, or by dead processes. */
static void find_more(struct weir_table *table, uint32_t n)
{
    uint64_t bytes = (uint64_t)WEIR__HANDS_READY * WEIR__HAND_BYTES;

    weir__holders_bury(table, weir_table_now(table));
    if (n < WEIR__HANDS &&
        weir__table_commit(table, WEIR__HANDS_AT + (uint64_t)n * WEIR__HAND_BYTES, bytes, NULL) ==
            WEIR_OK)
        weir__publish(&table->header->hands, n + WEIR__HANDS_READY);
    else
        sched_yield();
}

static inline bool try_take(struct weir__hand *hand, uint64_t mark)
{
    if (weir__load(&hand->owner) != 0 || !weir__swap(&hand->owner, 0, mark))
        return false;
    weir__set(&hand->n, 0);
    return true;
}

static __attribute__((noinline)) struct weir__hand *take_any(struct weir_table *table,
                                                             uint64_t mark)
{
    uint64_t first = weir__thread_hint(6);

    for (uint32_t n = hands_of(table);; n = hands_of(table)) {
        for (uint64_t i = 0; i < n; i++) {
            struct weir__hand *hand = hand_at(table, (first + i) % n);
            if (try_take(hand, mark))
                return hand;
        }
        find_more(table, n);
    }
}

/* Threads tend to find a free one of their own at once. */
struct weir__hand *weir__hand_take(struct weir_table *table)
{
    uint64_t mark = own_mark(table);
    struct weir__hand *hand = hand_at(table, weir__thread_hint(6));

    return __builtin_expect(try_take(hand, mark), 1) ? hand : take_any(table, mark);
}

#define SPARES_KEPT 2 /* by a hand that is free, for its next use */

void weir__hand_give(struct weir__hand *hand)
{
    weir__publish(&hand->owner, 0);
}

/* -------------------------------------------------------------- blocks ---- */

/* A spare: whose slab it is of << 62 | bytes / 64 << 32 | block. */
enum { OF_KEYS, OF_BANS, OF_NAMES };
#define OF(slab) ((uint64_t)(slab) << 62)

static struct weir__slab *slab_of(struct weir_table *table, uint64_t spare)
{
    uint64_t of = spare >> 62;

    return of == OF_NAMES  ? &table->names.slab
           : of == OF_BANS ? &table->bans.slab
                           : &table->keys.slab;
}

static uint64_t spare_of(const struct weir__space *space, uint32_t block)
{
    size_t bytes = weir__block_bytes(&space->slab, block);
    uint64_t of = space == &space->table->names  ? OF(OF_NAMES)
                  : space == &space->table->bans ? OF(OF_BANS)
                                                 : OF(OF_KEYS);

    return bytes == 0 ? 0 : of | (uint64_t)bytes / WEIR__BLOCK_LEAST << 32 | block;
}

static size_t bytes_of(uint64_t spare)
{
    return (spare >> 32 & 0x3fffffff) * WEIR__BLOCK_LEAST;
}

/* The place first: killed here, the block is lost until the table is next alone. */
static void give_spare(struct weir_table *table, uint64_t *spare)
{
    uint64_t had = *spare;

    weir__set(spare, 0);
    if ((uint32_t)had != 0)
        weir__block_give(slab_of(table, had), (uint32_t)had, bytes_of(had));
}

uint32_t weir__hand_block(struct weir__space *space, struct weir__hand *hand, size_t i,
                          size_t bytes, bool guest)
{
    uint64_t *spare = &hand->spares[i];

    bytes = weir__block_round(bytes);
    if ((uint32_t)*spare != 0 && *spare == spare_of(space, (uint32_t)*spare) &&
        bytes_of(*spare) == bytes)
        return (uint32_t)*spare;
    give_spare(space->table, spare);
    uint32_t block =
        guest ? weir__block_take_guest(&space->slab, bytes) : weir__block_take(&space->slab, bytes);
    weir__set(spare, spare_of(space, block));
    return (uint32_t)*spare;
}

void weir__hand_adopt(struct weir__space *space, struct weir__hand *hand, size_t i, uint32_t block)
{
    give_spare(space->table, &hand->spares[i]);
    weir__set(&hand->spares[i], spare_of(space, block));
}

/* A committed entry has the spare, and the hand the block that was there.  Until hand->n is 0 this
 * may be done again, by a process that finds the owner dead.  If the owner was stopped before, the
 * spare may have been freed again, and its chunk have blocks of another size. */
static void trade_block(struct weir_table *table, struct weir__hand *hand, uint64_t i)
{
    struct weir__entry *e = &hand->entries[i];
    struct weir__space *space = space_of(table, e);
    uint64_t old = spare_of(space, e->block_before), *spare = hand->spares,
             *end = spare + WEIR_ALL_MAX;

    if (e->block_after != 0) {
        while (spare < end &&
               ((uint32_t)*spare != e->block_after || slab_of(table, *spare) != &space->slab))
            spare++;
        if (spare < end)
            weir__set(spare, old);
    } else if (old != 0) {
        weir__set(&e->block_before, 0);
        give_spare(table, &old);
    }
}

/* The next user wants one or two. */
void weir__hand_drop_spares(struct weir_table *table, struct weir__hand *hand, size_t n)
{
    for (size_t i = SPARES_KEPT; i < n; i++)
        give_spare(table, &hand->spares[i]);
}

static bool is_spare_for(const struct weir__space *space, uint64_t spare, size_t bytes)
{
    return (uint32_t)spare != 0 && slab_of(space->table, spare) == &space->slab &&
           bytes_of(spare) == bytes;
}

bool weir__hand_shed(struct weir__space *space, struct weir__hand *hand, size_t i, size_t bytes)
{
    bool any = false;

    for (; i < SPARES_KEPT; i++)
        if (is_spare_for(space, hand->spares[i], bytes)) {
            give_spare(space->table, &hand->spares[i]);
            any = true;
        }
    return any;
}

/* Gives back the spares of a free hand that are of this size. */
static bool shed(struct weir__space *space, struct weir__hand *hand, size_t bytes)
{
    bool any = false;

    for (size_t i = 0; i < SPARES_KEPT; i++)
        any = any || is_spare_for(space, weir__get(&hand->spares[i]), bytes);
    if (!any || !try_take(hand, own_mark(space->table)))
        return false;
    any = weir__hand_shed(space, hand, 0, bytes);
    weir__hand_give(hand);
    return any;
}

bool weir__hands_shed(struct weir__space *space, size_t bytes)
{
    bool any = false;

    for (uint64_t i = 0, n = hands_of(space->table); i < n && !any; i++)
        any = shed(space, hand_at(space->table, i), bytes);
    return any;
}

/* -------------------------------------------------------------- commit ---- */

/* Pins the entries up to `end`, in order, until one cannot be.  Returns the end of those that are;
 * *all: nothing was in the way. */
static inline const struct weir__entry *pin_entries(unsigned char *region,
                                                    const struct weir__entry *e,
                                                    const struct weir__entry *end, uint64_t pin,
                                                    bool *all)
{
    *all = false;
    for (; e < end; e++) {
        if (__builtin_expect(!pin_entry(region, e, pin), 0))
            return e;
        if (__builtin_expect(!tag_is_same(region, e), 0))
            return e + 1;
    }
    *all = true;
    return e;
}

bool weir__hand_commit(struct weir_table *table, struct weir__hand *hand)
{
    unsigned char *region = (unsigned char *)table->header;
    uint64_t sequence = weir__get(&hand->status) >> 2, pin = pin_of(table, hand, sequence),
             undecided = sequence << 2 | WEIR__HAND_UNDECIDED, n = weir__get(&hand->n);
    uint32_t blocks = 0; /* 0: no entry that is pinned names one */
    bool all;

    weir__publish(&hand->status, undecided);
    const struct weir__entry *first = hand->entries,
                             *end = pin_entries(region, first, first + n, pin, &all);
    bool committed = weir__swap(&hand->status, undecided,
                                sequence << 2 | (all ? (uint64_t)WEIR__HAND_COMMITTED
                                                     : (uint64_t)WEIR__HAND_ABORTED)) &&
                     all;
    for (const struct weir__entry *e = first; e < end; e++) {
        finish_entry(region, e, pin, committed);
        blocks |= e->block_before | e->block_after;
        if (__builtin_expect(committed && (e->block_before | e->block_after) != 0, 0))
            trade_block(table, hand, (uint64_t)(e - first));
    }
    weir__publish(&hand->n, 0);
    if (__builtin_expect((blocks != 0 || !committed) && n > SPARES_KEPT, 0))
        weir__hand_drop_spares(table, hand, n);
    return committed;
}

/* -------------------------------------------------------------- settle ---- */

/* Pins last for a few cache misses, unless their owner lost the processor. */
#define PIN_PAUSES 100

static bool is_lifted_soon(const uint64_t *word, uint64_t pin)
{
    for (int i = 0; i < PIN_PAUSES; i++) {
        if (weir__load(word) != pin)
            return true;
        __builtin_ia32_pause();
    }
    return false;
}

/* A pin that no hand knows is damage: its owner finishes all its pins before it goes on. */
static void mend(struct weir_table *table, uint64_t *word, uint64_t pin)
{
    if (weir__swap(word, pin, 0))
        weir__count(&table->header->recovered, 1);
}

/* Copies entry i.  False: the hand has gone on meanwhile. */
static bool copy_entry(const struct weir__hand *hand, uint64_t status, uint64_t i,
                       struct weir__entry *out)
{
    weir__copy_words(out, &hand->entries[i], sizeof(*out));
    return weir__load(&hand->status) == status;
}

/* All entries, in their order: a group's counter comes after the slot whose key changed, so that
 * nobody finds the counter free and the key not there yet. */
static void finish_hand(struct weir_table *table, const struct weir__hand *hand, uint64_t status,
                        uint64_t pin)
{
    unsigned char *region = (unsigned char *)table->header;
    uint64_t n = weir__get(&hand->n);
    struct weir__entry e;

    for (uint64_t i = 0; i < n && i < WEIR_ALL_MAX && copy_entry(hand, status, i, &e); i++)
        if (is_sound(table, &e))
            finish_entry(region, &e, pin, (status & 3) == WEIR__HAND_COMMITTED);
}

void weir__hand_settle(struct weir_table *table, uint64_t *word)
{
    uint64_t pin = weir__load(word), sequence = pin & WEIR__HAND_SEQUENCE,
             i = (pin & ~WEIR__PIN) >> (63 - WEIR__HAND_BITS);

    if ((pin & WEIR__PIN) == 0 || is_lifted_soon(word, pin))
        return;
    if (i >= hands_of(table)) {
        mend(table, word, pin);
        return;
    }
    struct weir__hand *hand = hand_at(table, i);
    uint64_t undecided = sequence << 2 | WEIR__HAND_UNDECIDED;
    (void)weir__swap(&hand->status, undecided, sequence << 2 | WEIR__HAND_ABORTED);
    uint64_t status = weir__load(&hand->status);
    bool known = status >> 2 == sequence && (status & 3) != WEIR__HAND_PREPARING;
    if (known)
        finish_hand(table, hand, status, pin);
    else if (weir__load(word) == pin)
        mend(table, word, pin);
}

/* ------------------------------------------------------------- recover ---- */

static void recover(struct weir_table *table, struct weir__hand *hand)
{
    uint64_t status = weir__load(&hand->status), sequence = status >> 2,
             pin = pin_of(table, hand, sequence & WEIR__HAND_SEQUENCE),
             n = hand->n < WEIR_ALL_MAX ? hand->n : WEIR_ALL_MAX;

    (void)weir__swap(&hand->status, sequence << 2 | WEIR__HAND_UNDECIDED,
                     sequence << 2 | WEIR__HAND_ABORTED);
    status = weir__load(&hand->status);
    for (uint64_t i = 0; i < n; i++) {
        if (!is_sound(table, &hand->entries[i]))
            continue;
        if ((status & 3) != WEIR__HAND_PREPARING)
            finish_entry((unsigned char *)table->header, &hand->entries[i], pin,
                         (status & 3) == WEIR__HAND_COMMITTED);
        if ((status & 3) == WEIR__HAND_COMMITTED)
            trade_block(table, hand, i);
    }
    weir__set(&hand->n, 0);
    weir__count(&table->header->recovered, 1);
}

void weir__hands_recover(struct weir_table *table, uint32_t place)
{
    for (uint64_t i = 0, n = hands_of(table); i < n; i++) {
        struct weir__hand *hand = hand_at(table, i);
        if (weir__load(&hand->owner) != (uint64_t)place + 1 ||
            !weir__swap(&hand->owner, (uint64_t)place + 1, own_mark(table)))
            continue;
        recover(table, hand);
        weir__hand_give(hand);
    }
}

void weir__hands_recover_all(struct weir_table *table)
{
    for (uint64_t i = 0, n = hands_of(table); i < n; i++) {
        struct weir__hand *hand = hand_at(table, i);
        if (hand->owner != 0)
            recover(table, hand);
        hand->owner = 0;
        memset(hand->spares, 0, sizeof(hand->spares)); /* the slab is rebuilt */
    }
}
