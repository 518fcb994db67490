/* check-later.c -- requests that wait, for event loops: in the queues of guards, and for a turn
 * that they may never use.
 *
 * A waiter is offered its turn with the queue locked: the whole request is decided anew, and stays
 * in the queue if the same guard is still busy.  If another one is, it waits there, for the rest of
 * its time.  `turn` is called without the lock. */
#include "engine/waiting-lines.h"
#include "guard/guard.h"
#include "table/take-all.h"

/* Nobody overtakes waiters of this process. */
static bool is_occupied(void *context, const struct weir_guard *guard, const struct weir_ask *ask)
{
    return weir__line_is_occupied(context, guard, ask);
}

/* ----------------------------------------------------------------- turns ---- */

struct turns {
    struct weir *weir;
    weir_time now;
};

static struct weir_visit *visit_of(struct weir_waiter *waiter)
{
    return (struct weir_visit *)((char *)waiter - offsetof(struct weir_visit, waiter));
}

enum visit { NEW, IN_TURN, ELSEWHERE }; /* an ask for the first time, or after it has waited */

/* True: the guard is busy, and has a queue. */
static bool decide(struct weir *weir, struct weir_visit *v, enum visit how, bool waits,
                   struct weir__admission *a)
{
    *a = (struct weir__admission){ .ask = &v->ask,
                                   .entry = &v->entry,
                                   .asked = &v->asked,
                                   .in_turn = v->in_turn,
                                   .waits = waits,
                                   .in_line = how == IN_TURN,
                                   .occupied = how == IN_TURN ? NULL : is_occupied,
                                   .context = weir,
                                   .taken = v->taken };
    v->entry.n = 0;
    if (v->taken != NULL)
        v->taken->n = 0;
    bool in = weir__check_admitted(weir, v->attrs, v->n, a, &v->ruling, v->key);
    return !in && a->queued && v->ruling.guard != NULL && v->ruling.decision.reason == WEIR_BUSY;
}

/* With the queue locked.  If another guard is busy now, it does not hold up those behind it; while
 * they have to wait anyway, it keeps its place. */
static enum weir_reason try_to_enter(void *context, struct weir_waiter *waiter)
{
    const struct turns *t = context;
    struct weir_visit *v = visit_of(waiter);
    struct weir__line *line = v->line;
    struct weir_ruling before = v->ruling;
    struct weir__admission a;

    v->ask.now = t->now;
    if (decide(t->weir, v, IN_TURN, true, &a)) {
        if (a.guard->id == line->guard->id)
            return WEIR_BUSY;
        v->ruling = before; /* it does not wait for that one */
        return weir__guard_is_full(line->guard) ? WEIR_BUSY : WEIR_CANCELLED;
    }
    v->line = NULL; /* `ruling` is the answer */
    if (v->ruling.decision.allowed)
        return WEIR_GRANTED; /* in shadow there is a reason, and yet it is in */
    enum weir_reason reason = (enum weir_reason)v->ruling.decision.reason;
    return reason == WEIR_BUSY ? WEIR_CANCELLED : reason;
}

static bool decide_or_wait(struct weir *weir, struct weir_visit *visit, enum visit how,
                           weir_time wait);

void weir__count_refused_later(struct weir *weir)
{
    const struct weir__active *active;
    struct weir__stripe *stripe = weir__engine_hold(weir, &active);

    weir__set(&stripe->refused, weir__get(&stripe->refused) + 1);
    weir__engine_release(stripe);
}

/* By the queue, or because of it. */
static void count_refused(struct weir *weir, struct weir_guard *guard, enum weir_reason reason)
{
    weir__count_refused_later(weir);
    weir__guard_count_refused(guard, reason);
}

static weir_time time_left(const struct weir_visit *v)
{
    return v->waiter.deadline == 0 ? WEIR_FOREVER : v->waiter.deadline - v->ask.now;
}

/* It has left the queue. */
static void on_turn(struct weir_waiter *waiter, enum weir_reason reason)
{
    struct weir_visit *v = visit_of(waiter);
    struct weir__line *line = v->line;

    if (line != NULL && reason == WEIR_CANCELLED) {
        if (!decide_or_wait(line->weir, v, ELSEWHERE, time_left(v)))
            return;
    } else if (line != NULL) {
        v->ruling.decision.allowed = false;
        v->ruling.decision.reason = (uint8_t)reason;
        count_refused(line->weir, line->guard, reason);
    }
    v->line = NULL;
    v->turn(v);
}

/* Of this line, or of all (NULL).  A turn may exit at once and poll: that is done when it is over,
 * or a thousand waiters could mean a thousand nested calls. */
static void offer_turns(struct weir *weir, struct weir__line *line, weir_time now)
{
    weir->offer_at = now;
    weir->offer_again = true;
    if (weir->offering)
        return;
    weir->offering = true;
    for (; weir->offer_again; line = NULL) {
        struct turns t = { .weir = weir, .now = weir->offer_at };
        weir->offer_again = false;
        if (line != NULL)
            weir__line_serve(line, t.now, try_to_enter, &t);
        else
            weir__lines_serve_all(weir, t.now, try_to_enter, &t);
    }
    weir->offering = false;
}

int64_t weir_check_poll(struct weir *weir, weir_time now)
{
    int64_t waiting = 0;

    offer_turns(weir, NULL, now);
    for (struct weir__line *l = weir__line_first(weir); l != NULL; l = l->next)
        waiting += weir_queue_length(l->queue); /* some have gone from one to another */
    return waiting;
}

/* It is on its way to another guard's queue, and an earlier one's turn cancels it. */
static void stop_moving(struct weir *weir, struct weir_visit *visit)
{
    visit->line = NULL;
    visit->ruling.decision.reason = WEIR_CANCELLED;
    weir__count_refused_later(weir);
}

bool weir_check_cancel(struct weir *weir, struct weir_visit *visit, weir_time now)
{
    struct weir__line *line = visit->line;
    bool waits = line != NULL && weir_queue_cancel(line->queue, &visit->waiter);

    if (waits) {
        visit->line = NULL;
        offer_turns(weir, line, now); /* it may have kept permits from others */
    } else if (line != NULL && visit->waiter.reason == WEIR_CANCELLED) {
        stop_moving(weir, visit);
    }
    return waits;
}

/* ------------------------------------------------------------------ join ---- */

/* False: it does not wait, and the ruling says why. */
static bool join(struct weir_visit *v, const struct weir__admission *a)
{
    struct weir__line *line = v->line;
    struct weir_decision d = v->ruling.decision;
    struct weir__joining j = { .waiter = &v->waiter,
                               .now = v->ask.now,
                               .patient = true,
                               .key = a->key_id,
                               .key_max = a->key_max,
                               .decision = &d };

    weir__own(&v->waiter)->ask.cost = 1;
    weir__queue_join(line->queue, &j);
    if (!j.waits) { /* else it is busy, and becomes late as such */
        v->ruling.decision = d;
        v->line = NULL;
        count_refused(line->weir, line->guard, (enum weir_reason)v->ruling.decision.reason);
    }
    return j.waits;
}

/* `wait`: the longest in a queue.  0: it does not wait, or has waited for all of its time. */
static bool decide_or_wait(struct weir *weir, struct weir_visit *visit, enum visit how,
                           weir_time wait)
{
    struct weir__admission a;

    visit->line = NULL;
    if (!decide(weir, visit, how, wait > 0 || how == ELSEWHERE, &a))
        return true;
    if (wait <= 0) {
        visit->ruling.decision.reason = WEIR_LATE;
        count_refused(weir, a.guard, WEIR_LATE);
        return true;
    }
    visit->waiter =
        (struct weir_waiter){ .priority = a.priority, .user_class = a.user_class, .turn = on_turn };
    visit->line = weir__line_claim(weir, a.guard,
                                   &(struct weir_ask){ .priority = a.priority,
                                                       .user_class = a.user_class,
                                                       .now = visit->ask.now },
                                   &wait);
    visit->waiter.deadline = weir__deadline_of(visit->ask.now, wait);
    if (visit->line == NULL) { /* other rules, since */
        count_refused(weir, a.guard, WEIR_BUSY);
        return true;
    }
    if (!join(visit, &a))
        return true;
    weir__guard_want(a.guard);
    return false;
}

bool weir_check_later(struct weir *weir, struct weir_visit *visit)
{
    return decide_or_wait(weir, visit, NEW, visit->queue_max);
}

/* ------------------------------------------------------------------ undo ---- */

void weir_check_undo(struct weir *weir, struct weir_taken *taken, weir_time now)
{
    while (taken->n > 0)
        weir__take_back(weir->table, taken->items[--taken->n].own, now);
}
