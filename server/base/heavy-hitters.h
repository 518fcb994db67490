/* heavy-hitters.h -- the most frequent texts, in fixed memory: each known by its hash, as
 * count-distinct.h makes it.
 */
#ifndef WEIR_SERVER_BASE_HEAVY_HITTERS_H
#define WEIR_SERVER_BASE_HEAVY_HITTERS_H

#include "base/base.h"

#define WEIR__HITTER_TEXT 120

struct weir__hitter {
    uint64_t hash;
    int64_t count;                /* at most this often ... */
    int64_t error;                /* ... and at least this many fewer: 0 is exact */
    char text[WEIR__HITTER_TEXT]; /* longer ones end in "..." */
};

/* The most frequent first, for qsort. */
int weir__hitter_compare(const void *a, const void *b);

struct weir__hitters;

/* Whatever makes up more than 1/capacity of all is among them, and no count is wrong by more than
 * that. */
struct weir__hitters *weir__hitters_create(size_t capacity); /* NULL: no memory */
void weir__hitters_destroy(struct weir__hitters *hitters);
void weir__hitters_add(struct weir__hitters *hitters, uint64_t hash, const char *text, size_t len,
                       int64_t times);

/* Copies the up to `max` most frequent, most frequent first; returns how many.  Left out are those
 * of whose count more than half may be wrong: where all come about equally often, there is nobody
 * to name. */
size_t weir__hitters_top(const struct weir__hitters *hitters, struct weir__hitter *out, size_t max);

int64_t weir__hitters_total(const struct weir__hitters *hitters); /* of all that was added */
int64_t weir__hitters_error(const struct weir__hitters *hitters); /* no count is wrong by more than
                                                                     this; 0: all are exact */

#endif
