/* queue.h -- a queue inside its room: turns are offered, and may be declined. */
#ifndef WEIR_QUEUE_QUEUE_H
#define WEIR_QUEUE_QUEUE_H

#include <pthread.h>

#include "base/atomic.h"
#include "base/base.h"
#include "queue/key-counts.h"
#include "weir-queue.h"

#define WEIR__QUEUE_MAX  1048576 /* waiters */
#define WEIR__WEIGHT_MAX 1000
/* One for each priority; weighted queues use WEIR_CLASSES of them, FIFO one. */
#define WEIR__LANES (WEIR_PRIORITY_MAX - WEIR_PRIORITY_MIN + 1)

/* A waiter's `own`. */
struct __attribute__((may_alias)) weir__own {
    weir_time since;
    struct weir_waiter *previous; /* in its lane, or of the late */
    struct weir_queue *queue;     /* NULL: it is in none */
    uint64_t place;               /* in the heap of deadlines, from 1; 0: not there */
    uint64_t arrival;             /* its number */
    uint64_t key;                 /* whose waiters are bounded; 0: none */
    weir_time blocked;          /* when its turn first came without permits enough; 0: it has not */
    struct weir_ask ask;        /* wait.c's ... */
    struct weir_permit *permit; /* ... too */
};
_Static_assert(sizeof(struct weir__own) <= sizeof(((struct weir_waiter *)0)->own),
               "a waiter has room for it");

static inline struct weir__own *weir__own(const struct weir_waiter *waiter)
{
    return (struct weir__own *)(uintptr_t)waiter->own;
}

/* Linked by `next`, and by `previous` while they are in a queue. */
struct weir__waiters {
    struct weir_waiter *first, *last;
};

struct weir__lane {
    struct weir__waiters all;
    int64_t length;
    uint64_t tag;    /* weighted: where in virtual time its next turn is */
    uint64_t stride; /* weighted: the cost of a turn */
};

/* A thread that tells waiters of their turns. */
struct weir__telling {
    pthread_t thread;
    struct weir__waiters all;   /* to tell; the thread's own */
    struct weir__telling *next; /* another thread's */
};

struct weir_queue {
    pthread_mutex_t lock;
    struct weir_queue_options options; /* defaults are filled in */
    int64_t length;                    /* atomic for readers without the lock; without the late */
    struct weir__waiters late;         /* out of their lanes, and not told yet ... */
    int64_t n_late;                    /* ... this many; atomic likewise */
    uint64_t arrivals;                 /* so far */
    struct weir__key_counts keys;
    int64_t open_to; /* atomic: an ask for less is before all waiters.  0: none is */
    struct weir__lane lanes[WEIR__LANES];
    uint64_t virtual_time; /* weighted: the tag of the last turn */
    weir_time front_since; /* when the first in line became the first */
    double pace;           /* ns from turn to turn while any wait */
    int32_t paces;         /* number of measurements, up to a bound */
    bool above; /* since above_since every first in line had waited longer than the target */
    weir_time above_since;
    uint32_t polled;               /* atomic; wait.c: a waiting thread polls for permits */
    struct weir__telling *telling; /* wait.c */
    int64_t timed;                 /* waiters with a deadline ... */
    struct weir_waiter **heap;     /* ... the earliest first, from 1 */
};

/* Offers a waiter its turn, with the queue locked: WEIR_GRANTED takes it, WEIR_BUSY stays in the
 * queue, everything else leaves it. */
typedef enum weir_reason weir__offer(void *context, struct weir_waiter *waiter);

/* Offers turns, waiter by waiter, until one stays or none is left.  Returns those that left, linked
 * by `next`, each with its reason.
 *
 * If one stays, those behind it stay too, so that permits gather for it.  But after `hold` (about
 * as long as work takes) waiters that ask for less may pass it, for as long again; then none for
 * twice as long, and so on: however long work takes, at last nobody passes for long enough, and
 * in the long run permits are idle for at most two thirds of the time (of the first four
 * holds, three). */
struct weir_waiter *weir__queue_offer(struct weir_queue *queue, weir_time now, weir_time hold,
                                      weir__offer *offer, void *context);

/* A newcomer.  If nobody is before it, it is offered a turn at once; without a turn it waits (if
 * patient) or is refused.  WEIR_GRANTED: it has its turn; WEIR_BUSY and `waits`: it waits; else it
 * is refused.  The decision is filled in if it waits or the queue refuses it. */
struct weir__joining {
    struct weir_waiter *waiter;
    weir_time now;
    bool patient;
    uint64_t key;       /* 0: none */
    int64_t key_max;    /* waiters of that key */
    bool waits;         /* set by join ... */
    bool behind;        /* ... too: others are before it */
    bool turned_away;   /* ... too: by the queue */
    weir__offer *offer; /* NULL: it has just been refused, and need not try again */
    bool offer_behind;  /* even then; it may only be refused */
    void *context;
    struct weir_decision *decision; /* the guard's, that it is busy; then the queue's */
};
enum weir_reason weir__queue_join(struct weir_queue *queue, struct weir__joining *j);

/* The same waiters, as the options say from now on; those who were first stay first.  Does nothing
 * if the options are the same, or there is no memory. */
void weir__queue_change(struct weir_queue *queue, const struct weir_queue_options *options);

/* An ask for this many permits is before all waiters: they need more than are free. */
static inline bool weir__queue_is_open_to(const struct weir_queue *queue, int64_t cost)
{
    return (cost > 1 ? cost : 1) < weir__get(&queue->open_to);
}

/* Nobody waits there, and nobody is to be told that it is late. */
static inline bool weir__queue_is_empty(const struct weir_queue *queue)
{
    return weir__get(&queue->length) == 0 && weir__get(&queue->n_late) == 0;
}

/* Removes all waiters, linked by `next`: WEIR_CANCELLED, or WEIR_LATE if they were set aside. */
struct weir_waiter *weir__queue_clear(struct weir_queue *queue);

/* queue-options.c */
int weir__queue_options_check(const struct weir_queue_options *options, struct weir_error *error);
/* The same, with defaults filled in. */
struct weir_queue_options weir__queue_options_fill(const struct weir_queue_options *options);
bool weir__queue_options_are_same(const struct weir_queue_options *a,
                                  const struct weir_queue_options *b);

/* deadlines.c -- 0: none. */
weir_time weir__deadline_of(weir_time now, weir_time wait_max);
/* With the queue locked. */
void weir__deadlines_add(struct weir_queue *q, struct weir_waiter *w);
void weir__deadlines_remove(struct weir_queue *q, struct weir_waiter *w);

/* The next waiter that is not late, until the lock is released; NULL: none. */
struct weir_waiter *weir__queue_front_locked(struct weir_queue *queue, weir_time now);

#endif
