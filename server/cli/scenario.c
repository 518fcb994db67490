/* scenario.c -- one burst of traffic through each algorithm.
 *
 *     0.0 s   a trickle, half the limit
 *     1.5 s   a burst, eight times the limit
 *     2.3 s   silence, long enough to be fresh again
 *     4.7 s   a burst across the full second at 5.0, where a window that is aligned to the clock
 *             ends
 *     5.3 s   a trickle again
 *
 * Every ask is one unit on one key.  Algorithms whose answer is a turn to wait for may let an ask
 * wait; the others say yes or no at once.
 */
#include "server/cli/scenario.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static const struct phase {
    weir_time from, to, every;
} phases[] = {
    { 0, 1500 * WEIR_MILLISECOND, 200 * WEIR_MILLISECOND },
    { 1500 * WEIR_MILLISECOND, 2300 * WEIR_MILLISECOND, 12500 * WEIR_MICROSECOND },
    { 4700 * WEIR_MILLISECOND, 5300 * WEIR_MILLISECOND, 12500 * WEIR_MICROSECOND },
    { 5300 * WEIR_MILLISECOND, 5800 * WEIR_MILLISECOND, 200 * WEIR_MILLISECOND },
};

/* What an algorithm needs beyond the limit that all have. */
static const struct special {
    const char *algorithm, *options;
    weir_time wait_max;
} specials[] = {
    { "leaky-bucket", " queue 5", WEIR__SCENARIO_WAIT },
    { "smooth", "", WEIR__SCENARIO_WAIT },
    { "warm-up", " warmup=2s", WEIR__SCENARIO_WAIT },
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { USES_MAX = 256 };

struct run {
    struct weir_plan *plan;
    void *state;
    weir_time wait_max;
    weir_time uses[USES_MAX]; /* when each admitted ask was used */
    struct weir__scenario *out;
};

static size_t bucket_of(weir_time time)
{
    size_t i = (size_t)(time / WEIR__SCENARIO_BUCKET);

    return i < WEIR__SCENARIO_BUCKETS ? i : WEIR__SCENARIO_BUCKETS - 1;
}

static void ask_once(struct run *r, weir_time now)
{
    struct weir_ask ask = { .cost = 1, .wait_max = r->wait_max, .now = now };
    struct weir_decision d;
    struct weir__scenario *out = r->out;

    out->offered[bucket_of(now)]++;
    out->offered_all++;
    if (!weir_step(r->plan, r->state, &ask, &d)) {
        out->refused[bucket_of(now)]++;
        return;
    }
    assert(out->admitted_all < USES_MAX);
    r->uses[out->admitted_all++] = now + d.wait;
    out->admitted[bucket_of(now + d.wait)]++;
    out->waited[bucket_of(now + d.wait)] += d.wait > 0;
    out->waited_all += d.wait > 0;
}

static int compare(const void *a, const void *b)
{
    weir_time x = *(const weir_time *)a, y = *(const weir_time *)b;

    return (x > y) - (x < y);
}

static int most_in_a_period(struct run *r)
{
    int most = 0;
    int n = r->out->admitted_all;

    qsort(r->uses, (size_t)n, sizeof(r->uses[0]), compare);
    for (int first = 0, last = 0; last < n; last++) {
        while (r->uses[last] - r->uses[first] >= WEIR__SCENARIO_PERIOD)
            first++;
        most = last - first + 1 > most ? last - first + 1 : most;
    }
    return most;
}

static int make_plan(struct run *r, const char *algorithm, struct weir_error *error)
{
    const struct special *s = specials;
    struct weir_limit limit;

    while (s < specials + COUNT_OF(specials) && strcmp(s->algorithm, algorithm) != 0)
        s++;
    bool is_special = s < specials + COUNT_OF(specials);
    r->wait_max = is_special ? s->wait_max : 0;
    snprintf(r->out->limit, sizeof(r->out->limit), "%s %s%s", algorithm, WEIR__SCENARIO_LIMIT,
             is_special ? s->options : "");
    int code = weir_limit_parse(&limit, r->out->limit, error);
    return code == WEIR_OK ? weir_plan_create(&r->plan, &limit, error) : code;
}

int weir__scenario_run(struct weir__scenario *out, const char *algorithm, struct weir_error *error)
{
    struct run r = { .out = out };

    *out = (struct weir__scenario){ .most = 0 };
    int code = make_plan(&r, algorithm, error);
    if (code != WEIR_OK)
        return code;
    r.state = calloc(1, weir_plan_state_size(r.plan));
    for (size_t i = 0; r.state && i < COUNT_OF(phases); i++) {
        for (weir_time now = phases[i].from; now < phases[i].to; now += phases[i].every)
            ask_once(&r, now);
    }
    out->most = most_in_a_period(&r);
    code = r.state ? WEIR_OK : weir__fail(error, WEIR_NO_MEMORY, "no memory");
    free(r.state);
    weir_plan_destroy(r.plan);
    return code;
}
