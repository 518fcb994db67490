/* take-all.h -- several limits at once, for callers that know where their keys live before they
 * ask: they prepare a few asks, prefetch their lines, and then make them.  take-all.c says how. */
#ifndef WEIR_TABLE_TAKE_ALL_H
#define WEIR_TABLE_TAKE_ALL_H

#include "table/slot.h"

/* What is asked of one key of one limiter. */
struct weir__item {
    struct weir_limiter *limiter;
    struct weir__hash hash; /* of the key; the tag as slots have it */
    void *line;             /* where the search for the slot begins */
    int64_t cost;
    uint32_t whose; /* the caller's own marks */
    uint16_t which;
    bool closed; /* refused if a key in use would have to make room for it */
};

/* Sets limiter, hash and line. */
static inline __attribute__((always_inline)) void
weir__item_set(struct weir__item *item, struct weir_limiter *limiter, struct weir__hash hash)
{
    item->limiter = limiter;
    item->hash = hash;
    item->line = weir__slot_line(limiter->space, weir__home_from(limiter->space, hash));
}

/* Sets all but cost and marks; it is not closed. */
static inline void weir__item_aim(struct weir__item *item, struct weir_limiter *limiter,
                                  struct weir_key key)
{
    weir__item_set(item, limiter, weir__slot_hash(limiter, key));
    item->closed = false;
}

static inline struct weir__home weir__item_home(const struct weir__item *item)
{
    return weir__home_from(item->limiter->space, item->hash);
}

/* As weir_take_all: the ask's wait_max and now are those of all items, its key and cost are not
 * looked at.  All are of one table, and no two of one key of one limiter. */
bool weir__all_take(const struct weir__item *items, size_t n, const struct weir_ask *ask,
                    struct weir_decision *decision);

/* The same; if it is granted, its items are added to `taken`, for weir__take_back. */
bool weir__all_take_noted(const struct weir__item *items, size_t n, const struct weir_ask *ask,
                          struct weir_decision *decision, struct weir_taken *taken);
/* Gives one of them back, unless time has. */
void weir__take_back(struct weir_table *table, const uint64_t taken[5], weir_time now);

/* The same, but nothing is taken; the items may be of several tables. */
bool weir__all_peek(const struct weir__item *items, size_t n, const struct weir_ask *ask,
                    struct weir_decision *decision);

#endif
