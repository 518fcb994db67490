/* when-full.c -- a new key without room: refused, if its rule is closed; and a full disk. */
#include "unit/test.h"

#include "unit/fixture.h"
#include "table/bans.h"
#include "table/hand.h"
#include "table/take-all.h"

#define MINUTE (60 * S)

/* -------------------------------------------------------------- closed ---- */

static struct weir_decision take_closed(struct weir_limiter *limiter, const char *key,
                                        bool only_look, weir_time now)
{
    struct weir__item item = { .cost = 1 };
    struct weir_ask ask = { .cost = 1, .now = now };
    struct weir_decision d;

    weir__item_aim(&item, limiter, key_of(key));
    item.closed = true;
    (only_look ? weir__all_peek : weir__all_take)(&item, 1, &ask, &d);
    return d;
}

/* As many as fit get in, nobody is forgotten, and a look says the same as a take. */
static int fill_closed(struct weir_limiter *limiter, int n, weir_time now)
{
    int in = 0;

    for (int i = 0; i < n; i++) {
        struct weir_decision look = take_closed(limiter, name_of("k", i), true, now),
                             d = take_closed(limiter, name_of("k", i), false, now);
        assert_int_equal(d.reason, look.reason);
        assert_true(d.allowed || (d.reason == WEIR_NO_ROOM && d.retry > 0 && d.remaining == 0));
        in += d.allowed;
    }
    return in;
}

TEST(test_T2_closed_refuses_only_if_a_key_in_use_would_go)
{
    static const char *const limits[] = { "gcra 2/100s", "sliding-log 2/100s",
                                          "sliding-window 2/100s" };

    for (int narrow = 0; narrow < 2; narrow++)
        for (size_t l = 0; l < COUNT_OF(limits) - (size_t)narrow; l++) {
            OWN(weir_table) *table = private_table(narrow, 1);
            struct weir_limiter *limiter = limiter_of(table, "l", limits[l]);
            int in = fill_closed(limiter, 1000, NOW);
            assert_int_equal(in, stats_of(table, NOW).slots); /* to the last one */
            assert_fields(stats_of(table, NOW), (no_room, 1000 - in), (evicted_early, 0));
            for (int i = 0, again = 0; i < 1000; i++, again = 0) {
                again = take_closed(limiter, name_of("k", i), false, NOW + 1).allowed;
                assert_int_equal(left(limiter, name_of("k", i), NOW + 1), again ? 0 : 2);
            }
            weir_time retry = take_closed(limiter, "new", false, NOW + 2).retry;
            assert_false(take_closed(limiter, "new", false, NOW + 1 + retry).allowed);
            assert_true(take_closed(limiter, "new", false, NOW + 2 + retry).allowed);
            assert_int_equal(stats_of(table, -1).evicted_early, 0);
        }
}

/* The slab has no block left, but slots. */
TEST(test_T2_closed_counts_for_blocks_too)
{
    OWN(weir_table) *table = table_with_slab(20000, 64 << 10);
    struct weir_limiter *limiter = limiter_of(table, "l", "sliding-log 2/100s");
    int in = fill_closed(limiter, 3000, NOW);

    assert_in_range(in, 900, 1024);
    assert_fields(stats_of(table, NOW), (no_room, 3000 - in), (evicted_early, 0));
    assert_int_equal(take_closed(limiter, "k 0", false, NOW + 1).remaining, 0); /* it was there */
    assert_true(take_closed(limiter, "new", false, NOW + 101 * S).allowed);
}

/* One of several that finds no room refuses all, and nothing is taken. */
TEST(test_T2_closed_among_several)
{
    OWN(weir_table) *table = private_table(false, 1);
    struct weir_limiter *a = limiter_of(table, "a", "gcra 5/100s"),
                        *b = limiter_of(table, "b", "gcra 5/100s");
    struct weir__item items[2] = { { .cost = 1 }, { .cost = 1 } };
    struct weir_ask ask = { .now = NOW + 1 };
    struct weir_decision d;

    fill_closed(b, 1000, NOW);
    weir__item_aim(&items[0], b, key_of("k 0"));
    weir__item_aim(&items[1], a, key_of("new"));
    items[1].closed = true;
    assert_false(weir__all_take(items, 2, &ask, &d));
    assert_fields(d, (reason, WEIR_NO_ROOM), (item, 1));
    assert_int_equal(left(b, "k 0", NOW + 1), 4);
    assert_false(weir__all_peek(items, 2, &ask, &d));
    items[1].closed = false;
    assert_true(weir__all_take(items, 2, &ask, &d));
    assert_int_equal(left(b, "k 0", NOW + 1), 3);
}

/* -------------------------------------------------------------- a full disk ---- */

/* States of one block, of several chunks, and of nodes. */
static const char *const large[] = { "sliding-window 2/100s", "sliding-log 2/100s",
                                     "sliding-window 2/100s buckets=9000",
                                     "sliding-log 9000/100s" };

TEST(test_T2_a_full_disk_is_counted)
{
    for (size_t l = 0; l < COUNT_OF(large); l++) {
        OWN(weir_table) *table = private_table(false, 20000);
        struct weir_limiter *limiter = limiter_of(table, "l", large[l]);
        fill_disk(table);
        for (int i = 0; i < 10; i++) /* nothing can be remembered */
            assert_true(take(limiter, "k", 1, NOW).allowed);
        struct weir_table_stats stats = stats_of(table, -1);
        empty_disk(table);
        assert_true(stats.no_disk >= 10);
        assert_int_equal(stats.evicted_early, 10);
        int64_t one = take(limiter, "k", 1, NOW).remaining;
        assert_int_equal(take(limiter, "k", 1, NOW).remaining, one - 1);
    }
}

/* A copy could not be made, but nothing would have been written. */
TEST(test_T2_without_a_block_a_refusal_is_no_loss)
{
    for (size_t l = 0; l < COUNT_OF(large); l++) {
        OWN(weir_table) *table = private_table(false, 20000);
        struct weir_limiter *limiter = limiter_of(table, "l", large[l]),
                            *other = limiter_of(table, "m", "gcra 5/1s");
        struct weir_item items[] = { { limiter, ask_of("k", 1, NOW) },
                                     { other, ask_of("k", 1, NOW) } };
        struct weir_decision d;
        int64_t most = take(limiter, "k", 0, NOW).limit;
        assert_true(take(limiter, "k", most, NOW).allowed);
        fill_disk(table);
        for (int i = 0; i < 10; i++) {
            assert_false(take(limiter, "k", 1, NOW).allowed);
            take(limiter, "k", 0, NOW);
            assert_false(weir_take_all(items, 2, &d));
        }
        int64_t early = stats_of(table, -1).evicted_early;
        empty_disk(table);
        assert_int_equal(early, 0);
    }
}

/* In a full slab a copy takes another key's block; not for a refusal. */
TEST(test_T2_nobody_makes_room_for_a_refusal)
{
    OWN(weir_table) *table = table_with_slab(20000, 40 << 16);
    struct weir_limiter *limiter = limiter_of(table, "l", "sliding-window 9/60s buckets=9000"),
                        *other = limiter_of(table, "m", "gcra 50/1s");
    struct weir_item items[] = { { limiter, ask_of("spent", 1, NOW) },
                                 { other, ask_of("k", 1, NOW) },
                                 { limiter, ask_of("new", 1, NOW) } };
    struct weir_decision d, each[3];

    assert_true(take(limiter, "spent", 9, NOW).allowed);
    for (int i = 0; stats_of(table, -1).evicted_early == 0; i++)
        take(limiter, name_of("k", i), 3, NOW);
    assert_false(take(limiter, "spent", 1, NOW).allowed);
    take(limiter, "spent", 0, NOW);
    assert_int_equal(stats_of(table, -1).evicted_early, 1);
    assert_false(weir_take_all_each(items, 3, &d, each));
    assert_int_equal(stats_of(table, -1).evicted_early, 1);
    assert_fields(each[2], (allowed, true), (remaining, 8));
}

/* Nor for what comes back: those units stay used, and the loss is counted. */
TEST(test_T2_nobody_makes_room_for_a_give)
{
    static const char *const windows[] = { "sliding-window 9/60s",
                                           "sliding-window 9/60s buckets=600",
                                           "sliding-window 9/60s buckets=1500",
                                           "sliding-window 9/60s buckets=9000" };

    for (size_t l = 0; l < COUNT_OF(windows); l++) {
        OWN(weir_table) *table = table_with_slab(20000, 40 << 16);
        struct weir_limiter *limiter = limiter_of(table, "l", windows[l]);
        size_t bytes = limiter->era->plan.state_size;
        struct weir_ask back = ask_of("a", 3, NOW), estimate = ask_of("b", 4, NOW);
        struct weir_reservation reservation;
        struct weir_decision d;

        assert_true(take(limiter, "a", 5, NOW).allowed);
        assert_true(take(limiter, "b", 1, NOW).allowed);
        assert_true(weir_reserve(limiter, &estimate, 9 * S, &reservation, &d));
        while (weir__hands_shed(&table->keys, weir__block_round(bytes)) ||
               weir__block_take(&table->keys.slab, bytes) != 0)
            continue;
        weir_give(limiter, &back);
        assert_true(weir_settle(&reservation, 1, NOW));
        assert_int_equal(left(limiter, "a", NOW), 4);
        assert_int_equal(left(limiter, "b", NOW), 4);
        assert_int_equal(stats_of(table, -1).evicted_early, 2);
        assert_true(weir_forget(limiter, key_of("b"), NOW)); /* now there is a block */
        weir_give(limiter, &back);
        assert_int_equal(left(limiter, "a", NOW), 7);
    }
}

/* Likewise of several at once: each grant that could not be kept is one. */
TEST(test_T2_each_grant_that_is_not_kept_is_counted_once)
{
    for (size_t l = 0; l < COUNT_OF(large); l++) {
        OWN(weir_table) *table = private_table(false, 20000);
        struct weir_limiter *limiter = limiter_of(table, "l", large[l]),
                            *other = limiter_of(table, "m", "gcra 50/1s");
        struct weir_item items[] = { { limiter, ask_of("k", 1, NOW) },
                                     { other, ask_of("k", 1, NOW) } };
        struct weir_decision d;
        fill_disk(table);
        for (int i = 0; i < 10; i++)
            assert_true(weir_take_all(items, 2, &d));
        int64_t early = stats_of(table, -1).evicted_early;
        empty_disk(table);
        assert_int_equal(early, 10);
    }
}

/* Nobody knows when there is disk space again: not never. */
TEST(test_T2_closed_on_a_full_disk_says_when_to_ask_again)
{
    for (size_t l = 0; l < COUNT_OF(large); l++) {
        OWN(weir_table) *table = private_table(false, 20000);
        struct weir_limiter *limiter = limiter_of(table, "l", large[l]);
        fill_disk(table);
        struct weir_decision d = take_closed(limiter, "k", false, NOW);
        int64_t no_room = stats_of(table, -1).no_room;
        empty_disk(table);
        assert_fields(d, (allowed, false), (reason, WEIR_NO_ROOM), (retry, 10 * S));
        assert_int_equal(no_room, 1);
        assert_true(take_closed(limiter, "k", false, NOW + 10 * S).allowed);
    }
}

static uint64_t ban_tag(const struct weir_table *table, int64_t i)
{
    return weir__ban_tag(table, "r", key_of(name_of("k", (int)i)));
}

static void put_ban(struct weir_table *table, int64_t i)
{
    weir__ban_put(table, ban_tag(table, i), "r", key_of(name_of("k", (int)i)), NOW, NOW + MINUTE);
}

TEST(test_T2_a_ban_that_a_full_disk_cannot_keep_is_none)
{
    const struct weir__ban_terms terms = { .length = MINUTE };

    OWN(weir_table) *table = private_table(false, 100);
    uint64_t tag = weir__ban_tag(table, "r", key_of("k"));

    fill_disk(table);
    weir_time until = weir__ban_strike(table, tag, "r", key_of("k"), &terms, NOW);
    bool put = weir__ban_put(table, tag, "r", key_of("k"), NOW, NOW + MINUTE);
    empty_disk(table);
    assert_int_equal(until, NOW);
    assert_false(put);
    assert_fields(stats_of(table, -1), (bans_lost, 2), (no_disk, 2), (evicted_early, 0));
    assert_int_equal(weir__ban_strike(table, tag, "r", key_of("k"), &terms, NOW), NOW + MINUTE);
}

/* All blocks are bans', and no hand has one to spare: to end a ban needs none. */
TEST(test_T2_on_a_full_disk_a_ban_is_lifted_at_no_cost_to_others)
{
    OWN(weir_table) *table = private_table(false, 20000);
    int64_t bans = 0, n = 0;

    put_ban(table, n++);
    fill_disk(table);
    while (stats_of(table, NOW).bans_lost == 0)
        put_ban(table, n++);
    bans = stats_of(table, NOW).bans;
    int64_t lifted = 0;
    for (int64_t i = 0; i < n; i++)
        lifted += weir__ban_lift(table, ban_tag(table, i), NOW);
    empty_disk(table);
    assert_int_equal(lifted, bans);
    assert_fields(stats_of(table, NOW), (bans_lost, 1), (bans, 0));
}

/* Likewise in a full slab: to forget a key needs no block. */
TEST(test_T2_in_a_full_slab_a_key_is_forgotten_at_no_cost_to_others)
{
    OWN(weir_table) *table = table_with_slab(20000, 64 << 10);
    struct weir_limiter *limiter = limiter_of(table, "l", "sliding-log 2/100s");
    int in = fill_closed(limiter, 3000, NOW), forgotten = 0;

    for (int i = 0; i < 3000; i++)
        forgotten += weir_forget(limiter, key_of(name_of("k", i)), NOW);
    assert_int_equal(forgotten, in);
    assert_int_equal(stats_of(table, -1).evicted_early, 0);
}

static void forget_without_a_block(struct weir_table *table, struct weir_limiter *limiter)
{
    size_t bytes = limiter->era->plan.state_size;

    assert_true(take(limiter, "k", 5, NOW).allowed);
    (void)weir__hands_shed(&table->keys, weir__block_round(bytes));
    while (weir__block_take(&table->keys.slab, bytes) != 0)
        continue;
    assert_true(weir_forget(limiter, key_of("k"), NOW));
    assert_int_equal(left(limiter, "k", NOW), 5);
}

/* Not even a long window, of which a copy is made in a block otherwise. */
TEST(test_T2_without_a_block_left_a_long_window_is_forgotten)
{
    OWN(weir_table) *table = table_with_slab(20000, 4 << 20);
    struct weir_limiter *limiter = limiter_of(table, "l", "sliding-window 5/1h buckets=1500");

    forget_without_a_block(table, limiter);
}

/* Nor is a short one written back in a narrow table, where a slot keeps its block. */
TEST(test_T2_without_a_block_left_a_window_in_a_narrow_table_is_forgotten)
{
    OWN(weir_table) *table = NULL;
    struct weir_table_options o = { .keys = 20000, .slab = 4 << 20, .narrow = true };

    assert_int_equal(weir_table_create(&table, &o, NULL), WEIR_OK);
    struct weir_limiter *limiter = limiter_of(table, "l", "sliding-window 5/1h");

    forget_without_a_block(table, limiter);
}
