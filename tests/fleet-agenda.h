/* fleet-agenda.h -- what is to happen in a simulation, in the order of its time. */
#ifndef WEIR_TESTS_FLEET_AGENDA_H
#define WEIR_TESTS_FLEET_AGENDA_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "weir.h"

#define AGENDA_MAX 4096

struct agenda_item {
    weir_time at;
    uint64_t order; /* of those at the same time */
    int kind, node;
    uint64_t number; /* of the ask it is about */
    int64_t words[6];
};

struct agenda {
    struct agenda_item items[AGENDA_MAX];
    int n;
    uint64_t order;
};

static inline void agenda_add(struct agenda *a, struct agenda_item item)
{
    if (a->n == AGENDA_MAX) {
        fprintf(stderr, "the agenda is full\n");
        abort();
    }
    item.order = a->order++;
    a->items[a->n++] = item;
}

static inline void agenda_put_off(struct agenda *a, struct agenda_item item, weir_time until)
{
    item.at = until;
    agenda_add(a, item);
}

static inline bool agenda_next(struct agenda *a, struct agenda_item *out)
{
    int first = 0;

    if (a->n == 0)
        return false;
    for (int i = 1; i < a->n; i++)
        if (a->items[i].at < a->items[first].at ||
            (a->items[i].at == a->items[first].at && a->items[i].order < a->items[first].order))
            first = i;
    *out = a->items[first];
    a->items[first] = a->items[--a->n];
    return true;
}

#endif
