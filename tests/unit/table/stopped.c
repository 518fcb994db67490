/* stopped.c -- an asker that was stopped after it had read the clock: it asks late, and that gives
 * nothing away.  The table's clock is injected. */
#include "unit/test.h"

#include "unit/fixture.h"

#include "table/bans.h"
#include "table/cl-throttle-limits.h"

#define STOP (100 * S) /* longer than two windows of these limits, and than a narrow slot's wait */
#define DAY  (24 * 3600 * S)

/* The first ones fit any table. */
static const char *const limits[] = {
    "gcra 10/10s",
    "token-bucket 10/10s burst 7",
    "leaky-bucket 10/10s burst 8",
    "sliding-log 10/10s",
    "sliding-log 300/10s",
    "sliding-window 10/10s",
    "sliding-window 10/10s edge=loose",

    "leaky-bucket 10/10s queue 9",
    "fixed-window 10/10s",
    "fixed-window 10/10s align=first",
    "gcra 7/3s",
    "smooth 10/10s",
    "warm-up 10/10s",
};

#define ANY_TABLE 7

static weir_time present;

static weir_time fake_now(void *context)
{
    (void)context;
    return present;
}

static struct weir_table *table_at(bool narrow, weir_time now)
{
    struct weir_table *table = table_with(&(struct weir_table_options){
        .keys = 1000, .slab = 4 << 20, .guards = 1, .narrow = narrow });

    present = now;
    table->clock.now = fake_now;
    return table;
}

/* Until the next one is refused. */
static struct weir_decision spend(struct weir_limiter *limiter, const char *key)
{
    struct weir_decision d;

    do {
        d = take(limiter, key, 1, present);
    } while (d.allowed);
    return d;
}

static void check_stopped(struct weir_limiter *limiter)
{
    struct weir_ask late = ask_of("k", 1, NOW);
    struct weir_item both[] = { { limiter, late }, { limiter, ask_of("other", 1, NOW) } };
    struct weir_decision before = spend(limiter, "k"), d;

    d = peek(limiter, "k", 1, NOW);
    assert_same_decision(&d, &before);
    d = take(limiter, "k", 1, NOW);
    assert_same_decision(&d, &before);
    assert_false(weir_take_all(both, COUNT_OF(both), &d));
    weir_take_many(both, 1, &d);
    assert_same_decision(&d, &before);
    d = take(limiter, "k", 1, present);
    assert_same_decision(&d, &before);
}

TEST(test_T1_an_ask_that_was_stopped_on_its_way_gives_nothing_away)
{
    for (int narrow = 0; narrow < 2; narrow++)
        for (size_t i = 0; i < (narrow ? ANY_TABLE : COUNT_OF(limits)); i++) {
            OWN(weir_table) *table = table_at(narrow, NOW + STOP);
            check_stopped(limiter_of(table, "l", limits[i]));
        }
}

TEST(test_units_given_back_late_are_only_those)
{
    for (int narrow = 0; narrow < 2; narrow++)
        for (size_t i = 0; i < ANY_TABLE; i++) {
            OWN(weir_table) *table = table_at(narrow, NOW + STOP);
            struct weir_limiter *limiter = limiter_of(table, "l", limits[i]);
            spend(limiter, "k");
            give(limiter, "k", 2, NOW);
            assert_true(take(limiter, "k", 2, present).allowed);
            assert_false(take(limiter, "k", 1, present).allowed);
        }
}

/* Time has paid for it, and others have spent all since. */
TEST(test_T1_a_settle_that_was_stopped_on_its_way_gives_nothing_back)
{
    for (int narrow = 0; narrow < 2; narrow++)
        for (size_t i = 0; i < (narrow ? ANY_TABLE : COUNT_OF(limits)); i++) {
            OWN(weir_table) *table = table_at(narrow, NOW);
            struct weir_limiter *limiter = limiter_of(table, "l", limits[i]);
            struct weir_ask ask = ask_of("k", 5, NOW);
            struct weir_reservation r;
            struct weir_decision d;
            ask.wait_max = 10 * S;
            assert_true(weir_reserve(limiter, &ask, WEIR_FOREVER, &r, &d));
            present += STOP;
            struct weir_decision before = spend(limiter, "k");
            assert_true(weir_settle(&r, 0, NOW));
            d = take(limiter, "k", 1, present);
            assert_same_decision(&d, &before);
        }
}

TEST(test_T1_an_ask_that_was_stopped_counts_as_of_the_present)
{
    for (int narrow = 0; narrow < 2; narrow++)
        for (size_t i = 0; i < ANY_TABLE; i++) {
            OWN(weir_table) *table = table_at(narrow, NOW + STOP);
            struct weir_limiter *limiter = limiter_of(table, "l", limits[i]);
            spend(limiter, "k");
            present += STOP; /* all is back */
            assert_true(take(limiter, "k", 1, NOW).allowed);
            int64_t most = peek(limiter, "k", 0, present).limit;
            assert_int_equal(left(limiter, "k", present), most - 1);
        }
}

TEST(test_a_carried_limit_is_no_way_round)
{
    static const char *const texts[] = { "gcra 10/10s", "gcra 7/3s" };

    OWN(weir_table) *table = table_at(false, NOW + STOP);
    struct weir_plan plans[2];
    struct weir_decision d;
    for (size_t i = 0; i < 2; i++) {
        struct weir_limit limit = limit_of(texts[i]);
        assert_ok(weir__plan_make(&plans[i], &limit, NULL));
        plans[i].clock = &table->clock;
    }
    struct weir__carried_item now = { &plans[0], ask_of("k", 10, present) },
                              late = { &plans[0], ask_of("k", 1, NOW) },
                              other = { &plans[1], ask_of("k", 1, NOW) };
    assert_int_equal(weir__carried_take_many(table, &now, 1, &d), 1);
    now.ask.cost = 1;
    assert_int_equal(weir__carried_take_many(table, &late, 1, &d), 0);
    assert_int_equal(weir__carried_take_many(table, &other, 1, &d), 0);
    assert_int_equal(weir__carried_take_many(table, &now, 1, &d), 0);
    assert_int_equal(d.retry, S);
}

TEST(test_R4_a_look_that_was_stopped_shortens_no_ban)
{
    static const struct weir__ban_terms terms = { .length = 60 * S, .factor = 1 };

    OWN(weir_table) *table = table_at(false, NOW + STOP);
    uint64_t tag = weir__ban_tag(table, "login", key_of("k"));
    weir_time end = present + 60 * S;
    assert_int_equal(weir__ban_strike(table, tag, "login", key_of("k"), &terms, present), end);
    assert_int_equal(weir__ban_until(table, tag, NOW), end);
    assert_int_equal(weir__ban_strike(table, tag, "login", key_of("k"), &terms, NOW), end);
    assert_int_equal(weir__ban_until(table, tag, present), end);
}

TEST(test_callers_with_a_clock_of_their_own_may_set_it_back)
{
    static const weir_time clocks[] = {
        NOW + STOP + DAY,    /* the ask is too old for an asker that was stopped */
        NOW + STOP - 62 * S, /* the key is ahead of the table */
        NOW - 5 * S,         /* and so is the ask */
        0,
        1800000000 * S,
    };

    for (int narrow = 0; narrow < 2; narrow++)
        for (size_t i = 0; i < COUNT_OF(clocks); i++) {
            OWN(weir_table) *table = table_at(narrow, NOW + STOP);
            struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/10s");
            spend(limiter, "k");
            present = clocks[i];
            assert_int_equal(take(limiter, "k", 1, NOW).retry, S);
            assert_true(take(limiter, "k", 10, NOW + 10 * S).allowed);
        }
}
