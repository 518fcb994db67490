/* sim-backend.c -- what stands behind the guard: workers, a queue before them, and everything that can go wrong with both.
 *
 * How long a piece of work takes is settled when a worker begins it: what the request brought, times how slow the backend is at that
 * moment. A client that gives up does not stop the work: that is how overload turns into collapse.
 */
#include "sim.h"

#include "base/base.h"

static weir_time scaled(weir_time time, int64_t factor)
{
    weir__i128 product = (weir__i128)time * factor / WEIR__ONE;

    return product > WEIR__TRIAL_LONGEST ? WEIR__TRIAL_LONGEST : (weir_time)product;
}

/* Those inside beyond the workers fight for what there is. */
static int64_t contention_of(const struct weir__trial *t)
{
    const struct weir__backend_plan *plan = &t->plan->backend;
    int64_t extra = t->backend.busy + t->backend.queued - weir__plan_workers(plan, t->now);
    int64_t factor = WEIR__ONE + (extra > 0 ? extra * plan->contention : 0);

    return factor < plan->slowest ? factor : plan->slowest;
}

/* What the request brought, as slow as the backend is. */
static weir_time work_of(const struct weir__trial *t, const struct weir__attempt *a)
{
    const struct weir__backend_plan *plan = &t->plan->backend;
    struct weir__dice dice = { a->work };
    weir_time work = weir__dice_work(&dice, &plan->work);

    work = scaled(scaled(work, weir__plan_slowness(plan, t->now)), weir__plan_coldness(plan, t->backend.results));
    return scaled(work, contention_of(t));
}

static void start(struct weir__trial *t, uint32_t who)
{
    const struct weir__backend_plan *plan = &t->plan->backend;
    const struct weir__change *errors = weir__plan_find(plan, WEIR__CHANGE_ERRORS, t->now);
    struct weir__attempt *a = &t->attempts[who];

    t->backend.busy++;
    a->error = errors && weir__dice_below(&t->backend.dice, WEIR__ONE) < errors->factor;
    a->busy = a->error && errors->after ? errors->after : work_of(t, a);
    a->busy += a->busy == 0; /* 0 is: in the queue */
    weir__trial_post(t, t->now + a->busy, WEIR__EVENT_DONE, who);
}

static void enqueue(struct weir__trial *t, uint32_t who)
{
    struct weir__backend *b = &t->backend;

    t->attempts[who].next = WEIR__NOBODY;
    if (b->first == WEIR__NOBODY)
        b->first = who;
    else
        t->attempts[b->last].next = who;
    b->last = who;
    b->queued++;
}

bool weir__backend_put(struct weir__trial *t, uint32_t who)
{
    const struct weir__backend_plan *plan = &t->plan->backend;

    if (weir__plan_find(plan, WEIR__CHANGE_SILENT, t->now))
        return true; /* and nothing is ever heard of it */
    bool free = t->backend.busy < weir__plan_workers(plan, t->now);
    if (!free && plan->queue >= 0 && t->backend.queued >= plan->queue)
        return false;
    t->attempts[who].inside = true;
    t->attempts[who].busy = 0;
    if (free)
        start(t, who);
    else
        enqueue(t, who);
    return true;
}

void weir__backend_pull(struct weir__trial *t)
{
    struct weir__backend *b = &t->backend;

    while (b->first != WEIR__NOBODY && b->busy < weir__plan_workers(&t->plan->backend, t->now)) {
        uint32_t who = b->first;
        b->first = t->attempts[who].next;
        if (t->attempts[who].inside) {
            b->queued--;
            start(t, who);
        } else {
            weir__attempt_settle(t, who); /* it was taken out while it waited */
        }
    }
}

void weir__backend_forget(struct weir__trial *t, uint32_t who)
{
    struct weir__attempt *a = &t->attempts[who];

    if (!t->plan->backend.cancels || !a->inside || a->busy)
        return;
    a->inside = false;
    t->backend.queued--;
}

void weir__backend_done(struct weir__trial *t, uint32_t who)
{
    struct weir__attempt *a = &t->attempts[who];
    bool silent = weir__plan_find(&t->plan->backend, WEIR__CHANGE_SILENT, t->now) != NULL;

    t->backend.busy--;
    t->backend.results++;
    a->inside = false;
    if (weir__trial_measures(t)) {
        t->backend.spent += (double)a->busy;
        t->backend.wasted += !a->waiting || a->error || silent ? (double)a->busy : 0;
    }
    if (a->waiting && !silent)
        weir__clients_answer(t, who, a->error ? WEIR_FAILED : WEIR_SUCCEEDED);
    weir__attempt_settle(t, who);
    weir__backend_pull(t);
}
