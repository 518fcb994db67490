/* hand.h -- several pairs of words changed together, or none, and nobody waits for a process that
 * was stopped.  hand.c says how. */
#ifndef WEIR_TABLE_HAND_H
#define WEIR_TABLE_HAND_H

#include "table/table.h"

enum weir__hand_status {
    WEIR__HAND_PREPARING,
    WEIR__HAND_UNDECIDED,
    WEIR__HAND_COMMITTED,
    WEIR__HAND_ABORTED,
};

#define WEIR__HAND_BITS     10
#define WEIR__HAND_SEQUENCE (((uint64_t)1 << (63 - WEIR__HAND_BITS)) - 1)

/* A hand of this process, ready for its entries.  Give it back soon: there are WEIR__HANDS. */
struct weir__hand *weir__hand_take(struct weir_table *table);
void weir__hand_give(struct weir__hand *hand);

/* Before the first entry: from here on old pins of the hand are nobody's. */
static inline void weir__hand_begin(struct weir__hand *hand)
{
    uint64_t sequence = ((weir__get(&hand->status) >> 2) + 1) & WEIR__HAND_SEQUENCE;

    weir__set(&hand->status, sequence << 2 | WEIR__HAND_PREPARING);
}

static inline void weir__hand_set_pair(uint64_t *to, const uint64_t from[2])
{
    weir__set(to, from[0]);
    weir__set(to + 1, from[1]);
}

/* One more pair to be changed.  Inline: the entry is made in the hand, and nowhere else. */
static inline __attribute__((always_inline)) void weir__hand_add(struct weir__hand *hand,
                                                                 const struct weir__entry *entry)
{
    uint64_t n = weir__get(&hand->n);
    struct weir__entry *e = &hand->entries[n];

    __asm__("" : "+r"(e)); /* gcc would add it up anew for every pair */
    if (n == 0)
        weir__hand_begin(hand);
    weir__set(&e->at, entry->at);
    weir__hand_set_pair(e->before, entry->before);
    weir__hand_set_pair(e->after, entry->after);
    weir__hand_set_pair(e->tag_before, entry->tag_before);
    weir__hand_set_pair(e->tag_after, entry->tag_after);
    weir__set(&e->block_before, entry->block_before);
    weir__set(&e->block_after, entry->block_after);
    weir__publish(&hand->n, n + 1);
}

/* Changes all pairs, if each is as its entry says.  True: done.  The hand is empty afterwards. */
bool weir__hand_commit(struct weir_table *table, struct weir__hand *hand);
/* Takes back all entries. */
static inline void weir__hand_clear(struct weir__hand *hand)
{
    weir__set(&hand->n, 0);
}

/* The word is pinned: has its hand finish, or does it in its place. */
void weir__hand_settle(struct weir_table *table, uint64_t *word);

/* The hand's spare block i, of the space's slab, of at least this many bytes; 0: the slab is full,
 * or has no more for a guest, a limit that a client brought.  It is the hand's until an entry that
 * names it as block_after is committed; then the hand has block_before. */
uint32_t weir__hand_block(struct weir__space *space, struct weir__hand *hand, size_t i,
                          size_t bytes, bool guest);

/* Of its first n spare blocks the hand keeps one or two: others may need the rest. */
void weir__hand_drop_spares(struct weir_table *table, struct weir__hand *hand, size_t n);

/* The block, which was taken from the slab, is the hand's spare block i. */
void weir__hand_adopt(struct weir__space *space, struct weir__hand *hand, size_t i, uint32_t block);

/* The slab is full: the hand gives back those of its spare blocks, from the i-th on, that are of
 * this size, rounded: others than it needs now.  False: there is none. */
bool weir__hand_shed(struct weir__space *space, struct weir__hand *hand, size_t i, size_t bytes);

/* Likewise: a free hand that keeps spare blocks of this size, rounded, gives them back.
 * False: there is none. */
bool weir__hands_shed(struct weir__space *space, size_t bytes);

/* What dead processes left: of the holder in this place; of all of them, for a process that is
 * alone and rebuilds the slab next. */
void weir__hands_recover(struct weir_table *table, uint32_t place);
void weir__hands_recover_all(struct weir_table *table);

#endif
