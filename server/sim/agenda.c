/* agenda.c -- coming events, the earliest first: a binary heap. */
#include "server/sim/sim.h"

#include <stdlib.h>

static bool before(const struct weir__sim_agenda_item *a, const struct weir__sim_agenda_item *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static bool grow(struct weir__sim_agenda *e)
{
    if (e->n < e->room)
        return true;
    size_t room = e->room ? 2 * e->room : 1024;
    struct weir__sim_agenda_item *heap = realloc(e->heap, room * sizeof(*heap));
    if (heap == NULL) {
        e->failed = true;
        return false;
    }
    e->heap = heap;
    e->room = room;
    return true;
}

void weir__sim_agenda_add(struct weir__sim_agenda *e, struct weir__sim_agenda_item item)
{
    if (!grow(e))
        return;
    item.order = e->made++;
    size_t i = e->n++;
    for (; i > 0 && before(&item, &e->heap[(i - 1) / 2]); i = (i - 1) / 2)
        e->heap[i] = e->heap[(i - 1) / 2];
    e->heap[i] = item;
}

bool weir__sim_agenda_next(struct weir__sim_agenda *e, struct weir__sim_agenda_item *out)
{
    if (e->n == 0)
        return false;
    *out = e->heap[0];
    struct weir__sim_agenda_item last = e->heap[--e->n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < e->n; i = child) {
        child += child + 1 < e->n && before(&e->heap[child + 1], &e->heap[child]);
        if (!before(&e->heap[child], &last))
            break;
        e->heap[i] = e->heap[child];
    }
    e->heap[i] = last;
    return true;
}

void weir__sim_agenda_clear(struct weir__sim_agenda *e)
{
    free(e->heap);
    *e = (struct weir__sim_agenda){ 0 };
}
