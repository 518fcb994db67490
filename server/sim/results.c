/* results.c -- a trial's results: outcomes, times, and how they compare with the possible.
 *
 * Quantiles are exact: every time is kept, sorted once, and walked through once for the whole,
 * every group and every bucket.
 */
#include "server/sim/sim.h"

#include <stdlib.h>

#include "base/hash.h"

static size_t bucket_at(const struct weir__sim_trial *t, weir_time at)
{
    size_t i = (size_t)(at / t->out->bucket);

    return i < t->out->n_buckets ? i : t->out->n_buckets - 1;
}

struct weir__sim_bucket *weir__sim_sum_bucket(struct weir__sim_trial *t)
{
    return t->now < t->plan->length ? &t->out->buckets[bucket_at(t, t->now)] : &t->after;
}

static void add_one(struct weir__sim_fates *fates, size_t member)
{
    *(int64_t *)(void *)((char *)fates + member) += 1;
}

void weir__sim_sum_count(struct weir__sim_trial *t, uint32_t group, size_t member)
{
    add_one(&t->out->all, member);
    add_one(&t->out->groups[group].all, member);
    if (!weir__sim_measures(t))
        return;
    add_one(&t->out->measured, member);
    add_one(&t->out->groups[group].measured, member);
}

static void raise(int64_t *most, int64_t n)
{
    *most = n > *most ? n : *most;
}

void weir__sim_sum_most(struct weir__sim_trial *t)
{
    raise(&weir__sim_sum_bucket(t)->in_flight_max, t->waiting);
}

/* In-flight times ns since the last event, where it belongs. */
void weir__sim_sum_areas(struct weir__sim_trial *t)
{
    weir_time to = t->now < t->plan->length ? t->now : t->plan->length;

    while (t->area_at < to) {
        size_t i = bucket_at(t, t->area_at);
        weir_time end = (weir_time)(i + 1) * t->out->bucket;
        weir_time span = (end < to ? end : to) - t->area_at;
        raise(&t->out->buckets[i].in_flight_max, t->waiting);
        t->out->buckets[i].in_flight += (double)t->waiting * (double)span;
        t->out->buckets[i].inside += (double)(t->backend.busy + t->backend.queued) * (double)span;
        t->area_at += span;
    }
}

void weir__sim_sum_arrival(struct weir__sim_trial *t, const struct weir__sim_attempt *a)
{
    uint64_t *hash = &t->out->groups[a->group].arrivals;

    *hash = weir__mix64(weir__mix64(*hash + (uint64_t)t->now) + (uint64_t)a->user) + a->work;
}

/* ---------------------------------------------------------------------- times ---- */

void weir__sim_sum_time(struct weir__sim_trial *t, const struct weir__sim_attempt *a, bool answered)
{
    if (t->now >= t->plan->length)
        return;
    if (t->n_times == t->times_room) {
        size_t room = t->times_room ? 2 * t->times_room : 4096;
        struct weir__sim_time_taken *times = realloc(t->times, room * sizeof(*times));
        if (times == NULL) {
            t->failed = true;
            return;
        }
        t->times = times;
        t->times_room = room;
    }
    t->times[t->n_times++] =
        (struct weir__sim_time_taken){ .took = t->now - a->sent,
                                       .group = a->group,
                                       .bucket = (uint32_t)bucket_at(t, t->now),
                                       .measured = weir__sim_measures(t),
                                       .answered = answered };
}

static int compare(const void *left, const void *right)
{
    const struct weir__sim_time_taken *a = left, *b = right;

    return (a->took > b->took) - (a->took < b->took);
}

/* Finds two quantiles of those that pass by in order. */
struct tally {
    int64_t n, seen;
    weir_time *p50, *p99;
};

static void meet(struct tally *t, weir_time took)
{
    if (t->seen == (t->n - 1) * 50 / 100)
        *t->p50 = took;
    if (t->seen == (t->n - 1) * 99 / 100)
        *t->p99 = took;
    t->seen++;
}

struct tallies {
    struct tally whole, groups[WEIR__SIM_GROUPS], buckets[WEIR__SIM_BUCKETS];
};

static void prepare(struct tallies *s, struct weir__sim_outcome *o)
{
    s->whole = (struct tally){ .p50 = &o->p50, .p99 = &o->p99 };
    o->p50 = o->p99 = -1;
    for (size_t i = 0; i < WEIR__SIM_GROUPS; i++) {
        s->groups[i] = (struct tally){ .p50 = &o->groups[i].p50, .p99 = &o->groups[i].p99 };
        o->groups[i].p50 = o->groups[i].p99 = -1;
    }
    for (size_t i = 0; i < o->n_buckets; i++) {
        s->buckets[i] = (struct tally){ .p50 = &o->buckets[i].p50, .p99 = &o->buckets[i].p99 };
        o->buckets[i].p50 = o->buckets[i].p99 = -1;
    }
}

static void find_quantiles(struct weir__sim_trial *t, struct tallies *s)
{
    prepare(s, t->out);
    if (t->n_times > 0)
        qsort(t->times, t->n_times, sizeof(*t->times), compare);
    for (size_t i = 0; i < t->n_times; i++) {
        const struct weir__sim_time_taken *x = &t->times[i];
        s->whole.n += x->measured;
        s->groups[x->group].n += x->measured;
        s->buckets[x->bucket].n++;
    }
    for (size_t i = 0; i < t->n_times; i++) {
        const struct weir__sim_time_taken *x = &t->times[i];
        meet(&s->buckets[x->bucket], x->took);
        if (x->measured) {
            meet(&s->whole, x->took);
            meet(&s->groups[x->group], x->took);
        }
    }
}

/* ------------------------------------------------------------------- fairness ---- */

struct share {
    double demand, got, fair, weight;
    bool full; /* gets all it wants */
};

/* Divides `all` by weight; nobody gets more than it wants, and the others share the rest.
 * Shedding (lib/guard/shed.c) aims at the same division; here it is reckoned once more, on its
 * own, because a judge that shared the code would share its mistakes. */
static void divide(struct share *s, size_t n, double all)
{
    for (bool again = true; again;) {
        double left = all, weights = 0;
        for (size_t i = 0; i < n; i++) {
            left -= s[i].full ? s[i].demand : 0;
            weights += s[i].full ? 0 : s[i].weight;
        }
        again = false;
        for (size_t i = 0; i < n; i++) {
            if (s[i].full)
                continue;
            s[i].fair = weights > 0 && left > 0 ? left * s[i].weight / weights : 0;
            if (s[i].fair < s[i].demand)
                continue;
            s[i].fair = s[i].demand;
            s[i].full = again = true;
        }
    }
}

/* The ratio of best to worst, each compared with its fair share of the total. */
static double unfairness_of(const struct weir__sim_outcome *o)
{
    const struct weir__sim_plan *plan = o->plan;
    struct share s[WEIR_CLASSES] = { 0 };
    double all = 0, most = 0, least = 1e9;

    for (size_t i = 0; i < plan->n_groups; i++) {
        struct share *of = &s[plan->groups[i].class];
        of->demand += (double)o->groups[i].measured.requests;
        of->got += (double)o->groups[i].measured.ok;
        all += (double)o->groups[i].measured.ok;
    }
    for (size_t i = 0; i < plan->n_classes; i++)
        s[i].weight = (double)plan->guard.classes[i].weight;
    divide(s, plan->n_classes, all);
    for (size_t i = 0; i < plan->n_classes; i++) {
        double part = s[i].fair > 0 ? s[i].got / s[i].fair : 1;
        most = part > most ? part : most;
        least = part < least ? part : least;
    }
    return least > 0 && most / least < 999 ? most / least : 999;
}

void weir__sim_sum_finish(struct weir__sim_trial *t)
{
    struct weir__sim_outcome *o = t->out;
    struct tallies *s = calloc(1, sizeof(*s));

    if (s == NULL || t->failed) {
        t->failed = true;
        free(s);
        return;
    }
    find_quantiles(t, s);
    free(s);
    for (size_t i = 0; i < o->n_buckets; i++) {
        o->buckets[i].in_flight /= (double)o->bucket;
        o->buckets[i].inside /= (double)o->bucket;
    }
    o->possible = weir__sim_plan_possible(t->plan, o->bucket, o->buckets, o->n_buckets);
    o->goodput = o->possible > 0 ? 100.0 * (double)o->measured.ok / o->possible : 0;
    o->wasted = t->backend.spent > 0 ? 100.0 * t->backend.wasted / t->backend.spent : 0;
    o->unfairness = t->plan->n_classes > 1 && o->measured.ok > 0 ? unfairness_of(o) : -1;
}
