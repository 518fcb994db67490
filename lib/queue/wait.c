/* wait.c -- waiting for a guard's permit: threads that sleep, callbacks for event loops, and calls
 * that run under a guard.
 *
 * An ask that finds no permit joins a queue.  The next waiter is offered a turn under the queue's
 * lock: it tries to enter, and stays if there is still no permit.  So no newcomer in this process
 * can take a free permit from the waiters; another process that shares the guard can.  Callbacks
 * are called without the lock, and may do anything.
 *
 * Turns are offered by weir_exit_next, at once, and by polling: permits also come free in other
 * processes, by weir_exit, and when a lease ends.  One of the waiting threads polls, when the
 * table's bell rings (lib/guard/bell.c) and every POLL; the others check every LOOK that one does.
 * When the polling thread leaves, it pokes the next; and so does one that leaves while nobody
 * polls, for it may have been poked itself.  So a thousand waiters cost as much as one.
 *
 * A thread sleeps on a word in its own stack frame.  The thread that takes it out of the queue then
 * sets that word to DONE.  A sleeper past its deadline that can no longer be cancelled waits for
 * that, so its frame exists as long as anyone uses it.
 *
 * With an injected clock nobody sleeps on a word: all threads poll, and sleep by that clock in
 * between.
 */
#include <assert.h>

#include "guard/guard.h"
#include "queue/queue.h"

#define POLL (5 * WEIR_MILLISECOND)
#define LOOK (50 * WEIR_MILLISECOND)

enum { SLEEPS = 0, POKED = 1, DONE = 2 }; /* a sleeper's word */

struct sleeper {
    struct weir_waiter waiter;
    struct weir_decision *decision;
    uint32_t word; /* atomic */
};

/* ------------------------------------------------------------- turns ---- */

struct turns {
    struct weir_guard *guard;
    weir_time now;
    bool again;                     /* they passed shedding when they came */
    struct weir_decision *decision; /* of the newcomer; NULL: each has its own */
    const bool *behind;             /* likewise: others are before it; NULL: none are */
};

static void wake(struct weir_waiter *waiter, enum weir_reason reason)
{
    struct sleeper *s = (struct sleeper *)((char *)waiter - offsetof(struct sleeper, waiter));
    uint32_t *word = &s->word;

    (void)reason;
    weir__publish(word, DONE); /* from here on it may be gone */
    weir__clock_wake_word(word);
}

static enum weir_reason try_to_enter(void *context, struct weir_waiter *waiter)
{
    const struct turns *t = context;
    struct weir__enter_how how = { .favoured = t->again,
                                   .again = t->again,
                                   .waits = weir__own(waiter)->ask.wait_max > 0,
                                   .behind = t->behind && *t->behind };
    struct weir_decision d;

    weir__own(waiter)->ask.now = t->now;
    weir__guard_enter(t->guard, &weir__own(waiter)->ask, &how, weir__own(waiter)->permit, &d);
    if (t->decision != NULL)
        *t->decision = d;
    else if (waiter->turn == wake)
        *((struct sleeper *)((char *)waiter - offsetof(struct sleeper, waiter)))->decision = d;
    return d.allowed ? WEIR_GRANTED
                     : (enum weir_reason)d.reason; /* in shadow it is let in, with a reason */
}

/* Counts a waiter that left too late; the guard has counted its own refusals. */
static bool count_late(struct weir_guard *guard, enum weir_reason reason)
{
    if (reason == WEIR_LATE)
        weir__guard_count_refused(guard, reason);
    return false;
}

/* Offers turns, and wakes threads that left.  Returns the others that did, linked. */
static struct weir_waiter *offer_turns(struct weir_guard *guard, struct weir_queue *queue,
                                       weir_time now)
{
    struct turns t = { .guard = guard, .now = now, .again = true };
    struct weir_waiter *gone =
        weir__queue_offer(queue, now, weir__guard_hold(guard), try_to_enter, &t);
    struct weir_waiter *others = NULL, **last = &others;

    for (struct weir_waiter *next; gone != NULL; gone = next) {
        next = gone->next;
        gone->next = NULL;
        if (gone->turn == wake) {
            wake(gone, (enum weir_reason)gone->reason);
        } else {
            *last = gone;
            last = &gone->next;
        }
    }
    return others;
}

/* This thread's list of waiters to tell: `mine`, or an earlier one, if this call is in a turn. */
static struct weir__telling *begin_telling(struct weir_queue *queue, struct weir__telling *mine)
{
    pthread_mutex_lock(&queue->lock);
    struct weir__telling *t = queue->telling;
    while (t != NULL && !pthread_equal(t->thread, mine->thread))
        t = t->next;
    if (t == NULL) {
        mine->next = queue->telling;
        queue->telling = t = mine;
    }
    pthread_mutex_unlock(&queue->lock);
    return t;
}

static void end_telling(struct weir_queue *queue, const struct weir__telling *mine)
{
    struct weir__telling **at = &queue->telling;

    pthread_mutex_lock(&queue->lock);
    while (*at != mine)
        at = &(*at)->next;
    *at = mine->next;
    pthread_mutex_unlock(&queue->lock);
}

static void append(struct weir__waiters *to, struct weir_waiter *gone)
{
    *(to->first != NULL ? &to->last->next : &to->first) = gone;
    for (; gone != NULL; gone = gone->next)
        to->last = gone;
}

/* Those that a turn lets in, because it exits at once, are told when it is over: otherwise a
 * thousand waiters could mean a thousand nested calls.  `at_once`: this thread is going to wait,
 * perhaps for them.  Other threads go on: a turn may take long. */
static void tell(struct weir_guard *guard, struct weir_queue *queue, struct weir_waiter *gone,
                 bool at_once)
{
    struct weir__telling mine = { .thread = pthread_self() }, *t = begin_telling(queue, &mine);

    append(&t->all, gone);
    for (struct weir_waiter *w; (t == &mine || at_once) && (w = t->all.first) != NULL;) {
        t->all.first = w->next;
        w->next = NULL;
        count_late(guard, (enum weir_reason)w->reason);
        w->turn(w, (enum weir_reason)w->reason);
    }
    if (t == &mine)
        end_telling(queue, &mine);
}

static void serve(struct weir_guard *guard, struct weir_queue *queue, weir_time now)
{
    struct weir_waiter *others = offer_turns(guard, queue, now);

    if (others != NULL)
        tell(guard, queue, others, false);
}

/* -------------------------------------------------------------- joining ---- */

/* True: it has entered, or it waits. */
static bool join(struct weir_guard *guard, struct weir_queue *queue, const struct weir_ask *ask,
                 struct weir_permit *permit, struct weir__joining *j)
{
    struct turns t = {
        .guard = guard, .now = j->now, .decision = j->decision, .behind = &j->behind
    };
    struct weir_waiter *waiter = j->waiter;

    j->patient = ask->wait_max > 0;
    j->offer = try_to_enter;
    j->offer_behind = true; /* the guard counts it, and may refuse it for another reason */
    j->context = &t;
    j->key = weir__guard_key_id(guard, ask->key, &j->key_max);
    waiter->deadline = j->patient ? weir__deadline_of(j->now, ask->wait_max) : 0;
    waiter->priority = ask->priority;
    waiter->user_class = ask->user_class;
    weir__own(waiter)->ask = *ask;
    weir__own(waiter)->permit = permit;
    *permit = (struct weir_permit){ 0 };
    return weir__queue_join(queue, j) == WEIR_GRANTED || j->waits;
}

/* A refusal by the queue; the guard has counted its own. */
static bool turn_away(struct weir_guard *guard, const struct weir__joining *j)
{
    if (j->turned_away)
        weir__guard_count_refused(guard, (enum weir_reason)j->decision->reason);
    return false;
}

bool weir_enter_later(struct weir_guard *guard, struct weir_queue *queue,
                      const struct weir_ask *ask, struct weir_waiter *waiter,
                      struct weir_permit *permit, struct weir_decision *decision)
{
    struct weir__joining j = { .waiter = waiter, .now = ask->now, .decision = decision };

    assert(waiter->turn != NULL);
    bool taken = join(guard, queue, ask, permit, &j);
    if (j.waits) {
        decision->allowed = false;
        decision->reason = WEIR_BUSY;
    }
    return taken || turn_away(guard, &j);
}

bool weir_exit_next(struct weir_guard *guard, struct weir_queue *queue, struct weir_permit *permit,
                    enum weir_outcome outcome, weir_time now)
{
    bool was_in = weir__guard_exit(guard, permit, outcome, -1, now);

    serve(guard, queue, now);
    weir__guard_pass_on(guard);
    return was_in;
}

int64_t weir_enter_poll(struct weir_guard *guard, struct weir_queue *queue, weir_time now)
{
    serve(guard, queue, now);
    return weir_queue_length(queue);
}

/* ------------------------------------------------------------- sleeping ---- */

/* A waiting thread, its guard and its queue. */
struct wait {
    struct weir_guard *guard;
    struct weir_queue *queue;
    const struct weir_clock *clock; /* NULL: the table's */
    struct sleeper sleeper;
    bool polls;    /* it is the one that does */
    uint32_t bell; /* as it was before it looked */
};

static weir_time now_of(const struct weir_guard *guard, const struct weir_clock *clock)
{
    return clock != NULL ? clock->now(clock->context) : weir_table_now(guard->table);
}

static bool is_done(struct wait *w)
{
    return weir__acquire(&w->sleeper.word) == DONE;
}

static bool may_poll(struct wait *w)
{
    if (w->clock == NULL && !w->polls)
        w->polls = __atomic_exchange_n(&w->queue->polled, 1, __ATOMIC_ACQ_REL) == 0;
    return w->clock != NULL || w->polls;
}

/* Another thread polls from now on: the next waiter, if it is a thread; else the first one that
 * checks. */
static void stop_polling(struct wait *w, weir_time now)
{
    uint32_t sleeps = SLEEPS;

    if (w->polls)
        weir__publish(&w->queue->polled, 0);
    else if (w->clock != NULL || weir__acquire(&w->queue->polled) != 0)
        return;
    w->polls = false;
    pthread_mutex_lock(&w->queue->lock);
    struct weir_waiter *front = weir__queue_front_locked(w->queue, now);
    if (front != NULL && front->turn == wake) {
        uint32_t *word =
            &((struct sleeper *)((char *)front - offsetof(struct sleeper, waiter)))->word;
        if (__atomic_compare_exchange_n(word, &sleeps, POKED, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            weir__clock_wake_word(word);
    }
    pthread_mutex_unlock(&w->queue->lock);
}

/* While it tells others, another thread polls: a turn may take long. */
static void serve_others(struct wait *w, weir_time now)
{
    struct weir_waiter *others = offer_turns(w->guard, w->queue, now);

    if (others == NULL)
        return;
    stop_polling(w, now);
    tell(w->guard, w->queue, others, true);
}

static void sleep_a_while(struct wait *w, weir_time span)
{
    uint32_t poked = POKED;

    if (w->clock != NULL) {
        w->clock->sleep(w->clock->context, span < POLL ? span : POLL);
        return;
    }
    if (w->polls)
        weir__clock_wait_words(&w->sleeper.word, SLEEPS, &w->guard->table->header->bell, w->bell,
                               span < POLL ? span : POLL);
    else
        weir__clock_wait_word(&w->sleeper.word, SLEEPS, span < LOOK ? span : LOOK);
    __atomic_compare_exchange_n(&w->sleeper.word, &poked, SLEEPS, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_RELAXED);
}

/* Leaves the queue; false: it was taken out just now, and is about to be told. */
static bool give_up(struct wait *w)
{
    if (weir_queue_cancel(w->queue, &w->sleeper.waiter))
        return true;
    for (uint32_t word; (word = weir__acquire(&w->sleeper.word)) != DONE;)
        weir__clock_wait_word(&w->sleeper.word, word, WEIR_FOREVER);
    return false;
}

/* Waits; returns why it ended. */
static enum weir_reason wait_for_turn(struct wait *w)
{
    weir_time deadline = w->sleeper.waiter.deadline;
    bool gave_up = false;

    tell(w->guard, w->queue, NULL, true); /* it may be in a turn, and others have theirs */
    weir_time now = now_of(w->guard, w->clock);
    while (!is_done(w) && !gave_up) {
        bool over = deadline != 0 && now >= deadline;
        if (may_poll(w) || over) {
            w->bell = weir__guard_want(w->guard);
            serve_others(w, now); /* at the deadline for the last time */
        }
        if (over)
            gave_up = give_up(w);
        else if (!is_done(w))
            sleep_a_while(w, deadline != 0 ? deadline - now : WEIR_FOREVER);
        now = now_of(w->guard, w->clock);
    }
    stop_polling(w, now);
    return gave_up ? WEIR_LATE : (enum weir_reason)w->sleeper.waiter.reason;
}

static bool refuse_late(struct wait *w, const struct weir_ask *ask, struct weir_decision *d)
{
    weir_time retry =
        weir_queue_estimate(w->queue, ask->priority, ask->user_class, now_of(w->guard, w->clock));

    *d = (struct weir_decision){ .reason = WEIR_LATE,
                                 .limit = d->limit,
                                 .retry = retry > 0 ? retry : WEIR_MILLISECOND };
    return count_late(w->guard, WEIR_LATE);
}

bool weir_enter_wait(struct weir_guard *guard, struct weir_queue *queue, const struct weir_ask *ask,
                     const struct weir_clock *clock, struct weir_permit *permit,
                     struct weir_decision *decision)
{
    struct wait w = { .guard = guard,
                      .queue = queue,
                      .clock = clock,
                      .sleeper = { .waiter.turn = wake, .decision = decision } };
    struct weir__joining j = { .waiter = &w.sleeper.waiter,
                               .now = now_of(guard, clock),
                               .decision = decision };
    bool taken = join(guard, queue, ask, permit, &j);

    if (!j.waits)
        return taken || turn_away(guard, &j);
    enum weir_reason reason = wait_for_turn(&w);
    if (reason == WEIR_LATE)
        return refuse_late(&w, ask, decision);
    return reason == WEIR_GRANTED;
}

/* ----------------------------------------------------------------- call ---- */

bool weir_call(struct weir_guard *guard, const struct weir_ask *ask, const struct weir_clock *clock,
               const struct weir_call *call, struct weir_decision *decision)
{
    struct weir_ask timed = *ask;
    struct weir_permit permit;

    timed.now = now_of(guard, clock);
    bool entered = weir_enter(guard, &timed, &permit, decision);
    bool falls_back = !entered;
    if (entered) {
        enum weir_outcome outcome = call->work(call->context);
        weir_exit(guard, &permit, outcome, now_of(guard, clock));
        falls_back =
            call->fallback_on_error && outcome != WEIR_SUCCEEDED && outcome != WEIR_IGNORED;
    }
    if (falls_back && call->fallback != NULL)
        call->fallback(call->context, decision);
    return entered;
}
