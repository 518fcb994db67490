/* ask-deadlines.c -- the asks by the moment they are due: a heap in which each ask knows
 * its place. */
#include <stdlib.h>

#include "cluster/redis/client-private.h"

enum { ROOM_LEAST = 64 };

static void put(struct weir__redis_dues *d, size_t at, struct weir__redis_ask *ask)
{
    d->heap[at] = ask;
    ask->own.at = at;
}

static void rise(struct weir__redis_dues *d, struct weir__redis_ask *ask)
{
    size_t at = ask->own.at;

    while (at > 0 && d->heap[(at - 1) / 2]->own.due > ask->own.due) {
        put(d, at, d->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(d, at, ask);
}

static void sink(struct weir__redis_dues *d, struct weir__redis_ask *ask)
{
    size_t at = ask->own.at;

    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < d->n && d->heap[child + 1]->own.due < d->heap[child]->own.due)
            child++;
        if (child >= d->n || d->heap[child]->own.due >= ask->own.due)
            break;
        put(d, at, d->heap[child]);
        at = child;
    }
    put(d, at, ask);
}

bool weir__redis_dues_add(struct weir__redis_dues *d, struct weir__redis_ask *ask)
{
    if (d->n == d->room) {
        size_t room = d->room ? 2 * d->room : ROOM_LEAST;
        struct weir__redis_ask **heap = realloc(d->heap, room * sizeof(struct weir__redis_ask *));
        if (!heap)
            return false;
        d->heap = heap;
        d->room = room;
    }
    put(d, d->n++, ask);
    rise(d, ask);
    return true;
}

void weir__redis_dues_remove(struct weir__redis_dues *d, struct weir__redis_ask *ask)
{
    struct weir__redis_ask *last = d->heap[--d->n];

    if (last == ask)
        return;
    put(d, ask->own.at, last);
    rise(d, last);
    sink(d, last);
}

void weir__redis_dues_move(struct weir__redis_dues *d, struct weir__redis_ask *ask, weir_time due)
{
    ask->own.due = due;
    rise(d, ask);
    sink(d, ask);
}
