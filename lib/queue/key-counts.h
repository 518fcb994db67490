/* key-counts.h -- how many waiters each key has in a queue.
 *
 * Keys are numbers that clients cannot choose (a keyed hash); 0 is none.  Open addressing: a slot
 * holds a key, and a key that is not where its number says is in one of the next slots.
 */
#ifndef WEIR_QUEUE_KEY_COUNTS_H
#define WEIR_QUEUE_KEY_COUNTS_H

#include "base/base.h"

struct weir__key_count {
    uint64_t key; /* 0: free */
    int64_t n;
};

struct weir__key_counts {
    struct weir__key_count *slots;
    size_t mask;
};

bool weir__key_counts_make(struct weir__key_counts *out, size_t most); /* false: no memory */
int64_t weir__key_counts_get(const struct weir__key_counts *counts, uint64_t key);
/* The key has as many waiters as it may have: key_max, or as many as there are places left. */
bool weir__key_counts_is_full(const struct weir__key_counts *counts, uint64_t key, int64_t key_max,
                              int64_t places_left);
void weir__key_counts_add(struct weir__key_counts *counts, uint64_t key);
void weir__key_counts_remove(struct weir__key_counts *counts, uint64_t key);

#endif
