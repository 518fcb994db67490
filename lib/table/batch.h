/* batch.h -- several asks, each decided for itself, while the memory of others is under way.
 *
 * Prefetch every key's line; decide on the keys that are in it, and prefetch the next lines of the
 * others; then, when those have come, decide on them.  Once an ask is left for later, so are those
 * behind it on the same key, wherever that is by then: they stay in order.
 *
 * All of it is inlined: weir_take_many, and the limits that come with the ask.
 */
#ifndef WEIR_TABLE_BATCH_H
#define WEIR_TABLE_BATCH_H

#include "table/slot.h"

#define WEIR__BATCH 16 /* enough misses under way to fill the memory's queue */

struct weir__batch_item {
    struct weir_limiter *limiter;
    const struct weir_ask *ask;
    const struct weir_plan *plan; /* that comes with the ask, or NULL */
};

/* Where an item is decided. */
struct weir__aim {
    struct weir__hash hash;
    void *line; /* the first one */
};

typedef struct weir__batch_item weir__batch_reader(struct weir_table *table, const void *items,
                                                   size_t i);
typedef bool weir__batch_taker(const struct weir__batch_item *item, const struct weir__aim *aim,
                               struct weir_decision *d);

struct weir__batch_ways {
    weir__batch_reader *item_at;
    weir__batch_taker *near; /* in the first line; false: not there, or something is in the way */
    weir__batch_taker *anywhere;
};

static inline __attribute__((always_inline)) size_t
weir__take_batch(const struct weir__batch_ways *ways, struct weir_table *table, const void *items,
                 size_t n, struct weir_decision *decisions)
{
    struct weir__aim aims[WEIR__BATCH];
    size_t later[WEIR__BATCH], n_later = 0, granted = 0;
    uint64_t left = 0; /* a bit for each key that is; some others have the same */

    for (size_t i = 0; i < n; i++) {
        struct weir__batch_item item = ways->item_at(table, items, i);
        const struct weir__space *space = item.limiter->space;
        struct weir__hash hash = weir__slot_hash(item.limiter, item.ask->key);
        aims[i] = (struct weir__aim){ hash, weir__slot_line(space, weir__home_from(space, hash)) };
        __builtin_prefetch(aims[i].line, 1);
    }
    for (size_t i = 0; i < n; i++) {
        struct weir__batch_item item = ways->item_at(table, items, i);
        uint64_t bit = (uint64_t)1 << (aims[i].hash.tag >> 58);
        bool waits = (left & bit) != 0;
        if (!waits && ways->near(&item, &aims[i], &decisions[i])) {
            granted += decisions[i].allowed;
        } else if (waits || weir__fetch_further(item.limiter->space, aims[i].hash, aims[i].line)) {
            left |= bit;
            later[n_later++] = i;
        } else {
            granted += ways->anywhere(&item, &aims[i], &decisions[i]);
        }
    }
    for (const size_t *i = later; i < later + n_later; i++) {
        struct weir__batch_item item = ways->item_at(table, items, *i);
        granted += ways->anywhere(&item, &aims[*i], &decisions[*i]);
    }
    return granted;
}

#endif
