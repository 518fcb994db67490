/* leftovers.h -- what nobody may leave behind in a table: pins, hands, blocks that nobody has or
 * that two have, keys with two slots.  Of several complaints the first is kept. */
#ifndef WEIR_TESTS_CRASH_LEFTOVERS_H
#define WEIR_TESTS_CRASH_LEFTOVERS_H

#include <inttypes.h>

#include "crash/history.h"
#include "table/chain.h"
#include "table/hand.h"
#include "table/holders.h"
#include "table/slot.h"

struct complaint {
    char text[120];
};

static void complain(struct complaint *c, const char *what, uint64_t got, uint64_t expected)
{
    if (c->text[0] == '\0')
        snprintf(c->text, sizeof(c->text), "%s: %" PRIu64 ", expected %" PRIu64, what, got,
                 expected);
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void check_distinct(struct complaint *c, const char *what, uint64_t *all, size_t n)
{
    qsort(all, n, sizeof(*all), by_number);
    for (size_t i = 1; i < n; i++)
        if (all[i] == all[i - 1])
            complain(c, what, all[i], 0);
}

#define SLOTS_MAX (16 * WEIR__GROUP_SLOTS)
#define CHAIN_MAX 64
#define OF_BANS   ((uint64_t)1 << 62) /* as in a spare (hand.c) */
#define OF_NAMES  ((uint64_t)2 << 62)

static bool has_block(const struct world *w, const struct weir__space *space, uint64_t tag)
{
    if (space == &w->table->bans)
        return true;
    for (int of = 0; of < LIMITERS; of++)
        if (w->l[of] != NULL && w->l[of]->id == weir__tag_id(tag))
            return w->l[of]->kind == WEIR__LARGE;
    return false;
}

/* A log's older nodes. */
static size_t list_chain(const struct weir__space *space, uint32_t newest, uint64_t *blocks)
{
    const struct weir__log_node *node = weir__block_at(&space->slab, newest);
    size_t n = 0;

    for (uint32_t last = node->last; node->number != last && n < CHAIN_MAX;) {
        blocks[n++] = node->links[0];
        node = weir__block_at(&space->slab, node->links[0]);
    }
    return n;
}

/* Returns how many of the blocks are in slots. */
static size_t check_slots(const struct world *w, const struct weir__space *space, uint64_t *blocks,
                          struct complaint *c)
{
    static uint64_t tags[SLOTS_MAX];
    size_t n = 0, in_slots = 0;

    for (uint64_t i = 0; i < space->groups * WEIR__GROUP_SLOTS; i++) {
        void *slot = weir__slot_at(space, i / WEIR__GROUP_SLOTS, i % WEIR__GROUP_SLOTS);
        uint64_t *pair = weir__slot_pair(space, slot), tag = *(uint64_t *)slot;
        if (*weir__slot_pin(space, slot) & WEIR__PIN)
            complain(c, "a slot that is still pinned", i, 0);
        if (tag == 0)
            continue;
        tags[n++] = tag;
        if ((uint32_t)pair[1] == 0 || !has_block(w, space, tag))
            continue;
        blocks[in_slots++] = (space == &w->table->bans ? OF_BANS : 0) | (uint32_t)pair[1];
        if (space == &w->table->keys && weir__chain_in(space, pair[1]))
            in_slots += list_chain(space, (uint32_t)pair[1], blocks + in_slots);
    }
    for (uint64_t i = 0; i < space->groups; i++)
        if (space->rooms[i].count & WEIR__PIN)
            complain(c, "a group that is still pinned", i, 0);
    check_distinct(c, "a key with two slots", tags, n);
    return in_slots;
}

static size_t check_hands(const struct world *w, uint64_t *blocks, struct complaint *c)
{
    size_t n = 0;

    for (uint64_t i = 0; i < 2 * WEIR__HANDS_READY; i++) {
        struct weir__hand *hand =
            (void *)((unsigned char *)w->table->header + WEIR__HANDS_AT + i * WEIR__HAND_BYTES);
        if (hand->owner != 0)
            complain(c, "a hand that is still somebody's", hand->owner, 0);
        for (size_t k = 0; k < WEIR_ALL_MAX; k++)
            if (hand->spares[k] != 0)
                blocks[n++] = hand->spares[k] >> 62 << 62 | (uint32_t)hand->spares[k];
    }
    return n;
}

static size_t check_places(const struct world *w, uint64_t *blocks, struct complaint *c)
{
    size_t n = 0;

    for (uint32_t i = 0; i < w->table->n_places; i++) {
        const struct weir__place *place = &w->table->places[i];
        if (place->edition & WEIR__PIN)
            complain(c, "a place that is still pinned", i, 0);
        if (place->word != 0)
            blocks[n++] = OF_NAMES | (uint32_t)place->word;
    }
    return n;
}

static const struct weir__slab *slab_of(const struct weir_table *t, uint64_t block)
{
    return block & OF_NAMES ? &t->names.slab : block & OF_BANS ? &t->bans.slab : &t->keys.slab;
}

/* A kill may cost a block until the table is next alone. */
static void check_table(const struct world *w, bool killed, struct complaint *c)
{
    static uint64_t blocks[SLOTS_MAX + KEYS * CHAIN_MAX + WEIR__HANDS * WEIR_ALL_MAX];
    struct weir_table *t = w->table;

    weir__holders_bury(t, weir_table_now(t) + 10 * WEIR_SECOND);
    uint64_t bytes = 0, used = weir__slab_stats(&t->keys.slab).bytes +
                               weir__slab_stats(&t->bans.slab).bytes +
                               weir__slab_stats(&t->names.slab).bytes;
    size_t n = check_slots(w, &t->keys, blocks, c);
    n += check_slots(w, &t->bans, blocks + n, c);
    n += check_hands(w, blocks + n, c);
    n += check_places(w, blocks + n, c);
    check_distinct(c, "a block that two have", blocks, n);
    for (size_t i = 0; i < n; i++)
        bytes += weir__block_bytes(slab_of(t, blocks[i]), (uint32_t)blocks[i]);
    if (killed ? used < bytes : used != bytes)
        complain(c, "bytes in blocks", used, bytes);
}

/* Each key of a flood took four units, or is forgotten: returns how many are. */
static int check_flood(const struct world *w, const struct deed *deed, struct complaint *c)
{
    int forgotten = 0, all = deed->of == FILL ? 1000 : counts[0];

    for (int i = 0; i < deed->n; i++) {
        struct deed peek = { PEEK, deed->of, FLOOD_KEY + FLOOD_KEYS * deed->key + i, 0 };
        int left = do_peek(w, &peek);
        forgotten += left == all;
        if (left != all && left != all - 4)
            complain(c, "left of a key that took 4 at once", (uint64_t)left, (uint64_t)all - 4);
    }
    return forgotten;
}

/* No more are forgotten than were counted; a process that was killed may not have counted one. */
static void check_floods(const struct world *w, const struct story *s, int uncounted,
                         struct complaint *c)
{
    int64_t forgotten = 0, early = w->table->header->evicted_early - w->early + uncounted;

    for (int i = 0; i < s->begun_last; i++)
        if (s->deeds[i].verb == FLOOD)
            forgotten += check_flood(w, &s->deeds[i], c);
    if (forgotten > early)
        complain(c, "keys that were forgotten", (uint64_t)forgotten, (uint64_t)early);
}

/* Every key has its whole burst after a rest. */
static void check_rest(const struct world *w, struct complaint *c)
{
    for (int of = 0; of < COUNTED; of++)
        for (int key = 0; key < KEYS; key++) {
            struct weir_ask ask = ask_for(key, 0);
            struct weir_decision d;
            ask.now = NOW + 1000000 * WEIR_SECOND;
            weir_peek(w->l[of], &ask, &d);
            ask.cost = d.limit;
            if (d.remaining != d.limit || !weir_take(w->l[of], &ask, &d))
                complain(c, "left to a key that has rested", (uint64_t)d.remaining,
                         (uint64_t)d.limit);
        }
}

#endif
