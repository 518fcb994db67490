/* top-keys.c -- who is refused most: exact while there are few, added up over loops and two
 * periods, and nobody waits. */
#include "unit/test.h"

#include "unit/fixture.h"

#include <pthread.h>

#include "server/serve/events/top-keys.h"

OWNS(weir__top)

static struct weir__top *make_top(size_t loops, int64_t keys)
{
    struct weir__top *top = NULL;
    struct weir_error error;

    if (weir__top_create(&top, loops, keys, &error) != WEIR_OK)
        fail_msg("%s", error.text);
    return top;
}

static void add(struct weir__top *top, size_t loop, const char *rule, const char *key, int times)
{
    while (times-- > 0)
        weir__top_add(top, loop, rule, key, strlen(key), 1);
}

static void check_list(struct weir__top *top, size_t n, const char *wanted)
{
    FINALLY(weir__buffer_free) struct weir__buffer json = { 0 };
    weir__top_list(top, n, &json);
    weir__buffer_add(&json, "", 1);
    assert_false(json.failed);
    assert_string_equal(json.bytes, wanted);
}

TEST(test_S5_the_most_refused_come_first)
{
    OWN(weir__top) *top = make_top(2, 100);
    check_list(top, 10, "[]");
    add(top, 0, "login", "ann", 3);
    add(top, 1, "login", "ann", 4);
    add(top, 0, "login", "bob", 5);
    add(top, 1, "search", "ann", 6);
    check_list(top, 10,
               "[{\"rule\":\"login\",\"key\":\"ann\",\"refused\":7,\"error\":0},{\"rule\":"
               "\"search\",\"key\":\"ann\",\"refused\":6,\"error\":0},"
               "{\"rule\":\"login\",\"key\":\"bob\",\"refused\":5,\"error\":0}]");
    check_list(top, 1, "[{\"rule\":\"login\",\"key\":\"ann\",\"refused\":7,\"error\":0}]");
    check_list(top, 0, "[]");
}

TEST(test_rule_and_key_are_told_apart)
{
    OWN(weir__top) *top = make_top(1, 10);
    add(top, 0, "a", "bc", 1);
    add(top, 0, "ab", "c", 2);
    add(top, 0, "bc", "a", 3);
    add(top, 0, "", "\"", 4);
    weir__top_add(top, 0, "empty", NULL, 0, 1);
    check_list(top, 10,
               "[{\"rule\":\"\",\"key\":\"\\\"\",\"refused\":4,\"error\":0},{\"rule\":\"bc\","
               "\"key\":\"a\",\"refused\":3,\"error\":0},"
               "{\"rule\":\"ab\",\"key\":\"c\",\"refused\":2,\"error\":0},{\"rule\":\"a\",\"key\":"
               "\"bc\",\"refused\":1,\"error\":0},"
               "{\"rule\":\"empty\",\"key\":\"\",\"refused\":1,\"error\":0}]");
}

/* Of two long keys that begin alike each is counted, though they look the same. */
TEST(test_long_keys_are_cut_and_still_two)
{
    OWN(weir__top) *top = make_top(1, 10);
    char key[2000];
    FINALLY(weir__buffer_free) struct weir__buffer json = { 0 };
    memset(key, 'k', sizeof(key));
    weir__top_add(top, 0, "r", key, sizeof(key), 1);
    weir__top_add(top, 0, "r", key, sizeof(key) - 1, 1);
    weir__top_add(top, 0, "r", key, sizeof(key) - 1, 1);
    weir__top_list(top, 10, &json);
    weir__buffer_add(&json, "", 1);
    assert_contains(json.bytes, "kkk...\",\"refused\":2,\"error\":0}");
    assert_contains(json.bytes, "kkk...\",\"refused\":1,\"error\":0}");
}

TEST(test_a_period_is_kept_and_then_forgotten)
{
    OWN(weir__top) *top = make_top(1, 10);
    weir__top_tick(top, NOW);
    add(top, 0, "r", "old", 3);
    weir__top_tick(top, NOW + WEIR__TOP_PERIOD - 1);
    add(top, 0, "r", "old", 2);
    weir__top_tick(top, NOW + WEIR__TOP_PERIOD);
    add(top, 0, "r", "old", 1);
    check_list(top, 9, "[{\"rule\":\"r\",\"key\":\"old\",\"refused\":6,\"error\":0}]");
    weir__top_tick(top, NOW + 2 * WEIR__TOP_PERIOD);
    check_list(top, 9, "[{\"rule\":\"r\",\"key\":\"old\",\"refused\":1,\"error\":0}]");
    weir__top_tick(top, NOW); /* a clock that was set back begins a period */
    weir__top_tick(top, NOW + WEIR__TOP_PERIOD);
    check_list(top, 9, "[]");
}

/* Many keys that come once do not hide one that comes often; and its count is right within the
 * error that is told. */
TEST(test_S5_bounded_however_many_keys_come)
{
    OWN(weir__top) *top = make_top(1, 50);
    struct weir__top_figures figures;
    char key[32];
    for (int i = 0; i < 20000; i++) {
        snprintf(key, sizeof(key), "stranger-%d", i);
        add(top, 0, "r", key, 1);
        add(top, 0, "r", "noisy", i % 2);
    }
    weir__top_figures(top, 1, &figures);
    assert_fields(figures, (keys, 1), (total, 30000), (missed, 0));
    assert_true(figures.refused <= 10000 && figures.refused >= 10000 - 30000 / 50);
}

TEST(test_only_a_sensible_number_of_keys)
{
    struct weir__top *top = NULL;
    struct weir_error error;

    assert_int_equal(weir__top_create(&top, 1, 0, &error), WEIR_INVALID);
    assert_contains(error.text, "1 to 1000000");
    assert_int_equal(weir__top_create(&top, 1, INT64_MAX, &error), WEIR_INVALID);
    assert_null(top);
}

enum { ADDS = 100000 };

static void *add_many(void *context)
{
    add(context, 0, "r", "k", ADDS);
    return NULL;
}

/* While somebody reads all the time, refusals are missed, but each is counted as that. */
RACE(test_reading_costs_refusals_and_no_wait)
{
    OWN(weir__top) *top = make_top(1, 100);
    struct weir__top_figures figures = { 0 };
    pthread_t thread;
    weir_time now = NOW;
    assert_int_equal(pthread_create(&thread, NULL, add_many, top), 0);
    for (int i = 0; i < 200; i++)
        weir__top_figures(top, 10, &figures);
    pthread_join(thread, NULL);
    weir__top_tick(top, now);
    weir__top_figures(top, 10, &figures);
    assert_fields(figures, (total, ADDS), (refused, ADDS - figures.missed));
    weir__top_tick(top, now + WEIR__TOP_PERIOD);
    weir__top_figures(top, 10, &figures);
    assert_int_equal(figures.total, ADDS);
    weir__top_tick(top, now + 2 * WEIR__TOP_PERIOD);
    weir__top_figures(top, 10, &figures);
    assert_int_equal(figures.total, 0);
}
