/* sim.c -- a trial: one plan, one controller, one seed, from the first request to the last answer.
 *
 * Nothing waits: the clock jumps from event to event.  After the plan's length no new request
 * comes, and the trial goes on until every request has ended and all permits are back.
 */
#include "server/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* ------------------------------------------------------------------- attempts ---- */

static bool grow(struct weir__sim_trial *t)
{
    size_t room = t->room ? 2 * t->room : 1024;
    struct weir__sim_attempt *attempts =
        room < WEIR__SIM_NOBODY ? realloc(t->attempts, room * sizeof(*attempts)) : NULL;

    if (attempts == NULL) {
        t->failed = true;
        return false;
    }
    t->attempts = attempts;
    t->room = room;
    return true;
}

uint32_t weir__sim_attempt_create(struct weir__sim_trial *t)
{
    uint32_t who = t->unused;

    if (who != WEIR__SIM_NOBODY) {
        t->unused = t->attempts[who].next;
    } else {
        if (t->n_attempts == t->room && !grow(t))
            return WEIR__SIM_NOBODY;
        who = (uint32_t)t->n_attempts++;
    }
    t->attempts[who] = (struct weir__sim_attempt){ .birth = ++t->births, .next = WEIR__SIM_NOBODY };
    return who;
}

void weir__sim_attempt_settle(struct weir__sim_trial *t, uint32_t who)
{
    struct weir__sim_attempt *a = &t->attempts[who];

    if (a->waiting || a->inside || a->birth == 0)
        return;
    a->birth = 0;
    a->next = t->unused;
    t->unused = who;
}

/* --------------------------------------------------------------------- events ---- */

void weir__sim_post(struct weir__sim_trial *t, weir_time at, enum weir__sim_event_kind kind,
                    uint32_t who)
{
    bool of_attempt = kind == WEIR__SIM_EVENT_RETRY || kind == WEIR__SIM_EVENT_TIMEOUT ||
                      kind == WEIR__SIM_EVENT_DONE || kind == WEIR__SIM_EVENT_LATE;

    weir__sim_agenda_add(
        &t->agenda,
        (struct weir__sim_agenda_item){
            .at = at, .kind = kind, .who = who, .birth = of_attempt ? t->attempts[who].birth : 0 });
}

bool weir__sim_measures(const struct weir__sim_trial *t)
{
    return t->now >= t->plan->warmup && t->now < t->plan->length;
}

static void give_up(struct weir__sim_trial *t, uint32_t who)
{
    if (!t->attempts[who].waiting)
        return;
    weir__sim_clients_leave(t, who);
    weir__sim_clients_answer(t, who, WEIR_TIMED_OUT);
    bool queued = t->attempts[who].inside && t->attempts[who].busy == 0;
    weir__sim_backend_forget(t, who);
    if (!queued) /* else it is still linked there, and settled when its turn would have come */
        weir__sim_attempt_settle(t, who);
}

static void end_bucket(struct weir__sim_trial *t, uint32_t i)
{
    struct weir_guard_info info;

    if (t->guard) {
        weir_guard_get(t->guard, WEIR__SIM_START + t->now, &info);
        t->out->buckets[i].limit = info.limit;
        weir_guard_tell(t->guard, t->out->told, sizeof(t->out->told));
    }
    if (i + 1 < t->out->n_buckets)
        weir__sim_post(t, (weir_time)(i + 2) * t->out->bucket, WEIR__SIM_EVENT_BUCKET, i + 1);
}

static void happen(struct weir__sim_trial *t, const struct weir__sim_agenda_item *e)
{
    if (e->birth && t->attempts[e->who].birth != e->birth)
        return; /* it is over */
    switch ((enum weir__sim_event_kind)e->kind) {
    case WEIR__SIM_EVENT_ARRIVE:
        weir__sim_clients_arrive(t, e->who);
        break;
    case WEIR__SIM_EVENT_LATE:
        weir__sim_clients_late(t);
        break;
    case WEIR__SIM_EVENT_LOOP:
        weir__sim_clients_loop(t, e->who);
        break;
    case WEIR__SIM_EVENT_RETRY:
        weir__sim_clients_retry(t, e->who);
        break;
    case WEIR__SIM_EVENT_TIMEOUT:
        give_up(t, e->who);
        break;
    case WEIR__SIM_EVENT_DONE:
        weir__sim_backend_done(t, e->who);
        break;
    case WEIR__SIM_EVENT_WORKERS:
        weir__sim_backend_pull(t);
        break;
    case WEIR__SIM_EVENT_BUCKET:
        end_bucket(t, e->who);
        break;
    }
}

/* ---------------------------------------------------------------------- whole ---- */

static void begin(struct weir__sim_trial *t)
{
    for (uint32_t i = 0; i < t->plan->n_groups; i++)
        weir__sim_dice_seed(&t->arrivals[i], t->out->seed, 10 + i);
    weir__sim_dice_seed(&t->retries, t->out->seed, 2);
    weir__sim_dice_seed(&t->backend.dice, t->out->seed, 3);
    t->unused = t->backend.first = WEIR__SIM_NOBODY;
    weir__sim_clients_begin(t);
    for (size_t i = 0; i < t->plan->backend.n_changes; i++) {
        const struct weir__sim_change *c = &t->plan->backend.changes[i];
        if (c->kind == WEIR__SIM_CHANGE_WORKERS && c->from > 0)
            weir__sim_post(t, c->from, WEIR__SIM_EVENT_WORKERS, 0);
        if (c->kind == WEIR__SIM_CHANGE_WORKERS && c->to < WEIR_NEVER)
            weir__sim_post(t, c->to, WEIR__SIM_EVENT_WORKERS, 0);
    }
    weir__sim_post(t, t->out->bucket, WEIR__SIM_EVENT_BUCKET, 0);
}

static bool is_over(const struct weir__sim_trial *t)
{
    return (t->now >= t->plan->length && t->open == 0) || t->failed || t->agenda.failed;
}

static void run(struct weir__sim_trial *t)
{
    struct weir__sim_agenda_item e;

    begin(t);
    while (weir__sim_agenda_next(&t->agenda, &e)) {
        if (e.at >= t->plan->length && t->open == 0 && e.kind != WEIR__SIM_EVENT_BUCKET)
            break;
        t->now = e.at;
        weir__sim_sum_areas(t);
        happen(t, &e);
        t->out->events++;
        if (is_over(t))
            break;
    }
    t->failed |= t->agenda.failed;
}

static void end(struct weir__sim_trial *t)
{
    struct weir_guard_info info;

    if (t->guard) {
        weir_guard_get(t->guard, WEIR__SIM_START + t->now, &info);
        t->out->permits_left = info.in_flight;
    }
    for (size_t i = 0; i < t->n_attempts; i++) {
        if (t->attempts[i].birth)
            free(t->attempts[i].turn);
    }
    if (t->queue)
        weir_queue_destroy(t->queue);
    weir_table_destroy(t->table);
    weir__sim_agenda_clear(&t->agenda);
    free(t->attempts);
    free(t->times);
}

/* The finest of 250 ms, 500 ms, ... of which there is room for enough. */
static weir_time choose_bucket(weir_time length)
{
    weir_time bucket = 250 * WEIR_MILLISECOND;

    while ((length + bucket - 1) / bucket > WEIR__SIM_BUCKETS)
        bucket *= 2;
    return bucket;
}

int weir__sim_run(struct weir__sim_outcome *out, const struct weir__sim_plan *plan,
                  const struct weir__sim_options *options, struct weir_error *error)
{
    struct weir__sim_outcome *made = calloc(1, sizeof(*made));
    struct weir__sim_trial t = { .plan = plan, .out = made };

    if (made)
        made->seed = options->seed ? options->seed : (uint64_t)plan->seed;
    int code = made ? weir__sim_guard_create(&t, options->controller, error) : WEIR_NO_MEMORY;
    if (code == WEIR_OK) {
        made->plan = plan;
        strncat(made->controller, options->controller, sizeof(made->controller) - 1);
        made->bucket = choose_bucket(plan->length);
        made->n_buckets = (size_t)((plan->length + made->bucket - 1) / made->bucket);
        for (size_t i = 0; i < made->n_buckets; i++)
            made->buckets[i].limit = -1;
        run(&t);
        weir__sim_sum_finish(&t);
        code = t.failed ? WEIR_NO_MEMORY : WEIR_OK;
    }
    if (made)
        end(&t);
    if (code == WEIR_OK)
        *out = *made;
    else if (code == WEIR_NO_MEMORY)
        weir__fail(error, code, "no memory for a simulation");
    free(made);
    return code;
}
