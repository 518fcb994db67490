/* limiter.c -- limits at work in a table: joining by name, changing for everybody at once, and
 * keeping what was used. */
#include "unit/test.h"

#include <malloc.h>

#include "table/registry.h"
#include "unit/fixture.h"

#define MINUTE (60 * S)

static struct weir_limiter *const untouched = (struct weir_limiter *)(uintptr_t)0x5a5a;

static void expect_create_fails(struct weir_table *table, const char *name, const char *text,
                                int code, const char *words)
{
    struct weir_limiter *limiter = untouched;
    struct weir_limit limit = limit_of(text);
    struct weir_error error = { 0 };
    int64_t limiters = stats_of(table, -1).limiters;
    int got = weir_limiter_create(&limiter, table, name, &limit, &error);

    if (got != code)
        fail_msg("%s as \"%s\" gave %d: %s", text, name, got, error.text);
    assert_ptr_equal(limiter, untouched);
    assert_contains(error.text, words);
    assert_int_equal(weir_limiter_create(&limiter, table, name, &limit, NULL), code);
    assert_int_equal(stats_of(table, -1).limiters, limiters);
}

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

/* A table on a file, as two processes have it. */
struct pair {
    const char *path;
    struct weir_table *one, *two;
};

static struct pair make_pair(bool narrow, int64_t slab)
{
    const char *path = new_path();
    struct weir_table *one = table_with(
        &(struct weir_table_options){ .path = path, .keys = 1000, .slab = slab, .narrow = narrow });

    return (struct pair){ path, one, attach(path) };
}

static void leave(struct pair *p)
{
    weir_table_destroy(p->one);
    weir_table_destroy(p->two);
}

/* --------------------------------------------------------------------- join ---- */

TEST(test_same_name_and_limit_joins)
{
    struct pair p = make_pair(false, 0);
    struct weir_limiter *a = limiter_of(p.one, "api", "gcra 300/1m");

    assert_ptr_equal(limiter_of(p.one, "api", "gcra 300/60s burst 300"),
                     a); /* the same limit in other words */
    struct weir_limiter *b = limiter_of(p.two, "api", "gcra 300/1m");
    assert_true(take(a, "k", 100, NOW).allowed);
    assert_int_equal(left(b, "k", NOW), 200);
    assert_int_equal(stats_of(p.two, -1).limiters, 1);
    leave(&p);
}

TEST(test_other_names_share_nothing)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_limiter *a = limiter_of(table, "api", "gcra 300/1m"),
                        *b = limiter_of(table, "apI", "gcra 300/1m");
    struct weir_limiter *c = limiter_of(table, "ap", "gcra 300/1m");
    assert_true(take(a, "k", 300, NOW).allowed);
    assert_int_equal(left(b, "k", NOW), 300);
    assert_int_equal(left(c, "k", NOW), 300);
    assert_int_equal(stats_of(table, -1).limiters, 3);
}

TEST(test_same_name_with_another_limit_is_refused_and_told)
{
    static const char *const others[] = { "gcra 300/1m burst 5", "gcra 301/1m", "gcra 300/2m",
                                          "token-bucket 300/1m", "sliding-log 300/1m" };
    struct pair p = make_pair(false, 0);

    limiter_of(p.one, "api", "gcra 300/1m");
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        expect_create_fails(p.one, "api", others[i], WEIR_EXISTS, "'api'");
        expect_create_fails(p.two, "api", others[i], WEIR_EXISTS, "gcra 300/1m");
    }
    limiter_of(p.two, "api", "gcra 300/1m");
    leave(&p);
}

TEST(test_a_limiter_outlives_its_processes)
{
    struct pair p = make_pair(false, 0);

    limiter_of(p.one, "api", "gcra 300/1m");
    assert_true(take(limiter_of(p.two, "log", "sliding-log 7/1m"), "k", 4, NOW).allowed);
    leave(&p);
    OWN(weir_table) *table = attach(p.path);
    assert_int_equal(stats_of(table, -1).limiters, 2);
    expect_create_fails(table, "api", "gcra 5/1m", WEIR_EXISTS, "gcra 300/1m");
    assert_int_equal(left(limiter_of(table, "log", "sliding-log 7/1m"), "k", NOW), 3);
}

/* -------------------------------------------------------------------- names ---- */

TEST(test_names_that_cannot_be_are_refused)
{
    OWN(weir_table) *table = private_table(false, 100);
    char name[66];
    memset(name, 'n', sizeof(name));
    name[65] = '\0';
    expect_create_fails(table, name, "5/1s", WEIR_INVALID, "65");
    name[64] = '\0';
    expect_create_fails(table, name, "5/1s", WEIR_INVALID, "64");
    expect_create_fails(table, "", "5/1s", WEIR_INVALID, "0");
    expect_create_fails(table, "new\nline", "5/1s", WEIR_INVALID, "control");
    expect_create_fails(table, "\x01", "5/1s", WEIR_INVALID, "control");
    expect_create_fails(table, "delete\x7f", "5/1s", WEIR_INVALID, "control");
    struct weir_limiter *limiter = untouched;
    struct weir_error error = { 0 };
    struct weir_limit limit = limit_of("5/1s");
    assert_int_equal(weir_limiter_create(&limiter, table, "tab\there", &limit, &error),
                     WEIR_INVALID);
    assert_int_equal(error.column, 4);
    name[63] = '\0'; /* the longest that goes */
    limiter_of(table, name, "5/1s");
    limiter_of(table, "with spaces, 'quotes' and \xc3\xbcml\xc3\xa4uts", "5/1s");
    struct weir_limiter_info info;
    assert_true(weir_limiter_next(table, &(int64_t){ 0 }, &info));
    assert_string_equal(info.name, name);
    assert_true(weir_limiter_next(table, &(int64_t){ 1 }, &info));
    assert_string_equal(info.name, "with spaces, 'quotes' and \xc3\xbcml\xc3\xa4uts");
}

TEST(test_bad_limits_are_refused)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_limiter *limiter = untouched;
    assert_fails(
        weir_limiter_create(&limiter, table, "l", &(struct weir_limit){ .period = S }, &error),
        WEIR_INVALID, "count");
    struct weir_limit unknown = { .algorithm = "x", .count = 1, .period = S };
    assert_fails(weir_limiter_create(&limiter, table, "l", &unknown, &error), WEIR_INVALID, "'x'");
    assert_ptr_equal(limiter, untouched);
    assert_int_equal(stats_of(table, -1).limiters, 0);
}

TEST(test_a_table_has_room_for_256_limiters)
{
    struct pair p = make_pair(false, 0);
    struct weir_limiter_info info;
    char name[16];

    for (int i = 0; i < 256; i++) {
        snprintf(name, sizeof(name), "l%d", i);
        assert_true(take(limiter_of(p.one, name, "gcra 10/1h"), "k", i % 10, NOW).allowed);
    }
    expect_create_fails(p.one, "one more", "gcra 10/1h", WEIR_NO_MEMORY, "256");
    expect_create_fails(p.two, "one more", "gcra 10/1h", WEIR_NO_MEMORY, "256");
    for (int64_t i = 0; i < 256;
         i++) { /* those that are there can still be joined, and each has its own states */
        snprintf(name, sizeof(name), "l%d", (int)i);
        assert_int_equal(left(limiter_of(p.two, name, "gcra 10/1h"), "k", NOW), 10 - i % 10);
        assert_true(weir_limiter_next(p.two, &(int64_t){ i }, &info));
        assert_string_equal(info.name, name);
    }
    assert_false(weir_limiter_next(p.two, &(int64_t){ 256 }, &info));
    leave(&p);
}

TEST(test_room_for_limiters_is_a_choice)
{
    OWN(weir_table) *table =
        table_with(&(struct weir_table_options){ .keys = 100, .slab = 4096, .limiters = 3 });
    limiter_of(table, "a", "gcra 10/1h");
    limiter_of(table, "b", "gcra 10/1h");
    limiter_of(table, "c", "gcra 10/1h");
    expect_create_fails(table, "d", "gcra 10/1h", WEIR_NO_MEMORY, "made for 3 limiters");
    assert_ptr_equal(limiter_of(table, "b", "gcra 10/1h"), weir__limiter_by_name(table, "b"));
    assert_null(weir__limiter_by_name(table, "d"));
    assert_null(weir__limiter_by_name(table, ""));
}

/* As many as a large rule set has, made by two in turn: each finds what the other made. */
TEST(test_thirty_thousand_limiters)
{
    enum { LIMITERS = 30000 };
    const char *path = new_path();
    struct weir_table_options o = {
        .path = path, .keys = 1000, .slab = 4096, .limiters = LIMITERS
    };
    struct weir_table *tables[] = { table_with(&o), attach(path) };
    struct weir_limit limit = limit_of("gcra 10/1h");
    char name[32];
    for (int i = 0; i < LIMITERS; i++) {
        struct weir_limiter *limiter = NULL;
        snprintf(name, sizeof(name), "rule-%d/0", i);
        assert_ok(weir_limiter_create(&limiter, tables[i / 100 % 2], name, &limit, NULL));
        assert_int_equal(limiter->id, i);
    }
    expect_create_fails(tables[0], "one more", "gcra 10/1h", WEIR_NO_MEMORY, "30000");
    for (uint32_t i = 0; i < LIMITERS; i += 7) {
        snprintf(name, sizeof(name), "rule-%u/0", (unsigned)i);
        for (int side = 0; side < 2; side++) {
            struct weir_limiter *limiter = weir__limiter_by_name(tables[side], name);
            assert_non_null(limiter);
            assert_int_equal(limiter->id, i);
        }
    }
    assert_true(take(weir__limiter_by_id(tables[0], LIMITERS - 1), "k", 4, NOW).allowed);
    assert_int_equal(left(weir__limiter_by_id(tables[1], LIMITERS - 1), "k", NOW), 6);
    assert_null(weir__limiter_by_id(tables[0], LIMITERS));
    assert_int_equal(stats_of(tables[1], NOW).limiters, LIMITERS);
    weir_table_destroy(tables[0]);
    weir_table_destroy(tables[1]);
}

/* Damage can make names equal, or unended: the first counts, and nothing hangs. */
TEST(test_damaged_names_are_survived)
{
    OWN(weir_table) *table = private_table(false, 100);
    limiter_of(table, "a", "gcra 10/1h");
    for (int i = 0; i < 200; i++) {
        char name[16];
        snprintf(name, sizeof(name), "l%d", i);
        limiter_of(table, name, "gcra 10/1h");
    }
    for (uint32_t i = 1; i <= 200; i++)
        memset(weir__block_at(&table->names.slab, (uint32_t)table->places[i].word), i % 3 ? 'x' : 0,
               WEIR__NAME_SIZE);
    weir__names_close(&table->limiters); /* as a process that attaches now sees it */
    assert_ok(weir__names_open(&table->limiters, 0, 256, sizeof(struct weir__limiter_record)));
    assert_int_equal(weir__limiter_by_name(table, "a")->id, 0);
    assert_null(weir__limiter_by_name(table, "l7"));
    limiter_of(table, "new", "gcra 10/1h");
    assert_int_equal(weir__limiter_by_name(table, "new")->id, 201);
}

TEST(test_limiters_are_listed)
{
    struct pair p = make_pair(false, 0);
    struct weir_limiter_info info = { .changes = 99 };

    assert_false(weir_limiter_next(p.one, &(int64_t){ 0 }, &info));
    assert_int_equal(info.changes, 99);
    struct weir_limiter *a = limiter_of(p.one, "a", "gcra 300/60 burst 5");
    limiter_of(p.one, "b", "sliding-window 10/1s buckets=5 edge=loose");
    change(a, "gcra 200/60 burst 5", NOW);
    change(a, "gcra 200/60 burst 5", NOW); /* no change at all */
    change(a, "gcra 100/60 burst 5", NOW);
    for (int i = 0; i < 2; i++) {
        struct weir_table *table = i ? p.two : p.one;
        assert_true(weir_limiter_next(table, &(int64_t){ 0 }, &info));
        assert_string_equal(info.name, "a");
        assert_string_equal(info.limit, "gcra 100/1m burst 5");
        assert_int_equal(info.changes, 2);
        assert_true(weir_limiter_next(table, &(int64_t){ 1 }, &info));
        assert_string_equal(info.name, "b");
        struct weir_limit read = limit_of(info.limit);
        assert_fields(read, (buckets, 5), (loose, true));
        assert_int_equal(info.changes, 0);
        assert_false(weir_limiter_next(table, &(int64_t){ 2 }, &info));
        assert_false(weir_limiter_next(table, &(int64_t){ -1 }, &info));
        assert_false(weir_limiter_next(table, &(int64_t){ INT64_MAX }, &info));
        assert_false(weir_limiter_next(table, &(int64_t){ (int64_t)1 << 32 },
                                       &info)); /* which is 0 if cut to 32 bits */
    }
    leave(&p);
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

/* -------------------------------------------------------------------- modes ---- */

TEST(test_R5_a_mode_is_seen_by_all_at_once_and_stays)
{
    struct pair p = make_pair(false, 0);
    struct weir_limiter *a = limiter_of(p.one, "l", "gcra 10/10s"),
                        *b = limiter_of(p.two, "l", "gcra 10/10s");
    struct weir_limiter *other = limiter_of(p.two, "other", "gcra 10/10s");

    assert_int_equal(weir__limiter_mode(a), WEIR_AS_WRITTEN);
    assert_int_equal(weir__table_mode(p.one), WEIR_AS_WRITTEN);
    weir__limiter_set_mode(a, WEIR_SHADOW);
    weir__table_set_mode(p.two, WEIR_OFF);
    assert_int_equal(weir__limiter_mode(b), WEIR_SHADOW);
    assert_int_equal(weir__limiter_mode(other), WEIR_AS_WRITTEN);
    assert_int_equal(weir__table_mode(p.one), WEIR_OFF);
    change(a, "gcra 20/10s", NOW);
    assert_int_equal(weir__limiter_mode(b), WEIR_SHADOW);
    leave(&p);
    OWN(weir_table) *table = attach(p.path);
    assert_int_equal(weir__table_mode(table), WEIR_OFF);
    assert_int_equal(weir__limiter_mode(limiter_of(table, "l", "gcra 20/10s")), WEIR_SHADOW);
}

TEST(test_R5_a_mode_that_is_none_counts_as_written)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/10s");
    for (uint32_t odd = 4; odd != 0; odd <<= 1) {
        limiter->place->mode = table->header->mode = odd;
        assert_int_equal(weir__limiter_mode(limiter), WEIR_AS_WRITTEN);
        assert_int_equal(weir__table_mode(table), WEIR_AS_WRITTEN);
    }
}

/* ------------------------------------------------------------------- narrow ---- */

TEST(test_narrow_refuses_limits_that_do_not_fit)
{
    static const char *const bad[] = { "3/1s",
                                       "gcra 7/1s",
                                       "leaky-bucket 300/1s",
                                       "fixed-window 5/1s",
                                       "fixed-window 5/1s align=first",
                                       "smooth 5/1s",
                                       "warm-up 5/1s",
                                       "leaky-bucket 10/1s queue 3" };
    static const char *const good[] = { "5/1s", "gcra 300/60s", "leaky-bucket 10/1s burst 3",
                                        "sliding-log 3/1s", "sliding-window 7/1s" };

    OWN(weir_table) *table = private_table(true, 100);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        expect_create_fails(table, "l", bad[i], WEIR_INVALID, "narrow");
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        char name[] = "l0";
        name[1] = (char)('0' + i);
        assert_true(take(limiter_of(table, name, good[i]), "k", 1, NOW).allowed);
    }
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
