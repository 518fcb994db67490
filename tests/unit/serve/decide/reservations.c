/* reservations.c -- estimates that clients reserve and settle: once, by an id nobody guesses, and
 * no more of them than there is room for. */
#include "unit/test.h"

#include <pthread.h>

#include "unit/fixture.h"
#include "server/serve/decide/reservations.h"

struct bench {
    struct weir_table *table;
    struct weir_limiter *limiter;
    struct weir__reservations *reservations;
};

static struct bench open_bench(const char *limit)
{
    struct bench b = { .table = private_table(false, 1000),
                       .reservations = weir__reservations_create(3600 * S, NULL) };

    b.limiter = limiter_of(b.table, "l", limit);
    assert_non_null(b.reservations);
    return b;
}

static void close_bench(struct bench *b)
{
    weir__reservations_destroy(b->reservations);
    weir_table_destroy(b->table);
}

struct reserved {
    struct weir_decision decision;
    char id[36];
};

static struct reserved reserve(struct bench *b, const char *key, int64_t cost, weir_time lifetime,
                               weir_time now)
{
    struct reserved r;
    struct weir_ask ask = ask_of(key, cost, now);
    struct weir_error error;

    memset(&r, 0xa5, sizeof(r));
    if (weir__reservations_reserve(b->reservations,
                                   &(struct weir__reserve){ b->limiter, &ask, lifetime, NULL },
                                   r.id, &r.decision, &error) != WEIR_OK)
        fail_msg("%s", error.text);
    assert_int_equal(strlen(r.id), r.decision.allowed ? 32 : 0);
    return r;
}

static bool settle(struct bench *b, const char *id, int64_t cost, weir_time now)
{
    return weir__reservations_settle(b->reservations, id, strlen(id), cost, now);
}

/* The limit came with the ask, and nobody has asked for it since. */
TEST(test_a_limiter_stays_while_something_is_reserved)
{
    FINALLY(close_bench) struct bench b = open_bench("gcra 100/1s");
    struct reserved first = reserve(&b, "a", 50, 600 * S, NOW),
                    second = reserve(&b, "b", 50, 600 * S, NOW);

    weir_limiter_drop(b.limiter);
    for (weir_time now = NOW; now < NOW + 300 * S; now += 10 * S)
        weir_table_tend(b.table, now);
    assert_true(settle(&b, first.id, 50, NOW + 300 * S));
    weir__reservations_tend(b.reservations, NOW + 600 * S); /* the other one expires */
    assert_false(settle(&b, second.id, 50, NOW + 600 * S));
    assert_int_equal(stats_of(b.table, -1).limiters, 1);
    for (weir_time now = NOW + 600 * S; now < NOW + 700 * S; now += 10 * S)
        weir_table_tend(b.table, now);
    assert_int_equal(stats_of(b.table, -1).limiters, 0);
}

TEST(test_L13_an_estimate_is_settled_once_at_the_true_cost)
{
    FINALLY(close_bench) struct bench b = open_bench("gcra 100/100s");
    struct reserved r = reserve(&b, "k", 10, 60 * S, NOW),
                    other = reserve(&b, "k", 10, 60 * S, NOW);
    assert_int_equal(left(b.limiter, "k", NOW), 80);
    assert_true(settle(&b, r.id, 3, NOW));
    assert_int_equal(left(b.limiter, "k", NOW), 87);
    assert_false(settle(&b, r.id, 3, NOW));
    assert_int_equal(left(b.limiter, "k", NOW), 87);
    assert_true(settle(&b, other.id, 15, NOW)); /* more than was thought */
    assert_int_equal(left(b.limiter, "k", NOW), 82);
}

TEST(test_a_refusal_has_no_id_and_takes_no_place)
{
    FINALLY(close_bench) struct bench b = open_bench("gcra 5/5s");
    for (int i = 0; i < WEIR__RESERVATIONS_MAX + 10; i++)
        assert_false(reserve(&b, "k", 6, 60 * S, NOW).decision.allowed);
    assert_true(reserve(&b, "k", 5, 60 * S, NOW).decision.allowed);
}

TEST(test_an_id_nobody_has_is_nobodys)
{
    static const char *const wrong[] = { "",
                                         "0",
                                         "00000000000000000000000000000000",
                                         "zz000000000000000000000000000000",
                                         "000000000000000000000000000000000",
                                         "g" };

    FINALLY(close_bench) struct bench b = open_bench("gcra 5/5s");
    struct reserved r = reserve(&b, "k", 5, 60 * S, NOW), again;
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(settle(&b, wrong[i], 0, NOW));
    for (size_t i = 0; i < 32; i++) { /* every digit counts */
        again = r;
        again.id[i] = again.id[i] == '0' ? '1' : '0';
        assert_false(settle(&b, again.id, 0, NOW));
    }
    assert_false(weir__reservations_settle(b.reservations, r.id, 31, 0, NOW));
    assert_int_equal(left(b.limiter, "k", NOW), 0);
    assert_true(settle(&b, r.id, 0, NOW));
    assert_int_equal(left(b.limiter, "k", NOW), 5);
}

TEST(test_keys_are_kept_and_bounded)
{
    FINALLY(close_bench) struct bench b = open_bench("gcra 5/5s");
    char key[WEIR__RESERVATION_KEY_MAX + 2];
    struct weir_decision d;
    struct weir_error error;
    char id[36] = "untouched";
    memset(key, 'k', sizeof(key));
    struct weir_ask ask = { .key = { key, WEIR__RESERVATION_KEY_MAX + 1 }, .cost = 1, .now = NOW };
    assert_int_equal(weir__reservations_reserve(b.reservations,
                                                &(struct weir__reserve){ b.limiter, &ask, S, NULL },
                                                id, &d, &error),
                     WEIR_INVALID);
    assert_contains(error.text, "at most 256 bytes");
    assert_string_equal(id, "untouched");
    assert_int_equal(keys_of(b.table), 0);
    ask.key.len = WEIR__RESERVATION_KEY_MAX;
    ask.cost = 5;
    assert_ok(weir__reservations_reserve(
        b.reservations, &(struct weir__reserve){ b.limiter, &ask, S, NULL }, id, &d, &error));
    memset(key, '?', sizeof(key)); /* the caller's bytes are its own again */
    assert_true(settle(&b, id, 2, NOW));
    memset(key, 'k', sizeof(key));
    weir_peek(b.limiter, &ask, &d);
    assert_int_equal(d.remaining, 3);
}

TEST(test_when_full_it_says_so_and_takes_nothing_and_the_expired_make_room)
{
    FINALLY(close_bench) struct bench b = open_bench("gcra 1000000/1s");
    struct weir_ask ask = ask_of("k", 1, NOW);
    struct weir_decision d;
    struct weir_error error;
    struct reserved first = { 0 }, last = { 0 };
    char id[36];
    for (int i = 0; i < WEIR__RESERVATIONS_MAX; i++) { /* the lifetimes go up and down */
        struct reserved r = reserve(&b, "k", 1, (10 + i * 7919 % 1000) * S, NOW);
        first = i == 0 ? r : first;
        last = r;
    }
    int64_t before = left(b.limiter, "k", NOW);
    assert_int_equal(weir__reservations_reserve(b.reservations,
                                                &(struct weir__reserve){ b.limiter, &ask, S, NULL },
                                                id, &d, &error),
                     WEIR_NO_MEMORY);
    assert_contains(error.text, "its share of the 131072 reservations");
    assert_int_equal(left(b.limiter, "k", NOW), before);
    assert_true(settle(&b, last.id, 1, NOW));
    struct reserved r = reserve(&b, "k", 1, 10 * S, NOW);
    assert_int_equal(weir__reservations_reserve(b.reservations,
                                                &(struct weir__reserve){ b.limiter, &ask, S, NULL },
                                                id, &d, &error),
                     WEIR_NO_MEMORY);
    ask.now = NOW + 10 * S - 1;
    assert_int_equal(weir__reservations_reserve(b.reservations,
                                                &(struct weir__reserve){ b.limiter, &ask, S, NULL },
                                                id, &d, &error),
                     WEIR_NO_MEMORY);
    ask.now = NOW + 10 * S; /* one in a thousand is over now, and no other */
    int freed = 0;
    while (weir__reservations_reserve(b.reservations,
                                      &(struct weir__reserve){ b.limiter, &ask, 2000 * S, NULL },
                                      id, &d, &error) == WEIR_OK)
        freed++;
    assert_in_range(freed, 131, 133);
    assert_false(settle(&b, r.id, 1, NOW));
    assert_false(settle(&b, first.id, 1, NOW));
    ask.now = NOW + 1009 * S; /* and now all but those */
    for (freed = 0; weir__reservations_reserve(
                        b.reservations, &(struct weir__reserve){ b.limiter, &ask, 2000 * S, NULL },
                        id, &d, &error) == WEIR_OK;)
        freed++;
    assert_in_range(freed, 131072 - 133, 131072 - 131);
}

TEST(test_L13_an_expired_one_stands)
{
    FINALLY(close_bench) struct bench b = open_bench("gcra 10/1000s");
    struct reserved r = reserve(&b, "k", 5, 2 * S, NOW);
    assert_false(settle(&b, r.id, 0, NOW + 2 * S));
    assert_false(settle(&b, r.id, 0, NOW)); /* even if the clock is set back */
    assert_int_equal(left(b.limiter, "k", NOW + 2 * S), 5);
}

/* Random reserves and settles against a plain list. */
TEST(test_any_order_of_settling)
{
    enum { MANY = 300 };
    for (uint64_t first = 1; first <= 20; first++) {
        FINALLY(close_bench) struct bench b = open_bench("gcra 1000000/1s");
        struct {
            char id[36];
            weir_time expires;
        } open[MANY];
        uint64_t seed = first;
        weir_time now = NOW;
        int n = 0;
        for (int i = 0; i < 3000; i++) {
            now += (weir_time)(random64(&seed) % 3) * S;
            if (n < MANY && random64(&seed) % 2) {
                weir_time lifetime = (weir_time)(1 + random64(&seed) % 200) * S;
                strcpy(open[n].id, reserve(&b, "k", 1, lifetime, now).id);
                open[n++].expires = now + lifetime;
            } else if (n > 0) {
                int which = (int)(random64(&seed) % (uint64_t)n);
                if (settle(&b, open[which].id, 1, now) != (now < open[which].expires))
                    fail_msg("seed %d, step %d", (int)first, i);
                open[which] = open[--n];
            }
        }
    }
}

/* ----------------------------------------------------------------------- threads ---- */

#define THREADS 4

static void *reserve_and_settle(void *argument)
{
    struct bench *b = argument;

    for (int i = 0; i < 2000; i++) {
        char id[36];
        struct weir_decision d;
        struct weir_ask ask = { .key = { "k", 1 }, .cost = 2, .now = NOW };
        if (weir__reservations_reserve(b->reservations,
                                       &(struct weir__reserve){ b->limiter, &ask, S, NULL }, id, &d,
                                       NULL) != WEIR_OK ||
            (d.allowed && !weir__reservations_settle(b->reservations, id, 32, 1, NOW)))
            return b;
    }
    return NULL;
}

RACE(test_threads_reserve_and_settle)
{
    FINALLY(close_bench) struct bench b = open_bench("gcra 100000/100000s");
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, reserve_and_settle, &b), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(left(b.limiter, "k", NOW), 100000 - THREADS * 2000);
}
