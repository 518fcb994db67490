/* fleet-agenda.h -- what is to happen in a simulation, in the order of its time. */
#ifndef WEIR_TESTS_FLEET_AGENDA_H
#define WEIR_TESTS_FLEET_AGENDA_H

#include <stdbool.h>
#include <stdlib.h>

#include "weir.h"

struct agenda_item {
    weir_time at;
    uint64_t order; /* of those at the same time */
    int kind, node;
    uint64_t number; /* of the ask it is about */
    int64_t words[6];
};

/* A heap.  Zeros are empty; its memory stays for the next run. */
struct agenda {
    struct agenda_item *items;
    size_t n, room;
    uint64_t order;
};

static inline bool agenda_before(const struct agenda_item *a, const struct agenda_item *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static inline void agenda_add(struct agenda *a, struct agenda_item item)
{
    if (a->n == a->room) {
        a->room = a->room ? 2 * a->room : 4096;
        a->items = realloc(a->items, a->room * sizeof(*a->items));
        if (a->items == NULL)
            abort();
    }
    item.order = a->order++;
    size_t i = a->n++;
    for (; i > 0 && agenda_before(&item, &a->items[(i - 1) / 2]); i = (i - 1) / 2)
        a->items[i] = a->items[(i - 1) / 2];
    a->items[i] = item;
}

static inline void agenda_put_off(struct agenda *a, struct agenda_item item, weir_time until)
{
    item.at = until;
    agenda_add(a, item);
}

static inline bool agenda_next(struct agenda *a, struct agenda_item *out)
{
    if (a->n == 0)
        return false;
    *out = a->items[0];
    struct agenda_item last = a->items[--a->n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < a->n; i = child) {
        child += child + 1 < a->n && agenda_before(&a->items[child + 1], &a->items[child]);
        if (!agenda_before(&a->items[child], &last))
            break;
        a->items[i] = a->items[child];
    }
    a->items[i] = last;
    return true;
}

#endif
