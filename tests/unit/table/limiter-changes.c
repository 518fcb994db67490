/* limiter-changes.c -- limits at work in a table: changing for everybody at once, and keeping what
 * was used. */
#include "unit/test.h"

#include <malloc.h>

#include "table/registry.h"
#include "unit/limiter-pair.h"

#define MINUTE (60 * S)

static void expect_change_fails(struct weir_limiter *limiter, const char *text, int code,
                                const char *words)
{
    struct weir_limit limit = limit_of(text);
    struct weir_error error = { 0 };
    int got = weir_limiter_change(limiter, &limit, NOW, &error);

    if (got != code)
        fail_msg("changing to %s gave %d: %s", text, got, error.text);
    assert_contains(error.text, words);
    assert_int_equal(weir_limiter_change(limiter, &limit, NOW, NULL), code);
}

/* ------------------------------------------------------------------- change ---- */

/* Algorithms in whose change "used" is a plain count: 4 of 10 are taken, and 4 stay taken. */
static const char *const counted[][3] = {
    { "gcra 10/10s", "gcra 20/10s", "gcra 5/10s" },
    { "gcra 10/10s", "gcra 30/7s burst 20", "gcra 3/7s burst 5" },
    { "leaky-bucket 10/10s", "leaky-bucket 20/10s", "leaky-bucket 5/10s" },
    { "fixed-window 10/100s", "fixed-window 20/100s", "fixed-window 5/100s" },
    { "fixed-window 10/100s align=first", "fixed-window 20/90s align=first",
      "fixed-window 5/90s align=first" },
    { "sliding-window 10/100s", "sliding-window 20/100s", "sliding-window 5/100s" },
    { "sliding-window 10/100s", "sliding-window 20/90s buckets=70",
      "sliding-window 5/50s buckets=4" },
    { "sliding-log 10/100s", "sliding-log 20/100s", "sliding-log 5/90s" },
};

TEST(test_a_change_is_seen_by_all_at_once_and_keeps_what_was_used)
{
    for (size_t i = 0; i < COUNT_OF(counted); i++) {
        struct pair p = make_pair(false, 0);
        struct weir_limiter *a = limiter_of(p.one, "l", counted[i][0]),
                            *b = limiter_of(p.two, "l", counted[i][0]);
        assert_int_equal(take(a, "k", 4, NOW).remaining, 6);
        change(a, counted[i][1], NOW);
        assert_int_equal(peek(b, "k", 0, NOW).limit, 20);
        assert_int_equal(left(b, "k", NOW), 16);
        assert_int_equal(left(a, "k", NOW), 16);
        assert_int_equal(left(b, "new", NOW), 20);
        change(b, counted[i][2], NOW); /* and the other way */
        assert_int_equal(left(a, "k", NOW), 1);
        assert_true(take(a, "k", 1, NOW).allowed);
        assert_false(take(b, "k", 1, NOW).allowed);
        assert_int_equal(left(b, "new", NOW), 5);
        leave(&p);
    }
}

/* A process that attaches after a change finds states kept under a limit that it never saw. */
TEST(test_a_change_keeps_what_was_used_for_those_who_attach_later)
{
    for (size_t i = 0; i < COUNT_OF(counted); i++) {
        struct pair p = make_pair(false, 0);
        struct weir_limiter *a = limiter_of(p.one, "l", counted[i][0]);
        assert_int_equal(take(a, "k", 4, NOW).remaining, 6);
        change(a, counted[i][1], NOW);
        struct weir_limiter *late = limiter_of(p.two, "l", counted[i][1]);
        if (left(late, "k", NOW) != 16)
            fail_msg("%s, then %s: %d left of 20 after 4 were taken", counted[i][0], counted[i][1],
                     (int)left(late, "k", NOW));
        assert_int_equal(take(late, "k", 1, NOW).remaining, 15);
        assert_int_equal(left(a, "k", NOW), 15);
        leave(&p);
    }
}

/* docs/shm.md: a narrow slot keeps the time until the debt is paid, not the units. */
TEST(test_a_change_keeps_the_time_owed_in_narrow_slots)
{
    struct pair p = make_pair(true, 0);
    struct weir_limiter *a = limiter_of(p.one, "l", "gcra 10/10s"),
                        *b = limiter_of(p.two, "l", "gcra 10/10s");

    assert_int_equal(take(a, "k", 4, NOW).reset, 4 * S);
    change(a, "gcra 20/10s", NOW);
    assert_fields(peek(b, "k", 0, NOW), (limit, 20), (reset, 4 * S));
    assert_int_equal(left(a, "k", NOW), 12); /* at half a second a unit it is eight */
    change(b, "gcra 5/10s", NOW);
    assert_int_equal(peek(a, "k", 0, NOW).reset, 4 * S);
    assert_int_equal(left(a, "k", NOW), 3); /* at two seconds, two */
    assert_int_equal(left(a, "new", NOW), 5);
    leave(&p);
}

TEST(test_several_changes_in_a_row_keep_what_was_used)
{
    static const char *const algorithms[] = { "gcra", "fixed-window", "sliding-window",
                                              "sliding-log", "leaky-bucket" };
    static const int rounds[] = { 1,
                                  2,
                                  5,
                                  WEIR__PAST - 1,
                                  WEIR__PAST,
                                  WEIR__PAST + 1,
                                  2 * WEIR__PAST,
                                  2 * WEIR__PAST + 1,
                                  3 * WEIR__PAST };

    struct pair p = make_pair(false, 0);

    for (size_t i = 0; i < COUNT_OF(algorithms); i++)
        for (size_t r = 0; r < COUNT_OF(rounds);
             r++) { /* from some point on, more than the record remembers */
            int changes = rounds[r];
            char name[64], text[64];
            snprintf(name, sizeof(name), "%s changed %d times", algorithms[i], changes);
            snprintf(text, sizeof(text), "%s 10/100s", algorithms[i]);
            struct weir_limiter *a = limiter_of(p.one, name, text),
                                *b = limiter_of(p.two, name, text);
            assert_int_equal(take(b, "k", 4, NOW).remaining, 6);
            for (int n = 1; n <= changes; n++) {
                snprintf(text, sizeof(text), "%s %d/100s", algorithms[i],
                         10 + 7 * (n % 5) + n); /* prices that do not divide each other */
                change(a, text, NOW);
            }
            int64_t most = 10 + 7 * (changes % 5) + changes;
            assert_int_equal(peek(b, "k", 0, NOW).limit, most);
            /* Debt is rounded up to a part of a nanosecond at each change, and what is left down to
             * a unit: one less at most. */
            int64_t got_b = left(b, "k", NOW), got_a = left(a, "k", NOW);
            if (got_b < most - 5 || got_b > most - 4 || got_a != got_b)
                fail_msg("%s, %d changes: %d and %d left of %d after 4 were taken", algorithms[i],
                         changes, (int)got_a, (int)got_b, (int)most);
        }
    leave(&p);
}

/* Used between changes that the other missed: its slot is of a version that the other has to look
 * up. */
TEST(test_a_version_in_between_is_found)
{
    for (int at = 0; at < WEIR__PAST; at++) {
        struct pair p = make_pair(false, 0);
        struct weir_limiter *a = limiter_of(p.one, "l", "gcra 10/100s"),
                            *b = limiter_of(p.two, "l", "gcra 10/100s");
        for (int n = 0; n < WEIR__PAST; n++) {
            char text[64];
            if (n == at)
                assert_true(take(a, "k", 4, NOW).allowed);
            snprintf(text, sizeof(text), "gcra %d/100s", n % 2 ? 40 : 10 * (n + 2));
            if (n < WEIR__PAST - 1)
                change(a, text, NOW);
        }
        int64_t most = peek(b, "k", 0, NOW).limit;
        if (left(b, "k", NOW) != most - 4)
            fail_msg("taken at version %d: %d left of %d after 4 were taken", at,
                     (int)left(b, "k", NOW), (int)most);
        leave(&p);
    }
}

TEST(test_a_change_counts_from_its_own_moment)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/10s");
    assert_int_equal(take(limiter, "k", 10, NOW).remaining, 0);
    change(limiter, "gcra 10/100s",
           NOW + 5 * S); /* five were free again by then, and since then one in ten seconds */
    assert_int_equal(left(limiter, "k", NOW + 5 * S), 5);
    assert_int_equal(left(limiter, "k", NOW + 14 * S), 5);
    assert_int_equal(left(limiter, "k", NOW + 15 * S), 6);
}

TEST(test_a_changed_limit_is_the_one_to_join_with)
{
    struct pair p = make_pair(false, 0);
    struct weir_limiter *a = limiter_of(p.one, "l", "gcra 10/10s");

    change(a, "gcra 20/10s", NOW);
    expect_create_fails(p.two, "l", "gcra 10/10s", WEIR_EXISTS, "gcra 20/10s");
    assert_ptr_equal(limiter_of(p.one, "l", "gcra 20/10s"), a);
    limiter_of(p.two, "l", "gcra 20/10s");
    leave(&p);
}

TEST(test_changes_that_cannot_be_are_refused_and_change_nothing)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/10s");
    struct weir_limiter_info info;
    struct weir_error error = { 0 };
    assert_true(take(limiter, "k", 4, NOW).allowed);
    expect_change_fails(limiter, "token-bucket 10/10s", WEIR_INVALID, "from gcra to token-bucket");
    expect_change_fails(limiter, "sliding-log 10/10s", WEIR_INVALID, "from gcra to sliding-log");
    expect_change_fails(limiter, "gcra 10/10s queue 5", WEIR_INVALID, "queue");
    assert_int_equal(weir_limiter_change(limiter, &(struct weir_limit){ .period = S }, NOW, &error),
                     WEIR_INVALID);
    assert_contains(error.text, "count");
    assert_int_equal(left(limiter, "k", NOW), 6);
    assert_true(weir_limiter_next(table, &(int64_t){ 0 }, &info));
    assert_int_equal(limit_of(info.limit).count, 10);
    assert_int_equal(info.changes, 0);
    struct weir_limit unnamed = { .count = 20, .period = 10 * S }; /* keeps its algorithm */
    assert_ok(weir_limiter_change(limiter, &unnamed, NOW, &error));
    assert_int_equal(left(limiter, "k", NOW), 16);
}

TEST(test_narrow_refuses_to_change_to_what_does_not_fit)
{
    OWN(weir_table) *table = private_table(true, 100);
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 5/1s");
    assert_true(take(limiter, "k", 2, NOW).allowed);
    expect_change_fails(limiter, "gcra 3/1s", WEIR_INVALID, "narrow");
    assert_int_equal(left(limiter, "k", NOW), 3);
}

/* --------------------------------------------------------------------- slab ---- */

TEST(test_a_larger_state_moves_with_all_keys)
{
    struct pair p = make_pair(false, 64 << 20);
    struct weir_limiter *a = limiter_of(p.one, "l", "sliding-log 5/100s"),
                        *b = limiter_of(p.two, "l", "sliding-log 5/100s");
    char key[16];

    for (int i = 0; i < 200; i++) {
        snprintf(key, sizeof(key), "%d", i);
        assert_true(take(i % 2 ? a : b, key, 1 + i % 5, NOW + i).allowed);
    }
    for (int round = 0; round < 3; round++) {
        static const char *const limits[] = { "sliding-log 1000/100s", "sliding-log 6/100s",
                                              "sliding-log 2000/1w" };
        static const int64_t counts[] = { 1000, 6, 2000 };
        change(round % 2 ? b : a, limits[round], NOW + S);
        for (int i = 0; i < 200; i++) {
            snprintf(key, sizeof(key), "%d", i);
            assert_int_equal(left(i % 2 ? b : a, key, NOW + S), counts[round] - 1 - i % 5);
        }
    }
    assert_true(take(b, "7", 1997, NOW + S).allowed); /* the new room is really there */
    assert_int_equal(left(a, "7", NOW + S), 0);
    assert_int_equal(left(a, "8", NOW + S), 2000 - 4);
    leave(&p);
}

/* A change is made on a copy.  Without room for that the key would never be limited. */
TEST(test_L3_a_window_with_no_room_for_its_copy_is_an_error)
{
    for (int64_t slab = 64 << 10; slab <= 1 << 20; slab *= 2)
        for (int buckets = 1000; buckets <= 256000; buckets *= 2) {
            OWN(weir_table) *table =
                table_with(&(struct weir_table_options){ .keys = 100, .slab = slab, .guards = 1 });
            struct weir_limit limit = limit_of("sliding-window 5/1h");
            struct weir_limiter *limiter = NULL;
            limit.buckets = buckets;
            int code = weir_limiter_create(&limiter, table, "l", &limit, NULL), granted = 0;
            assert_true(code == WEIR_OK || (code == WEIR_NO_MEMORY && 10 * buckets > slab));
            for (int i = 0; code == WEIR_OK && i < 10; i++)
                granted += take(limiter, "k", 1, NOW + i).allowed;
            assert_int_equal(granted, code == WEIR_OK ? 5 : 0);
        }
}

TEST(test_a_state_larger_than_the_slab_is_an_error_and_the_old_limit_stays)
{
    struct pair p = make_pair(false, 64 << 10);
    struct weir_limit limit = limit_of("sliding-log 10/100s");
    struct weir_limiter *a = NULL;

    assert_ok(weir_limiter_create(&a, p.one, "l", &limit, NULL));
    struct weir_limiter *b = limiter_of(p.two, "l", "sliding-log 10/100s");
    assert_true(take(a, "k", 4, NOW).allowed);
    expect_change_fails(a, "sliding-log 1000000/100s", WEIR_NO_MEMORY, "slab");
    expect_create_fails(p.two, "other", "sliding-log 100000/100s", WEIR_NO_MEMORY, "slab");
    assert_int_equal(peek(b, "k", 0, NOW).limit, 10);
    assert_int_equal(left(b, "k", NOW), 6);
    assert_true(take(b, "k", 6, NOW).allowed);
    assert_false(take(a, "k", 1, NOW).allowed);
    struct weir_limiter_info info;
    assert_true(weir_limiter_next(p.two, &(int64_t){ 0 }, &info));
    assert_int_equal(info.changes, 0);
    limiter_of(p.one, "small", "gcra 10/1s"); /* which needs nothing of it */
    change(a, "sliding-log 8/100s", NOW);     /* nor does a smaller state */
    assert_int_equal(peek(b, "k", 0, NOW).limit, 8);
    leave(&p);
}

/* So many changes that nobody remembers the limit a state was kept under: it counts as spent when
 * the oldest began that is remembered, and heals. */
TEST(test_a_state_from_a_forgotten_limit_is_spent_and_heals)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 100 });
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 999999937/1s burst 10");
    assert_true(take(limiter, "k", 10, NOW).allowed);
    for (int i = 1; i <= 20; i++) {
        char text[40];
        snprintf(text, sizeof(text), "gcra %d/1s burst 10", i);
        change(limiter, text, NOW + i);
    }
    weir_table_destroy(table);
    table = attach(path);
    limiter = limiter_of(table, "l", "gcra 20/1s burst 10");
    assert_false(take(limiter, "k", 1, NOW + 21).allowed);
    assert_int_equal(left(limiter, "k", NOW + S), 10);
}

static struct weir_limiter *attach_to(struct weir_table **table, const char *path, const char *text)
{
    weir_table_destroy(*table);
    *table = attach(path);
    return limiter_of(*table, "l", text);
}

/* A limit that changes every minute: a key that comes rarely has rested, whatever is remembered. */
TEST(test_a_state_from_a_forgotten_limit_that_has_rested_is_fresh)
{
    static const char *const algorithms[] = { "gcra", "fixed-window", "sliding-window",
                                              "sliding-log", "leaky-bucket" };

    for (size_t i = 0; i < COUNT_OF(algorithms); i++) {
        const char *path = new_path();
        OWN(weir_table) *table =
            table_with(&(struct weir_table_options){ .path = path, .keys = 100 });
        char text[40];
        snprintf(text, sizeof(text), "%s 10/60s", algorithms[i]);
        struct weir_limiter *limiter = limiter_of(table, "l", text);
        assert_true(take(limiter, "k", 10, NOW).allowed);
        for (int n = 1; n <= 20; n++) {
            snprintf(text, sizeof(text), "%s %d/60s", algorithms[i], 10 + n % 2);
            change(limiter, text, NOW + n * MINUTE);
        }
        limiter = attach_to(&table, path, text);
        assert_true(take(limiter, "k", 10, NOW + 20 * MINUTE + S).allowed);
    }
}

/* The oldest limit that is remembered let a key use far more than the present one does: no key is
 * out for as long as that would take. */
TEST(test_a_state_from_a_forgotten_limit_is_out_no_longer_than_a_spent_one)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 100 });
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/60s");
    assert_true(take(limiter, "k", 10, NOW).allowed);
    for (int n = 1; n <= 20; n++)
        change(limiter, n == 20 ? "gcra 5/60s" : n % 2 ? "gcra 10/60s" : "gcra 100000/60s", NOW);
    limiter = attach_to(&table, path, "gcra 5/60s");
    assert_false(take(limiter, "k", 1, NOW).allowed);
    assert_int_equal(left(limiter, "k", NOW + MINUTE), 5);
}

/* Narrow slots have the last 8 bits of the version: a state must not be taken for one of a limit
 * that has the same, whatever their sizes are. */
TEST(test_T3_a_state_from_a_forgotten_limit_is_spent_after_any_number_of_changes)
{
    static const char *const limits[] = { "sliding-window 10/100s",
                                          "sliding-window 10/100s buckets=50",
                                          "sliding-log 10/100s", "sliding-log 60/100s" };

    for (size_t i = 0; i < COUNT_OF(limits); i++)
        for (int changes = 1; changes < 600; changes += 51) { /* 256 is one of these */
            OWN(weir_table) *table = private_table(true, 100);
            struct weir_limiter *limiter = limiter_of(table, "l", limits[i & ~(size_t)1]);
            assert_true(take(limiter, "k", 10, NOW).allowed);
            for (int n = 1; n <= changes; n++)
                change(limiter,
                       n == changes ? limits[i]
                       : i < 2      ? (n % 2 ? "sliding-window 10/90s" : "sliding-window 10/80s")
                                    : (n % 2 ? "sliding-log 10/90s" : "sliding-log 10/80s"),
                       NOW);
            assert_false(take(limiter, "k", i == 3 ? 51 : 1, NOW + 1).allowed);
        }
}

/* ----------------------------------------------------------------- old limits ---- */

static weir_time fake_now(void *context)
{
    return *(weir_time *)context;
}

static void change_count(struct weir_limiter *limiter, int count)
{
    char text[40];

    snprintf(text, sizeof(text), "gcra %d/100s", count);
    change(limiter, text, NOW);
}

TEST(test_T3_changes_of_a_limit_leave_no_memory_in_the_process)
{
    OWN(weir_table) *table = private_table(false, 100);
    weir_time clock = NOW;
    size_t memory = 0;

    table->clock = (struct weir_clock){ .now = fake_now, .context = &clock };
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 1/100s");
    for (int i = 0; i < 3000; i++) {
        change_count(limiter, 2 + i);
        clock += MINUTE;
        memory = i == 100 ? mallinfo2().uordblks : memory; /* under a sanitizer: 0 */
    }
    assert_true(mallinfo2().uordblks <= memory + (16 << 10));
}

static int count_eras(const struct weir_limiter *limiter)
{
    int n = 0;

    for (const struct weir__era *era = limiter->era; era != NULL; era = era->older)
        n++;
    return n;
}

/* A thread has read the first era, and its process is stopped.  When it goes on another thread is
 * quicker. */
TEST(test_T3_an_era_stays_when_its_process_was_stopped)
{
    enum { CHANGES = 20 };
    OWN(weir_table) *table = private_table(false, 100);
    weir_time clock = NOW;

    table->clock = (struct weir_clock){ .now = fake_now, .context = &clock };
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 1/100s");
    for (int i = 1; i <= CHANGES; i++)
        change_count(limiter, 1 + i);
    clock += 60 * MINUTE;
    change_count(limiter, 100);
    assert_int_equal(count_eras(limiter), CHANGES + 2);
    clock += 9 * MINUTE;
    change_count(limiter, 101);
    assert_int_equal(count_eras(limiter), CHANGES + 3);
    clock += 2 * MINUTE;
    change_count(limiter, 102);
    assert_in_range(count_eras(limiter), WEIR__PAST, WEIR__PAST + 3);
}

/* An era goes with all that are behind it: none of them is found once it is forgotten, whatever
 * clock they were replaced by. */
TEST(test_T3_no_era_is_found_behind_one_that_is_forgotten)
{
    OWN(weir_table) *table = private_table(false, 100);
    weir_time clock = NOW + 60 * MINUTE;

    table->clock = (struct weir_clock){ .now = fake_now, .context = &clock };
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 1/100s");
    change_count(limiter, 2);
    clock = NOW; /* it steps back */
    for (int i = 0; i < WEIR__PAST; i++)
        change_count(limiter, 3 + i);
    clock += 11 * MINUTE;
    change_count(limiter, 100);
    assert_true(limiter->era->version > WEIR__PAST + 1);
    assert_null(weir__limiter_plan(limiter, 1));
    assert_null(weir__limiter_plan(limiter, 0));
}

/* The record has seven limits: states under these are brought over however old they are. */
TEST(test_T3_the_limits_of_the_record_stay)
{
    OWN(weir_table) *table = private_table(false, 100);
    weir_time clock = NOW;

    table->clock = (struct weir_clock){ .now = fake_now, .context = &clock };
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/100s");
    for (int i = 0; i < 20; i++, clock += 30 * MINUTE)
        change_count(limiter, 11 + i);
    assert_true(take(limiter, "k", 4, NOW).allowed);
    for (int i = 1; i < WEIR__PAST; i++, clock += 30 * MINUTE)
        change_count(limiter, 30 + 10 * i);
    assert_int_equal(left(limiter, "k", NOW), 20 + 10 * WEIR__PAST - 4);
}

/* A thread has an era that is the present one no more when it comes to bring over a state, which is
 * under a later one by then. */
TEST(test_a_state_under_a_later_limit_is_spent_for_a_thread_that_was_stopped)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/100s");
    const struct weir__era *era = limiter->era;
    uint64_t from[2] = { 0, 0 }, to[2];

    change_count(limiter, 20);
    change_count(limiter, 30);
    weir__limiter_convert(limiter, era, 2, from, to);
    assert_int_equal(weir_step_idle_at(&era->plan, to), 100 * S);
}

GROUP(make_folder, remove_folder)
