/* pressure.c -- a table that is too small: small and large states of all sizes drive each other
 * out, limits change, also with promises out, keys are forgotten, and the file is opened again, or
 * a copy of it.
 *
 *     pressure [SEED [ROUNDS]]
 *
 * Beside the table each key has a state of its own, changed by bare steps.
 *
 *     as alone     a decision is the one of the key's own state; or of the state without its last
 *                  grant, which the table could not keep, or without the one before, which the
 *                  answer to a promise did not show; or of a fresh one
 *     all is told  no more was lost than evicted_early and the copies say
 */
#include <string.h>
#include <unistd.h>

#include "rounds.h"
#include "table/file.h"
#include "weir.h"

#define KEYS       30
#define LIMITS     8
#define ITEMS      8
#define STEPS      1500
#define CHANGES    5                          /* of a limit: all are remembered */
#define BEGIN      (4000000000 * WEIR_SECOND) /* far ahead of the table's own clock */
#define NAME_BYTES 16

static const char *const kinds[][2] = {
    { "gcra 5/10s", "gcra 8/12s burst 12" },
    { "token-bucket 5/10s burst 9", "token-bucket 3/6s burst 5" },
    { "sliding-window 6/10s", "sliding-window 8/12s buckets=25" },
    { "sliding-window 9/10s buckets=60", "sliding-window 7/10s buckets=200" },
    { "sliding-window 9/60s buckets=1500", "sliding-window 12/60s buckets=700" },
    { "sliding-window 9/60s buckets=9000", "sliding-window 9/50s buckets=5000" },
    { "sliding-window 9/90s buckets=20000", "sliding-window 7/90s buckets=9000" },
    { "sliding-window 9/61s buckets=2000 edge=loose", "sliding-window 12/61s edge=loose" },
    { "sliding-log 6/10s", "sliding-log 9/12s" },
    { "sliding-log 300/60s", "sliding-log 500/50s" },
    { "leaky-bucket 4/5s queue 3", "leaky-bucket 5/5s queue 2" }, /* from here on: wide tables */
    { "smooth 5/9s", "smooth 7/9s" },
    { "fixed-window 6/11s", "fixed-window 8/9s" },
    { "fixed-window 6/13s align=first", "fixed-window 4/12s align=first" },
    { "calendar 9/day", "calendar 12/day" },
    { "warm-up 5/3s", "warm-up 6/4s" },
};
#define SMALL_KINDS  2 /* a change in a narrow table keeps the time that they owe */
#define NARROW_KINDS 10
#define KINDS        (int)(sizeof(kinds) / sizeof(*kinds))

/* What a key has used; and what if its last grant was not kept, or the one before. */
struct key {
    void *state, *before, *other;
};

struct limit {
    int kind, version, changes;
    struct weir_plan *plan;
    struct weir_limiter *limiter;
    struct key keys[KEYS];
};

static struct limit limits[LIMITS];
static int n_limits;
static struct weir_table *table;
static struct weir_table_options options;
static weir_time now;
static int64_t lost, told; /* told: by tables that are no more */

static void fail(const char *what)
{
    printf("seed %" PRIu64 ": %s\n", seed_of_round, what);
    exit(1);
}

static struct weir_limit limit_of(const struct limit *l)
{
    struct weir_limit limit;

    if (weir_limit_parse(&limit, kinds[l->kind][l->version], NULL) != WEIR_OK)
        fail(kinds[l->kind][l->version]);
    return limit;
}

static struct weir_ask ask_for(int key, int64_t cost, weir_time wait)
{
    static char names[KEYS][NAME_BYTES];
    size_t len = (size_t)snprintf(names[key], NAME_BYTES, "key %d", key);

    return (
        struct weir_ask){ .key = { names[key], len }, .cost = cost, .wait_max = wait, .now = now };
}

static struct weir_ask random_ask(void)
{
    int64_t cost = one_in(12) ? 0 : one_in(3) ? between(1, 9) : between(1, 2);
    weir_time wait = !options.narrow && one_in(4) ? between(0, 30 * WEIR_SECOND) : 0;

    return ask_for(int_between(0, KEYS - 1), cost, wait);
}

static int key_in(const struct weir_ask *ask)
{
    return atoi((const char *)ask->key.bytes + 4);
}

/* --------------------------------------------------------------- judging ---- */

static bool is_same(const struct weir_decision *a, const struct weir_decision *b)
{
    return a->allowed == b->allowed && a->reason == b->reason && a->limit == b->limit &&
           a->remaining == b->remaining && a->wait == b->wait && a->retry == b->retry &&
           a->reset == b->reset;
}

static bool would_be(const struct limit *l, const void *state, const struct weir_ask *ask,
                     const struct weir_decision *d)
{
    struct weir_decision own;

    weir_step_peek(l->plan, state, ask, &own);
    return is_same(&own, d);
}

/* What a new key is told for which there is no room: as if it had not asked. */
static bool is_not_kept(const struct weir_ask *ask, const struct weir_decision *d)
{
    return d->allowed && ask->cost > 0 && d->remaining == d->limit && d->reset == 0;
}

/* The state that the decision is of becomes the key's. */
static void judge(struct limit *l, const struct weir_ask *ask, const struct weir_decision *d)
{
    struct key *key = &l->keys[key_in(ask)];
    size_t size = weir_plan_state_size(l->plan);

    if (!is_not_kept(ask, d) && would_be(l, key->state, ask, d))
        return;
    lost++;
    if (!is_not_kept(ask, d) && would_be(l, key->before, ask, d)) {
        memcpy(key->state, key->before, size);
        return;
    }
    if (!is_not_kept(ask, d) && would_be(l, key->other, ask, d)) {
        memcpy(key->state, key->other, size);
        memcpy(key->before, key->other, size);
        return;
    }
    memset(key->state, 0, size);
    memset(key->before, 0, size);
    memset(key->other, 0, size);
    if (!is_not_kept(ask, d) && !would_be(l, key->state, ask, d))
        fail(kinds[l->kind][l->version]);
}

/* After it was judged. */
static void take_alone(struct limit *l, const struct weir_ask *ask, const struct weir_decision *d)
{
    struct key *key = &l->keys[key_in(ask)];
    struct weir_decision own;

    if (is_not_kept(ask, d))
        return;
    memcpy(key->other, key->before, weir_plan_state_size(l->plan));
    memcpy(key->before, key->state, weir_plan_state_size(l->plan));
    weir_step(l->plan, key->state, ask, &own);
    weir_step(l->plan, key->other, ask, &own);
}

/* ----------------------------------------------------------------- deeds ---- */

static void do_one(struct limit *l)
{
    struct weir_ask ask = random_ask();
    struct weir_decision d;
    bool takes = !one_in(5);

    (takes ? weir_take : weir_peek)(l->limiter, &ask, &d);
    if (takes || !is_not_kept(&ask, &d))
        judge(l, &ask, &d);
    if (takes)
        take_alone(l, &ask, &d);
}

/* Each key of each limit once. */
static void do_all(void)
{
    struct weir_item items[ITEMS] = { 0 };
    struct weir_decision all, each[ITEMS];
    struct limit *of[ITEMS];
    size_t n = 0;

    for (int i = 0; i < n_limits; i++)
        if (one_in(2)) {
            of[n] = &limits[i];
            items[n++] = (struct weir_item){ limits[i].limiter, random_ask() };
        }
    bool granted = weir_take_all_each(items, n, &all, each);
    for (size_t i = 0; i < n && all.reason != WEIR_NO_ROOM; i++) {
        judge(of[i], &items[i].ask, &each[i]);
        if (granted)
            take_alone(of[i], &items[i].ask, &each[i]);
    }
}

static void do_many(void)
{
    struct weir_item items[2 * ITEMS];
    struct weir_decision each[2 * ITEMS];
    struct limit *of[2 * ITEMS];
    size_t n = (size_t)between(1, 2 * ITEMS);

    for (size_t i = 0; i < n; i++) {
        of[i] = &limits[between(0, n_limits - 1)];
        items[i] = (struct weir_item){ of[i]->limiter, random_ask() };
    }
    weir_take_many(items, n, each);
    for (size_t i = 0; i < n; i++) {
        judge(of[i], &items[i].ask, &each[i]);
        take_alone(of[i], &items[i].ask, &each[i]);
    }
}

static void do_forget(struct limit *l)
{
    struct weir_ask ask = random_ask();
    struct key *key = &l->keys[key_in(&ask)];

    weir_forget(l->limiter, ask.key, now);
    memset(key->state, 0, weir_plan_state_size(l->plan));
    memset(key->before, 0, weir_plan_state_size(l->plan));
    memset(key->other, 0, weir_plan_state_size(l->plan));
}

static void *converted(void *state, const struct weir_plan *from, const struct weir_plan *to)
{
    void *out = calloc(1, weir_plan_state_size(to));

    weir_step_change(from, to, state, out, now);
    free(state);
    return out;
}

static void do_change(struct limit *l)
{
    struct weir_plan *old = l->plan;

    if (l->changes == CHANGES || (options.narrow && l->kind < SMALL_KINDS))
        return;
    l->changes++;
    l->version = !l->version;
    struct weir_limit limit = limit_of(l);
    if (weir_limiter_change(l->limiter, &limit, now, NULL) != WEIR_OK)
        fail("a limit cannot be changed");
    weir_plan_create(&l->plan, &limit, NULL);
    for (struct key *key = l->keys; key < l->keys + KEYS; key++) {
        key->state = converted(key->state, old, l->plan);
        key->before = converted(key->before, old, l->plan);
        key->other = converted(key->other, old, l->plan);
    }
    weir_plan_destroy(old);
}

static void open_table(void)
{
    char name[32];

    if (weir_table_create(&table, &options, NULL) != WEIR_OK)
        fail("no table");
    for (int i = 0; i < n_limits; i++) {
        struct weir_limit limit = limit_of(&limits[i]);
        snprintf(name, sizeof(name), "limit %d", i);
        if (weir_limiter_create(&limits[i].limiter, table, name, &limit, NULL) != WEIR_OK)
            fail("a limit does not fit the table");
    }
}

static int64_t evicted(void)
{
    struct weir_table_stats stats;

    weir_table_stats(table, -1, &stats);
    return stats.evicted_early;
}

/* A backup, used in place of the table. */
static void do_copy(void)
{
    struct weir__copied copied;
    char path[80];

    snprintf(path, sizeof(path), "%s-copy", options.path);
    if (weir__table_backup(table, path, &copied, NULL) != WEIR_OK)
        fail("no backup");
    told += evicted() + copied.lost;
    weir_table_destroy(table);
    if (rename(path, options.path) != 0)
        fail("no copy");
    open_table();
}

static void do_something(void)
{
    struct limit *l = &limits[between(0, n_limits - 1)];
    int64_t what = between(1, 100);

    if (one_in(3))
        now += one_in(4) ? between(0, 20 * WEIR_SECOND) : between(0, 2 * WEIR_SECOND);
    if (what <= 60)
        do_one(l);
    else if (what <= 80)
        do_all();
    else if (what <= 90)
        do_many();
    else if (what <= 96)
        do_forget(l);
    else if (what <= 98)
        do_change(l);
    else if (what == 99)
        weir_table_tend(table, now);
    else if (one_in(5)) {
        weir_table_destroy(table);
        open_table();
    } else if (one_in(5)) {
        do_copy();
    }
}

/* ----------------------------------------------------------------- round ---- */

static void make_limits(void)
{
    n_limits = int_between(3, LIMITS);
    for (struct limit *l = limits; l < limits + n_limits; l++) {
        *l =
            (struct limit){ .kind = int_between(0, options.narrow ? NARROW_KINDS - 1 : KINDS - 1) };
        struct weir_limit limit = limit_of(l);
        if (weir_plan_create(&l->plan, &limit, NULL) != WEIR_OK)
            fail(kinds[l->kind][0]);
        for (struct key *key = l->keys; key < l->keys + KEYS; key++) {
            key->state = calloc(1, weir_plan_state_size(l->plan));
            key->before = calloc(1, weir_plan_state_size(l->plan));
            key->other = calloc(1, weir_plan_state_size(l->plan));
        }
    }
}

static void drop_limits(void)
{
    for (struct limit *l = limits; l < limits + n_limits; l++) {
        for (struct key *key = l->keys; key < l->keys + KEYS; key++) {
            free(key->state);
            free(key->before);
            free(key->other);
        }
        weir_plan_destroy(l->plan);
    }
}

static void play(void)
{
    char path[64];

    snprintf(path, sizeof(path), "/dev/shm/weir-pressure-%d", (int)getpid());
    options = (struct weir_table_options){ .path = path,
                                           .narrow = one_in(3),
                                           .keys = between(100, 250),
                                           .slab = between(12, 40) << 16,
                                           .guards = 1,
                                           .bans = 1 };
    now = BEGIN;
    lost = told = 0;
    make_limits();
    open_table();
    for (int i = 0; i < STEPS; i++)
        do_something();
    told += evicted();
    weir_table_destroy(table);
    unlink(path);
    drop_limits();
    if (lost > told)
        fail("more was lost than is told");
}

int main(int argc, char **argv)
{
    printf("%" PRIu64 " rounds\n", play_rounds(argc, argv, 20, play));
    return 0;
}
