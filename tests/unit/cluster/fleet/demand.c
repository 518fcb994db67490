/* demand.c -- the numbers of a node: rates, low water, pauses. */
#include "unit/test.h"

#include "cluster/fleet/demand.h"
#include "unit/fixture.h"

#define MS WEIR_MILLISECOND

static struct weir_plan plan;

static struct weir__fleet_limit limit_made(const char *text)
{
    struct weir_limit limit = limit_of(text);
    struct weir__fleet_limit made;

    assert_int_equal(weir__plan_make(&plan, &limit, NULL), WEIR_OK);
    assert_int_equal(weir__fleet_limit_make(&made, &plan, NULL), WEIR_OK);
    return made;
}

/* life 250 ms, horizon and pace 62.5 ms */
static struct weir__fleet_limit everyday(void)
{
    return limit_made("gcra 1000/1s burst 1000");
}

TEST(test_spans_of_the_averages)
{
    struct weir__fleet_limit l = everyday();

    assert_fields(l, (slow_span, 125 * MS), (fast_span, 125 * MS), (pause_most, 333333333));
    assert_int_equal(l.purse.most, 1000);
    assert_int_equal(l.purse.limit.period, 250 * MS);
    l = limit_made("gcra 10/1s burst 1000");
    assert_fields(l, (slow_span, 5 * S), (fast_span, 200 * MS));
    struct weir_limit large = limit_of("token-bucket 10000000000/1s");
    assert_int_equal(weir__plan_make(&plan, &large, NULL), WEIR_OK);
    assert_int_equal(weir__fleet_limit_make(&l, &plan, NULL), WEIR_INVALID);
}

/* In whichever batches asks are counted, an even rate is found, and goes when they end. */
TEST(test_an_even_rate_is_found)
{
    struct weir__fleet_limit l = everyday();

    for (int batch = 1; batch <= 100; batch *= 10) {
        struct weir__fleet_rate rate = { .at = NOW };
        weir_time now = NOW;
        for (int i = 0; i < 5000 / batch; i++)
            weir__fleet_rate_count(&rate, &l, batch, now += batch * MS); /* 1000 a second */
        assert_in_range(rate.slow, 990000, 1010000);
        assert_in_range(rate.fast, 990000, 1010000);
        assert_in_range(weir__fleet_coming(&l, &rate), 61, 63);
        for (int i = 0; i < 40; i++)
            weir__fleet_rate_count(&rate, &l, 0, now += 62 * MS);
        assert_int_equal(weir__fleet_coming(&l, &rate), 0);
    }
}

TEST(test_a_rate_copes_with_any_clock)
{
    struct weir__fleet_limit l = everyday();
    struct weir__fleet_rate rate = { 0 };

    weir__fleet_rate_count(&rate, &l, 5, INT64_MAX); /* the first ask: nothing is known before */
    assert_int_equal(rate.slow, 40000);
    weir__fleet_rate_count(&rate, &l, INT64_MAX, 0);
    assert_true(rate.slow > 0);
    weir__fleet_rate_count(&rate, &l, -5, NOW);
    assert_true(rate.slow >= 0);
}

TEST(test_low_water)
{
    struct weir__fleet_limit l = everyday();
    struct weir__fleet_rate rate = { .fast = 1000000, .slow = 1000000 }; /* 62 in a horizon */

    assert_int_equal(weir__fleet_low_water(&l, &rate, MS, 1000), 15);      /* a quarter of them */
    assert_int_equal(weir__fleet_low_water(&l, &rate, 20 * MS, 1000), 40); /* two round trips */
    assert_int_equal(weir__fleet_low_water(&l, &rate, 20 * MS, 80), 20);   /* a quarter share */
    assert_int_equal(weir__fleet_low_water(&l, &rate, 20 * MS, 0), 0);
}

/* From one to four paces, by how long the share takes; 0.9 to 1.1 of that by chance. */
TEST(test_pauses)
{
    static const struct {
        int64_t need, units, share;
        weir_time least, most; /* us */
    } rows[] = {
        { 1, 10, 100, 56250, 68750 },    { 1, 100, 100, 56250, 68750 },
        { 1, 200, 100, 112500, 137500 }, { 1, 10000, 100, 225000, 275000 },
        { 1, 0, 0, 225000, 275000 },     { 300, 0, 100, 168750, 206250 },
    };
    struct weir__fleet_limit l = everyday();

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct weir__draw draw = { .need = rows[i].need };
        struct weir__drawn drawn = { .units = rows[i].units, .share = rows[i].share };
        assert_int_equal(weir__fleet_pause(&l, &draw, &drawn, 0) / 1000, rows[i].least);
        assert_int_equal((weir__fleet_pause(&l, &draw, &drawn, UINT32_MAX) + 999) / 1000,
                         rows[i].most);
    }
    /* no longer than a third of the time in which the burst is full again */
    l = limit_made("gcra 1000/1s burst 10");
    assert_int_equal(
        weir__fleet_pause(&l, &(struct weir__draw){ .need = 1 }, &(struct weir__drawn){ 0 }, 0),
        3000 * WEIR_MICROSECOND);
}

TEST(test_D4_the_part_that_is_asked_for)
{
    struct weir__fleet_limit l = everyday(), window = limit_made("fixed-window 600/1m");
    struct weir__fleet_rate rate = { .slow = 250000 }; /* 250 per second */

    assert_int_equal(weir__fleet_part_asked(&window, &rate), 1000000);
    l = everyday();
    assert_int_equal(weir__fleet_part_asked(&l, &rate), 250000);
    rate.slow = 0;
    assert_int_equal(weir__fleet_part_asked(&l, &rate), 0);
}

/* A node wants twice what is asked for: more at once, less only after ten seconds. */
TEST(test_D4_the_part_that_is_wanted)
{
    struct weir__fleet_want want = { 0 };

    assert_int_equal(weir__fleet_want(&want, 0, NOW), 1000000);
    assert_int_equal(weir__fleet_want(&want, 100000, NOW + 10 * S - 1), 1000000);
    assert_int_equal(weir__fleet_want(&want, 100000, NOW + 10 * S), 500000);
    assert_int_equal(weir__fleet_want(&want, 100000, NOW + 20 * S), 250000);
    assert_int_equal(weir__fleet_want(&want, 100000, NOW + 60 * S), 250000);
    assert_int_equal(weir__fleet_want(&want, 0, NOW + 69 * S), 250000);
    assert_int_equal(weir__fleet_want(&want, 0, NOW + 70 * S), 125000);
    assert_int_equal(weir__fleet_want(&want, 300000, NOW + 71 * S), 1000000);
    for (int i = 0; i < 1000; i++)
        weir__fleet_want(&want, 0, NOW + (80 + 10 * i) * S);
    assert_true(weir__fleet_want(&want, 0, NOW + 90000 * S) > 0);
}
