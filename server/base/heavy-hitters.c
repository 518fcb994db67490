/* heavy-hitters.c -- the most frequent texts, in fixed memory.
 *
 * Space-Saving (Metwally, Agrawal, El Abbadi 2005): a fixed number of counters.  A text that has
 * none takes the smallest one over, with its count, and remembers that count as its possible error.
 * Found by hash in an open table of twice the size, the smallest one by a heap.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/safe-text.h"
#include "server/base/heavy-hitters.h"

struct weir__hitters {
    size_t capacity, n, slots; /* slots: a power of two, at least twice the capacity */
    int64_t total;
    struct weir__hitter *items;
    uint32_t *heap;  /* items, the one with the smallest count first */
    uint32_t *place; /* of an item in the heap */
    uint32_t *index; /* by hash: item + 1, or 0 */
};

void weir__hitters_destroy(struct weir__hitters *h)
{
    if (h == NULL)
        return;
    free(h->items);
    free(h->heap);
    free(h->place);
    free(h->index);
    free(h);
}

struct weir__hitters *weir__hitters_create(size_t capacity)
{
    struct weir__hitters *h = calloc(1, sizeof(*h));

    assert(capacity > 0 && capacity < UINT32_MAX / 4);
    if (h == NULL)
        return NULL;
    h->capacity = capacity;
    for (h->slots = 2; h->slots < 2 * capacity;)
        h->slots *= 2;
    h->items = calloc(capacity, sizeof(*h->items));
    h->heap = calloc(capacity, sizeof(*h->heap));
    h->place = calloc(capacity, sizeof(*h->place));
    h->index = calloc(h->slots, sizeof(*h->index));
    if (h->items && h->heap && h->place && h->index)
        return h;
    weir__hitters_destroy(h);
    return NULL;
}

/* Where the hash is in the index, or where it would go. */
static size_t look_up(const struct weir__hitters *h, uint64_t hash)
{
    size_t at = hash & (h->slots - 1);

    while (h->index[at] != 0 && h->items[h->index[at] - 1].hash != hash)
        at = (at + 1) & (h->slots - 1);
    return at;
}

/* Empties a place and moves up the entries that it had pushed back. */
static void unlink_at(struct weir__hitters *h, size_t hole)
{
    size_t mask = h->slots - 1;

    for (size_t at = (hole + 1) & mask; h->index[at] != 0; at = (at + 1) & mask) {
        size_t home = h->items[h->index[at] - 1].hash & mask;
        if (((at - home) & mask) < ((at - hole) & mask))
            continue; /* its home lies behind the hole */
        h->index[hole] = h->index[at];
        hole = at;
    }
    h->index[hole] = 0;
}

static int64_t count_at(const struct weir__hitters *h, size_t place)
{
    return h->items[h->heap[place]].count;
}

static void put(struct weir__hitters *h, size_t place, uint32_t item)
{
    h->heap[place] = item;
    h->place[item] = (uint32_t)place;
}

/* The item at `place` has grown. */
static void sink(struct weir__hitters *h, size_t place)
{
    uint32_t item = h->heap[place];

    for (size_t child; (child = 2 * place + 1) < h->n; place = child) {
        if (child + 1 < h->n && count_at(h, child + 1) < count_at(h, child))
            child++;
        if (count_at(h, child) >= h->items[item].count)
            break;
        put(h, place, h->heap[child]);
    }
    put(h, place, item);
}

static void rise(struct weir__hitters *h, size_t place)
{
    uint32_t item = h->heap[place];

    for (; place > 0 && count_at(h, (place - 1) / 2) > h->items[item].count;
         place = (place - 1) / 2)
        put(h, place, h->heap[(place - 1) / 2]);
    put(h, place, item);
}

/* A free counter, or the smallest one, taken over with its count. */
static uint32_t claim(struct weir__hitters *h)
{
    if (h->n < h->capacity) {
        put(h, h->n, (uint32_t)h->n);
        return (uint32_t)h->n++;
    }
    uint32_t item = h->heap[0];
    unlink_at(h, look_up(h, h->items[item].hash));
    h->items[item].error = h->items[item].count;
    return item;
}

void weir__hitters_add(struct weir__hitters *h, uint64_t hash, const char *text, size_t len,
                       int64_t times)
{
    size_t at = look_up(h, hash);

    assert(times > 0);
    h->total += times;
    if (h->index[at] != 0) {
        uint32_t item = h->index[at] - 1;
        h->items[item].count += times;
        sink(h, h->place[item]);
        return;
    }
    uint32_t item = claim(h);
    struct weir__hitter *i = &h->items[item];
    i->hash = hash;
    i->count += times;
    weir__text_cut(i->text, sizeof(i->text), text, len);
    h->index[look_up(h, hash)] =
        item + 1; /* looked up anew: taking a counter over may have moved places */
    rise(h, h->place[item]);
    sink(h, h->place[item]);
}

int weir__hitter_compare(const void *a, const void *b)
{
    const struct weir__hitter *x = a, *y = b;

    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    int order = strcmp(x->text, y->text);
    return order != 0 ? order : (x->hash > y->hash) - (x->hash < y->hash);
}

size_t weir__hitters_top(const struct weir__hitters *h, struct weir__hitter *out, size_t max)
{
    size_t n = 0;
    struct weir__hitter *sorted = malloc(h->capacity * sizeof(*sorted));

    if (sorted == NULL)
        return 0;
    memcpy(sorted, h->items, h->n * sizeof(*sorted));
    qsort(sorted, h->n, sizeof(*sorted), weir__hitter_compare);
    for (size_t i = 0; i < h->n && n < max; i++) {
        if (sorted[i].error <= sorted[i].count / 2)
            out[n++] = sorted[i];
    }
    free(sorted);
    return n;
}

int64_t weir__hitters_total(const struct weir__hitters *h)
{
    return h->total;
}

/* A counter that was taken over had at most its share of all, total / capacity; the largest error
 * there is says it better. */
int64_t weir__hitters_error(const struct weir__hitters *h)
{
    int64_t most = 0;

    for (size_t i = 0; i < h->n; i++)
        most = h->items[i].error > most ? h->items[i].error : most;
    return most;
}
