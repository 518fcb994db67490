/* clients.c -- the simulated clients: when they come, how long they wait, whether they try again.
 *
 * A group's own dice decide when its requests come and how much work they bring: the controller has
 * no influence.  A rate that changes with time is Poisson by thinning: candidates come at the
 * highest rate, and one counts with the probability rate / highest rate.
 */
#include "server/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"

#define COUNT(t, group, member) \
    weir__sim_sum_count(t, group, offsetof(struct weir__sim_fates, member))

/* ----------------------------------------------------------------------- rate ---- */

static int64_t rate_of_points(const struct weir__sim_group_plan *g, weir_time at)
{
    int64_t rate = 0;

    for (size_t i = 0; i < g->n_points && g->points[i].at <= at; i++) {
        const struct weir__sim_rate_point *p = &g->points[i];
        if (at - p->at >= p->over)
            rate = p->rate;
        else
            rate += (int64_t)((weir__i128)(p->rate - rate) * (at - p->at) / p->over);
    }
    return rate;
}

int64_t weir__sim_plan_rate(const struct weir__sim_group_plan *g, weir_time at)
{
    if (g->burst_every && at % g->burst_every >= g->burst_every - g->burst_for)
        return g->burst_rate;
    return rate_of_points(g, at);
}

int64_t weir__sim_plan_rate_max(const struct weir__sim_group_plan *g)
{
    int64_t most = g->burst_every ? g->burst_rate : 0;

    for (size_t i = 0; i < g->n_points; i++)
        most = g->points[i].rate > most ? g->points[i].rate : most;
    return most;
}

weir_time weir__sim_plan_rate_next(const struct weir__sim_group_plan *g, weir_time at)
{
    weir_time next = WEIR_NEVER;

    for (size_t i = 0; i < g->n_points; i++) {
        if (g->points[i].at > at && g->points[i].at < next)
            next = g->points[i].at;
        if (at >= g->points[i].at && at - g->points[i].at < g->points[i].over &&
            at + WEIR_MILLISECOND < next)
            next = at + WEIR_MILLISECOND;
    }
    if (g->burst_every) {
        weir_time in = at % g->burst_every, begin = g->burst_every - g->burst_for;
        weir_time change = at + (in < begin ? begin - in : g->burst_every - in);
        next = change < next ? change : next;
    }
    return next;
}

/* ------------------------------------------------------------------- attempts ---- */

static void count_refusal(struct weir__sim_trial *t, uint32_t group, uint8_t reason)
{
    if (reason == WEIR_OPEN)
        COUNT(t, group, open);
    else if (reason == WEIR_SHED)
        COUNT(t, group, shed);
    else
        COUNT(t, group, busy);
    weir__sim_sum_bucket(t)->refused++;
}

static void turn_comes(struct weir_waiter *waiter, enum weir_reason reason);

static void write_user(char *out, const struct weir__sim_trial *t,
                       const struct weir__sim_attempt *a, struct weir_ask *ask)
{
    const struct weir__sim_group_plan *g = &t->plan->groups[a->group];
    int len = snprintf(out, WEIR__SIM_NAME + 24, "%s-%lld", g->name, (long long)a->user);

    *ask = (struct weir_ask){ .key = { out, (size_t)len },
                              .cost = 1,
                              .now = WEIR__SIM_START + t->now,
                              .priority = (int8_t)g->priority,
                              .user_class = (uint8_t)g->class };
}

enum fate { IN, REFUSED, WAITS };

/* With a queue: nobody overtakes, and some groups wait. */
static enum fate enter_later(struct weir__sim_trial *t, uint32_t who, struct weir_decision *d)
{
    struct weir__sim_attempt *a = &t->attempts[who];
    struct weir__sim_turn *turn = calloc(1, sizeof(*turn));
    struct weir_ask ask;

    if (turn == NULL) {
        t->failed = true;
        return REFUSED;
    }
    *turn = (struct weir__sim_turn){ .waiter.turn = turn_comes, .trial = t, .who = who };
    write_user(turn->user, t, a, &ask);
    ask.wait_max = weir__sim_wait_of(t, &ask);
    bool taken = weir_enter_later(t->guard, t->queue, &ask, &turn->waiter, &turn->permit, d);
    if (taken && !d->allowed) {
        a->turn = turn;
        weir__sim_post(t, t->now + ask.wait_max + 1, WEIR__SIM_EVENT_LATE, who);
        return WAITS;
    }
    a->permit = turn->permit;
    free(turn);
    return taken ? IN : REFUSED;
}

static enum fate enter(struct weir__sim_trial *t, uint32_t who)
{
    struct weir__sim_attempt *a = &t->attempts[who];
    struct weir_decision decision = { 0 };
    char user[WEIR__SIM_NAME + 24];
    struct weir_ask ask;
    enum fate fate;

    if (t->guard == NULL)
        return IN;
    write_user(user, t, a, &ask);
    if (t->queue)
        fate = enter_later(t, who, &decision);
    else
        fate = weir_enter(t->guard, &ask, &a->permit, &decision) ? IN : REFUSED;
    if (fate == REFUSED)
        count_refusal(t, a->group, decision.reason);
    return fate;
}

/* The request is over. */
static void end(struct weir__sim_trial *t, uint32_t group, bool ok)
{
    const struct weir__sim_group_plan *g = &t->plan->groups[group];

    t->open--;
    if (!ok)
        COUNT(t, group, lost);
    if (g->loop == 0)
        return; /* no dice: arrivals must not depend on the fate of requests */
    weir_time next = t->now + weir__sim_dice_exponential(&t->arrivals[group], g->think);
    if (next < t->plan->length)
        weir__sim_post(t, next, WEIR__SIM_EVENT_LOOP, group);
}

static weir_time back_off(struct weir__sim_trial *t, const struct weir__sim_group_plan *g,
                          int64_t tries)
{
    weir_time span = g->back_off;

    for (int64_t i = 0; i < tries && span < WEIR__SIM_LONGEST; i++)
        span = span / WEIR_MICROSECOND * g->back_off_factor /
               (WEIR__SIM_ONE / WEIR_MICROSECOND); /* 60 s and ten times: it fits */
    span = span < WEIR__SIM_LONGEST ? span : WEIR__SIM_LONGEST;
    return g->jitter ? span / 2 + weir__sim_dice_below(&t->retries, span + 1) : span;
}

/* It came to nothing: it is made again, or that was it. */
static void fail(struct weir__sim_trial *t, uint32_t who, enum weir__sim_retry_on why)
{
    uint32_t group = t->attempts[who].group;
    const struct weir__sim_group_plan *g = &t->plan->groups[group];
    uint32_t again = WEIR__SIM_NOBODY;

    if (t->attempts[who].tries < g->retries && g->retry_on & why)
        again = weir__sim_attempt_create(t);
    if (again == WEIR__SIM_NOBODY) {
        end(t, group, false);
        return;
    }
    struct weir__sim_attempt *old = &t->attempts[who], *a = &t->attempts[again];
    a->group = group;
    a->user = old->user;
    a->work = old->work;
    a->tries = old->tries + 1;
    weir__sim_post(t, t->now + back_off(t, g, old->tries), WEIR__SIM_EVENT_RETRY, again);
}

static void refuse(struct weir__sim_trial *t, uint32_t who)
{
    fail(t, who, WEIR__SIM_RETRY_REFUSED);
    weir__sim_attempt_settle(t, who);
}

static void begin_work(struct weir__sim_trial *t, uint32_t who)
{
    weir__sim_sum_most(t);
    if (weir__sim_backend_put(t, who))
        return;
    weir__sim_clients_answer(t, who, WEIR_DROPPED);
    weir__sim_attempt_settle(t, who);
}

static void send(struct weir__sim_trial *t, uint32_t who)
{
    struct weir__sim_attempt *a = &t->attempts[who];
    weir_time timeout = t->plan->groups[a->group].timeout;

    a->sent = t->now;
    weir__sim_sum_bucket(t)->offered++;
    enum fate fate = enter(t, who);
    if (fate == REFUSED) {
        refuse(t, who);
        return;
    }
    t->attempts[who].waiting = true;
    t->waiting++;
    if (timeout)
        weir__sim_post(t, t->now + timeout, WEIR__SIM_EVENT_TIMEOUT, who);
    if (fate == IN)
        begin_work(t, who);
}

/* Its wait in the guard's queue is over, in one way or another. */
static void turn_comes(struct weir_waiter *waiter, enum weir_reason reason)
{
    struct weir__sim_turn *turn =
        (struct weir__sim_turn *)((char *)waiter - offsetof(struct weir__sim_turn, waiter));
    struct weir__sim_trial *t = turn->trial;
    uint32_t who = turn->who;

    t->attempts[who].permit = turn->permit;
    t->attempts[who].turn = NULL;
    free(turn);
    if (reason == WEIR_GRANTED) {
        begin_work(t, who);
        return;
    }
    t->attempts[who].waiting = false;
    t->waiting--;
    count_refusal(t, t->attempts[who].group, (uint8_t)reason);
    refuse(t, who);
}

void weir__sim_clients_late(struct weir__sim_trial *t)
{
    weir_enter_poll(t->guard, t->queue, WEIR__SIM_START + t->now);
}

void weir__sim_clients_leave(struct weir__sim_trial *t, uint32_t who)
{
    struct weir__sim_turn *turn = t->attempts[who].turn;

    if (turn == NULL)
        return;
    weir_queue_cancel(t->queue, &turn->waiter);
    t->attempts[who].turn = NULL;
    free(turn);
}

static void count_answer(struct weir__sim_trial *t, uint32_t group, enum weir_outcome outcome)
{
    if (outcome == WEIR_SUCCEEDED)
        COUNT(t, group, ok);
    else if (outcome == WEIR_FAILED)
        COUNT(t, group, failed);
    else if (outcome == WEIR_TIMED_OUT)
        COUNT(t, group, timed_out);
    else
        COUNT(t, group, dropped);
    *(outcome == WEIR_SUCCEEDED ? &weir__sim_sum_bucket(t)->ok : &weir__sim_sum_bucket(t)->bad) +=
        1;
}

static void leave_guard(struct weir__sim_trial *t, struct weir_permit *permit,
                        enum weir_outcome outcome)
{
    weir_time now = WEIR__SIM_START + t->now;

    if (t->queue)
        weir_exit_next(t->guard, t->queue, permit, outcome, now);
    else if (t->guard)
        weir_exit(t->guard, permit, outcome, now);
}

void weir__sim_clients_answer(struct weir__sim_trial *t, uint32_t who, enum weir_outcome outcome)
{
    struct weir__sim_attempt *a = &t->attempts[who];

    a->waiting = false;
    t->waiting--;
    count_answer(t, a->group, outcome);
    if (outcome == WEIR_SUCCEEDED || outcome == WEIR_TIMED_OUT)
        weir__sim_sum_time(t, a, outcome == WEIR_SUCCEEDED);
    uint32_t group = a->group;
    struct weir_permit permit = a->permit;
    if (outcome == WEIR_SUCCEEDED)
        end(t, group, true);
    else
        fail(t, who,
             outcome == WEIR_FAILED      ? WEIR__SIM_RETRY_ERROR
             : outcome == WEIR_TIMED_OUT ? WEIR__SIM_RETRY_TIMEOUT
                                         : WEIR__SIM_RETRY_REFUSED);
    leave_guard(t, &permit, outcome); /* last: a waiter's work may begin at once */
}

/* ------------------------------------------------------------------- arrivals ---- */

static void create(struct weir__sim_trial *t, uint32_t group)
{
    const struct weir__sim_group_plan *g = &t->plan->groups[group];
    struct weir__sim_dice *dice = &t->arrivals[group];
    uint32_t who = weir__sim_attempt_create(t);

    if (who == WEIR__SIM_NOBODY)
        return;
    struct weir__sim_attempt *a = &t->attempts[who];
    a->group = group;
    a->user = weir__sim_dice_below(dice, g->users);
    a->work = weir__sim_dice_roll(dice);
    t->open++;
    weir__sim_sum_arrival(t, a);
    COUNT(t, group, requests);
    send(t, who);
}

/* When the next candidate comes. */
static weir_time next_arrival(struct weir__sim_trial *t, uint32_t group)
{
    const struct weir__sim_group_plan *g = &t->plan->groups[group];
    int64_t rate = g->even ? weir__sim_plan_rate(g, t->now) : weir__sim_plan_rate_max(g);
    weir_time change = g->even ? weir__sim_plan_rate_next(g, t->now) : WEIR_NEVER;

    if (rate == 0)
        return change;
    weir_time gap = 1000 * WEIR_SECOND / rate;
    if (!g->even)
        gap = weir__sim_dice_exponential(&t->arrivals[group], gap);
    return t->now + gap < change ? t->now + gap : change;
}

static void post_arrival(struct weir__sim_trial *t, uint32_t group)
{
    weir_time at = next_arrival(t, group);

    if (at < t->plan->length)
        weir__sim_post(t, at, WEIR__SIM_EVENT_ARRIVE, group);
}

void weir__sim_clients_arrive(struct weir__sim_trial *t, uint32_t group)
{
    const struct weir__sim_group_plan *g = &t->plan->groups[group];
    int64_t rate = weir__sim_plan_rate(g, t->now);

    if (g->even ? rate > 0
                : weir__sim_dice_below(&t->arrivals[group], weir__sim_plan_rate_max(g)) < rate)
        create(t, group);
    post_arrival(t, group);
}

void weir__sim_clients_loop(struct weir__sim_trial *t, uint32_t group)
{
    create(t, group);
}

void weir__sim_clients_retry(struct weir__sim_trial *t, uint32_t who)
{
    COUNT(t, t->attempts[who].group, retries);
    send(t, who);
}

void weir__sim_clients_begin(struct weir__sim_trial *t)
{
    for (uint32_t i = 0; i < t->plan->n_groups; i++) {
        const struct weir__sim_group_plan *g = &t->plan->groups[i];
        if (!g->loop)
            post_arrival(t, i);
        for (int64_t k = 0; k < g->loop; k++)
            weir__sim_post(t, weir__sim_dice_exponential(&t->arrivals[i], g->think),
                           WEIR__SIM_EVENT_LOOP, i);
    }
}
