/* weir-queue.h -- for callers that can wait: clocks, queues, thread pools.  Read weir.h first. */
#ifndef WEIR_QUEUE_H
#define WEIR_QUEUE_H

#include "weir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------- waiting for a limiter ---- */

/* A clock that tests can replace, so that they jump instead of sleeping. */
struct weir_clock {
    weir_time (*now)(void *context);
    void (*sleep)(void *context, weir_time span);
    void *context;
};

/* The table's clock and a real sleep. */
WEIR_API struct weir_clock weir_table_clock(struct weir_table *table);

/* Takes, and sleeps until the grant may be used: at most ask->wait_max.  False, at once, if that is
 * not enough.  The time comes from the clock, not from ask->now. */
WEIR_API bool weir_wait(struct weir_limiter *limiter, const struct weir_ask *ask,
                        const struct weir_clock *clock, struct weir_decision *decision);

/* --------------------------------------------------------------- queues ---- */

/* A bounded queue of waiters that the caller owns, in one process. */
struct weir_queue;

enum weir_order {
    WEIR_FIFO = 0,
    WEIR_PRIORITY = 1, /* the highest priority first; equals in order of arrival */
    WEIR_WEIGHTED = 2, /* classes in turn by their weights; each class in order of arrival */
};

/* A queue is overloaded if for a whole `interval`, from one turn to another, it was never empty and
 * the first in line had always waited longer than `target` when a turn was given.  Then waiters
 * that have waited twice the target are dropped at their turn, except the last one. */
struct weir_queue_options {
    int64_t max; /* waiters, at most 1048576; 0: 1024 */
    enum weir_order order;
    int32_t weights[WEIR_CLASSES]; /* weighted: of each class, 1 to 1000; 0: 1 */
    bool newest_first_when_late;   /* overloaded: the oldest have probably given up */
    weir_time target;              /* 0: it is never overloaded */
    weir_time interval;            /* 0: 100 ms */
};

/* Zero it before its first use. */
struct weir_waiter {
    /* Set by the caller */
    weir_time deadline; /* a point: the last moment for its turn; 0: none */
    int8_t priority;    /* WEIR_PRIORITY_MIN to _MAX, the highest first */
    uint8_t user_class; /* 0 to WEIR_CLASSES - 1 */
    /* Called by guards: its turn has come (WEIR_GRANTED), or it has left */
    void (*turn)(struct weir_waiter *waiter, enum weir_reason reason);
    void *context;
    /* Set by the queue */
    uint8_t reason;           /* enum weir_reason: why it has left */
    struct weir_waiter *next; /* links those that have left */
    uint64_t own[14];
};

WEIR_API int weir_queue_create(struct weir_queue **out, const struct weir_queue_options *options,
                               struct weir_error *error);
/* Forgets waiters that are still in it.  Not in a turn. */
WEIR_API void weir_queue_destroy(struct weir_queue *queue);

/* True: it waits, and decision->wait estimates how long.  False: there is no room (WEIR_FULL), or
 * at the present pace its turn would come too late (WEIR_LATE); decision->retry is an estimate.
 * Waiters that are too late take no place, whether they were told or not. */
WEIR_API bool weir_queue_put(struct weir_queue *queue, struct weir_waiter *waiter, weir_time now,
                             struct weir_decision *decision);
/* The next waiter, which leaves the queue; NULL: none.  Waiters that are too late leave too, linked
 * in *left. */
WEIR_API struct weir_waiter *weir_queue_next(struct weir_queue *queue, weir_time now,
                                             struct weir_waiter **left);
/* Takes out waiters whose deadline has passed, linked, to be told; needed only if nobody calls
 * weir_queue_next. */
WEIR_API struct weir_waiter *weir_queue_late(struct weir_queue *queue, weir_time now);
/* False: it did not wait, or no longer. */
WEIR_API bool weir_queue_cancel(struct weir_queue *queue, struct weir_waiter *waiter);
/* The estimated wait of an arrival now. */
WEIR_API weir_time weir_queue_estimate(struct weir_queue *queue, int8_t priority,
                                       uint8_t user_class, weir_time now);
WEIR_API int64_t weir_queue_length(const struct weir_queue *queue);

/* The queue that the rules give a guard, and the longest wait in it; false: none. */
WEIR_API bool weir_ruled_queue_get(struct weir *weir, const char *guard,
                                   struct weir_queue_options *out, weir_time *wait_max);

/* ---------------------------------------------------- waiting for a guard ---- */

/* A guard needs one queue in a process, and a queue serves one guard.  Nobody overtakes: a newcomer
 * waits behind waiters that are before it.  But a waiter that needs more permits than are free may
 * be overtaken by smaller ones.  With max_per_key, a key has at most that many waiters, and
 * never more than places are left (WEIR_KEY_BUSY).  Only WEIR_BUSY is waited for; any other refusal
 * is immediate, and dismisses a waiter at its turn. */

/* Enters, or sleeps until that is possible, for at most ask->wait_max (0: not at all).  A permit
 * returned by weir_exit_next goes to the next waiter at once; one returned otherwise, or in another
 * process, wakes a waiter, which looks every 5 ms anyway.  The time comes from the clock (NULL: the
 * table's). */
WEIR_API bool weir_enter_wait(struct weir_guard *guard, struct weir_queue *queue,
                              const struct weir_ask *ask, const struct weir_clock *clock,
                              struct weir_permit *permit, struct weir_decision *decision);

/* The same for event loops: it never sleeps.  True: it has entered (decision->allowed), or it waits
 * (decision->reason is WEIR_BUSY, decision->wait an estimate).  A waiter's deadline, priority and
 * class come from the ask.
 *
 * waiter->turn is called later, by whichever thread calls weir_enter_poll, weir_exit_next or
 * weir_enter_wait, with the permit filled in if the reason is WEIR_GRANTED.  Until then, or until
 * weir_queue_cancel, the waiter, the permit and the bytes of ask->key must stay.  A turn may call
 * all of these; others that had theirs in the same call are told when it returns, or waits
 * in this queue. */
WEIR_API bool weir_enter_later(struct weir_guard *guard, struct weir_queue *queue,
                               const struct weir_ask *ask, struct weir_waiter *waiter,
                               struct weir_permit *permit, struct weir_decision *decision);

/* Like weir_exit, and admits the next waiter. */
WEIR_API bool weir_exit_next(struct weir_guard *guard, struct weir_queue *queue,
                             struct weir_permit *permit, enum weir_outcome outcome, weir_time now);

/* Admits waiters (permits may come free in another process) and dismisses those that are too late;
 * call it now and then.  Returns how many still wait. */
WEIR_API int64_t weir_enter_poll(struct weir_guard *guard, struct weir_queue *queue, weir_time now);

/* Enter, work and exit in one call: runs the work under the guard in this thread; if it is refused,
 * or (fallback_on_error) ends in an error, runs the fallback.  True: the work was done, with any
 * outcome. The time comes from the clock (NULL: the table's), not from ask->now. */
struct weir_call {
    enum weir_outcome (*work)(void *context);
    void (*fallback)(void *context, const struct weir_decision *decision); /* may be NULL */
    void *context;
    bool fallback_on_error;
};
WEIR_API bool weir_call(struct weir_guard *guard, const struct weir_ask *ask,
                        const struct weir_clock *clock, const struct weir_call *call,
                        struct weir_decision *decision);

/* ------------------------------------------------------ waiting by rules ---- */

/* What the limits have granted to a request, for a caller that may go away before its turn.  A copy
 * needs its first `n` items. */
struct weir_taken {
    size_t n;
    struct {
        uint64_t own[5];
    } items[WEIR_ALL_MAX];
};
/* Gives it back, once, unless time has; the keys are as if it had never been taken.  Units drawn
 * from a fleet stay used, warm-up stays warm, and counts stay as they are. */
WEIR_API void weir_check_undo(struct weir *weir, struct weir_taken *taken, weir_time now);
/* For a caller that waits for its turn without permits: as if it had never entered. */
WEIR_API void weir_check_undo_enter(struct weir_entry *entry);

/* The guards that have asked a request whether it is shed: each asks it once.  Kept by the calls;
 * zeros: none has. */
struct weir_asked {
    uint16_t guards[WEIR_ENTRY_MAX];
};

/* A request that can wait, for event loops.  Zero it first. */
struct weir_visit {
    /* Set by the caller, and kept until it is decided or cancelled */
    const struct weir_attr *attrs;
    size_t n;
    struct weir_ask ask;      /* wait_max: for the turn that its limits give it */
    weir_time queue_max;      /* longest wait in a guard's queue; the rules may say less */
    struct weir_taken *taken; /* for weir_check_undo; may be NULL */
    char *key;                /* gets what weir_check_key tells; may be NULL */
    bool in_turn;             /* its limits have granted it already: only guards are asked */
    void (*turn)(struct weir_visit *visit);
    void *context;
    /* The answer: as weir_check_enter's */
    struct weir_ruling ruling;
    struct weir_entry entry;
    /* Its own */
    struct weir_waiter waiter;
    void *line;
    struct weir_asked asked;
};
/* Like weir_check_enter, but waits in the queue of a guard that is busy, if the rules give it one
 * (`queue`, `wait`, `order`).  True: it is decided.  False: it waits, and visit->turn is called
 * when it is decided, by a thread that calls one of the functions below.  Call those two from one
 * thread, or never at the same time: within them a request may move to another guard's queue. */
WEIR_API bool weir_check_later(struct weir *weir, struct weir_visit *visit);
/* False: it does not wait any more, and its turn is called. */
WEIR_API bool weir_check_cancel(struct weir *weir, struct weir_visit *visit, weir_time now);
/* Offers turns: call it after an exit, and every few ms while somebody waits, because permits come
 * free in other processes too.  Called in a turn, it does so when the turn is over.  Returns how
 * many still wait in this process. */
WEIR_API int64_t weir_check_poll(struct weir *weir, weir_time now);

/* The first rule in force that is `across: fleet`; NULL: none.  Its requests may wait for units
 * (weir-fleet.h). */
WEIR_API const char *weir_fleet_rule(struct weir *weir);

/* ---------------------------------------------------------------- pools ---- */

/* A bulkhead with its own threads: at most max_threads work and at most max_queue tasks wait.  A
 * new thread is started before any task waits, as with Tomcat's maxThreads and acceptCount.  Every
 * task is either run or refused. */
struct weir_pool;

struct weir_pool_options {
    const char *name;    /* of its threads; NULL: "weir" */
    int32_t max_threads; /* 0: 200 */
    int32_t min_threads; /* stay when idle; 0: 10, but at most max_threads */
    /* Other threads end after this idle time; 0: 60 s.  With a clock: at the next submit or get */
    weir_time idle;
    int64_t max_queue;               /* 0: 100; WEIR_NO_QUEUE: nothing waits */
    struct weir_queue_options queue; /* order and target; its max is max_queue */
    const struct weir_clock *clock;  /* only `now` is called; NULL: the host's */
};

struct weir_task {
    void (*run)(struct weir_task *task);
    /* It waited in vain: it is too late, or the pool is ending (WEIR_CANCELLED).  Called in a
     * thread of the pool or in one that submits, gets or destroys */
    void (*refused)(struct weir_task *task, enum weir_reason reason);
    struct weir_waiter waiter; /* set its deadline, priority and class */
};

struct weir_pool_info {
    int32_t threads, working;
    int64_t waiting, run, refused; /* refused: at once or later */
};

WEIR_API int weir_pool_create(struct weir_pool **out, const struct weir_pool_options *options,
                              struct weir_error *error);
/* False: refused at once, and neither function is called.  decision->reason: WEIR_FULL, WEIR_LATE,
 * WEIR_BUSY (there is no thread and none can be started) or WEIR_CANCELLED (the pool ends). */
WEIR_API bool weir_pool_submit(struct weir_pool *pool, struct weir_task *task,
                               struct weir_decision *decision);
/* True: it no longer waits, and neither function is called.  False: it runs, has run or was
 * refused. */
WEIR_API bool weir_pool_cancel(struct weir_pool *pool, struct weir_task *task);
WEIR_API void weir_pool_get(struct weir_pool *pool, struct weir_pool_info *out);
/* No new tasks; waiting ones are run (drain) or refused.  Returns when all threads have ended. */
WEIR_API void weir_pool_destroy(struct weir_pool *pool, bool drain);

#ifdef __cplusplus
}
#endif
#endif
