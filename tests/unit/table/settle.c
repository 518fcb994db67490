/* settle.c -- a reservation takes an estimate; settling it gives back the rest, or charges more. */
#include "unit/test.h"

#include "unit/fixture.h"

static struct weir_table *small_slab_table(bool narrow)
{
    return table_with(&(struct weir_table_options){
        .keys = 1000, .slab = 4 << 20, .guards = 1, .narrow = narrow });
}

struct reserved {
    struct weir_table *table;
    struct weir_limiter *limiter;
    struct weir_reservation reservation;
};

/* "k" has reserved 4 of 10 at NOW for five seconds. */
static struct reserved reserve_four(bool narrow, const char *limit)
{
    struct reserved r = { .table = small_slab_table(narrow) };
    struct weir_ask ask = ask_of("k", 4, NOW);
    struct weir_decision d;

    r.limiter = limiter_of(r.table, "l", limit);
    bool granted = weir_reserve(r.limiter, &ask, 5 * S, &r.reservation, &d);
    assert_true(granted && d.allowed);
    assert_int_equal(d.remaining, 6);
    assert_int_equal(r.reservation.expires, NOW + 5 * S);
    return r;
}

static const struct {
    bool narrow;
    const char *limit;
} kinds[] = { { false, "gcra 10/100s" },
              { true, "gcra 10/100s" },
              { false, "fixed-window 10/100s" },
              { false, "sliding-log 10/100s" },
              { true, "sliding-window 10/100s" } };

TEST(test_settle_gives_back_or_charges_the_difference)
{
    static const struct {
        int64_t cost, left;
    } rows[] = { { 4, 6 },          { 1, 9 }, { 0, 10 }, { -3, 10 },
                 { INT64_MIN, 10 }, { 5, 5 }, { 10, 0 }, { 13, 0 } };
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            struct reserved r = reserve_four(kinds[k].narrow, kinds[k].limit);
            assert_true(weir_settle(&r.reservation, rows[i].cost, NOW));
            assert_int_equal(left(r.limiter, "k", NOW), rows[i].left);
            assert_int_equal(r.reservation.expires, 0);
            assert_false(weir_settle(&r.reservation, 0, NOW)); /* once */
            assert_int_equal(left(r.limiter, "k", NOW), rows[i].left);
            weir_table_destroy(r.table);
        }
}

TEST(test_a_reservation_expires_and_its_estimate_stands)
{
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        for (int last = 0; last < 2;
             last++) { /* the last moment it can be settled, and the first it cannot */
            struct reserved r = reserve_four(kinds[k].narrow, kinds[k].limit);
            weir_time now = NOW + 5 * S - last;
            assert_int_equal(weir_settle(&r.reservation, 0, now), last);
            assert_int_equal(left(r.limiter, "k", now), last ? 10 : 6);
            assert_false(weir_settle(&r.reservation, 0,
                                     NOW)); /* nor does a clock that steps back revive it */
            weir_table_destroy(r.table);
        }
}

TEST(test_a_reservation_for_ever_does_not_expire)
{
    OWN(weir_table) *table = small_slab_table(false);
    struct weir_limiter *limiter = limiter_of(table, "l", "fixed-window 10/100w");
    struct weir_ask ask = ask_of("k", 4, NOW);
    struct weir_reservation r;
    struct weir_decision d;
    assert_true(weir_reserve(limiter, &ask, WEIR_FOREVER, &r, &d));
    assert_true(weir_settle(&r, 1, NOW + 1000 * S));
    assert_int_equal(left(limiter, "k", NOW + 1000 * S), 9);
}

TEST(test_a_refused_reservation_cannot_be_settled)
{
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        static const int64_t costs[] = { 7, 11, -1 };
        struct reserved r = reserve_four(kinds[k].narrow, kinds[k].limit);
        for (size_t i = 0; i < COUNT_OF(costs); i++) {
            struct weir_ask ask = ask_of("k", costs[i], NOW);
            struct weir_reservation other = { .expires = 99 };
            struct weir_decision d;
            assert_false(weir_reserve(r.limiter, &ask, 5 * S, &other, &d));
            assert_false(d.allowed);
            assert_int_equal(other.expires, 0);
            assert_false(weir_settle(&other, 0, NOW));
            assert_false(weir_settle(&other, 100, NOW));
        }
        assert_int_equal(left(r.limiter, "k", NOW), 6);
        weir_table_destroy(r.table);
    }
}

TEST(test_settling_beyond_the_limit_makes_the_key_owe)
{
    for (int narrow = 0; narrow < 2; narrow++) { /* gcra 10/10s: a unit a second */
        struct reserved r = reserve_four(narrow, "gcra 10/10s");
        assert_true(weir_settle(&r.reservation, 25, NOW));
        struct weir_decision d = take(r.limiter, "k", 1, NOW);
        assert_false(d.allowed);
        assert_int_equal(d.retry, 16 * S); /* 25 + 1 - 10 units have to drain */
        assert_false(take(r.limiter, "k", 1, NOW + 16 * S - 1).allowed);
        assert_true(take(r.limiter, "k", 1, NOW + 16 * S).allowed);
        weir_table_destroy(r.table);
    }
    struct reserved r = reserve_four(
        false, "fixed-window 10/10s"); /* two windows and a half; NOW is the start of one */
    assert_true(weir_settle(&r.reservation, 25, NOW));
    assert_int_equal(take(r.limiter, "k", 1, NOW).retry, 20 * S);
    assert_int_equal(left(r.limiter, "k", NOW + 20 * S), 5);
    weir_table_destroy(r.table);
}

/* A narrow slot cannot tell a debt of more than a minute above the limit from a clock that has
 * stepped back (docs/shm.md): the key is spent at the least, and owes no more than the minute. */
TEST(test_settling_far_beyond_the_limit_leaves_a_narrow_key_spent)
{
    struct reserved r = reserve_four(true, "gcra 10/10s");

    assert_true(weir_settle(&r.reservation, 1000000, NOW));
    struct weir_decision d = take(r.limiter, "k", 1, NOW);
    assert_fields(d, (allowed, false), (remaining, 0));
    assert_true(d.retry >= S && d.retry <= 61 * S + S);
    assert_true(take(r.limiter, "k", 1, NOW + d.retry).allowed);
    weir_table_destroy(r.table);
}

TEST(test_a_key_that_was_driven_out_is_still_charged)
{
    OWN(weir_table) *table = small_slab_table(false);
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/100s");
    struct weir_ask ask = ask_of("k", 0, NOW); /* a reservation of nothing leaves no slot */
    struct weir_reservation r;
    struct weir_decision d;
    assert_true(weir_reserve(limiter, &ask, S, &r, &d));
    assert_int_equal(stats_of(table, -1).keys, 0);
    assert_true(weir_settle(&r, 3, NOW));
    assert_int_equal(left(limiter, "k", NOW), 7);
}

/* Reserved again and again, each after time has paid for the one before; then all settled at
 * nothing: nothing is left to give back. */
TEST(test_settling_late_mints_nothing)
{
    static const char *const five[] = { "token-bucket 10/1s", "gcra 10/1s", "fixed-window 10/1s",
                                        "sliding-window 10/1s", "sliding-log 10/1s" };

    for (size_t i = 0; i < COUNT_OF(five); i++) {
        OWN(weir_table) *table = private_table(false, 100);
        struct weir_limiter *limiter = limiter_of(table, "l", five[i]);
        struct weir_reservation held[20];
        struct weir_decision d;
        int64_t taken = 0;
        for (int r = 0; r < 20; r++) {
            struct weir_ask ask = ask_of("k", 10, NOW + 2 * r * S);
            assert_true(weir_reserve(limiter, &ask, 3600 * S, &held[r], &d));
        }
        for (int r = 0; r < 20; r++) {
            assert_true(weir_settle(&held[r], 0, NOW + 50 * S));
            while (take(limiter, "k", 1, NOW + 50 * S).allowed)
                taken++;
        }
        assert_int_equal(taken, 10);
    }
}

/* A unit comes back in a second; those of a day with the next day. */
TEST(test_settling_gives_back_only_what_is_still_out)
{
    static const struct {
        const char *limit;
        weir_time later;
        int64_t left;
    } rows[] = { { "gcra 10/10s", S / 2, 5 },
                 { "gcra 10/10s", 2 * S, 5 },
                 { "calendar 10/day", 2 * S, 5 },
                 { "calendar 10/day", 86400 * S, 5 } };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        OWN(weir_table) *table = private_table(false, 100);
        struct weir_limiter *limiter = limiter_of(table, "l", rows[i].limit);
        struct weir_ask ask = ask_of("k", 1, NOW);
        struct weir_reservation r;
        struct weir_decision d;
        assert_true(weir_reserve(limiter, &ask, WEIR_FOREVER, &r, &d));
        assert_true(take(limiter, "k", 5, NOW + rows[i].later).allowed);
        assert_true(weir_settle(&r, 0, NOW + rows[i].later));
        assert_int_equal(left(limiter, "k", NOW + rows[i].later), rows[i].left);
    }
}

/* Of five units two were used, and two seconds have paid for these: nothing is left of the ask. */
TEST(test_settling_late_gives_back_all_that_was_not_used)
{
    static const char *const rates[] = { "gcra 10/10s", "token-bucket 10/10s",
                                         "leaky-bucket 10/10s", "leaky-bucket 10/10s queue 9",
                                         "smooth 10/10s" };

    for (size_t i = 0; i < COUNT_OF(rates); i++)
        for (int64_t used = 2; used < 5; used++) {
            OWN(weir_table) *table = private_table(false, 100);
            struct weir_limiter *limiter = limiter_of(table, "l", rates[i]);
            struct weir_ask ask = ask_of("k", 5, NOW);
            struct weir_reservation r;
            struct weir_decision d;
            assert_true(weir_reserve(limiter, &ask, WEIR_FOREVER, &r, &d));
            assert_true(weir_settle(&r, used, NOW + 2 * S));
            assert_int_equal(left(limiter, "k", NOW + 2 * S), 10 - (used - 2));
        }
}

/* Nine are reserved and not used.  While they were out 0.9 units came back, which a full key would
 * have lost: 10 can pass at once, and the next is paid for a second later. */
TEST(test_settling_mints_no_part_of_a_unit)
{
    static const char *const rates[] = { "gcra 10/10s", "token-bucket 10/10s",
                                         "leaky-bucket 10/10s" };
    const weir_time then = NOW + 900 * WEIR_MILLISECOND;

    for (size_t i = 0; i < COUNT_OF(rates); i++) {
        OWN(weir_table) *table = private_table(false, 100);
        struct weir_limiter *limiter = limiter_of(table, "l", rates[i]);
        struct weir_ask ask = ask_of("k", 9, NOW);
        struct weir_reservation r;
        struct weir_decision d;
        int64_t taken = 1;
        assert_true(weir_reserve(limiter, &ask, WEIR_FOREVER, &r, &d));
        assert_true(take(limiter, "k", 1, then).allowed);
        assert_true(weir_settle(&r, 0, then));
        while (take(limiter, "k", 1, NOW + S).allowed)
            taken++;
        assert_int_equal(taken, 10);
    }
}

/* Five are reserved and not used, and others take the rest of the limit meanwhile.  Settled, the
 * five are free again; what the others took counts as long as it should. */
TEST(test_settling_takes_nothing_from_others)
{
    static const struct {
        const char *limit;
        weir_time reserved, others, settled, later;
        int64_t took, left, left_later;
    } rows[] = {
        { "sliding-log 10/10s", 0, 9 * S, 9500 * WEIR_MILLISECOND, 10 * S, 5, 5, 5 },
        /* A chain, in which only the newest could go: the five stand until they expire. */
        { "sliding-log 100/10s", 0, 9 * S, 9500 * WEIR_MILLISECOND, 10 * S, 5, 90, 95 },
        /* Within a second they could be of an ask that was overtaken, and are not. */
        { "sliding-log 100/1s", 0, 900 * WEIR_MILLISECOND, 950 * WEIR_MILLISECOND, S, 60, 35, 40 },
        { "sliding-window 10/10s", 0, 9 * S, 9500 * WEIR_MILLISECOND, 11 * S, 5, 5, 5 },
        { "sliding-window 10/10s edge=loose", 0, 9 * S, 9500 * WEIR_MILLISECOND, 10 * S, 5, 5, 5 },
        /* The window began a second before; at 11 s there is a new one. */
        { "fixed-window 10/10s align=first", 9 * S, 11 * S, 12 * S, 13 * S, 10, 0, 0 },
        { "fixed-window 10/10s align=first", 5 * S, 8 * S, 9 * S, 13 * S, 4, 5, 10 },
        { "fixed-window 10/10s", 9 * S, 11 * S, 12 * S, 13 * S, 10, 0, 0 },
        /* Overtaken: the key has seen that time has given back all. */
        { "sliding-log 10/100ms", 0, S / 5, S / 100, S / 5, 10, 0, 0 },
        { "sliding-window 10/100ms", 0, S / 5, S / 100, S / 5, 10, 0, 0 },
        { "fixed-window 10/100ms", 0, S / 5, S / 100, S / 5, 10, 0, 0 },
        { "gcra 10/100ms", 0, S / 5, S / 100, S / 5, 10, 0, 0 },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        OWN(weir_table) *table = private_table(false, 100);
        struct weir_limiter *limiter = limiter_of(table, "l", rows[i].limit);
        struct weir_ask ask = ask_of("k", 5, NOW + rows[i].reserved);
        struct weir_reservation r;
        struct weir_decision d;
        if (strstr(rows[i].limit, "align") != NULL)
            assert_true(take(limiter, "k", 1, NOW + S).allowed);
        assert_true(weir_reserve(limiter, &ask, WEIR_FOREVER, &r, &d));
        assert_true(take(limiter, "k", rows[i].took, NOW + rows[i].others).allowed);
        assert_true(weir_settle(&r, 0, NOW + rows[i].settled));
        assert_int_equal(left(limiter, "k", NOW + rows[i].settled), rows[i].left);
        assert_int_equal(left(limiter, "k", NOW + rows[i].later), rows[i].left_later);
    }
}

/* A reservation that was overtaken counts as of the latest moment seen, and comes back all the
 * same; one that others wait behind does not. */
TEST(test_settling_finds_an_ask_that_was_overtaken)
{
    static const char *const rows[] = { "sliding-log 10/10s", "sliding-window 10/10s" };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        OWN(weir_table) *table = private_table(false, 100);
        struct weir_limiter *limiter = limiter_of(table, "l", rows[i]);
        struct weir_ask late = ask_of("k", 5, NOW + S / 2), patient = ask_of("k", 6, NOW + 2 * S);
        struct weir_reservation r;
        struct weir_decision d;
        assert_true(take(limiter, "k", 1, NOW + S).allowed);
        assert_true(weir_reserve(limiter, &late, WEIR_FOREVER, &r, &d));
        assert_true(weir_settle(&r, 0, NOW + 2 * S));
        assert_int_equal(left(limiter, "k", NOW + 2 * S), 9);

        assert_true(weir_reserve(limiter, &late, WEIR_FOREVER, &r, &d));
        patient.wait_max = WEIR_FOREVER;
        assert_true(weir_take(limiter, &patient, &d));
        weir_time turn = NOW + 2 * S + d.wait;
        assert_true(weir_settle(&r, 0, NOW + 3 * S));
        assert_int_equal(left(limiter, "k", turn), 4);
    }
}

/* A chain can only tell that it was overtaken if all that came since are of one instant. */
TEST(test_settling_a_long_log_finds_an_ask_that_was_overtaken)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_limiter *limiter = limiter_of(table, "l", "sliding-log 100/10s");
    struct weir_ask late = ask_of("k", 5, NOW + S / 2);
    struct weir_reservation r;
    struct weir_decision d;

    for (int others = 0; others < 2; others++) {
        weir_time then = NOW + S + others * S / 4;
        assert_true(take(limiter, "k", 1, then).allowed);
        assert_true(weir_reserve(limiter, &late, WEIR_FOREVER, &r, &d));
        assert_true(weir_settle(&r, 0, NOW + 2 * S));
        assert_int_equal(left(limiter, "k", NOW + 2 * S), others ? 93 : 99);
    }
}
