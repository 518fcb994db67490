/* adhoc.c -- limits that clients bring with their asks: one limiter for what is the same, changed
 * by name, and no more than allowed. */
#include "unit/test.h"

#include <pthread.h>

#include "unit/fixture.h"
#include "server/serve/decide/adhoc.h"
#include "server/serve/events/events.h"

OWNS(weir__adhoc)

static struct weir__adhoc *adhoc_on(struct weir_table *table, int64_t limits_max)
{
    struct weir__adhoc *adhoc = NULL;

    assert_ok(weir__adhoc_create(&adhoc, table, limits_max, NULL, NULL));
    assert_non_null(adhoc);
    return adhoc;
}

/* Copies the texts to bytes with nothing behind them, so that a sanitizer sees reads beyond. */
static const struct weir__conn *client; /* NULL: nobody in particular */

static int find(struct weir__adhoc *adhoc, const char *limit, const char *name, weir_time now,
                struct weir_limiter **out, struct weir_error *error)
{
    size_t limit_len = strlen(limit), name_len = strlen(name);
    char *l = memcpy(malloc(limit_len + !limit_len), limit, limit_len),
         *n = memcpy(malloc(name_len + !name_len), name, name_len);
    int code = weir__adhoc_find(
        adhoc, &(struct weir__adhoc_wanted){ { l, limit_len }, { n, name_len }, now, client }, out,
        error);

    free(l);
    free(n);
    return code;
}

static struct weir_limiter *found(struct weir__adhoc *adhoc, const char *limit, const char *name,
                                  weir_time now)
{
    struct weir_limiter *limiter = NULL;
    struct weir_error error = { 0 };

    if (find(adhoc, limit, name, now, &limiter, &error) != WEIR_OK)
        fail_msg("%s (%s): %s", limit, name, error.text);
    assert_non_null(limiter);
    return limiter;
}

static void refused(struct weir__adhoc *adhoc, const char *limit, const char *name,
                    const char *part)
{
    struct weir_limiter *untouched = (void *)adhoc, *limiter = untouched;
    struct weir_error error = { 0 };

    assert_int_not_equal(find(adhoc, limit, name, NOW, &limiter, &error), WEIR_OK);
    assert_ptr_equal(limiter, untouched);
    assert_contains(error.text, part);
}

/* --------------------------------------------------------------- without a name ---- */

TEST(test_limits_that_are_the_same_share_their_keys)
{
    static const char *const same[] = { "300/60",           "300/60s",
                                        "300/1m",           "token-bucket 300/1m",
                                        "300/60 burst 300", " 300/60" };

    OWN(weir_table) *table = private_table(false, 100);
    OWN(weir__adhoc) *adhoc = adhoc_on(table, 10);
    struct weir_limiter *first = found(adhoc, same[0], "", NOW);
    for (size_t i = 0; i < COUNT_OF(same); i++)
        for (int again = 0; again < 2; again++)
            assert_ptr_equal(found(adhoc, same[i], "", NOW), first);
    assert_ptr_not_equal(found(adhoc, "300/61", "", NOW), first);
    assert_ptr_not_equal(found(adhoc, "gcra 300/60", "", NOW), first);
    assert_ptr_not_equal(found(adhoc, "300/60 burst 10", "", NOW), first);
    assert_int_equal(take(first, "k", 1, NOW).limit, 300);
}

TEST(test_every_algorithm_will_do)
{
    static const char *const limits[] = { "fixed-window 5/10",
                                          "fixed-window 5/10 align=first",
                                          "sliding-window 5/10",
                                          "sliding-log 5/10",
                                          "leaky-bucket 5/10",
                                          "leaky-bucket 5/10 queue 3",
                                          "token-bucket 5/10",
                                          "gcra 5/10",
                                          "smooth 5/10",
                                          "warm-up 5/10",
                                          "5/day zone=Europe/Berlin" };

    OWN(weir_table) *table = private_table(false, 1000);
    OWN(weir__adhoc) *adhoc = adhoc_on(table, 100);
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        struct weir_limiter *limiter = found(adhoc, limits[i], "", NOW);
        assert_true(take(limiter, "k", 1, NOW).allowed);
        assert_ptr_equal(found(adhoc, limits[i], "", NOW), limiter);
    }
}

TEST(test_what_is_wrong_is_told)
{
    char long_text[400], long_name[80];

    OWN(weir_table) *table = private_table(false, 100);
    OWN(weir__adhoc) *adhoc = adhoc_on(table, 10);
    struct weir_limiter *limiter = NULL;
    memset(long_text, '1', sizeof(long_text));
    long_text[sizeof(long_text) - 1] = '\0';
    memset(long_name, 'n', sizeof(long_name));
    long_name[sizeof(long_name) - 1] = '\0';
    refused(adhoc, "", "", "a limit is missing");
    refused(adhoc, "300", "", "");
    refused(adhoc, "slidingwindow 300/60", "", "");
    refused(adhoc, "0/60", "", "count");
    refused(adhoc, long_text, "", "at most 255 bytes");
    refused(adhoc, "300/60", long_name, "at most 62 bytes");
    refused(adhoc, "300/60", "a\nb", "control");
    refused(adhoc, "", "nobody", "no limit named 'nobody'");
    assert_fails(
        weir__adhoc_find(adhoc,
                         &(struct weir__adhoc_wanted){ { "300\0/60", 7 }, { NULL, 0 }, NOW, NULL },
                         &limiter, &error),
        WEIR_INVALID, "NUL");
    assert_fails(
        weir__adhoc_find(adhoc,
                         &(struct weir__adhoc_wanted){ { "300/60", 6 }, { "a\0b", 3 }, NOW, NULL },
                         &limiter, &error),
        WEIR_INVALID, "NUL");
    assert_int_equal(
        weir__adhoc_find(adhoc, &(struct weir__adhoc_wanted){ { "x", 1 }, { NULL, 0 }, NOW, NULL },
                         &limiter, NULL),
        WEIR_INVALID);
    assert_int_equal(stats_of(table, -1).limiters, 0);
}

TEST(test_there_are_no_more_than_allowed)
{
    OWN(weir_table) *table = private_table(false, 100);
    OWN(weir__adhoc) *adhoc = adhoc_on(table, 3);
    found(adhoc, "1/1", "", NOW);
    found(adhoc, "2/1", "", NOW);
    found(adhoc, "3/1", "x", NOW);
    refused(adhoc, "4/1", "", "adhoc-limits");
    refused(adhoc, "1/1", "y", "adhoc-limits");
    found(adhoc, "2/1", "", NOW);
    found(adhoc, "5/1", "x", NOW); /* a change is none more */
    for (int i = 0; i < 100; i++) {
        char text[160];
        snprintf(text, sizeof(text), "2/%d00ms",
                 10 * i + 10); /* nor are spellings that nobody has seen, known or not */
        if (i == 0)
            found(adhoc, text, "", NOW);
        else
            refused(adhoc, text, "", "adhoc-limits");
        snprintf(text, sizeof(text), "%*s2/1", i, "");
        found(adhoc, text, "", NOW);
        found(adhoc, text, "x", NOW);
    }
    assert_int_equal(stats_of(table, -1).limiters, 3);
    weir__adhoc_destroy(adhoc);
    adhoc = adhoc_on(table, 3); /* those that are in the table count */
    refused(adhoc, "4/1", "", "adhoc-limits");
    found(adhoc, "1/1", "", NOW);
}

TEST(test_a_full_table_and_too_small_a_slab_are_told)
{
    OWN(weir_table) *table =
        table_with(&(struct weir_table_options){ .keys = 1000, .limiters = 100, .slab = 64 << 10 });
    OWN(weir__adhoc) *adhoc = adhoc_on(table, 100);
    refused(adhoc, "sliding-log 100000/1000s", "", "slab");
    found(adhoc, "gcra 5/1", "", NOW); /* others need none of that */
    weir__adhoc_destroy(adhoc);
    weir_table_destroy(table);
    table = table_with(&(struct weir_table_options){ .keys = 100, .limiters = 2 });
    adhoc = adhoc_on(table, 100);
    found(adhoc, "1/1", "", NOW);
    found(adhoc, "2/1", "", NOW);
    refused(adhoc, "3/1", "", "made for 2 limiters");
}

/* ------------------------------------------------------------------- with a name ---- */

TEST(test_another_limit_under_a_name_changes_it_and_keys_keep_what_they_used)
{
    OWN(weir_table) *table = private_table(false, 100);
    OWN(weir__adhoc) *adhoc = adhoc_on(table, 10);
    struct weir_limiter *limiter = found(adhoc, "gcra 10/10", "api", NOW);
    assert_int_equal(take(limiter, "k", 4, NOW).remaining, 6);
    for (int i = 0; i < 3; i++) { /* back and forth */
        assert_ptr_equal(found(adhoc, "gcra 20/10", "api", NOW), limiter);
        assert_int_equal(left(limiter, "k", NOW), 16);
        assert_ptr_equal(found(adhoc, "", "api", NOW), limiter);
        assert_int_equal(left(limiter, "k", NOW), 16);
        assert_ptr_equal(found(adhoc, "gcra 10/10", "api", NOW), limiter);
        assert_int_equal(left(limiter, "k", NOW), 6);
    }
    assert_ptr_equal(found(adhoc, "30/10", "api", NOW), limiter); /* no algorithm: it stays */
    assert_int_equal(left(limiter, "k", NOW), 26);
    refused(adhoc, "fixed-window 10/10", "api", "another name");
    assert_int_equal(left(limiter, "k", NOW), 26);
    assert_ptr_not_equal(found(adhoc, "gcra 30/10", "web", NOW), limiter);
    assert_ptr_not_equal(found(adhoc, "gcra 30/10", "", NOW), limiter);
}

TEST(test_a_change_by_somebody_else_is_noticed)
{
    OWN(weir_table) *table = private_table(false, 100);
    OWN(weir__adhoc) *adhoc = adhoc_on(table, 10);
    struct weir_limiter *limiter = found(adhoc, "gcra 10/10", "api", NOW);
    change(limiter, "gcra 5/10", NOW);
    found(adhoc, "", "api", NOW);
    assert_int_equal(take(limiter, "k", 0, NOW).limit, 5);
    found(adhoc, "gcra 10/10", "api", NOW);
    assert_int_equal(take(limiter, "k", 0, NOW).limit, 10);
}

/* What a change leaves in memory must not grow without end. */
TEST(test_a_name_whose_limit_changes_all_the_time_keeps_one_for_a_while)
{
    OWN(weir_table) *table = private_table(false, 100);
    OWN(weir__adhoc) *adhoc = adhoc_on(table, 10);
    struct weir_limiter_info info = { 0 };
    struct weir_limiter *limiter = found(adhoc, "gcra 10/10", "api", NOW);
    for (int i = 0; i < 3000; i++)
        assert_ptr_equal(found(adhoc, i % 2 ? "gcra 10/10" : "gcra 20/10", "api", NOW), limiter);
    assert_true(weir_limiter_next(table, &(int64_t){ 0 }, &info));
    assert_int_equal(info.changes, 1000);
    assert_int_equal(take(limiter, "k", 0, NOW).limit, 10);
    found(adhoc, "gcra 20/10", "api", NOW);
    assert_int_equal(take(limiter, "k", 0, NOW).limit, 10);
    refused(adhoc, "gcra", "api", ""); /* what makes no sense is told all the same */
    found(adhoc, "gcra 20/10", "api", NOW + S);
    assert_int_equal(take(limiter, "k", 0, NOW + S).limit, 20);
}

OWNS(weir__fair_use)
OWNS(weir__events)

static int64_t limit_after(struct weir__adhoc *adhoc, const struct weir__conn *conn,
                           const char *limit, const char *name, weir_time now)
{
    client = conn;
    int64_t most = take(found(adhoc, limit, name, now), "k", 0, now).limit;
    client = NULL;
    return most;
}

static void flip(struct weir__adhoc *adhoc, const struct weir__conn *conn, weir_time now)
{
    for (int i = 0; i < 3000; i++)
        limit_after(adhoc, conn, i % 2 ? "10/10" : "20/10", "mine", now);
}

TEST(test_S1_a_client_that_changes_limits_all_the_time_leaves_changes_to_others)
{
    OWN(weir_table) *table = private_table(false, 100);
    OWN(weir__events) *events = weir__events_create();
    OWN(weir__fair_use) *fair_use = weir__fair_use_create(events);
    OWN(weir__adhoc) *adhoc = NULL;
    struct weir__conn greedy = { .fair_user = { 1, 1 } }, second = { .fair_user = { 1, 2 } },
                      other = { .fair_user = { 2, 3 } };
    assert_ok(weir__adhoc_create(&adhoc, table, 10, fair_use, NULL));
    limit_after(adhoc, &other, "1000/10", "mails", NOW);
    for (int i = 0; i < 10; i++) {
        weir_time now = NOW + i * S / 2;
        flip(adhoc, &greedy, now);
        flip(adhoc, &second, now);
        assert_int_equal(limit_after(adhoc, &other, i % 2 ? "9/10" : "8/10", "mails", now),
                         i % 2 ? 9 : 8);
    }
    assert_true(weir__fair_use_refused(fair_use, WEIR__POOL_LIMIT_CHANGES) > 0);
    flip(adhoc, &greedy, NOW + 3600 * S); /* and it has its share again */
    assert_int_equal(limit_after(adhoc, &greedy, "7/10", "yours", NOW + 3600 * S), 7);
}

TEST(test_names_are_nobody_elses)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_limiter *rule = limiter_of(table, "api@", "gcra 1/1"),
                        *other = limiter_of(table, "api", "gcra 2/1"),
                        *limit = limiter_of(table, "gcra 3/1s", "gcra 3/1");
    OWN(weir__adhoc) *adhoc = adhoc_on(table, 10);
    struct weir_limiter *mine = found(adhoc, "gcra 5/1", "api", NOW),
                        *at = found(adhoc, "gcra 5/1", "api@", NOW),
                        *unnamed = found(adhoc, "gcra 3/1", "", NOW),
                        *named = found(adhoc, "gcra 3/1", "gcra 3/1s", NOW),
                        *sign = found(adhoc, "gcra 3/1", "=gcra 3/1s", NOW);
    assert_ptr_not_equal(mine, other);
    assert_ptr_not_equal(at, rule);
    assert_ptr_not_equal(unnamed, limit);
    assert_ptr_not_equal(named, unnamed);
    assert_ptr_not_equal(sign, unnamed);
}

TEST(test_S1_after_a_restart_they_are_there_with_what_was_used)
{
    const char *path = new_path();

    for (int run = 0; run < 3; run++) {
        OWN(weir_table) *table =
            table_with(&(struct weir_table_options){ .path = path, .keys = 1000 });
        OWN(weir__adhoc) *adhoc = adhoc_on(table, 3);
        if (run == 1)
            found(adhoc, "", "api", NOW);
        assert_int_equal(take(found(adhoc, "gcra 10/10", "api", NOW), "k", 1, NOW).remaining,
                         9 - run);
        assert_int_equal(take(found(adhoc, "gcra 10/10", "", NOW), "k", 2, NOW).remaining,
                         8 - 2 * run);
        assert_int_equal(take(found(adhoc, "sliding-window 10/10", "", NOW), "k", 3, NOW).remaining,
                         7 - 3 * run);
    }
}

/* -------------------------------------------------------------------- forgetting ---- */

static const struct weir__server no_loops = { .n_loops = 0 };

/* Ticks as a server does; returns the time afterwards. */
static weir_time tend(struct weir__adhoc *adhoc, struct weir_table *table, weir_time from,
                      weir_time span)
{
    for (weir_time now = from; now <= from + span; now += 5 * S) {
        weir__adhoc_tend(adhoc, &no_loops, now);
        weir_table_tend(table, now);
    }
    return from + span;
}

TEST(test_a_limit_that_nobody_asks_for_leaves_the_table_once_its_keys_are_idle)
{
    OWN(weir_table) *table = private_table(false, 100);
    OWN(weir__adhoc) *adhoc = adhoc_on(table, 10);
    weir_time now = NOW;

    take(found(adhoc, "gcra 10/1s", "", now), "k", 5, now);
    take(found(adhoc, "gcra 24/1d", "long", now), "k", 5, now); /* five hours */
    take(found(adhoc, "gcra 24/1d", "busy", now), "k", 5, now);
    for (int i = 0; i < 24; i++) {
        now = tend(adhoc, table, now, 10 * S);
        assert_int_equal(left(found(adhoc, "gcra 24/1d", "busy", now), "k", NOW), 19);
    }
    assert_int_equal(stats_of(table, -1).limiters, 2);
    assert_int_equal(keys_of(table), 2);
    assert_int_equal(left(found(adhoc, "", "long", now), "k", NOW), 19);
    now = tend(adhoc, table, now, 6 * 3600 * S);
    assert_int_equal(stats_of(table, -1).limiters, 0);
    refused(adhoc, "", "long", "no limit named");
}

TEST(test_ten_thousand_limits_come_and_go)
{
    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .limiters = 120 });
    OWN(weir__adhoc) *adhoc = adhoc_on(table, 100);
    weir_time now = NOW;

    for (int i = 0; i < 10000; i++) {
        char text[32];
        snprintf(text, sizeof(text), "gcra %d/1s", 1 + i);
        take(found(adhoc, text, i % 2 ? "" : text, now), "k", 1, now);
        if (i % 100 == 99)
            now = tend(adhoc, table, now, 150 * S);
    }
    assert_int_equal(stats_of(table, -1).limiters, 0);
    assert_int_equal(keys_of(table), 0);
}

TEST(test_limits_that_an_earlier_run_left_go_too)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir__adhoc *adhoc = adhoc_on(table, 1);

    found(adhoc, "1/1s", "", NOW);
    weir__adhoc_destroy(adhoc);
    adhoc = adhoc_on(table, 1);
    refused(adhoc, "2/1s", "", "adhoc-limits");
    weir_time now = tend(adhoc, table, NOW, 180 * S);
    found(adhoc, "2/1s", "", now);
    weir__adhoc_destroy(adhoc);
}

TEST(test_a_client_gets_its_share_back)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir__events *events = weir__events_create();
    struct weir__fair_use *fair_use = weir__fair_use_create(events);
    struct weir__conn *conn = calloc(1, sizeof(*conn));
    struct weir__adhoc *adhoc = NULL;
    weir_time now = NOW;

    conn->fair_user = weir__fair_use_of(fair_use, "192.0.2.1", 1);
    assert_ok(weir__adhoc_create(&adhoc, table, 30, fair_use, NULL));
    for (int round = 0; round < 5; round++) {
        int made = 0;
        for (int code = WEIR_OK; code == WEIR_OK; made += code == WEIR_OK) {
            char text[32];
            size_t len = (size_t)snprintf(text, sizeof(text), "%d/1s", 100 * round + made + 1);
            struct weir_limiter *limiter;
            struct weir__adhoc_wanted wanted = { { text, len }, { NULL, 0 }, now, conn };
            code = weir__adhoc_find(adhoc, &wanted, &limiter, NULL);
        }
        assert_int_equal(made, 10); /* a connection's third, each time */
        now = tend(adhoc, table, now, 180 * S);
        assert_int_equal(stats_of(table, -1).limiters, 0);
    }
    weir__adhoc_destroy(adhoc);
    weir__fair_use_destroy(fair_use);
    weir__events_destroy(events);
    free(conn);
}

/* The loop that is deciding may have looked just before. */
TEST(test_nothing_goes_before_every_loop_has_turned)
{
    OWN(weir_table) *table = private_table(false, 100);
    OWN(weir__adhoc) *adhoc = adhoc_on(table, 10);
    struct weir__loop *loops = calloc(2, sizeof(*loops));
    struct weir__server server = { .loops = loops, .n_loops = 2 };
    struct weir_limiter *limiter = found(adhoc, "1/1s", "", NOW);

    for (weir_time now = NOW; now < NOW + 300 * S; now += 10 * S) {
        weir__adhoc_tend(adhoc, &server, now);
        weir__adhoc_turn(adhoc, &loops[1]);
        weir_table_tend(table, now);
    }
    assert_int_equal(stats_of(table, -1).limiters, 1);
    assert_true(take(limiter, "k", 1, NOW).allowed);
    for (weir_time now = NOW + 300 * S; now < NOW + 600 * S; now += 10 * S) {
        weir__adhoc_tend(adhoc, &server, now);
        weir__adhoc_turn(adhoc, &loops[0]);
        weir__adhoc_turn(adhoc, &loops[1]);
        weir_table_tend(table, now);
    }
    assert_int_equal(stats_of(table, -1).limiters, 0);
    free(loops);
}

TEST(test_a_clock_that_is_set_back_takes_no_limit_from_those_who_ask_for_it)
{
    OWN(weir_table) *table = private_table(false, 100);
    OWN(weir__adhoc) *adhoc = adhoc_on(table, 10);
    weir_time later = NOW + 3600 * S;

    found(adhoc, "1/1s", "", later);
    tend(adhoc, table, later, 20 * S);
    found(adhoc, "1/1000ms", "", NOW); /* the same in other words: read anew */
    found(adhoc, "2/1s", "", NOW);
    tend(adhoc, table, NOW, 300 * S);
    assert_int_equal(take(found(adhoc, "1/1s", "", NOW), "k", 1, NOW).limit, 1);
    assert_int_equal(take(found(adhoc, "2/1s", "", NOW), "k", 1, NOW).limit, 2);
    assert_int_equal(stats_of(table, -1).limiters, 2);
    tend(adhoc, table, later, 300 * S);
    assert_int_equal(stats_of(table, -1).limiters, 0);
}

/* ----------------------------------------------------------------------- threads ---- */

#define THREADS 4
#define LIMITS  20

static void *look_for_all(void *argument)
{
    struct weir__adhoc *adhoc = argument;

    for (int i = 0; i < 2000; i++) {
        char text[32];
        struct weir_limiter *limiter = NULL;
        struct weir_decision d;
        size_t len =
            (size_t)snprintf(text, sizeof(text), "gcra %d/1%s", 1 + i % LIMITS, i % 3 ? "" : "s");
        struct weir__adhoc_wanted wanted = {
            { text, len }, { "shared", i % 7 ? 0 : 6 }, NOW + i, NULL
        };
        bool good = weir__adhoc_find(adhoc, &wanted, &limiter, NULL) == WEIR_OK;
        if (!good ||
            !weir_peek(limiter, &(struct weir_ask){ .key = { "k", 1 }, .cost = 1, .now = NOW }, &d))
            return adhoc;
        if (i % 7 && d.limit != 1 + i % LIMITS)
            return adhoc;
    }
    return NULL;
}

RACE(test_threads_find_one_and_the_same)
{
    OWN(weir_table) *table = private_table(false, 100);
    OWN(weir__adhoc) *adhoc = adhoc_on(table, LIMITS + 1);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look_for_all, adhoc), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(stats_of(table, -1).limiters, LIMITS + 1);
}

struct asking {
    struct weir__adhoc *adhoc;
    struct weir__loop *loop;
    weir_time *clock; /* atomic */
};

static void *ask_and_turn(void *argument)
{
    const struct asking *a = argument;

    for (int i = 0; i < 20000; i++) {
        char text[32];
        struct weir_limiter *limiter = NULL;
        struct weir_decision d;
        weir_time now = __atomic_load_n(a->clock, __ATOMIC_RELAXED);
        size_t len = (size_t)snprintf(text, sizeof(text), "gcra %d/1", 1 + i / 200 % LIMITS);
        struct weir__adhoc_wanted wanted = { { text, len }, { NULL, 0 }, now, NULL };
        /* A thread that stands still for hours of this clock keeps places from being free. */
        if (weir__adhoc_find(a->adhoc, &wanted, &limiter, NULL) == WEIR_OK) {
            weir_take(limiter, &(struct weir_ask){ .key = { "k", 1 }, .cost = 1, .now = now }, &d);
            if (d.limit != 1 + i / 200 % LIMITS)
                return a->adhoc;
        }
        weir__adhoc_turn(a->adhoc, a->loop);
    }
    return NULL;
}

RACE(test_threads_ask_while_limits_go)
{
    OWN(weir_table) *table = private_table(false, 100);
    OWN(weir__adhoc) *adhoc = adhoc_on(table, LIMITS);
    struct weir__loop *loops = calloc(THREADS, sizeof(*loops));
    struct weir__server server = { .loops = loops, .n_loops = THREADS };
    struct asking asking[THREADS];
    pthread_t threads[THREADS];
    weir_time now = NOW;

    for (int i = 0; i < THREADS; i++) {
        asking[i] = (struct asking){ adhoc, &loops[i], &now };
        assert_int_equal(pthread_create(&threads[i], NULL, ask_and_turn, &asking[i]), 0);
    }
    for (int i = 0; i < 2000; i++) {
        weir_time later = __atomic_add_fetch(&now, 10 * S, __ATOMIC_RELAXED);
        weir__adhoc_tend(adhoc, &server, later);
        weir_table_tend(table, later);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    for (int i = 0; i < THREADS; i++)
        weir__adhoc_turn(adhoc, &loops[i]);
    for (int i = 0; i < 20; i++) {
        now += 10 * S;
        weir__adhoc_tend(adhoc, &no_loops, now);
        weir_table_tend(table, now);
    }
    assert_int_equal(stats_of(table, -1).limiters, 0);
    free(loops);
}

GROUP(make_folder, remove_folder)
