/* aimd.c -- one more, or a tenth less; numbers from Netflix's AIMDLimitTest among them. */
#include "unit/test.h"

#include "unit/samples.h"

static struct subject subject_from(int64_t initial, int64_t max)
{
    return subject_of(
        &(struct weir_adaptive_options){ .controller = "aimd", .initial = initial, .max = max });
}

TEST(test_L12_one_more_while_half_is_in_use)
{
    struct subject s = subject_from(20, 0);

    assert_int_equal(feed_calls(&s, MS, 1, 10), 21);
    assert_int_equal(feed_calls(&s, MS, 1, 10), 21); /* 2 * 10 < 21 */
    assert_int_equal(feed_calls(&s, MS, 1, 11), 22);
}

TEST(test_L12_a_tenth_less_on_a_drop)
{
    struct subject s = subject_from(30, 0);

    assert_int_equal(feed_lost(&s, 1, 0, 0), 27);
    assert_int_equal(feed_lost(&s, 0, 1, 0), 24); /* 24.3 */
    assert_int_equal(feed_lost(&s, 7, 0, 24), 21);
    assert_int_equal(feed_lost(&s, 1, 0, 21), 20); /* 18.9: the least is 20 */
    assert_int_equal(feed_lost(&s, 1, 0, 20), 20);
}

TEST(test_L12_five_seconds_are_a_drop)
{
    struct subject s = subject_from(30, 0);

    assert_int_equal(feed_calls(&s, 5 * S, 1, 30), 31);
    assert_int_equal(feed_calls(&s, 5 * S + 1, 1, 30), 27);
}

TEST(test_L12_the_most_is_the_most)
{
    struct subject s = subject_from(21, 21);

    assert_int_equal(feed_calls(&s, MS, 1, 11), 21);
}

TEST(test_L12_nothing_seen_changes_nothing)
{
    struct subject s = subject_from(30, 0);

    assert_int_equal(feed(&s, (struct weir__sample){ .in_flight_max = 30 }), 30);
}

/* Its known weakness: what only gets slower is filled up. */
TEST(test_L12_known_a_queue_is_not_seen)
{
    struct subject s = subject_from(20, 0);

    for (int i = 0; i < 200; i++)
        feed_calls(&s, 20 * MS * s.limit, 10, s.limit);
    assert_int_equal(s.limit, 200);
}
