/* laws-models.h -- the plainest model of each algorithm: what it would grant must be granted. */
#ifndef WEIR_TESTS_PROPERTY_LAWS_MODELS_H
#define WEIR_TESTS_PROPERTY_LAWS_MODELS_H

#include "laws-key.h"

/* With the plan's rate in place of the written one: the same in lowest terms, or, where that does
 * not fit, rounded (tests/unit/algo/algo.c). */
static struct weir_limit limit_at_plan_rate(const struct weir_plan *plan)
{
    struct weir_limit l = plan->limit;

    l.period = plan->price;
    l.count = (int64_t)plan->by_scale.by;
    return l;
}

/* A token bucket in exact fractions, the way one would tell it: tokens in units of 1/period,
 * refilled at every ask. */
struct model {
    weir__i128 tokens; /* times period */
    weir_time last;
};

static void against_the_plain_model(struct key *k)
{
    const struct weir_limit own = limit_at_plan_rate(k->plan), *l = &own;
    struct model m = { (weir__i128)l->burst * l->period, k->now };
    unsigned char *state = calloc(1, k->size);
    weir_time now = k->now;

    for (int i = 0; i < 200; i++) {
        int64_t cost = one_in(4) ? between(0, l->burst < 60 ? l->burst : 60) : 1;
        weir__i128 full = (weir__i128)l->burst * l->period;
        m.tokens += (weir__i128)(now - m.last) * l->count;
        m.tokens = m.tokens > full ? full : m.tokens;
        m.last = now;
        bool expected = m.tokens >= (weir__i128)cost * l->period;
        if (expected)
            m.tokens -= (weir__i128)cost * l->period;
        struct weir_ask a = { .now = now, .cost = cost };
        struct weir_decision d;
        weir_step(k->plan, state, &a, &d);
        LAW(d.allowed == expected, "just what real numbers grant");
        LAW(d.remaining == (int64_t)(m.tokens / l->period), "and what they leave");
        now += one_in(2)    ? between(0, 2 * (l->period / l->count) + 2)
               : one_in(20) ? 10 * l->period
                            : 0;
    }
    free(state);
}

/* Every instant in a list: what the log must grant, and what the window must not exceed. */
static void against_the_plain_log(struct key *k)
{
    const struct weir_limit *l = &k->plan->limit;
    static weir_time log[100000];
    int64_t used = 0;
    unsigned char *state = calloc(1, k->size);
    weir_time now = k->now;

    for (int i = 0; i < 300; i++) {
        int64_t cost = one_in(4) ? between(1, l->count < 60 ? l->count : 60) : 1, live = 0;
        for (int64_t g = 0; g < used; g++)
            live += log[g] > now - l->period;
        struct weir_ask a = { .now = now, .cost = cost };
        struct weir_decision d;
        weir_step(k->plan, state, &a, &d);
        bool room = live + cost <= l->count;
        LAW(!d.allowed || room || l->loose, "no more than the limit in any period");
        LAW(is("sliding-window") || d.allowed == room, "and all of it");
        for (int64_t u = 0; d.allowed && u < cost && used < 100000; u++)
            log[used++] = now;
        now += one_in(2)    ? between(0, 2 * (l->period / l->count) + 2)
               : one_in(10) ? between(0, l->period)
                            : 0;
    }
    free(state);
}

/* The window that `now` lies in; align=first: the one that began at `start`, if it lasts. */
static weir_time plain_window(const struct key *k, weir_time now, weir_time start,
                              weir_time *length)
{
    const struct weir_limit *l = &k->plan->limit;
    weir_time begun;

    *length = is("calendar") ? weir__calendar_window(k->plan, now, &begun) : l->period;
    if (is("calendar"))
        return begun;
    return l->align_first ? (start >= 0 && now - start < l->period ? start : now)
                          : now / l->period * l->period;
}

/* A counter and the window it is for. */
static void against_the_plain_counter(struct key *k)
{
    const struct weir_limit *l = &k->plan->limit;
    unsigned char *state = calloc(1, k->size);
    weir_time now = k->now, start = INT64_MIN, length;
    int64_t used = 0;

    for (int i = 0; i < 300; i++) {
        weir_time window = plain_window(k, now, start, &length);
        int64_t cost = one_in(4) ? between(1, l->count < 60 ? l->count : 60) : 1,
                before = window == start ? used : 0;
        bool expected = before + cost <= l->count;
        struct weir_ask a = { .now = now, .cost = cost };
        struct weir_decision d;
        weir_step(k->plan, state, &a, &d);
        LAW(d.allowed == expected, "what a counter grants");
        LAW(d.remaining == l->count - before - (expected ? cost : 0), "and what it leaves");
        LAW(expected || d.retry == window + length - now, "until the window ends");
        if (expected) {
            start = window;
            used = before + cost;
        }
        now += one_in(2)    ? between(0, 2 * (span_of_round / l->count) + 2)
               : one_in(10) ? between(0, 2 * span_of_round)
                            : 0;
    }
    free(state);
}

/* A bucket with a hole, in fractions of 1/count ns: an ask's turn comes when what was before it,
 * but for burst - 1 units, has run out. */
static void against_the_plain_bucket(struct key *k)
{
    const struct weir_limit own = limit_at_plan_rate(k->plan), *l = &own;
    unsigned char *state = calloc(1, k->size);
    weir__i128 level = 0, whole = (weir__i128)k->plan->most * l->period,
               quick = (weir__i128)(l->burst - 1) * l->period;
    weir_time now = k->now;

    for (int i = 0; i < 300; i++) {
        int64_t cost = one_in(4) ? between(1, k->plan->most < 60 ? k->plan->most : 60) : 1;
        weir_time max = one_in(2) ? WEIR_FOREVER : between(0, 3 * l->period);
        weir__i128 turn = level > quick ? (level - quick + l->count - 1) / l->count : 0,
                   after = level + (weir__i128)cost * l->period;
        bool expected = turn <= max && after <= whole;
        struct weir_ask a = { .now = now, .cost = cost, .wait_max = max };
        struct weir_decision d;
        weir_step(k->plan, state, &a, &d);
        LAW(d.allowed == expected, "what a bucket with a hole takes");
        LAW(!expected || d.wait == (weir_time)turn, "and the turn it gives");
        level = expected ? after : level;
        weir_time passed = one_in(2)    ? between(0, 2 * (l->period / l->count) + 2)
                           : one_in(20) ? 10 * l->period
                                        : 0;
        level -= (weir__i128)passed * l->count;
        level = level < 0 ? 0 : level;
        now += passed;
    }
    free(state);
}

/* Guava's RateLimiter as it is told: permits stored while idle, the next free moment; in fractions
 * of 1/count ns. */
static void against_the_plain_limiter(struct key *k)
{
    const struct weir_limit own = limit_at_plan_rate(k->plan), *l = &own;
    weir__i128 next = (weir__i128)k->now * l->count, stored = 0,
               most = (weir__i128)l->burst * l->period;
    unsigned char *state = calloc(1, k->size);
    weir_time now = k->now;
    struct weir_ask first = { .now = now, .cost = 1, .wait_max = WEIR_FOREVER };
    struct weir_decision d;

    weir_step(k->plan, state, &first,
              &d); /* whatever a fresh key had saved: use it up, and know where we are */
    first.cost = (int64_t)l->burst;
    weir_step(k->plan, state, &first, &d);
    first.cost = 0;
    weir_step_peek(k->plan, state, &first, &d);
    now += d.wait;
    if (d.wait == 0 || l->period % l->count != 0)
        goto done; /* only where the present debt is a whole number of ns, so that the model starts
                      exactly */
    next = (weir__i128)now * l->count;
    for (int i = 0; i < 200; i++) {
        int64_t cost = one_in(4) ? between(0, 60) : 1;
        weir_time max = one_in(2) ? WEIR_FOREVER : between(0, 2 * (l->period / l->count) + 2);
        weir__i128 t = (weir__i128)now * l->count;
        if (t > next) {
            stored = stored + (t - next) > most ? most : stored + (t - next);
            next = t;
        }
        weir__i128 wait = (next - t + l->count - 1) / l->count;
        struct weir_ask a = { .now = now, .cost = cost, .wait_max = max };
        weir_step(k->plan, state, &a, &d);
        LAW(d.allowed == (wait <= max), "granted once the debt is paid");
        LAW(!d.allowed || d.wait == (weir_time)wait, "and told the wait for it");
        if (d.allowed) {
            weir__i128 price = (weir__i128)cost * l->period,
                       saved = price < stored ? price : stored;
            stored -= saved;
            next += price - saved;
        }
        now += one_in(2)    ? between(0, 2 * (l->period / l->count) + 2)
               : one_in(20) ? 10 * l->period
                            : 0;
        if (wait > 1000 * (weir__i128)l->period)
            break;
    }
done:
    free(state);
}

/* Guava's SmoothWarmingUp in floating point: a curve, so near is near enough. */
static void against_the_plain_warm_up(struct key *k)
{
    const struct weir_limit *l = &k->plan->limit;
    double stable = (double)l->period / (double)l->count, warmup = (double)l->warmup,
           cold = l->cold;
    double threshold = 0.5 * warmup / stable, most = threshold + 2 * warmup / (stable * (1 + cold));
    double slope = stable * (cold - 1) / (most - threshold), stored = most, next = 0;
    unsigned char *state = calloc(1, k->size);
    weir_time now = between(0, 1000 * WEIR_SECOND), start = now;

    for (int i = 0; i < 100 && next < 1e15; i++) {
        int64_t cost = one_in(4) ? between(1, 30) : 1;
        double t = (double)(now - start), left = (double)cost;
        if (t > next) {
            stored = stored + (t - next) * most / warmup > most
                         ? most
                         : stored + (t - next) * most / warmup;
            next = t;
        }
        struct weir_ask a = { .now = now, .cost = cost, .wait_max = WEIR_FOREVER };
        struct weir_decision d;
        weir_step(k->plan, state, &a, &d);
        double wait = next - t, off = (double)d.wait - wait;
        LAW(d.allowed && (off < 0 ? -off : off) <= 1000 + wait / 1e6, "waits as Guava's");
        double above = stored - threshold > 0 ? stored - threshold : 0,
               dear = above < left ? above : left;
        next += dear * (2 * stable + (2 * above - dear) * slope) / 2 + (left - dear) * stable;
        stored = stored > left ? stored - left : 0;
        now += one_in(3)    ? d.wait
               : one_in(3)  ? between(0, l->warmup)
               : one_in(10) ? 3 * l->warmup
                            : 0;
    }
    free(state);
}

#endif
