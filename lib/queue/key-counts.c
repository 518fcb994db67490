/* key-counts.c -- how many waiters each key has in a queue. */
#include "queue/key-counts.h"

#include <stdlib.h>

bool weir__key_counts_make(struct weir__key_counts *out, size_t most)
{
    size_t slots = 4;

    while (slots < 2 * most)
        slots *= 2;
    out->mask = slots - 1;
    out->slots = calloc(slots, sizeof(*out->slots));
    return out->slots != NULL;
}

/* The key's slot, or the free one where it would be. */
static size_t find(const struct weir__key_counts *c, uint64_t key)
{
    size_t i = (size_t)key & c->mask;

    while (c->slots[i].key != 0 && c->slots[i].key != key)
        i = (i + 1) & c->mask;
    return i;
}

int64_t weir__key_counts_get(const struct weir__key_counts *counts, uint64_t key)
{
    return counts->slots[find(counts, key)].n;
}

bool weir__key_counts_is_full(const struct weir__key_counts *counts, uint64_t key, int64_t key_max,
                              int64_t places_left)
{
    int64_t waiting = key != 0 ? weir__key_counts_get(counts, key) : 0;

    return key != 0 && waiting >= (key_max < places_left ? key_max : places_left);
}

void weir__key_counts_add(struct weir__key_counts *counts, uint64_t key)
{
    struct weir__key_count *slot = &counts->slots[find(counts, key)];

    slot->key = key;
    slot->n++;
}

/* Keys behind the slot that comes free move up, so that they are still found. */
static void close_gap(struct weir__key_counts *c, size_t gap)
{
    for (size_t i = (gap + 1) & c->mask; c->slots[i].key != 0; i = (i + 1) & c->mask) {
        size_t home = (size_t)c->slots[i].key & c->mask;
        if (((i - home) & c->mask) < ((i - gap) & c->mask))
            continue; /* its home is behind the gap */
        c->slots[gap] = c->slots[i];
        gap = i;
    }
    c->slots[gap] = (struct weir__key_count){ 0, 0 };
}

void weir__key_counts_remove(struct weir__key_counts *counts, uint64_t key)
{
    size_t i = find(counts, key);

    if (--counts->slots[i].n == 0)
        close_gap(counts, i);
}
