/* sizes.c -- the room that keys and limiters take, and the figures about it. */
#include "unit/test.h"

#include "unit/fixture.h"

GROUP(make_folder, remove_folder)

TEST(test_limiters_that_are_not_there_take_no_disk)
{
    const char *path = new_path();
    struct weir_table_options o = {
        .path = path, .keys = 1, .slab = 1, .limiters = 65536, .bans = 1
    };

    OWN(weir_table) *table = table_with(&o);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size > 65536 * 1024);
    assert_true(st.st_blocks * 512 < 8 << 20);
    limiter_of(table, "l", "gcra 10/1h");
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_blocks * 512 < 8 << 20);
    weir_table_destroy(table);
    table = attach(path);
    assert_int_equal(stats_of(table, NOW).limiters, 1);
}

TEST(test_stats_count_keys_live_keys_and_limiters)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = private_table(narrow, 10000);
        struct weir_limiter *small = limiter_of(table, "small", "gcra 10/10s"),
                            *large = limiter_of(table, "large", "sliding-log 10/10s");
        for (int i = 0; i < 50; i++) {
            char key[16];
            snprintf(key, sizeof(key), "%d", i);
            take(small, key, 1 + i % 5, NOW); /* fresh again after 1 to 5 s */
            if (i < 20)
                take(large, key, 1, NOW + i * S / 10); /* after 10 to 12 s */
            take(small, key, 1, NOW);                  /* known already */
        }
        assert_fields(stats_of(table, -1), (keys, 70), (slab_used, 20 * 128));
        assert_fields(stats_of(table, -1), (live, -1), (limiters, 2));
        assert_int_equal(stats_of(table, NOW).live, 70);
        assert_int_equal(stats_of(table, NOW + 4 * S).live, 20 + 20);
        assert_int_equal(stats_of(table, NOW + 6 * S).live, 20);
        assert_int_equal(stats_of(table, NOW + 11 * S).live, 9);
        assert_int_equal(stats_of(table, NOW + 12 * S).live, 0);
        assert_int_equal(stats_of(table, NOW + 12 * S).keys,
                         70); /* idle ones stay until somebody needs the room */
        assert_int_equal(stats_of(table, NOW).evicted_idle + stats_of(table, NOW).evicted_early, 0);
    }
}

static void take_numbers(struct weir_limiter *limiter, uint64_t from, uint64_t to, weir_time now)
{
    for (uint64_t i = from; i < to; i++) {
        struct weir_decision d;
        struct weir_ask ask = { .key = { &i, sizeof(i) }, .cost = 1, .now = now };
        if (!weir_take(limiter, &ask, &d))
            fail_msg("new key %llu was refused", (unsigned long long)i);
    }
}

TEST(test_the_promised_keys_fit_in_the_promised_bytes)
{
    enum { KEYS = FEWER(1000000), SLAB = 4096 };
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = table_with(&(struct weir_table_options){
            .keys = KEYS, .slab = SLAB, .limiters = 1, .bans = 1, .guards = 1, .narrow = narrow });
        struct weir_limiter *limiter = limiter_of(table, "l", "gcra 1/1h burst 3");
        int64_t most = narrow ? 20 : 40;
        int64_t fixed = 10 << 20; /* header, hands and the like, most of it never used */
        if (stats_of(table, -1).bytes - SLAB - fixed > most * KEYS)
            fail_msg("%lld bytes for %d keys", (long long)stats_of(table, -1).bytes, KEYS);
        take_numbers(limiter, 0, KEYS, NOW);
        struct weir_table_stats s = stats_of(table, NOW);
        assert_int_equal(s.keys + s.evicted_early, KEYS);
        assert_fields(s, (live, s.keys), (evicted_idle, 0));
        if (s.evicted_early * 1000 > KEYS)
            fail_msg("%s: %lld of %d promised keys were driven out", narrow ? "narrow" : "wide",
                     (long long)s.evicted_early, KEYS);
    }
}

TEST(test_half_as_many_again_still_decides_and_counts_evictions)
{
    enum { KEYS = 100000 };
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table =
            table_with(&(struct weir_table_options){ .keys = KEYS, .narrow = narrow });
        struct weir_limiter *limiter = limiter_of(table, "l", "gcra 1/1h burst 3");
        take_numbers(limiter, 0, KEYS * 3 / 2, NOW);
        struct weir_table_stats s = stats_of(table, NOW);
        assert_true(s.keys <= s.slots);
        assert_true(s.keys > s.slots * 95 / 100);
        assert_int_equal(s.keys + s.evicted_early, KEYS * 3 / 2);
        assert_int_equal(s.evicted_idle, 0);
        take_numbers(limiter, KEYS * 3 / 2, KEYS * 2,
                     NOW + 4 * 3600 * S); /* by now all are idle: they make room for nothing */
        assert_int_equal(stats_of(table, -1).evicted_early, s.evicted_early);
        assert_true(stats_of(table, -1).evicted_idle > KEYS / 2 * 9 / 10);
        for (uint64_t i = KEYS * 2 - 100; i < KEYS * 2; i++) { /* the last ones are known */
            struct weir_ask ask = { .key = { &i, sizeof(i) }, .now = NOW + 4 * 3600 * S };
            struct weir_decision d;
            weir_peek(limiter, &ask, &d);
            assert_int_equal(d.remaining, 2);
        }
    }
}
