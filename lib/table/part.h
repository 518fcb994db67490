/* part.h -- a key's state, to be read, changed and written back together with others.
 *
 * This is the general way, for all that one swap cannot do: several limits at once, large states,
 * a state under an older limit, giving back.  part.c says how.
 */
#ifndef WEIR_TABLE_PART_H
#define WEIR_TABLE_PART_H

#include "table/chain.h"
#include "table/hand.h"
#include "table/slot.h"

struct weir__part {
    struct weir_limiter *limiter;
    const struct weir_plan *plan; /* the present limit, */
    uint32_t version;             /* and what a slot under it says */
    const struct weir__era *era;  /* NULL: it never changes, or comes with the ask */
    struct weir__home home;
    void *slot;         /* NULL: the key has none */
    uint64_t before[2]; /* the slot's pair, and its tag and meta if it is wide, as they were read */
    uint64_t tags[2];
    void *state; /* a copy under the present limit: in `small`, `room` or the hand's spare block */
    uint64_t small[2];
    uint32_t block;    /* the spare block, if `state` is in it */
    bool stepped;      /* narrow: the clock has stepped back, which the copy does not show */
    weir__i128 owed;   /* of a limit that comes with the ask: more than the copy can tell; or 0 */
    bool closed;       /* no key in use makes room for this one if it is new: */
    weir_time room_at; /* there is no room before then; 0: not known */
    bool gives;        /* units come back: no key in use makes room for that either */
    bool forgone;      /* there was no room: it is not remembered */
    struct weir__chain_rest rest; /* large: what the log leaves behind once the part is written */
};

/* Space for copies of large states: for all logs, and for windows as far as the first bytes go.
 * Other windows are made in a spare block, which others may be reading as what it was before. */
#define WEIR__COPIES_WINDOWS 4096
struct weir__copies {
    size_t used;
    _Alignas(16) unsigned char bytes[WEIR__COPIES_WINDOWS + WEIR_ALL_MAX * WEIR__NODE_BYTES];
};

void weir__part_begin(struct weir__part *part, struct weir_limiter *limiter,
                      struct weir__home home);

/* Finds the slot and copies the state; without a slot a fresh one.  A copy that is too large for
 * `copies` goes to spare block i of the hand; `state` is NULL if the slab is full.  False: a pin
 * was settled, or the slot changed meanwhile: read again. */
bool weir__part_read(struct weir__part *part, struct weir__hand *hand, size_t i,
                     struct weir__copies *copies, weir_time now);

/* The second half of that: from the slot's words, which were read, to the copy. */
void weir__part_copy(struct weir__part *part, weir_time now);

/* If there is no copy, since nothing will be written or no block is left: one in memory, which the
 * caller frees.  NULL: more is owed than can be told, or there is no memory. */
void *weir__part_copy_apart(struct weir__part *part, weir_time now);

/* Copies a large state to `out`, zeros if there is none; of a limiter whose limit never changes.
 * False: the slot changed meanwhile. */
bool weir__part_peek(struct weir__part *part, void *out);

/* The version of the limit that the slot's state is kept under. */
uint32_t weir__part_version(const struct weir__part *part);

/* The slot is as it was read. */
bool weir__slot_is_same(const struct weir__space *space, const struct weir__part *part);

/* Reads a slot's words, of any owner: slot, before and tags.  False: a pin was settled, or the
 * slot changed meanwhile. */
bool weir__slot_read(struct weir__space *space, void *slot, struct weir__part *out);

/* An entry for the slot as it was read, with nothing to write yet. */
static inline struct weir__entry weir__slot_entry(const struct weir__space *space,
                                                  const struct weir__part *part)
{
    struct weir__entry e = { .at = weir__offset_of(space->table, weir__slot_pin(space, part->slot)),
                             .before = { part->before[0], part->before[1] } };

    if (!space->narrow) {
        e.tag_before[0] = part->tags[0];
        e.tag_before[1] = part->tags[1];
    }
    return e;
}

/* A wide slot is another key's, or under another version, from now on. */
static inline void weir__entry_retag(struct weir__entry *e, uint64_t tag, uint32_t version)
{
    e->tag_after[0] = tag;
    e->tag_after[1] = ((e->tag_before[1] >> 32) + 1) << 32 | version;
}

static inline bool weir__part_is_same(const struct weir__part *part)
{
    return part->slot == NULL || weir__slot_is_same(part->limiter->space, part);
}

/* There is no copy to work on: the slab is full, or the debt is too deep to tell. */
void weir__part_answer(const struct weir__part *part, const struct weir_ask *ask,
                       struct weir_decision *d);

/* The step on the copy.  Whether there is anything to write. */
static inline __attribute__((always_inline)) bool weir__part_step(struct weir__part *part,
                                                                  const struct weir_ask *ask,
                                                                  bool take,
                                                                  struct weir_decision *d)
{
    const uint64_t *state = part->state;

    if (__builtin_expect(state == NULL, 0)) {
        weir__part_answer(part, ask, d);
        return false;
    }
    uint64_t first = state[0], second = state[1];
    weir__step(part->plan, part->state, ask, take, d);
    return (d->allowed && ask->cost > 0) || state[0] != first || state[1] != second ||
           part->stepped;
}

/* A narrow slot's word.  More than the capacity and a wait would look like a clock that has stepped
 * back. */
static inline uint64_t weir__part_packed(const struct weir__part *part)
{
    int64_t owed = (int64_t)part->small[1], most = part->plan->capacity + WEIR__PACKED_WAIT_MAX;

    return weir__pack((weir_time)part->small[0], owed < most ? owed : most);
}

/* Adds the part to what the hand will write.  False: the slab is full. */
bool weir__part_write(struct weir__part *part, struct weir__hand *hand, size_t i);
/* There was no room for what should have been remembered. */
void weir__part_count_lost(const struct weir__part *part);
/* It is written. */
static inline void weir__part_done(const struct weir__part *part)
{
    if (part->limiter->kind == WEIR__LARGE && __builtin_expect(part->rest.block != 0, 0))
        weir__chain_give(part->limiter->space, part->rest);
}

/* No: there is no room for the key.  The second one counts it. */
void weir__part_say_no_room(const struct weir__part *part, const struct weir_ask *ask,
                            struct weir_decision *d);
void weir__part_refuse(const struct weir__part *part, const struct weir_ask *ask,
                       struct weir_decision *d);

/* A decision on one key, whatever its state is like. */
bool weir__decide_slowly(struct weir__part *part, const struct weir_ask *ask, bool take,
                         struct weir_decision *d);

/* Reads a key's state, has it changed, writes it back.  `change` says whether there is anything to
 * write; `make`: a key without a slot gets one. */
typedef bool weir__changer(const struct weir_plan *plan, void *state, void *context);
void weir__part_change(struct weir__part *part, weir__changer *change, void *context, bool make,
                       weir_time now);

/* Brings all states of a limiter to its present limit. */
void weir__parts_renew(struct weir_limiter *limiter, weir_time now);

#endif
