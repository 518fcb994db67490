/* pool.c -- a bulkhead with its own threads: a bounded number of them, a bounded number of waiting
 * tasks; the rest is refused.
 *
 * A task goes to an idle thread; if there is none, to a new thread; it waits only if all
 * max_threads are at work.  (The order of Tomcat's executor.  The other order, queue first, is the
 * classic surprise: with a queue the pool never grows.)  The thread that rested last is woken
 * first, so that surplus ones rest long enough to end.
 *
 * One lock for everything, so the bounds are exact.  A resting thread sleeps on its own word and is
 * handed its task there: no other thread competes for it.  Tasks are run and refused without the
 * lock.
 *
 *     lock order    the pool's, then its queue's
 *     invariants    a task waits only while at least one thread exists and all work, so it is taken
 *                   some time; a thread ends only when it rests
 *
 * Each thread that ends joins the one that ended before it, and destroy joins the last: at most one
 * stack is kept.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "queue/queue.h"

#define THREADS_MAX 65536

enum { RESTS = 0, GOES = 1, ENDS = 2 }; /* a worker's word */

struct worker {
    struct weir_pool *pool;
    uint32_t word;          /* atomic: RESTS only while it rests, or is about to */
    struct weir_task *task; /* handed over */
    weir_time resting_since;
    struct worker *above,
        *below; /* in the stack of resting threads; below: also in the list of unused ones */
};

struct weir_pool {
    pthread_mutex_t lock;
    pthread_cond_t ended; /* a thread has */
    char name[16];
    const struct weir_clock *clock;
    struct weir_queue *queue; /* NULL: nobody may wait */
    int32_t max, min;
    weir_time idle;
    int32_t threads, resting;    /* without those that were told to end */
    int32_t alive;               /* with them */
    struct worker *top, *bottom; /* the last to rest, and the first */
    struct worker *unused;
    bool ending;
    bool has_dead; /* a thread that ends or has ended, not joined yet */
    pthread_t dead;
    int64_t run, refused;
    struct worker workers[]; /* twice the maximum: some may start while others end */
};

static weir_time now_of(const struct weir_pool *pool)
{
    return pool->clock != NULL ? pool->clock->now(pool->clock->context) : weir__clock_monotonic();
}

static struct weir_task *task_of(struct weir_waiter *waiter)
{
    return (struct weir_task *)((char *)waiter - offsetof(struct weir_task, waiter));
}

static bool is_late(const struct weir_task *task, weir_time now)
{
    return task->waiter.deadline != 0 && now > task->waiter.deadline;
}

/* Without the lock, because a callback may do anything. */
static void refuse_all(struct weir_waiter *left, enum weir_reason reason)
{
    for (struct weir_waiter *next; left != NULL; left = next) {
        struct weir_task *task = task_of(left);
        next = left->next;
        left->next = NULL;
        task->refused(task, reason);
    }
}

static int64_t count(const struct weir_waiter *left)
{
    int64_t n = 0;

    for (; left != NULL; left = left->next)
        n++;
    return n;
}

/* --------------------------------------------------------- resting ---- */

static void rest_locked(struct weir_pool *pool, struct worker *w)
{
    weir__set(&w->word, RESTS);
    w->resting_since = now_of(pool);
    w->above = NULL;
    w->below = pool->top;
    *(pool->top != NULL ? &pool->top->above : &pool->bottom) = w;
    pool->top = w;
    pool->resting++;
}

static void rouse_locked(struct weir_pool *pool, struct worker *w, uint32_t word)
{
    *(w->above != NULL ? &w->above->below : &pool->top) = w->below;
    *(w->below != NULL ? &w->below->above : &pool->bottom) = w->above;
    pool->resting--;
    weir__publish(&w->word, word);
    weir__clock_wake_word(&w->word);
}

/* Threads beyond `min` that have rested for long enough end. */
static void thin_out_locked(struct weir_pool *pool, weir_time now)
{
    for (struct worker *w; pool->threads > pool->min && (w = pool->bottom) != NULL &&
                           now - w->resting_since >= pool->idle;) {
        rouse_locked(pool, w, ENDS);
        pool->threads--;
    }
}

/* --------------------------------------------------------- a thread ---- */

/* Its last act: joins the thread that ended before it; the next one joins this one. */
static void end_thread(struct weir_pool *pool, struct worker *w)
{
    pthread_mutex_lock(&pool->lock);
    bool has_dead = pool->has_dead;
    pthread_t dead = pool->dead;
    pool->has_dead = true;
    pool->dead = pthread_self();
    w->below = pool->unused;
    pool->unused = w;
    pool->alive--;
    pthread_cond_signal(&pool->ended);
    pthread_mutex_unlock(&pool->lock);
    if (has_dead)
        pthread_join(dead, NULL);
}

/* With an injected clock, which cannot be waited for, a submit or get must tell it to end. */
static void sleep_on(struct weir_pool *pool, struct worker *w)
{
    weir_time span = pool->clock == NULL ? pool->idle : WEIR_FOREVER;

    while (weir__acquire(&w->word) == RESTS) {
        weir__clock_wait_word(&w->word, RESTS, span);
        pthread_mutex_lock(&pool->lock);
        thin_out_locked(pool, now_of(pool));
        pthread_mutex_unlock(&pool->lock);
    }
}

/* NULL: end. */
static struct weir_task *next_task(struct weir_pool *pool, struct worker *w, bool has_run)
{
    struct weir_waiter *left = NULL, *next = NULL;

    pthread_mutex_lock(&pool->lock);
    pool->run += has_run;
    if (pool->queue != NULL)
        next = weir_queue_next(pool->queue, now_of(pool), &left);
    pool->refused += count(left);
    bool ends = next == NULL && pool->ending;
    if (ends)
        pool->threads--;
    else if (next == NULL)
        rest_locked(pool, w);
    pthread_mutex_unlock(&pool->lock);
    refuse_all(left, WEIR_LATE);
    if (next != NULL || ends)
        return next != NULL ? task_of(next) : NULL;
    sleep_on(pool, w);
    return weir__get(&w->word) == GOES ? w->task : NULL;
}

/* False: its deadline has passed. */
static bool run_task(struct weir_pool *pool, struct weir_task *task)
{
    if (!is_late(task, now_of(pool))) {
        task->run(task);
        return true;
    }
    pthread_mutex_lock(&pool->lock);
    pool->refused++;
    pthread_mutex_unlock(&pool->lock);
    task->refused(task, WEIR_LATE);
    return false;
}

static void *work(void *argument)
{
    struct worker *w = argument;
    struct weir_pool *pool = w->pool;

    for (struct weir_task *task = w->task; task != NULL;)
        task = next_task(pool, w, run_task(pool, task));
    end_thread(pool, w);
    return NULL;
}

static bool start_thread_locked(struct weir_pool *pool, struct weir_task *task)
{
    struct worker *w = pool->unused;
    pthread_t thread;

    if (w == NULL) /* threads that were told to end have not yet */
        return false;
    w->task = task;
    w->word = GOES;
    if (pthread_create(&thread, NULL, work, w) != 0)
        return false;
    pthread_setname_np(thread, pool->name);
    pool->unused = w->below;
    pool->threads++;
    pool->alive++;
    return true;
}

/* -------------------------------------------------------------- tasks ---- */

static bool refuse(struct weir_pool *pool, enum weir_reason reason, struct weir_decision *d)
{
    pool->refused++;
    *d = (struct weir_decision){ .reason = (uint8_t)reason,
                                 .limit = pool->max,
                                 .retry = WEIR_MILLISECOND };
    return false;
}

/* Queues it, because no thread rests and none could be started; false: refused. */
static bool wait_locked(struct weir_pool *pool, struct weir_task *task, weir_time now,
                        struct weir_decision *d)
{
    if (pool->threads == 0)
        return refuse(pool, WEIR_BUSY, d);
    if (pool->queue == NULL)
        return refuse(pool, WEIR_FULL, d);
    bool waits = weir_queue_put(pool->queue, &task->waiter, now, d);
    pool->refused += !waits;
    return waits;
}

static bool submit_locked(struct weir_pool *pool, struct weir_task *task, weir_time now,
                          struct weir_decision *d)
{
    if (pool->ending)
        return refuse(pool, WEIR_CANCELLED, d);
    if (is_late(task, now))
        return refuse(pool, WEIR_LATE, d);
    if (pool->top != NULL) {
        pool->top->task = task;
        rouse_locked(pool, pool->top, GOES);
    } else if (pool->threads == pool->max || !start_thread_locked(pool, task)) {
        return wait_locked(pool, task, now, d);
    }
    *d = (struct weir_decision){ .allowed = true,
                                 .limit = pool->max,
                                 .remaining = pool->max - pool->threads + pool->resting };
    return true;
}

bool weir_pool_submit(struct weir_pool *pool, struct weir_task *task,
                      struct weir_decision *decision)
{
    assert(task->run != NULL && task->refused != NULL && weir__own(&task->waiter)->queue == NULL);
    pthread_mutex_lock(&pool->lock);
    weir_time now = now_of(pool);
    struct weir_waiter *left = pool->queue != NULL ? weir_queue_late(pool->queue, now) : NULL;
    pool->refused += count(left);
    bool taken = submit_locked(pool, task, now, decision);
    thin_out_locked(pool, now);
    pthread_mutex_unlock(&pool->lock);
    refuse_all(left, WEIR_LATE);
    return taken;
}

bool weir_pool_cancel(struct weir_pool *pool, struct weir_task *task)
{
    return pool->queue != NULL && weir_queue_cancel(pool->queue, &task->waiter);
}

void weir_pool_get(struct weir_pool *pool, struct weir_pool_info *out)
{
    pthread_mutex_lock(&pool->lock);
    weir_time now = now_of(pool);
    struct weir_waiter *left = pool->queue != NULL ? weir_queue_late(pool->queue, now) : NULL;
    pool->refused += count(left);
    thin_out_locked(pool, now);
    out->threads = pool->threads;
    out->working = pool->threads - pool->resting;
    out->waiting = pool->queue != NULL ? weir_queue_length(pool->queue) : 0;
    out->run = pool->run;
    out->refused = pool->refused;
    pthread_mutex_unlock(&pool->lock);
    refuse_all(left, WEIR_LATE);
}

/* -------------------------------------------------- create and destroy ---- */

static int check(const struct weir_pool_options *o, struct weir_error *error)
{
    if (o->max_threads < 0 || o->max_threads > THREADS_MAX)
        return weir__fail(error, WEIR_INVALID, "a pool of %d threads: it must have 1 to %d",
                          (int)o->max_threads, THREADS_MAX);
    if (o->min_threads < 0)
        return weir__fail(error, WEIR_INVALID, "a pool keeps %d threads: it must be 0 or more",
                          (int)o->min_threads);
    if (o->idle < 0)
        return weir__fail(error, WEIR_INVALID, "a pool's idle must not be negative");
    if (o->max_queue < WEIR_NO_QUEUE)
        return weir__fail(error, WEIR_INVALID,
                          "a pool's queue of %lld: 1 or more may wait, or nobody (WEIR_NO_QUEUE)",
                          (long long)o->max_queue);
    return WEIR_OK;
}

static void fill_in(struct weir_pool *pool, const struct weir_pool_options *o, int32_t max)
{
    pool->max = max;
    pool->min = o->min_threads > 0 ? o->min_threads : 10;
    pool->idle = o->idle == 0                 ? 60 * WEIR_SECOND
                 : o->idle > WEIR_MILLISECOND ? o->idle
                                              : WEIR_MILLISECOND;
    pool->clock = o->clock;
    snprintf(pool->name, sizeof(pool->name), "%s", o->name != NULL ? o->name : "weir");
    for (int32_t i = 2 * max; i-- > 0;) {
        pool->workers[i].pool = pool;
        pool->workers[i].below = pool->unused;
        pool->unused = &pool->workers[i];
    }
}

int weir_pool_create(struct weir_pool **out, const struct weir_pool_options *options,
                     struct weir_error *error)
{
    static const struct weir_pool_options defaults;

    assert(out != NULL);
    options = options ? options : &defaults;
    struct weir_queue *queue = NULL;
    struct weir_queue_options o = options->queue;
    int code = check(options, error);
    o.max = options->max_queue > 0 ? options->max_queue : 100;
    if (code == WEIR_OK && options->max_queue != WEIR_NO_QUEUE)
        code = weir_queue_create(&queue, &o, error);
    if (code != WEIR_OK)
        return code;
    int32_t max = options->max_threads > 0 ? options->max_threads : 200;
    struct weir_pool *pool = calloc(1, sizeof(*pool) + 2 * (size_t)max * sizeof(pool->workers[0]));
    if (pool == NULL || pthread_mutex_init(&pool->lock, NULL) !=
                            0) { /* a condition variable of its own needs nothing */
        weir_queue_destroy(queue);
        free(pool);
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for a pool of %d threads", (int)max);
    }
    pthread_cond_init(&pool->ended, NULL);
    pool->queue = queue;
    fill_in(pool, options, max);
    *out = pool;
    return WEIR_OK;
}

void weir_pool_destroy(struct weir_pool *pool, bool drain)
{
    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    struct weir_waiter *left = drain || pool->queue == NULL ? NULL : weir__queue_clear(pool->queue);
    for (; pool->top != NULL; pool->threads--)
        rouse_locked(pool, pool->top, ENDS);
    pthread_mutex_unlock(&pool->lock);
    refuse_all(left, WEIR_CANCELLED);
    pthread_mutex_lock(&pool->lock);
    while (pool->alive > 0)
        pthread_cond_wait(&pool->ended, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    if (pool->has_dead)
        pthread_join(pool->dead, NULL);
    weir_queue_destroy(pool->queue);
    pthread_cond_destroy(&pool->ended);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}
