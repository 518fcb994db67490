/* unused-limits.c -- limiters come and go: none stays unused, and none goes that is in use. */
#include "unit/test.h"

#include "table/registry.h"
#include "table/slot.h"
#include "unit/tending.h"

GROUP(make_folder, remove_folder)

static const bool forms[] = { false, true };

TEST(test_a_dropped_limiter_goes_within_a_minute_with_its_keys)
{
    for (size_t i = 0; i < 2; i++) {
        OWN(weir_table) *table = private_table(forms[i], 1000);
        struct weir_limiter *kept = limiter_of(table, "kept", "gcra 10/1d"),
                            *gone = limiter_of(table, "gone", "gcra 10/1d"),
                            *window = limiter_of(table, "window", "sliding-window 10/1d");
        take(kept, "k", 3, NOW);
        take(gone, "k", 3, NOW);
        take(window, "k", 3, NOW);
        assert_int_equal(keys_of(table), 3);
        weir_limiter_drop(gone);
        weir_limiter_drop(window);
        weir_time now = tend(table, NOW, 40 * S);
        assert_true(has_limiter(table, "gone"));
        now = tend(table, now, 20 * S);
        assert_false(has_limiter(table, "gone") || has_limiter(table, "window"));
        assert_int_equal(keys_of(table), 1);
        assert_int_equal(stats_of(table, -1).slab_used, 0);
        assert_int_equal(left(kept, "k", now), 7);
        assert_int_equal(left(limiter_of(table, "gone", "gcra 10/1d"), "k", now), 10);
    }
}

TEST(test_a_released_limiter_stays_while_its_keys_mean_anything)
{
    OWN(weir_table) *table = private_table(false, 1000);
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/1h");
    take(limiter, "k", 5, NOW); /* idle again after half an hour */
    weir_limiter_release(limiter);
    weir_time now = tend(table, NOW, 29 * MINUTE);
    assert_true(has_limiter(table, "l"));
    limiter = limiter_of(table, "l", "gcra 10/1h");
    assert_int_equal(left(limiter, "k", NOW), 5);
    weir_limiter_release(limiter);
    tend(table, now, 3 * MINUTE);
    assert_false(has_limiter(table, "l"));
    assert_int_equal(keys_of(table), 0);
}

TEST(test_a_limiter_in_use_stays)
{
    OWN(weir_table) *table = private_table(false, 1000);
    struct weir_limiter *twice = limiter_of(table, "twice", "gcra 10/1s");
    assert_ptr_equal(limiter_of(table, "twice", "gcra 10/1s"), twice);
    weir_limiter_drop(twice);
    assert_ptr_equal(weir_limiter_find(table, "twice"), twice);
    tend(table, NOW, 5 * MINUTE);
    assert_true(has_limiter(table, "twice"));
    weir_limiter_release(twice); /* it was found too */
    tend(table, NOW + 5 * MINUTE, 5 * MINUTE);
    assert_true(has_limiter(table, "twice"));
    weir_limiter_drop(twice);
    tend(table, NOW + 10 * MINUTE, MINUTE);
    assert_false(has_limiter(table, "twice"));
    assert_null(weir_limiter_find(table, "twice"));
}

TEST(test_a_limiter_that_was_dropped_and_is_wanted_again_keeps_its_keys)
{
    OWN(weir_table) *table = private_table(false, 1000);
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/1d");
    take(limiter, "k", 5, NOW);
    weir_limiter_drop(limiter);
    weir_time now = tend(table, NOW, 30 * S);
    limiter = limiter_of(table, "l", "gcra 10/1d");
    tend(table, now, 5 * MINUTE);
    assert_int_equal(left(limiter, "k", NOW), 5);
}

/* So that the switch is there when its user comes back. */
TEST(test_a_limiter_that_is_switched_by_hand_and_left_stays_for_a_day)
{
    OWN(weir_table) *table = private_table(false, 1000);
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/1m");
    weir__limiter_set_mode(limiter, WEIR_SHADOW);
    weir_limiter_release(limiter);
    weir_time now = tend(table, NOW, 10 * MINUTE);
    assert_true(has_limiter(table, "l"));
    tend(table, now + 1440 * MINUTE, MINUTE);
    assert_false(has_limiter(table, "l"));
}

/* Rules that are renamed again and again must not fill the table. */
TEST(test_a_switch_goes_with_a_limiter_that_was_dropped)
{
    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .keys = 100, .limiters = 1 });
    weir_time now = NOW;
    for (int i = 0; i < 3; i++) {
        struct weir_limiter *limiter = limiter_of(table, i % 2 ? "odd" : "even", "gcra 10/1d");
        assert_int_equal(weir__limiter_mode(limiter), WEIR_AS_WRITTEN);
        weir__limiter_set_mode(limiter, WEIR_SHADOW);
        weir_limiter_drop(limiter);
        now = tend(table, now, 2 * MINUTE);
    }
    assert_int_equal(stats_of(table, -1).limiters, 0);
}

/* Beyond as many processes as there are places for, nobody can tell who is left. */
TEST(test_a_limiter_of_holders_without_a_place_goes_once_all_have_left)
{
    const char *path = new_path();
    struct weir_table_options options = { .path = path, .keys = 100 };
    struct weir_table *first = table_with(&options);
    struct weir_limiter *limiter = limiter_of(first, "l", "gcra 10/1m");

    first->users[limiter->id].bits[0] |= 1;
    weir_limiter_release(limiter);
    weir_table_destroy(first);
    OWN(weir_table) *table = table_with(&options);
    tend(table, weir_table_now(table), 5 * MINUTE);
    assert_false(has_limiter(table, "l"));
}

TEST(test_a_limiter_of_another_process_stays)
{
    const char *path = new_path();

    OWN(weir_table) *one = table_with(&(struct weir_table_options){ .path = path, .keys = 1000 });
    OWN(weir_table) *two = attach(path);
    struct weir_limiter *a = limiter_of(one, "l", "gcra 10/1d"),
                        *b = limiter_of(two, "l", "gcra 10/1d");

    take(b, "k", 5, NOW);
    weir_limiter_drop(a);
    weir_time now = tend(one, NOW, 5 * MINUTE);
    assert_int_equal(left(b, "k", NOW), 5);
    weir_table_destroy(two); /* the last to leave has not dropped it */
    two = NULL;
    now = tend(one, now, 2 * MINUTE);
    a = limiter_of(one, "l", "gcra 10/1d");
    assert_int_equal(left(a, "k", NOW), 5);
    weir_limiter_drop(a);
    tend(one, now, 2 * MINUTE);
    assert_false(has_limiter(one, "l"));
}

/* Two parts of a process: one drops it, the other may come back tomorrow. */
TEST(test_a_limiter_that_somebody_still_uses_is_not_dropped)
{
    OWN(weir_table) *table = private_table(false, 1000);
    struct weir_limiter *l = limiter_of(table, "l", "gcra 10/1d");

    assert_ptr_equal(limiter_of(table, "l", "gcra 10/1d"), l);
    take(l, "k", 5, NOW);
    weir_limiter_drop(l);
    weir_limiter_release(l);
    tend(table, NOW, 5 * MINUTE);
    assert_int_equal(left(limiter_of(table, "l", "gcra 10/1d"), "k", NOW), 5);
}

/* A thread that found the one before in this place comes too late. */
TEST(test_a_late_find_leaves_the_next_one_in_use)
{
    OWN(weir_table) *table = private_table(false, 1000);

    limiter_of(table, "l", "gcra 10/1d");
    struct weir_limiter *l = weir_limiter_find(table, "l");
    weir_limiter_release(l);
    assert_false(weir__place_use(table, &table->limiters, l->id, l->salt + 1, true));
    assert_true(weir__place_has_users(table, l->id));
}

TEST(test_what_nobody_uses_goes_after_a_restart_too)
{
    const char *path = new_path();
    struct weir_table *table =
        table_with(&(struct weir_table_options){ .path = path, .keys = 1000 });

    take(limiter_of(table, "a", "gcra 10/10s"), "k", 5, NOW);
    take(limiter_of(table, "b", "gcra 10/10s"), "k", 5, NOW);
    weir_table_destroy(table);
    table = attach(path);
    limiter_of(table, "b", "gcra 10/10s");
    tend(table, NOW, 2 * MINUTE);
    assert_false(has_limiter(table, "a"));
    assert_true(has_limiter(table, "b"));
    weir_table_destroy(table);
}

TEST(test_the_clock_steps_back_and_limiters_still_go)
{
    OWN(weir_table) *table = private_table(false, 1000);
    weir_limiter_drop(limiter_of(table, "l", "gcra 10/1d"));
    tend(table, 100000 * NOW, 20 * S);
    tend(table, NOW, 2 * MINUTE);
    assert_false(has_limiter(table, "l"));
}

/* ------------------------------------------------------------- a thousand ---- */

TEST(test_a_thousand_renames_leave_the_size)
{
    const char *path = new_path();

    OWN(weir_table) *table =
        table_with(&(struct weir_table_options){ .path = path, .keys = 1000, .limiters = 16 });
    weir_time now = NOW;
    int64_t disk = 0;

    for (int i = 0; i < 1000; i++) {
        char name[16];
        snprintf(name, sizeof(name), "r%d", i);
        struct weir_limiter *window = limiter_of(table, name, "sliding-window 1000/1d");
        for (int k = 0; k < 20; k++) {
            char key[16];
            snprintf(key, sizeof(key), "k%d", k);
            take(window, key, 1, now);
        }
        weir_limiter_drop(window);
        if (i % 10 == 9)
            now = tend(table, now + 10 * S, MINUTE);
        if (i == 19)
            disk = disk_of(path);
    }
    assert_int_equal(keys_of(table), 0);
    assert_int_equal(stats_of(table, -1).limiters, 0);
    assert_true(disk_of(path) <= disk + (64 << 10));
    assert_int_equal(weir__slab_stats(&table->names.slab).bytes, 0);
}

/* Slots that are not empty. */
static int64_t slots_in_use(const struct weir_table *table)
{
    int64_t n = 0;

    for (uint64_t i = 0; i < table->keys.groups * WEIR__GROUP_SLOTS; i++)
        n += weir__load(
                 weir__slot_at(&table->keys, i / WEIR__GROUP_SLOTS, i % WEIR__GROUP_SLOTS)) != 0;
    return n;
}

/* The most lines that a search reads. */
static uint64_t longest_search(const struct weir_table *table)
{
    uint64_t most = 0;

    for (uint64_t group = 0; group < table->keys.groups; group++) {
        uint64_t reach = weir__reach(&table->keys, group) / weir__line_slots(&table->keys);
        most = reach > most ? reach : most;
    }
    return most;
}

/* More states than the table has slots: each takes its slot along. */
TEST(test_a_thousand_renames_leave_the_speed)
{
    for (size_t f = 0; f < 2; f++) {
        OWN(weir_table) *table = private_table(forms[f], 400);
        struct weir_limiter *kept = limiter_of(table, "kept", "gcra 10/1d");
        weir_time now = NOW;
        char name[16];

        for (int k = 0; k < 20; k++) {
            snprintf(name, sizeof(name), "k%d", k);
            take(kept, name, 3, now);
        }
        for (int i = 0; i < 1000; i++) {
            snprintf(name, sizeof(name), "r%d", i);
            struct weir_limiter *renamed = limiter_of(table, name, "gcra 10/1d");
            for (int k = 0; k < 30; k++) {
                snprintf(name, sizeof(name), "k%d", k);
                take(renamed, name, 1, now);
            }
            weir_limiter_drop(renamed);
            if (i % 8 == 7)
                now = tend(table, now + 10 * S, MINUTE);
        }
        assert_int_equal(keys_of(table), 20);
        assert_int_equal(slots_in_use(table), 20);
        for (int k = 0; k < 20; k++) {
            snprintf(name, sizeof(name), "k%d", k);
            assert_int_equal(left(kept, name, NOW), 7);
        }
        weir_limiter_drop(kept);
        tend(table, now, MINUTE);
        assert_int_equal(slots_in_use(table), 0);
        assert_int_equal(longest_search(table), 1);
    }
}

TEST(test_a_thousand_changes_leave_the_size)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 1000 });
    struct weir_limiter *limiter = limiter_of(table, "l", "sliding-window 10/1h");
    struct weir_guard *guard = NULL;
    int64_t disk = 0;

    assert_ok(weir_guard_create(&guard, table, "g", NULL, NULL));
    for (int i = 0; i < 1000; i++) {
        char text[32];
        snprintf(text, sizeof(text), "sliding-window %d/1h", 11 + i % 7);
        change(limiter, text, NOW + i * S);
        take(limiter, "k", 1, NOW + i * S);
        assert_ok(weir_guard_change(guard, &(struct weir_guard_options){ .max = 5 + i % 3 }, NULL));
        if (i == 10)
            disk = disk_of(path);
    }
    assert_true(disk_of(path) <= disk);
    assert_int_equal(weir__slab_stats(&table->names.slab).chunks, 1);
}

/* Places are used again, by limiters of other kinds. */
TEST(test_places_are_used_again)
{
    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .keys = 64, .limiters = 3 });
    static const char *const limits[] = { "gcra 10/1d", "sliding-window 10/1d", "sliding-log 10/1d",
                                          "fixed-window 10/1d" };
    weir_time now = NOW;

    for (int i = 0; i < 200; i++) {
        char name[16], key[16];
        snprintf(name, sizeof(name), "l%d", i);
        struct weir_limiter *limiter = limiter_of(table, name, limits[i % 4]);
        for (int k = 0; k < 100; k++) { /* more than there is room for */
            snprintf(key, sizeof(key), "k%d", k);
            take(limiter, key, 2, now);
        }
        assert_int_equal(left(limiter, key, now), 8);
        weir_limiter_drop(limiter);
        now = tend(table, now, MINUTE);
        assert_int_equal(keys_of(table), 0);
        assert_int_equal(stats_of(table, -1).slab_used, 0);
    }
}

TEST(test_the_end_of_time_is_a_time_like_any_other)
{
    OWN(weir_table) *table = private_table(false, 16);
    weir_limiter_release(limiter_of(table, "l", "gcra 5/1m"));
    weir_table_tend(table, INT64_MAX);
    weir_table_tend(table, NOW);
    weir_table_tend(table, INT64_MAX);
}

TEST(test_all_places_are_taken)
{
    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .limiters = 2 });
    struct weir_limit limit = limit_of("gcra 10/1d");
    struct weir_limiter *limiter;
    struct weir_error error;

    limiter_of(table, "a", "gcra 10/1d");
    struct weir_limiter *b = limiter_of(table, "b", "gcra 10/1d");
    assert_int_equal(weir_limiter_create(&limiter, table, "c", &limit, &error), WEIR_NO_MEMORY);
    assert_contains(error.text, "made for 2 limiters");
    weir_limiter_drop(b);
    tend(table, NOW, 2 * MINUTE);
    limiter_of(table, "c", "gcra 10/1d");
}
