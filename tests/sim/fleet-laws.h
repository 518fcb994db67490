/* fleet-laws.h -- what must hold of a fleet, whatever happens: never more than the bound; and
 * stories by the dice. */
#ifndef WEIR_TESTS_SIM_FLEET_LAWS_H
#define WEIR_TESTS_SIM_FLEET_LAWS_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fleet-world.h"

static int by_time(const void *a, const void *b)
{
    const struct passed *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

static double rate_of(const struct weir_plan *plan)
{
    return (double)plan->limit.count / (double)plan->limit.period;
}

/* Meters: b + r (T + life) in any T, as a bucket that is never more than full. */
static bool law_meter(const struct outcome *o, int limit, const struct account *a, bool shares)
{
    const struct weir_plan *plan = &o->plans[limit];
    double level = 0, rate = rate_of(plan),
           most = (double)plan->most + (double)a->extra + 1e-6 +
                  rate * (double)(o->limits[limit].terms.life + o->step_back);
    weir_time at = 0;

    for (size_t i = 0; i < a->n_passed; i++) {
        if (a->passed[i].share > 0 && !shares)
            continue;
        level -= rate * (double)(a->passed[i].at - at);
        level = (level < 0 ? 0 : level) + (double)a->passed[i].units;
        at = a->passed[i].at;
        if (level > most)
            return false;
    }
    return true;
}

static int64_t law_units(const struct passed *p, bool shares)
{
    return p->share == 0 || shares ? p->units : 0;
}

/* Sliding windows: never more than the count in a period; if units wait for those of another limit,
 * in a period less their life.  Redis counts in microseconds.  Fixed ones: from each of their
 * starts, which are multiples of the period on every clock here. */
static bool law_window(const struct outcome *o, int limit, const struct account *a, bool shares,
                       bool several)
{
    const struct weir_plan *plan = &o->plans[limit];
    bool fixed = plan->algo == &weir__fixed_window;
    weir_time period = plan->limit.period, life = o->limits[limit].terms.life;
    weir_time span = fixed ? period : period - US - (several ? life : 0);
    int64_t sum = 0, most = plan->limit.count + a->extra + (o->step_back > 0 ? plan->most : 0);
    size_t first = 0;

    for (size_t i = 0; i < a->n_passed; i++) {
        weir_time at = a->passed[i].at, start = fixed ? at / period * period : at - span + 1;
        for (sum += law_units(&a->passed[i], shares); a->passed[first].at < start; first++)
            sum -= law_units(&a->passed[first], shares);
        if (sum > most)
            return false;
    }
    return true;
}

/* One share, by its node's clock: a meter's burst and rate, a window's count. */
static bool law_share(const struct outcome *o, const struct account *a, int share)
{
    const struct weir_plan *plan = &a->shares[share - 1];
    bool meter = plan->capacity > 0, fixed = plan->algo == &weir__fixed_window;
    double level = 0, most = (double)plan->most + 1e-6;
    weir_time at = 0, period = plan->limit.period;
    int64_t sum = 0;
    size_t first = 0;

    most += o->step_back > 0 ? (double)plan->most + rate_of(plan) * (double)o->step_back : 0;
    for (size_t i = 0; i < a->n_passed; i++) {
        const struct passed *p = &a->passed[i];
        if (p->share != share)
            continue;
        level -= p->own > at ? rate_of(plan) * (double)(p->own - at) : 0;
        level = (level < 0 ? 0 : level) + (double)p->units;
        at = p->own > at ? p->own : at;
        weir_time start = fixed ? p->own / period * period : p->own - period + 1;
        for (sum += p->units; a->passed[first].share != share || a->passed[first].own < start;
             first++)
            sum -= a->passed[first].share == share ? a->passed[first].units : 0;
        if ((meter ? level : (double)sum) > most)
            return false;
    }
    return true;
}

/* The name of the law that is broken; NULL: none. */
static const char *law_broken(const struct story *story, const struct outcome *o)
{
    for (int l = 0; l < story->n_limits; l++)
        for (int k = 0; k < story->keys; k++) {
            const struct account *a = &o->accounts[l][k];
            qsort(a->passed, a->n_passed, sizeof(*a->passed), by_time);
            bool all = story->together;
            if (o->limits[l].terms.window ? !law_window(o, l, a, all, story->n_limits > 1)
                                          : !law_meter(o, l, a, all))
                return "never more than the bound";
            for (int i = 1; i <= a->n_shares; i++)
                if (!law_share(o, a, i))
                    return "never more than a node's share";
        }
    return o->broken;
}

/* Units that passed on an account from one moment to another. */
static int64_t passed_between(const struct account *a, int node, weir_time from, weir_time to)
{
    int64_t units = 0;

    for (size_t i = 0; i < a->n_passed; i++)
        if (a->passed[i].at >= from && a->passed[i].at < to &&
            (node < 0 || a->passed[i].node == node))
            units += a->passed[i].units;
    return units;
}

/* ----------------------------------------------------------------- stories ---- */

#ifndef EVENTS_MAX
#define EVENTS_MAX 400000
#endif

static struct event events[EVENTS_MAX];

static struct event *add_event(struct story *s)
{
    struct event *e = &events[s->n < EVENTS_MAX ? s->n++ : EVENTS_MAX - 1];

    *e = (struct event){ 0 };
    s->events = events;
    return e;
}

/* Asks of a node by chance, `rate` of them in a second, from one moment to another. */
static void add_asks(struct story *s, int node, double rate, weir_time from, weir_time to,
                     struct event ask)
{
    double mean = 1e9 / rate;

    for (double at = (double)from + mean * (double)between(0, 1000) / 1000; at < (double)to;) {
        struct event *e = add_event(s);
        *e = ask;
        e->at = (weir_time)at;
        e->node = (uint16_t)node;
        e->n = ask.n > 1 ? (int32_t)between(1, ask.n) : 1;
        at += mean * (double)between(1, 1999) / 1000;
    }
}

static int in_time(const void *a, const void *b)
{
    const struct event *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

static void put_in_order(struct story *s)
{
    qsort(s->events, s->n, sizeof(*s->events), in_time);
}

#endif
