/* purses.c -- purses in a table: filled and closed; the fullest stay if there is no room. */
#include "unit/test.h"

#include "table/purses.h"
#include "unit/fixture.h"

#define LIFE WEIR_SECOND

static struct weir_table *table;

static struct weir_limiter *purse_of(int64_t keys)
{
    struct weir_limiter *limiter;

    table = private_table(false, keys);
    assert_int_equal(
        weir_limiter_create(&limiter, table, "purse",
                            &(struct weir_limit){ "purse", .count = 100, .period = LIFE }, NULL),
        WEIR_OK);
    return limiter;
}

TEST(test_a_purse_is_filled_and_spent)
{
    struct weir_limiter *l = purse_of(1000);

    assert_int_equal(take(l, "a", 1, NOW).reason, WEIR_DRY);
    weir__purse_fill(l, key_of("a"), 10, NOW - LIFE / 4, NOW);
    assert_int_equal(take(l, "a", 4, NOW).remaining, 6);
    assert_int_equal(take(l, "b", 1, NOW).reason, WEIR_DRY);
    assert_int_equal(take(l, "a", 1, NOW + 3 * LIFE / 4).reason, WEIR_DRY); /* from the draw on */
    weir_give(l, &(struct weir_ask){ .key = key_of("d"), .cost = 3, .now = NOW });
    assert_int_equal(take(l, "d", 3, NOW).allowed, true);
    weir_table_destroy(table);
}

TEST(test_a_spent_purse_refuses_by_itself)
{
    struct weir_limiter *l = purse_of(1000);

    weir__purse_close(l, key_of("a"), NOW + LIFE / 2, NOW, NOW);
    struct weir_decision d = take(l, "a", 1, NOW);
    assert_fields(d, (reason, WEIR_LIMITED), (retry, LIFE / 2));
    assert_int_equal(take(l, "a", 1, NOW + LIFE / 2).reason, WEIR_DRY);
    weir__purse_fill(l, key_of("a"), 10, NOW, NOW);
    weir__purse_close(l, key_of("a"), NOW + LIFE / 2, NOW, NOW); /* units may still be spent */
    d = take(l, "a", 11, NOW);
    assert_fields(d, (reason, WEIR_DRY), (remaining, 10));
    weir__purse_close(l, key_of("b"), NOW + 10 * LIFE, NOW, NOW); /* for a life at most */
    d = take(l, "b", 1, NOW);
    assert_fields(d, (reason, WEIR_LIMITED), (retry, LIFE));
    weir__purse_close(l, key_of("b"), NOW + LIFE / 2, NOW + 10 * LIFE, NOW);
    d = take(l, "b", 1, NOW + LIFE / 2 - 1);
    assert_fields(d, (reason, WEIR_LIMITED), (retry, 19 * LIFE / 2 + 1));
    assert_int_equal(take(l, "b", 1, NOW + LIFE / 2).reason, WEIR_DRY);
    weir__purse_fill(l, key_of("b"), 10, NOW, NOW);
    assert_int_equal(take(l, "b", 1, NOW + LIFE - 1).remaining, 9);
    assert_int_equal(take(l, "b", 1, NOW + LIFE).reason, WEIR_DRY);
    weir_table_destroy(table);
}

/* All or nothing with a limit of this host: nothing is taken from it while the purse is dry. */
TEST(test_a_dry_purse_leaves_the_other_limit_alone)
{
    struct weir_limiter *purse = purse_of(1000), *local;
    struct weir_decision d;

    assert_int_equal(weir_limiter_create(&local, table, "local",
                                         &(struct weir_limit){ .count = 5, .period = LIFE }, NULL),
                     WEIR_OK);
    struct weir_item items[] = { { local, { .key = key_of("a"), .cost = 1, .now = NOW } },
                                 { purse, { .key = key_of("a"), .cost = 1, .now = NOW } } };
    assert_false(weir_take_all(items, 2, &d));
    assert_fields(d, (reason, WEIR_DRY), (item, 1));
    assert_int_equal(take(local, "a", 0, NOW).remaining, 5);
    weir__purse_fill(purse, key_of("a"), 1, NOW, NOW);
    assert_true(weir_take_all(items, 2, &d));
    assert_int_equal(take(local, "a", 0, NOW).remaining, 4);
    assert_int_equal(take(purse, "a", 0, NOW).remaining, 0);
    weir_table_destroy(table);
}

/* Narrow and wide; what is not there owes nothing. */
TEST(test_a_share_is_emptied_once)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        struct weir_limiter *share;
        table = private_table(narrow == 1, 1000);
        assert_int_equal(weir_limiter_create(&share, table, "share",
                                             &(struct weir_limit){ .count = 10, .period = LIFE },
                                             NULL),
                         WEIR_OK);
        assert_int_equal(weir__share_empty(share, key_of("a"), NOW), 0);
        assert_int_equal(take(share, "a", 4, NOW).remaining, 6);
        assert_int_equal(weir__share_empty(share, key_of("a"), NOW), 4);
        assert_int_equal(weir__share_empty(share, key_of("a"), NOW), 0);
        assert_int_equal(take(share, "a", 10, NOW).allowed, true);
        weir_table_destroy(table);
    }
}

/* Ten times as many keys as fit: purses of one unit make room, and those of many stay. */
TEST(test_full_purses_stay)
{
    enum { KEYS = 1024, FULL = 8 };
    struct weir_limiter *l = purse_of(KEYS);
    char key[32];
    int full = 0;

    for (int i = 0; i < FULL; i++) {
        snprintf(key, sizeof(key), "full%d", i);
        weir__purse_fill(l, key_of(key), 100, NOW, NOW);
    }
    for (int i = 0; i < 10 * KEYS; i++) {
        snprintf(key, sizeof(key), "thin%d", i);
        weir__purse_fill(l, key_of(key), 1, NOW, NOW);
    }
    for (int i = 0; i < FULL; i++) {
        snprintf(key, sizeof(key), "full%d", i);
        full += take(l, key, 100, NOW).allowed;
    }
    assert_int_equal(full, FULL);
    weir_table_destroy(table);
}
