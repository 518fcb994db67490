/* share.c -- a node's part of a limit. */
#include "unit/test.h"

#include "algo/share.h"
#include "unit/fixture.h"

/* The same of a limit as it was written and as a plan has it. */
static struct weir_plan share_of(const char *text, uint32_t part)
{
    struct weir_limit limit = limit_of(text), mine;
    struct weir_plan plan, whole;

    assert_int_equal(weir__plan_make(&whole, &limit, NULL), WEIR_OK);
    assert_true(weir__fleet_share_limit(&mine, &whole.limit, part));
    assert_int_equal(weir__plan_make(&whole, &mine, NULL), WEIR_OK);
    assert_true(weir__fleet_share_limit(&mine, &limit, part));
    assert_int_equal(weir__plan_make(&plan, &mine, NULL), WEIR_OK);
    assert_int_equal(plan.most, whole.most);
    return plan;
}

TEST(test_a_share_has_its_part_of_rate_and_burst)
{
    static const struct {
        const char *limit;
        uint32_t part;
        int64_t most, in_an_hour; /* after that, as the rate lets pass */
    } rows[] = {
        { "token-bucket 100/1s", 500000, 50, 180000 },
        { "gcra 100/1s burst 10", 333333, 3, 119999 },
        { "gcra 7/13s burst 7", 250000, 1, 484 },
        { "leaky-bucket 100/1s burst 3", 100000, 1, 36000 },
        { "token-bucket 100/1s", WEIR__FLEET_WHOLE, 100, 360000 },
        { "fixed-window 500/1h", 300000, 150, 150 },
        { "sliding-log 10/1h", 999999, 9, 9 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct weir_plan plan = share_of(rows[i].limit, rows[i].part);
        print_message("%s, %u millionths\n", rows[i].limit, rows[i].part);
        assert_int_equal(plan.most, rows[i].most);
        weir__i128 hour = (weir__i128)plan.limit.count * 3600 * S / plan.limit.period;
        assert_int_equal((int64_t)hour, rows[i].in_an_hour);
    }
}

/* Parts that are no more than the whole are together no more than the limit; bursts of one each
 * where a part is less. */
TEST(test_shares_are_no_more_than_the_limit)
{
    random_state = 1;
    for (int i = 0; i < 2000; i++) {
        struct weir_limit limit = { .algorithm = one_in(2) ? "gcra" : "fixed-window",
                                    .count = between(1, 100000),
                                    .period = between(1, 100) * S };
        int nodes = int_between(1, 50);
        int64_t left = WEIR__FLEET_WHOLE, burst = 0, window = 0;
        double rate = 0;
        for (int n = 0; n < nodes; n++) {
            uint32_t part = (uint32_t)between(0, left);
            struct weir_limit mine;
            left -= part;
            if (!weir__fleet_share_limit(&mine, &limit, part))
                continue;
            rate += (double)mine.count / (double)mine.period;
            burst += mine.burst > 1 ? mine.burst : 0;
            window += mine.count;
        }
        if (strcmp(limit.algorithm, "gcra") == 0)
            assert_true(rate <= (double)limit.count / (double)limit.period * (1 + 1e-9) &&
                        burst <= limit.count);
        else
            assert_true(window <= limit.count);
    }
}

/* However long the period and odd the part: a meter always has a share. */
TEST(test_every_meter_has_a_share)
{
    random_state = 2;
    for (int i = 0; i < 20000; i++) {
        struct weir_limit limit = { .algorithm = one_in(2) ? "gcra" : "token-bucket",
                                    .count = between(1, one_in(2) ? 100 : UINT32_MAX),
                                    .period = between(1, 100) *
                                              (one_in(2) ? 24 * 3600 * S : WEIR_MICROSECOND) },
                          mine;
        struct weir_plan plan, share;
        uint32_t part = (uint32_t)between(1000, WEIR__FLEET_WHOLE);
        if (weir__plan_make(&plan, &limit, NULL) != WEIR_OK)
            continue;
        if (!weir__fleet_share_limit(&mine, &limit, part))
            fail_msg("%lld in %lld ns, part %u", (long long)limit.count, (long long)limit.period,
                     part);
        assert_ok(weir__plan_make(&share, &mine, NULL));
        assert_true(share.most <= plan.most * (int64_t)part / WEIR__FLEET_WHOLE || share.most == 1);
        /* No faster than its part, and slower by no more than what a unit takes longer. */
        weir__i128 whole = (weir__i128)limit.count * part * mine.period,
                   own = (weir__i128)mine.count * WEIR__FLEET_WHOLE * limit.period;
        assert_true(own <= whole);
        assert_true(whole - own <= whole / 1000);
    }
}

TEST(test_no_share)
{
    struct weir_limit limit = limit_of("fixed-window 5/1m"), mine;

    assert_false(weir__fleet_share_limit(&mine, &limit, 100000)); /* half a unit */
    assert_false(weir__fleet_share_limit(&mine, &limit, 0));
    limit = (struct weir_limit){ .count = INT64_MAX / 2, .period = INT64_MAX / 2 };
    assert_false(weir__fleet_share_limit(&mine, &limit, 333333));
    limit = limit_of("gcra 1/1000d");
    assert_true(weir__fleet_share_limit(&mine, &limit, 100000));
    assert_false(
        weir__fleet_share_limit(&mine, &limit, 1)); /* a unit in a million times 1000 days */
}

/* It begins with its part of what was left, and in the end owes what it still lacks. */
TEST(test_a_share_begins_with_its_part_of_what_was_left)
{
    struct weir_plan plan = share_of("gcra 100/1s burst 100", 500000);

    assert_int_equal(weir__fleet_share_begin(&plan, 500000, 100), 0);
    assert_int_equal(weir__fleet_share_begin(&plan, 500000, 30), 35);
    assert_int_equal(weir__fleet_share_begin(&plan, 500000, -1), 50);
    assert_int_equal(weir__fleet_share_begin(&plan, 500000, INT64_MAX), 0);
}
