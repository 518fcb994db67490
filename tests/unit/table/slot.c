/* slot.c -- where a key lives: who gets a slot, who makes room, and that a full table goes on
 * deciding. */
#include "unit/test.h"

#include "unit/fixture.h"

#define KEYS_MAX 4000

/* The number as a key; good until the next call but seven. */
static const char *key_at(int i)
{
    static char keys[8][16];
    char *key = keys[i % 8];

    snprintf(key, sizeof(keys[0]), "key %d", i);
    return key;
}

/* A table of one group, filled until no slot is empty, each key with its whole limit taken.  Key i
 * is fresh again at idle_at(i). */
struct full {
    struct weir_table *table;
    struct weir_limiter *limiter;
    int keys; /* 0 .. keys - 1 were taken */
};

static struct full fill(bool narrow, const char *limit, weir_time (*now_of)(int i))
{
    struct full f = { .table = private_table(narrow, 1) };

    f.limiter = limiter_of(f.table, "l", limit);
    while (stats_of(f.table, -1).keys < stats_of(f.table, -1).slots) {
        assert_true(f.keys < KEYS_MAX); /* a slot nobody can reach */
        struct weir_decision d = peek(f.limiter, "?", 0, 0);
        assert_true(take(f.limiter, key_at(f.keys), d.limit, now_of(f.keys)).allowed);
        f.keys++;
    }
    return f;
}

static bool is_known(const struct full *f, int key, weir_time now)
{
    struct weir_decision d = peek(f->limiter, key_at(key), 0, now);

    return d.remaining < d.limit;
}

static int count_known(const struct full *f, weir_time now, bool known[KEYS_MAX])
{
    int n = 0;

    for (int i = 0; i < f->keys; i++) {
        known[i] = is_known(f, i, now);
        n += known[i];
    }
    return n;
}

/* ---------------------------------------------------------- who gets a slot ---- */

TEST(test_asks_with_nothing_to_remember_take_no_slot)
{
    static const char *const limits[] = { "gcra 5/10s",
                                          "token-bucket 5/10s burst 3",
                                          "leaky-bucket 5/10s",
                                          "sliding-log 5/10s",
                                          "sliding-window 5/10s",
                                          "fixed-window 5/10s",
                                          "leaky-bucket 5/10s queue 3" };

    for (int narrow = 0; narrow < 2; narrow++)
        for (size_t i = 0; i < COUNT_OF(limits) - (narrow ? 2 : 0);
             i++) { /* the last two do not fit narrow slots */
            struct weir_table *table = private_table(narrow, 100);
            struct weir_limiter *limiter = limiter_of(table, "l", limits[i]);
            struct weir_reservation r;
            struct weir_decision d;
            struct weir_ask ask = ask_of("unknown", 9, NOW);
            assert_true(take(limiter, "unknown", 0, NOW).allowed);
            assert_int_equal(take(limiter, "unknown", 9, NOW).reason, WEIR_TOO_BIG);
            assert_int_equal(take(limiter, "unknown", -1, NOW).reason, WEIR_BAD_ASK);
            assert_true(peek(limiter, "unknown", 1, NOW).allowed);
            give(limiter, "unknown", 3, NOW);
            assert_false(weir_reserve(limiter, &ask, S, &r, &d));
            assert_int_equal(keys_of(table), 0);
            assert_true(take(limiter, "unknown", 1, NOW).allowed);
            assert_int_equal(keys_of(table), 1);
            weir_table_destroy(table);
        }
}

TEST(test_asks_with_nothing_to_remember_drive_nobody_out)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = private_table(narrow, 1);
        struct weir_limiter *limiter = limiter_of(table, "l", "gcra 5/10s");
        for (int i = 0; i < 2000; i++)
            take(limiter, key_at(i), 1, NOW);
        struct weir_table_stats before = stats_of(table, NOW);
        for (int i = 2000; i < 4000; i++) {
            take(limiter, key_at(i), 0, NOW);
            take(limiter, key_at(i), 6, NOW);
            take(limiter, key_at(i), -6, NOW);
            peek(limiter, key_at(i), 1, NOW);
            give(limiter, key_at(i), 1, NOW);
        }
        struct weir_table_stats after = stats_of(table, NOW);
        assert_fields(after, (keys, before.keys), (live, before.live),
                      (evicted_idle, before.evicted_idle), (evicted_early, before.evicted_early));
    }
}

TEST(test_one_key_has_one_slot_per_limiter)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = private_table(narrow, 1000);
        struct weir_limiter *a = limiter_of(table, "a", "gcra 5/10s"),
                            *b = limiter_of(table, "b", "gcra 5/10s");
        for (int i = 0; i < 5; i++) {
            assert_int_equal(take(a, "k", 1, NOW).remaining, 4 - i);
            assert_int_equal(left(b, "k", NOW), i == 0 ? 5 : 5 - i); /* the other's is its own */
            assert_int_equal(take(b, "k", 1, NOW).remaining, 4 - i);
        }
        assert_int_equal(keys_of(table), 2);
    }
}

/* ------------------------------------------------------------ who makes room ---- */

static weir_time at_once(int i)
{
    (void)i;
    return NOW;
}

TEST(test_idle_keys_go_first_and_for_nothing)
{
    static bool known[KEYS_MAX], then[KEYS_MAX];

    for (int narrow = 0; narrow < 2; narrow++) {
        struct full f = fill(narrow, "gcra 2/1000s", at_once);
        int before = count_known(&f, NOW, known);
        assert_int_equal(before, stats_of(f.table, NOW).slots);
        for (int i = 0; i < f.keys;
             i += 2) /* every other key gets all back, and has nothing to remember */
            give(f.limiter, key_at(i), 2, NOW);
        before = count_known(&f, NOW, known);
        struct weir_table_stats s = stats_of(f.table, NOW);
        assert_int_equal(s.live, before);
        assert_true(before > s.slots / 3 && before < s.slots * 2 / 3);
        for (int i = 0; i < 10;
             i++) /* that a window of half idle slots has none is one in billions */
            assert_true(take(f.limiter, key_at(KEYS_MAX + i), 1, NOW).allowed);
        assert_int_equal(stats_of(f.table, NOW).evicted_idle - s.evicted_idle, 10);
        assert_fields(stats_of(f.table, NOW), (evicted_early, s.evicted_early), (keys, s.keys));
        count_known(&f, NOW, then);
        assert_memory_equal(
            then, known, (size_t)f.keys); /* nobody who had something to remember was forgotten */
        weir_table_destroy(f.table);
    }
}

TEST(test_a_key_is_idle_from_the_very_moment_it_has_nothing_left_to_forget)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        struct full f = fill(narrow, "gcra 1/1000s", at_once);
        int64_t early = stats_of(f.table, -1).evicted_early;
        assert_true(take(f.limiter, key_at(KEYS_MAX), 1, NOW + 1000 * S - 1).allowed);
        assert_int_equal(stats_of(f.table, -1).evicted_early, early + 1);
        assert_int_equal(stats_of(f.table, NOW + 1000 * S - 1).live, stats_of(f.table, -1).slots);
        assert_true(take(f.limiter, key_at(KEYS_MAX + 1), 1, NOW + 1000 * S).allowed);
        assert_int_equal(stats_of(f.table, -1).evicted_idle, 1);
        assert_int_equal(stats_of(f.table, NOW + 1000 * S).live, 2);
        weir_table_destroy(f.table);
    }
}

static weir_time one_by_one(int i)
{
    return NOW + i * S;
}

TEST(test_then_the_idlest_goes_and_is_counted)
{
    static bool known[KEYS_MAX], then[KEYS_MAX];

    for (int narrow = 0; narrow < 2; narrow++) {
        struct full f = fill(narrow, "gcra 1/1w",
                             one_by_one); /* the lower its number, the sooner a key is fresh */
        weir_time now = NOW + f.keys * S;
        int before = count_known(&f, now, known);
        assert_int_equal(before, stats_of(f.table, now).slots);
        for (int i = 0; i < 10; i++) {
            int64_t early = stats_of(f.table, now).evicted_early;
            int rank = 0, victims = 0;
            assert_true(take(f.limiter, key_at(KEYS_MAX + i), 1, now).allowed);
            assert_fields(stats_of(f.table, now), (evicted_early, early + 1), (evicted_idle, 0));
            count_known(&f, now, then);
            for (int k = 0, order = 0; k < f.keys; k++) {
                if (known[k] && !then[k]) {
                    rank = order;
                    victims++;
                }
                order += known[k];
            }
            assert_int_equal(victims, 1);
            assert_true(rank < before / 2); /* the idlest of a window is in the idler half but for
                                               one time in billions */
            memcpy(known, then, sizeof(then));
        }
        weir_table_destroy(f.table);
    }
}

TEST(test_large_states_make_room_the_same_way)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = private_table(narrow, 1);
        struct weir_limiter *limiter = limiter_of(table, "l", "sliding-log 1/1w");
        int keys = 0;
        while (stats_of(table, -1).evicted_early == 0)
            assert_true(take(limiter, key_at(keys), 1, NOW + keys * S).allowed), keys++;
        int64_t held = keys_of(table), spent = 0;
        assert_int_equal(held, keys - 1);
        for (int i = 0; i < keys; i++)
            spent += left(limiter, key_at(i), NOW + keys * S) == 0;
        assert_int_equal(spent, held);             /* one made room, and is fresh again */
        weir_time later = NOW + 8 * 24 * 3600 * S; /* all are idle now */
        for (int i = 0; i < 5; i++)
            assert_true(take(limiter, key_at(keys + i), 1, later).allowed);
        assert_fields(stats_of(table, -1), (evicted_early, 1), (live, -1));
        for (int i = 0; i < 5; i++)
            assert_int_equal(left(limiter, key_at(keys + i), later), 0);
    }
}

TEST(test_a_full_slab_makes_room_too)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = table_with(
            &(struct weir_table_options){ .keys = 5000, .slab = 64 << 10, .narrow = narrow });
        struct weir_limiter *few = limiter_of(table, "few", "sliding-window 5/1w"),
                            *many = limiter_of(table, "many", "sliding-window 1000/1w");
        for (int i = 0; i < 5; i++)
            assert_true(take(few, "spent", 1, NOW).allowed);
        for (int i = 0; i < 5000; i++) /* five times what the slab holds */
            assert_true(take(many, key_at(i), 1, NOW + 1).allowed);
        assert_false(take(few, "spent", 1, NOW + 2).allowed);
        struct weir_table_stats s = stats_of(table, -1);
        assert_true(s.evicted_early > 3000 && s.slab_used <= s.slab);
    }
}

/* A login may be tried five times a minute.  Fresh accounts under a roomier limit, many of them,
 * drive out accounts, not logins. */
TEST(test_a_flood_on_one_limit_drives_out_its_own_keys)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = private_table(narrow, 1000);
        struct weir_limiter *login = limiter_of(table, "login", "gcra 5/50s"),
                            *account = limiter_of(table, "account", "gcra 1000/10000s");
        int logins = 0;
        for (int i = 0; i < 100; i++)
            for (int n = 0; n < 5; n++)
                assert_true(take(login, key_at(i), 1, NOW).allowed);
        for (int i = 0; i < 20000; i++)
            assert_true(take(account, key_at(i), 1, NOW + i).allowed);
        for (int i = 0; i < 100; i++)
            logins += take(login, key_at(i), 1, NOW + 20000).allowed;
        assert_int_equal(logins, 0);
    }
}

/* On its own limit a flood of keys drives out those that have used least. */
TEST(test_a_spent_key_outlasts_a_flood_of_fresh_ones)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = private_table(narrow, 1000);
        struct weir_limiter *login = limiter_of(table, "login", "gcra 5/50s");
        for (int n = 0; n < 5; n++)
            assert_true(take(login, "victim", 1, NOW).allowed);
        for (int i = 0; i < 20000; i++) {
            assert_true(take(login, key_at(i), 1, NOW + i).allowed);
            if (i % 4 == 0)
                take(login, key_at(i), 1, NOW + i);
        }
        assert_false(take(login, "victim", 1, NOW + 20000).allowed);
    }
}

TEST(test_a_key_driven_out_comes_back_fresh_and_whole)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        struct full f = fill(narrow, "gcra 4/1w", one_by_one);
        weir_time now = NOW + f.keys * S;
        for (int i = 0; i < 500; i++) {
            const char *key = key_at(KEYS_MAX + i);
            for (int64_t n = 4; n-- > 0;)
                assert_int_equal(take(f.limiter, key, 1, now).remaining,
                                 n); /* nothing of the former owner is left in the slot */
            assert_false(take(f.limiter, key, 1, now).allowed);
        }
        weir_table_destroy(f.table);
    }
}

/* Both kinds of key are fresh again after ten seconds, but their states mean different things: read
 * as the other's, none would be. */
TEST(test_idle_is_told_by_the_limit_of_the_key)
{
    OWN(weir_table) *table = private_table(false, 1);
    struct weir_limiter *window = limiter_of(table, "window", "fixed-window 1/10s align=first"),
                        *meter = limiter_of(table, "meter", "gcra 1/10s");
    weir_time now = NOW + 11 * S;
    for (int i = 0; i < 2000; i++)
        assert_true(take(i % 2 ? window : meter, key_at(i), 1, NOW).allowed);
    assert_int_equal(stats_of(table, NOW).live, stats_of(table, NOW).slots);
    for (int i = 1; i < 2000; i += 2)
        if (left(window, key_at(i), NOW) == 0)
            take(window, key_at(i), 1,
                 now); /* the windows are in use again, the meters have rested */
    struct weir_table_stats s = stats_of(table, now);
    assert_true(s.live > s.slots / 4 && s.live < s.slots * 3 / 4);
    for (int i = 0; i < 10; i++)
        assert_true(take(window, key_at(5000 + i), 1, now).allowed);
    assert_fields(stats_of(table, now), (evicted_idle, s.evicted_idle + 10),
                  (evicted_early, s.evicted_early), (live, s.live + 10));
}

TEST(test_a_time_before_zero_finds_idle_keys_too)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = private_table(narrow, 1);
        struct weir_limiter *limiter = limiter_of(table, "l", "gcra 1/1h");
        for (int i = 0; i < 2000; i++) {
            take(limiter, key_at(i), 1, 0);
            give(limiter, key_at(i), 1, 0); /* nothing to remember, whatever the time */
        }
        int64_t idle = stats_of(table, -1).evicted_idle;
        assert_int_equal(stats_of(table, -1).evicted_early, 0);
        for (int i = 0; i < 10; i++)
            assert_true(take(limiter, key_at(5000 + i), 1, -5).allowed); /* counts as 0 */
        assert_fields(stats_of(table, -1), (evicted_idle, idle + 10), (evicted_early, 0));
    }
}
