/* deadlines.c -- the deadlines of a queue: a heap, the earliest first. */
#include "queue/queue.h"

weir_time weir__deadline_of(weir_time now, weir_time wait_max)
{
    weir_time deadline;

    if (wait_max == WEIR_FOREVER || __builtin_add_overflow(now, wait_max, &deadline))
        return 0;
    return deadline != 0 ? deadline : 1;
}

static void place(struct weir_queue *q, struct weir_waiter *w, int64_t i)
{
    q->heap[i] = w;
    weir__own(w)->place = (uint64_t)i;
}

static void sift_up(struct weir_queue *q, struct weir_waiter *w, int64_t i)
{
    for (; i > 1 && q->heap[i / 2]->deadline > w->deadline; i /= 2)
        place(q, q->heap[i / 2], i);
    place(q, w, i);
}

static void sift_down(struct weir_queue *q, struct weir_waiter *w, int64_t i)
{
    for (int64_t child; (child = 2 * i) <= q->timed; i = child) {
        if (child < q->timed && q->heap[child + 1]->deadline < q->heap[child]->deadline)
            child++;
        if (q->heap[child]->deadline >= w->deadline)
            break;
        place(q, q->heap[child], i);
    }
    place(q, w, i);
}

void weir__deadlines_add(struct weir_queue *q, struct weir_waiter *w)
{
    sift_up(q, w, ++q->timed);
}

void weir__deadlines_remove(struct weir_queue *q, struct weir_waiter *w)
{
    int64_t i = (int64_t)weir__own(w)->place;
    struct weir_waiter *last = q->heap[q->timed--];

    if (last == w)
        return;
    if (i > 1 && q->heap[i / 2]->deadline > last->deadline)
        sift_up(q, last, i);
    else
        sift_down(q, last, i);
}
