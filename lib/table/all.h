/* all.h -- several limits at once, for those who know where their keys live before they ask.  all.c
 * says how.
 *
 * Whoever has many such asks to make prepares a few, prefetches their lines, and then makes them.
 */
#ifndef WEIR_TABLE_ALL_H
#define WEIR_TABLE_ALL_H

#include "table/slot.h"

/* What is asked of one key of one limiter. */
struct weir__item {
    struct weir_limiter *limiter;
    struct weir__hash hash; /* of the key, with the limiter's salt; the tag as slots have it */
    void *line;             /* where the search for the slot begins */
    int64_t cost;
    uint32_t whose, which; /* the caller's own marks */
};

static inline struct weir__home weir__item_home(const struct weir__item *item)
{
    const struct weir_limiter *limiter = item->limiter;
    uint64_t groups =
        limiter->kind == WEIR__LARGE ? limiter->record->large_groups : limiter->table->groups;
    uint64_t step = limiter->kind == WEIR__NARROW ? WEIR__NARROW_STEP : WEIR__WIDE_STEP;

    return weir__home_from(item->hash, groups, step);
}

static inline void *weir__large_line(const struct weir_limiter *limiter, struct weir__home home)
{
    const struct weir__era *era = __atomic_load_n(&limiter->era, __ATOMIC_ACQUIRE);

    return era->large +
           (home.group * WEIR__LARGE_GROUP + home.first % WEIR__LARGE_GROUP) * era->large_stride;
}

/* Sets limiter, hash and line. */
static inline __attribute__((always_inline)) void
weir__item_aim(struct weir__item *item, struct weir_limiter *limiter, struct weir_key key)
{
    struct weir_table *table = limiter->table;
    struct weir__hash h = weir__hash_key(table->secrets, limiter->salt, key);

    item->limiter = limiter;
    item->hash.tag = h.tag | (h.tag == 0);
    item->hash.place = h.place;
    if (__builtin_expect(limiter->kind == WEIR__WIDE, 1)) {
        struct weir__home home = weir__home_from(h, table->groups, WEIR__WIDE_STEP);
        item->line = weir__wide_at(table, home.group, home.first);
    } else {
        struct weir__home home = weir__item_home(item);
        item->line = limiter->kind == WEIR__LARGE ? weir__large_line(limiter, home)
                                                  : weir__narrow_at(table, home.group, home.first);
    }
}

/* Whether the search may go on behind its first line, which has come by now: whoever prefetches
 * wants the next one too. */
static inline bool weir__item_is_further(const struct weir__item *item)
{
    const uint64_t *tags = item->line; /* the first word of a slot of either kind */
    size_t step = item->limiter->kind == WEIR__WIDE ? 4 : 2;

    if (item->limiter->kind == WEIR__LARGE)
        return false;
    for (size_t i = 0; i < WEIR__LINE / sizeof(*tags); i += step)
        if (weir__load(&tags[i]) == item->hash.tag || weir__load(&tags[i]) == 0)
            return false;
    return true;
}

/* As weir_take_all: the ask's wait_max and now are those of all items, its key and cost are not
 * looked at.  All are of one table, and no two of one key of one limiter. */
bool weir__all_take(const struct weir__item *items, size_t n, const struct weir_ask *ask,
                    struct weir_decision *decision);

/* The same, but nothing is taken; the items may be of several tables. */
bool weir__all_peek(const struct weir__item *items, size_t n, const struct weir_ask *ask,
                    struct weir_decision *decision);

#endif
