/* check-later.c -- requests that wait, for event loops: in the queues of guards, and for a turn
 * that they may never use.
 *
 * A guard's line is made when somebody waits there first, and stays until the engine goes; so there
 * are never more of them than guards.  A waiter is offered its turn with the queue locked: the
 * whole request is decided anew, and stays in the queue if the same guard is still busy.  `turn` is
 * called without the lock. */
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "guard/guard.h"
#include "queue/queue.h"
#include "table/all.h"

struct weir__line {
    struct weir_queue *queue;
    struct weir_guard *guard;
    struct weir__line *next; /* never changes */
};

/* ----------------------------------------------------------------- lines ---- */

void weir__lines_free(struct weir *weir)
{
    for (struct weir__line *l = weir->lines, *next; l != NULL; l = next) {
        next = l->next;
        weir_queue_destroy(l->queue);
        free(l);
    }
}

static struct weir__line *first_line(struct weir *weir)
{
    return __atomic_load_n(&weir->lines, __ATOMIC_ACQUIRE);
}

static struct weir__line *find_line(struct weir *weir, const struct weir_guard *guard)
{
    struct weir__line *l = first_line(weir);

    while (l != NULL && l->guard->id != guard->id)
        l = l->next;
    return l;
}

static struct weir__line *make_line_locked(struct weir *weir, struct weir_guard *guard,
                                           const struct weir_queue_options *options)
{
    struct weir__line *l = calloc(1, sizeof(*l));

    if (l == NULL || weir_queue_create(&l->queue, options, NULL) != WEIR_OK) {
        free(l);
        return NULL;
    }
    l->guard = guard;
    l->next = weir->lines;
    __atomic_store_n(&weir->lines, l, __ATOMIC_RELEASE);
    return l;
}

/* If the rules have changed the queue, its waiters stay.  NULL: no memory. */
static struct weir__line *line_of(struct weir *weir, struct weir_guard *guard,
                                  const struct weir_queue_options *options)
{
    struct weir__line *l = find_line(weir, guard);

    if (l == NULL) {
        pthread_mutex_lock(&weir->mutex);
        l = find_line(weir, guard);
        l = l != NULL ? l : make_line_locked(weir, guard, options);
        pthread_mutex_unlock(&weir->mutex);
    }
    if (l != NULL)
        weir__queue_change(l->queue, options);
    return l;
}

/* Nobody overtakes waiters of this process. */
static bool is_occupied(void *context, const struct weir_guard *guard, int64_t permits)
{
    struct weir *weir = context;
    struct weir__line *l = first_line(weir) == NULL ? NULL : find_line(weir, guard);

    return l != NULL && weir__get(&l->queue->length) > 0 &&
           !weir__queue_is_open_to(l->queue, permits);
}

/* ----------------------------------------------------------------- turns ---- */

struct turns {
    struct weir *weir;
    weir_time now;
    bool joins; /* it has just been refused: it need not try again */
};

static struct weir_visit *visit_of(struct weir_waiter *waiter)
{
    return (struct weir_visit *)((char *)waiter - offsetof(struct weir_visit, waiter));
}

/* True: the guard is busy, and has a queue. */
static bool decide(struct weir *weir, struct weir_visit *v, bool again, struct weir__admission *a)
{
    *a = (struct weir__admission){ .ask = &v->ask,
                                   .entry = &v->entry,
                                   .favoured = again,
                                   .in_turn = v->in_turn,
                                   .waits = v->queue_max > 0,
                                   .occupied = again ? NULL : is_occupied,
                                   .context = weir,
                                   .taken = v->taken };
    v->entry.n = 0;
    if (v->taken != NULL)
        v->taken->n = 0;
    return !weir__check_admitted(weir, v->attrs, v->n, a, &v->ruling, v->key) && a->queued &&
           v->ruling.guard != NULL && v->ruling.decision.reason == WEIR_BUSY;
}

/* With the queue locked.  If another guard is busy now, it does not hold up those behind it. */
static enum weir_reason try_to_enter(void *context, struct weir_waiter *waiter)
{
    const struct turns *t = context;
    struct weir_visit *v = visit_of(waiter);
    struct weir__line *line = v->line;
    struct weir__admission a;

    if (t->joins)
        return WEIR_BUSY;
    v->ask.now = t->now;
    if (decide(t->weir, v, true, &a) && a.guard->id == line->guard->id)
        return WEIR_BUSY;
    v->line = NULL; /* `ruling` is the answer */
    if (v->ruling.decision.allowed)
        return WEIR_GRANTED; /* in shadow there is a reason, and yet it is in */
    enum weir_reason reason = (enum weir_reason)v->ruling.decision.reason;
    return reason == WEIR_BUSY ? WEIR_CANCELLED : reason;
}

/* It has left the queue. */
static void on_turn(struct weir_waiter *waiter, enum weir_reason reason)
{
    struct weir_visit *v = visit_of(waiter);
    struct weir__line *line = v->line;

    if (line != NULL) {
        v->ruling.decision.allowed = false;
        v->ruling.decision.reason = (uint8_t)reason;
        weir__guard_count_refused(line->guard, reason);
    }
    v->line = NULL;
    v->turn(v);
}

static void serve(struct weir *weir, struct weir__line *line, weir_time now)
{
    struct turns t = { .weir = weir, .now = now };
    struct weir_waiter *gone =
        weir_queue_length(line->queue) == 0
            ? NULL
            : weir__queue_offer(line->queue, now, weir__guard_hold(line->guard), try_to_enter, &t);

    for (struct weir_waiter *next; gone != NULL; gone = next) {
        next = gone->next;
        on_turn(gone, (enum weir_reason)gone->reason);
    }
}

int64_t weir_check_poll(struct weir *weir, weir_time now)
{
    int64_t waiting = 0;

    for (struct weir__line *l = first_line(weir); l != NULL; l = l->next) {
        serve(weir, l, now);
        waiting += weir_queue_length(l->queue);
    }
    return waiting;
}

bool weir_check_cancel(struct weir *weir, struct weir_visit *visit, weir_time now)
{
    struct weir__line *line = visit->line;

    if (line == NULL || !weir_queue_cancel(line->queue, &visit->waiter))
        return false;
    visit->line = NULL;
    serve(weir, line, now); /* it may have kept permits from others */
    return true;
}

/* ------------------------------------------------------------------ join ---- */

/* False: it does not wait, and the ruling says why. */
static bool join(struct weir *weir, struct weir_visit *v, const struct weir__admission *a,
                 weir_time wait)
{
    struct weir__line *line = v->line;
    struct turns t = { .weir = weir, .now = v->ask.now, .joins = true };
    struct weir__joining j = { .waiter = &v->waiter,
                               .now = v->ask.now,
                               .patient = true,
                               .key = a->key_id,
                               .key_max = a->key_max,
                               .offer = try_to_enter,
                               .context = &t,
                               .decision = &v->ruling.decision };

    v->waiter = (struct weir_waiter){ .priority = a->priority, .user_class = a->user_class };
    if (__builtin_add_overflow(v->ask.now, wait, &v->waiter.deadline))
        v->waiter.deadline = 0;
    weir__own(&v->waiter)->ask.cost = 1;
    weir__queue_join(line->queue, &j);
    if (!j.waits) {
        v->line = NULL;
        weir__guard_count_refused(line->guard, (enum weir_reason)v->ruling.decision.reason);
    }
    return j.waits;
}

bool weir_check_later(struct weir *weir, struct weir_visit *visit)
{
    struct weir_queue_options options;
    struct weir__admission a;
    weir_time wait;

    visit->line = NULL;
    if (!decide(weir, visit, false, &a))
        return true;
    if (weir_ruled_queue_get(weir, visit->ruling.guard, &options, &wait))
        visit->line = line_of(weir, a.guard, &options);
    wait = weir__ruled_wait(weir, visit->ruling.guard, a.priority, a.user_class);
    wait = wait < visit->queue_max ? wait : visit->queue_max;
    if (visit->line == NULL || wait == 0) { /* other rules, since */
        visit->line = NULL;
        weir__guard_count_refused(a.guard, WEIR_BUSY);
        return true;
    }
    if (!join(weir, visit, &a, wait))
        return true;
    weir__guard_want(a.guard);
    return false;
}

/* ------------------------------------------------------------------ undo ---- */

void weir_check_undo(struct weir *weir, struct weir_taken *taken, weir_time now)
{
    while (taken->n > 0)
        weir__take_back(weir->table, taken->items[--taken->n].own, now);
}
