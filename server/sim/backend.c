/* backend.c -- the simulated backend: workers, their queue, and everything that can go wrong.
 *
 * The duration of work is settled when a worker begins it: the request's work, times the backend's
 * slowness at that moment.  A client that gives up does not stop the work: that is how overload
 * turns into collapse.
 */
#include "server/sim/sim.h"

#include "base/base.h"

static weir_time scaled(weir_time time, int64_t factor)
{
    weir__i128 product = (weir__i128)time * factor / WEIR__SIM_ONE;

    return product > WEIR__SIM_LONGEST ? WEIR__SIM_LONGEST : (weir_time)product;
}

/* Requests beyond the workers slow all down. */
static int64_t contention_of(const struct weir__sim_trial *t)
{
    const struct weir__sim_backend_plan *plan = &t->plan->backend;
    int64_t extra = t->backend.busy + t->backend.queued - weir__sim_plan_workers(plan, t->now);
    int64_t factor = WEIR__SIM_ONE + (extra > 0 ? extra * plan->contention : 0);

    return factor < plan->slowest ? factor : plan->slowest;
}

/* The work of the request, times the slowness of the backend. */
static weir_time work_of(const struct weir__sim_trial *t, const struct weir__sim_attempt *a)
{
    const struct weir__sim_backend_plan *plan = &t->plan->backend;
    struct weir__sim_dice dice = { a->work };
    weir_time work = weir__sim_dice_work(&dice, &plan->work);

    work = scaled(scaled(work, weir__sim_plan_slowness(plan, t->now)),
                  weir__sim_plan_coldness(plan, t->backend.results));
    return scaled(work, contention_of(t));
}

static void start(struct weir__sim_trial *t, uint32_t who)
{
    const struct weir__sim_backend_plan *plan = &t->plan->backend;
    const struct weir__sim_change *errors =
        weir__sim_plan_find(plan, WEIR__SIM_CHANGE_ERRORS, t->now);
    struct weir__sim_attempt *a = &t->attempts[who];

    t->backend.busy++;
    a->error = errors && weir__sim_dice_below(&t->backend.dice, WEIR__SIM_ONE) < errors->factor;
    a->busy = a->error && errors->after ? errors->after : work_of(t, a);
    a->busy += a->busy == 0; /* 0 is: in the queue */
    weir__sim_post(t, t->now + a->busy, WEIR__SIM_EVENT_DONE, who);
}

static void enqueue(struct weir__sim_trial *t, uint32_t who)
{
    struct weir__sim_backend *b = &t->backend;

    t->attempts[who].next = WEIR__SIM_NOBODY;
    if (b->first == WEIR__SIM_NOBODY)
        b->first = who;
    else
        t->attempts[b->last].next = who;
    b->last = who;
    b->queued++;
}

bool weir__sim_backend_put(struct weir__sim_trial *t, uint32_t who)
{
    const struct weir__sim_backend_plan *plan = &t->plan->backend;

    if (weir__sim_plan_find(plan, WEIR__SIM_CHANGE_SILENT, t->now))
        return true; /* and nothing is ever heard of it */
    bool free = t->backend.busy < weir__sim_plan_workers(plan, t->now);
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

void weir__sim_backend_pull(struct weir__sim_trial *t)
{
    struct weir__sim_backend *b = &t->backend;

    while (b->first != WEIR__SIM_NOBODY &&
           b->busy < weir__sim_plan_workers(&t->plan->backend, t->now)) {
        uint32_t who = b->first;
        b->first = t->attempts[who].next;
        if (t->attempts[who].inside) {
            b->queued--;
            start(t, who);
        } else {
            weir__sim_attempt_settle(t, who); /* it was taken out while it waited */
        }
    }
}

void weir__sim_backend_forget(struct weir__sim_trial *t, uint32_t who)
{
    struct weir__sim_attempt *a = &t->attempts[who];

    if (!t->plan->backend.cancels || !a->inside || a->busy)
        return;
    a->inside = false;
    t->backend.queued--;
}

/* The worker takes the first of the queue before the answer lets the next one in at the guard. */
void weir__sim_backend_done(struct weir__sim_trial *t, uint32_t who)
{
    struct weir__sim_attempt *a = &t->attempts[who];
    bool silent = weir__sim_plan_find(&t->plan->backend, WEIR__SIM_CHANGE_SILENT, t->now) != NULL;
    bool answered = a->waiting && !silent, error = a->error;

    t->backend.busy--;
    t->backend.results++;
    a->inside = false;
    if (weir__sim_measures(t)) {
        t->backend.spent += (double)a->busy;
        t->backend.wasted += !answered || error ? (double)a->busy : 0;
    }
    weir__sim_backend_pull(t);
    if (answered)
        weir__sim_clients_answer(t, who, error ? WEIR_FAILED : WEIR_SUCCEEDED);
    weir__sim_attempt_settle(t, who);
}
