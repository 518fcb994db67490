/* limiter.c -- limits at work in a table: names, joining by name, and modes. */
#include "unit/test.h"

#include "table/registry.h"
#include "unit/limit-options.h"
#include "unit/limiter-pair.h"

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

TEST(test_a_record_has_every_option)
{
    struct pair p = make_pair(false, 0);
    struct weir_limiter_info info;
    int64_t at = 0;

    for (size_t i = 0; i < COUNT_OF(limit_options); i++)
        limiter_of(p.one, limit_options[i].name, limit_options[i].with);
    for (size_t i = 0; i < COUNT_OF(limit_options); i++) {
        assert_true(weir_limiter_next(p.two, &at, &info));
        assert_string_equal(info.name, limit_options[i].name);
        assert_string_equal(info.limit, limit_options[i].with);
        expect_create_fails(p.two, info.name, limit_options[i].without, WEIR_EXISTS, info.limit);
    }
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
    expect_create_fails(table, "api", "gcra 5/1m", WEIR_EXISTS, "gcra 300/1m; weir_limiter_change");
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

GROUP(make_folder, remove_folder)
