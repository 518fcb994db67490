/* cl-throttle.c -- keys that are asked under limits which come with the ask, another one each
 * time: in batches, peeked at, forgotten, late, in a table that may be too small, beside a
 * limiter's keys.
 *
 *     cl-throttle [SEED [ROUNDS]]
 *
 * The model has for each key the time that it owes, as a fraction: docs/from-redis-cell.md and
 * docs/algorithms.md, in numbers of 128 bits.
 *
 *     as alone     an answer is the model's, or that of a key which has made room
 *     all is told  no more has made room than evicted_early says
 */
#include <stdio.h>
#include <stdlib.h>

#include "rounds.h"
#include "table/cl-throttle-limits.h"

#define LIMITS     5
#define KEYS       150
#define BATCH      40
#define STEPS      200
#define BEGIN      (4000000000 * WEIR_SECOND) /* far ahead of the table's own clock */
#define NAME_BYTES 16

/* What a key owes at a moment: parts of 1/scale ns. */
struct key {
    weir_time at;
    __int128 owed, scale; /* scale 0: it has never been asked */
};

struct limit {
    struct weir_plan plan;
    int64_t price, scale, burst; /* in lowest terms */
};

static struct limit limits[LIMITS];
static struct key keys[KEYS];
static struct weir_table *table;
static int n_limits, n_keys;
static bool tight; /* keys make room, and time goes on */
static weir_time now;
static int64_t lost;

static void fail(const char *what)
{
    printf("seed %" PRIu64 ": %s\n", seed_of_round, what);
    exit(1);
}

/* ---------------------------------------------------------------- model ---- */

static int64_t up(__int128 a, __int128 b)
{
    return a <= 0 ? 0 : (int64_t)((a + b - 1) / b);
}

/* As of an ask: a late one is judged at the latest moment; later than a second, the clock was set
 * back, and the debt goes along. */
static struct key as_of(const struct key *key, weir_time when, bool *stepped)
{
    struct key k = *key;

    *stepped = k.scale != 0 && when < k.at - WEIR_SECOND;
    if (k.scale != 0 && when < k.at && !*stepped)
        when = k.at;
    if (when > k.at)
        k.owed = k.owed > (when - k.at) * k.scale ? k.owed - (when - k.at) * k.scale : 0;
    k.at = when;
    return k;
}

static struct weir_decision ask_model(struct key *key, const struct limit *l,
                                      const struct weir_ask *ask, bool take)
{
    struct weir_decision d = { .limit = l->burst };
    bool stepped;
    struct key k = as_of(key, ask->now, &stepped);

    if (take && stepped)
        *key = k;
    if (k.scale != l->scale)
        k.owed = k.scale == 0 ? 0 : (k.owed * l->scale + k.scale - 1) / k.scale;
    __int128 most = (__int128)l->burst * l->price, then = k.owed + (__int128)ask->cost * l->price;
    d.allowed = ask->cost >= 0 && then <= most;
    d.reason = ask->cost < 0 ? WEIR_BAD_ASK
               : d.allowed   ? WEIR_GRANTED
                             : (ask->cost > l->burst ? WEIR_TOO_BIG : WEIR_LIMITED);
    d.retry = d.allowed ? 0 : d.reason == WEIR_LIMITED ? up(then - most, l->scale) : WEIR_NEVER;
    k.owed = d.allowed ? then : k.owed;
    d.remaining = k.owed >= most ? 0 : (int64_t)((most - k.owed) / l->price);
    d.reset = up(k.owed, l->scale);
    if (take && d.allowed && ask->cost > 0)
        *key = (struct key){ k.at, k.owed, l->scale };
    return d;
}

static bool is_same(const struct weir_decision *a, const struct weir_decision *b)
{
    return a->allowed == b->allowed && a->reason == b->reason && a->limit == b->limit &&
           a->remaining == b->remaining && a->wait == b->wait && a->retry == b->retry &&
           a->reset == b->reset;
}

static void judge(struct key *key, const struct limit *l, const struct weir_ask *ask, bool take,
                  const struct weir_decision *d)
{
    struct key fresh = { 0 };
    struct weir_decision own = ask_model(key, l, ask, take);

    if (is_same(&own, d))
        return;
    own = ask_model(&fresh, l, ask, take);
    if (!tight || !is_same(&own, d))
        fail("another answer");
    *key = fresh;
    lost++;
}

/* ----------------------------------------------------------------- deeds ---- */

static struct weir_ask random_ask(const struct limit *l, int *key)
{
    static char names[KEYS][NAME_BYTES];
    int64_t cost = one_in(4) ? between(0, 3) : one_in(6) ? l->burst + between(0, 1) : 1;
    weir_time late = tight || !one_in(8) ? 0 : between(0, 4 * WEIR_SECOND);

    *key = int_between(0, n_keys - 1);
    size_t len = (size_t)snprintf(names[*key], NAME_BYTES, "key %d", *key);
    return (struct weir_ask){ .key = { names[*key], len },
                              .cost = one_in(30) ? -1 : cost,
                              .wait_max = one_in(8) ? WEIR_SECOND : 0,
                              .now = now - late };
}

static void do_many(void)
{
    struct weir__carried_item items[BATCH];
    struct weir_decision each[BATCH];
    int of[BATCH], by[BATCH];
    size_t n = (size_t)between(1, BATCH);

    for (size_t i = 0; i < n; i++) {
        by[i] = int_between(0, n_limits - 1);
        items[i].plan = &limits[by[i]].plan;
        items[i].ask = random_ask(&limits[by[i]], &of[i]);
    }
    weir__carried_take_many(table, items, n, each);
    for (size_t i = 0; i < n; i++)
        judge(&keys[of[i]], &limits[by[i]], &items[i].ask, true, &each[i]);
}

static void do_peek(void)
{
    struct limit *l = &limits[between(0, n_limits - 1)];
    struct weir_decision d;
    int key;
    struct weir__carried_item item = { &l->plan, random_ask(l, &key) };

    weir__carried_peek(table, &item, &d);
    judge(&keys[key], l, &item.ask, false, &d);
}

static void do_forget(void)
{
    int i;
    struct weir_ask ask = random_ask(limits, &i);
    bool stepped;
    struct key k = as_of(&keys[i], ask.now, &stepped);

    if (weir__carried_forget(table, ask.key, ask.now) != (k.owed > 0) && !tight)
        fail("it was not as used as forgetting says");
    if (k.owed > 0)
        keys[i] = (struct key){ tight ? 0 : k.at, 0, keys[i].scale };
}

/* A limiter's keys, many of them new. */
static void do_flood(struct weir_limiter *limiter)
{
    struct weir_decision d;
    char name[NAME_BYTES];

    for (int i = 0; i < 20; i++) {
        size_t len = (size_t)snprintf(name, sizeof(name), "other %d", int_between(0, 400));
        struct weir_ask ask = { .key = { name, len }, .cost = between(1, 5), .now = now };
        weir_take(limiter, &ask, &d);
    }
}

/* ----------------------------------------------------------------- round ---- */

static void make_limit(struct limit *l)
{
    static const char *const algorithms[] = { "gcra", "token-bucket", "leaky-bucket" };
    static const int64_t counts[] = { 1, 2, 7, 60, 100, 4410, 999983 };
    static const weir_time periods[] = { 333,
                                         WEIR_MILLISECOND,
                                         WEIR_SECOND,
                                         7 * WEIR_SECOND,
                                         60 * WEIR_SECOND,
                                         86400 * WEIR_SECOND,
                                         30 * 86400 * WEIR_SECOND };
    struct weir_limit limit = { .algorithm = algorithms[between(0, 2)],
                                .count = counts[between(0, 6)],
                                .period = periods[between(0, 6)],
                                .burst = one_in(2) ? between(1, 9) : between(1, 200) };

    if (weir__plan_make(&l->plan, &limit, NULL) != WEIR_OK || !weir__plan_is_carried(&l->plan))
        fail(limit.algorithm);
    l->plan.clock = &table->clock;
    int64_t common = limit.count, rest = limit.period;
    while (rest != 0) {
        int64_t next = common % rest;
        common = rest;
        rest = next;
    }
    *l = (struct limit){ l->plan, limit.period / common, limit.count / common, limit.burst };
}

static void play(void)
{
    struct weir_limit flood = { .algorithm = "gcra", .count = 5, .period = 60 * WEIR_SECOND };
    struct weir_limiter *limiter;
    struct weir_table_stats stats;

    tight = one_in(2);
    struct weir_table_options options = { .keys = 100, .slab = 4096, .guards = 1, .bans = 1 };
    if (weir_table_create(&table, &options, NULL) != WEIR_OK ||
        weir_limiter_create(&limiter, table, "flood", &flood, NULL) != WEIR_OK)
        fail("no table");
    n_limits = int_between(1, LIMITS);
    n_keys = one_in(3) ? 1 : int_between(2, KEYS);
    lost = 0;
    now = BEGIN;
    for (int i = 0; i < n_limits; i++)
        make_limit(&limits[i]);
    for (int i = 0; i < KEYS; i++)
        keys[i] = (struct key){ 0 };
    for (int i = 0; i < STEPS; i++) {
        now += one_in(3) ? 0 : one_in(2) ? between(0, 2 * WEIR_SECOND) : between(0, 1000000);
        if (!tight && one_in(50))
            now -= between(0, 5 * WEIR_SECOND);
        if (one_in(5))
            do_peek();
        else if (one_in(12))
            do_forget();
        else if (tight && one_in(3))
            do_flood(limiter);
        else
            do_many();
    }
    weir_table_stats(table, -1, &stats);
    weir_table_destroy(table);
    if (lost > stats.evicted_early)
        fail("more was lost than is told");
}

int main(int argc, char **argv)
{
    printf("%" PRIu64 " rounds\n", play_rounds(argc, argv, 20, play));
    return 0;
}
