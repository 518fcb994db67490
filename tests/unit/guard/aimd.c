/* aimd.c -- one more, or a tenth less; numbers from Netflix's AIMDLimitTest among them. */
#include "unit/samples.h"

static struct subject subject_from(int64_t initial, int64_t max)
{
    return subject_of(
        &(struct weir_adaptive_options){ .controller = "aimd", .initial = initial, .max = max });
}

static void test_L12_one_more_while_half_is_in_use(void **state)
{
    struct subject s = subject_from(20, 0);
    (void)state;
    assert_int_equal(feed_calls(&s, MS, 1, 10), 21);
    assert_int_equal(feed_calls(&s, MS, 1, 10), 21); /* 2 * 10 < 21 */
    assert_int_equal(feed_calls(&s, MS, 1, 11), 22);
}

static void test_L12_a_tenth_less_on_a_drop(void **state)
{
    struct subject s = subject_from(30, 0);
    (void)state;
    assert_int_equal(feed_lost(&s, 1, 0, 0), 27);
    assert_int_equal(feed_lost(&s, 0, 1, 0), 24); /* 24.3 */
    assert_int_equal(feed_lost(&s, 7, 0, 24), 21);
    assert_int_equal(feed_lost(&s, 1, 0, 21), 20); /* 18.9: the least is 20 */
    assert_int_equal(feed_lost(&s, 1, 0, 20), 20);
}

static void test_L12_five_seconds_are_a_drop(void **state)
{
    struct subject s = subject_from(30, 0);
    (void)state;
    assert_int_equal(feed_calls(&s, 5 * S, 1, 30), 31);
    assert_int_equal(feed_calls(&s, 5 * S + 1, 1, 30), 27);
}

static void test_L12_the_most_is_the_most(void **state)
{
    struct subject s = subject_from(21, 21);
    (void)state;
    assert_int_equal(feed_calls(&s, MS, 1, 11), 21);
}

static void test_L12_nothing_seen_changes_nothing(void **state)
{
    struct subject s = subject_from(30, 0);
    (void)state;
    assert_int_equal(feed(&s, (struct weir__sample){ .in_flight_max = 30 }), 30);
}

/* Its known weakness: what only gets slower is filled up. */
static void test_L12_known_a_queue_is_not_seen(void **state)
{
    struct subject s = subject_from(20, 0);
    (void)state;
    for (int i = 0; i < 200; i++)
        feed_calls(&s, 20 * MS * s.limit, 10, s.limit);
    assert_int_equal(s.limit, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_L12_one_more_while_half_is_in_use),
        cmocka_unit_test(test_L12_a_tenth_less_on_a_drop),
        cmocka_unit_test(test_L12_five_seconds_are_a_drop),
        cmocka_unit_test(test_L12_the_most_is_the_most),
        cmocka_unit_test(test_L12_nothing_seen_changes_nothing),
        cmocka_unit_test(test_L12_known_a_queue_is_not_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
