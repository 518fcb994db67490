/* algo.c -- the list of the algorithms; making a plan from a limit. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "algo/algo.h"
#include "weir-queue.h"

/* A new algorithm: its file, a line here, tests/vectors/NAME.vec, a section in docs/algorithms.md.
 * The order is part of the table's format (docs/shm.md): add at the end. */
static const struct weir__algo *const algorithms[] = {
    &weir__fixed_window, &weir__sliding_window, &weir__sliding_log, &weir__leaky_bucket,
    &weir__token_bucket, &weir__gcra,           &weir__smooth,      &weir__warm_up,
    &weir__calendar,     &weir__purse, /* not one to choose: it is no limit by itself */
};

#define ALGORITHMS (sizeof(algorithms) / sizeof(*algorithms))
#define UNCHOSEN   1

const char *const *weir_algorithms(void)
{
    static const char *const names[] = {
        "fixed-window", "sliding-window", "sliding-log", "leaky-bucket", "token-bucket",
        "gcra",         "smooth",         "warm-up",     "calendar",     NULL,
    };

    _Static_assert(sizeof(names) / sizeof(*names) == ALGORITHMS - UNCHOSEN + 1,
                   "a name for each algorithm, in the same order");
    return names;
}

int weir__algo_index(const char *name)
{
    for (size_t i = 0; i < ALGORITHMS; i++)
        if (strcmp(algorithms[i]->name, name) == 0)
            return (int)i;
    return -1;
}

const struct weir__algo *weir__algo_at(size_t index)
{
    return index < ALGORITHMS ? algorithms[index] : NULL;
}

const char *weir_algorithm_summary(const char *name)
{
    int i = weir__algo_index(name);

    return i < 0 ? NULL : algorithms[i]->summary;
}

/* Refuses members that the algorithm does not use: naming one is a mistake. */
static int refuse_strangers(const struct weir__algo *algo, const struct weir_limit *l,
                            struct weir_error *error)
{
    bool window = algo == &weir__fixed_window || algo == &weir__sliding_window ||
                  algo == &weir__sliding_log || algo == &weir__calendar;

    const struct {
        bool named;
        bool known;
        const char *word, *whose;
    } members[] = {
        { l->burst != 0 && l->burst != l->count, !window && !algo->fills, "burst",
          "bucket algorithms: a window passes its count at once" },
        { l->queue != 0, algo == &weir__leaky_bucket, "queue", "leaky-bucket" },
        { l->buckets != 0, algo == &weir__sliding_window, "buckets", "sliding-window" },
        { l->loose, algo == &weir__sliding_window, "edge=loose", "sliding-window" },
        { l->align_first, algo == &weir__fixed_window, "align=first", "fixed-window" },
        { l->warmup != 0, algo == &weir__warm_up, "warmup", "warm-up" },
        { l->cold != 0, algo == &weir__warm_up, "cold", "warm-up" },
    };
    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++)
        if (members[i].named && !members[i].known)
            return weir__fail(error, WEIR_INVALID, "%s has no '%s'; it is for %s", algo->name,
                              members[i].word, members[i].whose);
    return WEIR_OK;
}

static int check_numbers(const struct weir__algo *algo, const struct weir_limit *l,
                         struct weir_error *error)
{
    if (l->count < 1)
        return weir__fail(error, WEIR_INVALID, "count must be at least 1");
    if (l->period < 1 && l->calendar == WEIR_NO_CALENDAR && algo != &weir__calendar)
        return weir__fail(error, WEIR_INVALID, "period must be at least 1ns");
    if (l->burst < 0)
        return weir__fail(error, WEIR_INVALID, "burst must be at least 1");
    if (l->queue < 0 && l->queue != WEIR_NO_QUEUE)
        return weir__fail(error, WEIR_INVALID, "queue must not be negative");
    if (l->buckets < 0 || l->warmup < 0 || l->cold < 0)
        return weir__fail(error, WEIR_INVALID, "%s must not be negative",
                          l->buckets < 0  ? "buckets"
                          : l->warmup < 0 ? "warmup"
                                          : "cold");
    return WEIR_OK;
}

uint64_t weir__common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The price of a unit at this rate. */
static void set_price(struct weir_plan *plan)
{
    int64_t count = plan->limit.count, period = plan->limit.period;
    uint64_t common = weir__common_divisor((uint64_t)count, (uint64_t)period);

    plan->price = period / (int64_t)common;
    plan->by_price = weir__divisor_make((uint64_t)plan->price);
    plan->by_scale = weir__divisor_make((uint64_t)count / common);
}

bool weir__price_fit(struct weir_plan *plan, uint64_t scale_max)
{
    weir__u128 count = (weir__u128)plan->limit.count, period = (weir__u128)plan->limit.period;

    if (plan->by_scale.by <= scale_max)
        return true;
    plan->price = (int64_t)((period * scale_max + count - 1) / count);
    plan->by_price = weir__divisor_make((uint64_t)plan->price);
    plan->by_scale = weir__divisor_make(scale_max);
    return scale_max > 0 && plan->price >= WEIR__PRICE_LEAST;
}

static int64_t default_burst(const struct weir_limit *l)
{
    return l->queue != 0 ? 1 : l->count;
}

int weir__plan_make(struct weir_plan *out, const struct weir_limit *limit, struct weir_error *error)
{
    const char *name = weir__limit_algorithm(limit);
    int index = weir__algo_index(name), code;

    if (index < 0)
        return weir__fail(error, WEIR_INVALID, "unknown algorithm '%s'; %s", name,
                          weir__hint(name, strlen(name), weir_algorithms(), WEIR__TO_NULL).text);
    struct weir_plan plan = { .algo = algorithms[index],
                              .limit = *limit,
                              .state_size = WEIR__STATE_SMALL };
    if ((code = check_numbers(plan.algo, limit, error)) ||
        (code = weir__calendar_check(limit, name, error)) ||
        (code = refuse_strangers(plan.algo, limit, error)))
        return code;
    plan.limit.algorithm = plan.algo->name;
    if (plan.limit.burst == 0)
        plan.limit.burst = default_burst(limit);
    if (limit->period > 0)
        set_price(&plan);
    if ((code = plan.algo->prepare(&plan, error)))
        return code;
    *out = plan;
    return WEIR_OK;
}

int weir__plan_check_redis(const struct weir_plan *plan, struct weir_error *error)
{
    if (plan->state_size <= WEIR__REDIS_STATE_MAX)
        return WEIR_OK;
    return weir__fail(
        error, WEIR_INVALID, "in Redis a key has at most %zu bytes, and this limit needs %zu; %s",
        WEIR__REDIS_STATE_MAX, plan->state_size,
        plan->algo == &weir__sliding_log ? "use sliding-window, which keeps only its buckets"
                                         : "fewer buckets would do");
}

struct weir_limit weir__plan_limit_named(const struct weir_plan *plan)
{
    struct weir_limit l = plan->limit;

    l.burst = l.burst == default_burst(&l) ? 0 : l.burst;
    l.buckets = l.buckets == WEIR__BUCKETS_DEFAULT ? 0 : l.buckets;
    l.warmup = l.warmup == l.period ? 0 : l.warmup;
    l.cold = l.cold == WEIR__COLD_DEFAULT ? 0 : l.cold;
    return l;
}

int weir_plan_create(struct weir_plan **out, const struct weir_limit *limit,
                     struct weir_error *error)
{
    struct weir_plan plan;
    int code = weir__plan_make(&plan, limit, error);

    if (code)
        return code;
    struct weir_plan *copy = malloc(sizeof(*copy));
    if (copy == NULL)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for a plan");
    *copy = plan;
    *out = copy;
    return WEIR_OK;
}

void weir_plan_destroy(struct weir_plan *plan)
{
    free(plan);
}

size_t weir_plan_state_size(const struct weir_plan *plan)
{
    return plan->state_size;
}

#define STOPPED_MAX (24 * 3600 * WEIR_SECOND)

weir_time weir__moment(const struct weir_clock *clock, weir_time seen, weir_time now)
{
    weir_time present = clock == NULL ? now : clock->now(clock->context);

    return seen <= present + WEIR__LATE_MAX && present - now < STOPPED_MAX && present > now
               ? present
               : now;
}

bool weir__step_mended(const struct weir_plan *plan, void *state, const struct weir_ask *ask,
                       bool take, struct weir_decision *d)
{
    bool bad = ask->cost < 0;
    struct weir_ask mended = *ask;

    mended.cost = bad ? 0 : ask->cost;
    mended.now = ask->now < 0 ? 0 : ask->now;
    mended.wait_max = ask->wait_max < 0 ? 0 : ask->wait_max;
    weir__step(plan, state, &mended, take && !bad, d);
    if (bad) {
        d->wait = 0;
        weir__refuse(d, WEIR_NEVER);
        d->reason = WEIR_BAD_ASK;
    }
    return d->allowed;
}

bool weir_step(const struct weir_plan *plan, void *state, const struct weir_ask *ask,
               struct weir_decision *decision)
{
    return weir__step(plan, state, ask, true, decision);
}

bool weir_step_peek(const struct weir_plan *plan, const void *state, const struct weir_ask *ask,
                    struct weir_decision *decision)
{
    return weir__step(plan, (void *)state, ask, false, decision);
}

void weir_step_give(const struct weir_plan *plan, void *state, const struct weir_ask *ask)
{
    if (ask->cost > 0)
        plan->algo->give(plan, state, ask->cost, ask->now < 0 ? 0 : ask->now);
}

weir_time weir_step_idle_at(const struct weir_plan *plan, const void *state)
{
    return plan->algo->idle_at(plan, state);
}

void weir_step_change(const struct weir_plan *old_plan, const struct weir_plan *new_plan,
                      const void *from, void *to, weir_time now)
{
    assert(old_plan->algo == new_plan->algo);
    memset(to, 0, new_plan->state_size);
    old_plan->algo->change(old_plan, new_plan, from, to, now < 0 ? 0 : now);
}

bool weir__peek_stepped(const struct weir_plan *plan, const struct weir_ask *ask, int64_t used,
                        weir_time leave, weir_time later, struct weir_decision *d)
{
    int64_t count = plan->limit.count, cost = ask->cost;
    weir_time wait = used <= count - cost ? 0 : leave - ask->now;
    bool granted = cost <= count && wait <= ask->wait_max;
    int64_t after = granted ? used + cost : used;

    d->remaining = after >= count ? 0 : count - after;
    d->reset = after == 0 ? 0 : (granted && wait > 0 && cost > 0 ? later : leave) - ask->now;
    if (granted)
        return weir__grant(d, wait);
    return weir__refuse(d, cost > count ? WEIR_NEVER : wait - ask->wait_max);
}
