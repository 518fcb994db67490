/* vegas.c -- how many wait is seen from how long it takes; numbers from Netflix's VegasLimitTest
 * among them. */
#include "unit/test.h"

#include "unit/samples.h"

static struct subject subject_from(int64_t initial, int64_t max)
{
    return subject_of(
        &(struct weir_adaptive_options){ .controller = "vegas", .initial = initial, .max = max });
}

TEST(test_L12_the_first_time_is_the_base)
{
    struct subject s = subject_from(10, 20);

    assert_int_equal(feed_calls(&s, 10 * MS, 1, 10), 10);
    assert_int_equal(feed_calls(&s, 10 * MS, 1, 11), 16); /* nobody waits: 6 more */
    assert_int_equal(feed_calls(&s, 10 * MS, 1, 16), 20); /* 22, but for the bound */
}

TEST(test_L12_by_how_many_wait)
{
    static const struct {
        int64_t rtt_ms, limit;
    } rows[] = { { 10, 16 }, { 11, 16 }, { 12, 11 }, { 14, 10 },
                 { 25, 10 }, { 26, 9 },  { 50, 9 },  { 9, 10 } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct subject s = subject_from(10, 20);
        feed_calls(&s, 10 * MS, 1, 10);
        assert_int_equal(feed_calls(&s, rows[i].rtt_ms * MS, 1, 11), rows[i].limit);
    }
}

TEST(test_L12_steps_grow_with_the_digits)
{
    struct subject s = subject_from(10000, 20000);

    assert_int_equal(feed_calls(&s, 10 * S, 1, 5000), 10000);
    assert_int_equal(feed_calls(&s, 10 * S, 1, 6000), 10024);
    struct subject t = subject_from(100, 20000);
    feed_calls(&t, 10 * MS, 1, 100);
    assert_int_equal(feed_calls(&t, 50 * MS, 1, 100), 98);
    assert_int_equal(feed_calls(&t, 50 * MS, 1, 98), 97); /* 98 has one digit after the first */
}

TEST(test_L12_a_drop_lowers_it_used_or_not)
{
    struct subject s = subject_from(100, 200);

    feed_calls(&s, 10 * MS, 1, 100);
    assert_int_equal(feed_lost(&s, 1, 0, 0), 98);
    assert_int_equal(feed_lost(&s, 0, 1, 98), 97);
    assert_int_equal(feed(&s,
                          (struct weir__sample){
                              .succeeded = 9, .dropped = 1, .mean = 10 * MS, .in_flight_max = 97 }),
                     96);
}

TEST(test_L12_half_must_be_in_use)
{
    struct subject s = subject_from(10, 20);

    feed_calls(&s, 10 * MS, 1, 10);
    assert_int_equal(feed_calls(&s, 10 * MS, 1, 4), 10);
    assert_int_equal(feed_calls(&s, 50 * MS, 1, 4), 10);
    assert_int_equal(feed_calls(&s, 10 * MS, 1, 5), 16);
}

TEST(test_L12_never_below_one)
{
    struct subject s = subject_from(3, 20);

    feed_calls(&s, 10 * MS, 1, 3);
    for (int i = 0; i < 10; i++)
        feed_lost(&s, 1, 0, 3);
    assert_int_equal(s.limit, 1);
}

TEST(test_L12_the_base_is_measured_anew_now_and_then)
{
    struct subject s = subject_from(10, 10);
    int until = 0, probes = 0;

    feed_calls(&s, 10 * MS, 1, 10);
    for (int i = 1; i <= 3000; i++) {
        char text[64];
        feed_calls(&s, 20 * MS, 1, 10);
        s.plan.row->tell(s.state, text, sizeof(text));
        if (strcmp(text, "base 20ms") == 0) {
            assert_in_range(i - until, 30 * s.limit / 2 - 80,
                            30 * 10); /* limit 5 to 10 in between */
            until = i;
            probes++;
            feed_calls(&s, 10 * MS, 1, 10);
        }
    }
    assert_in_range(probes, 10, 60);
}

TEST(test_L12_nothing_seen_changes_nothing)
{
    struct subject s = subject_from(10, 20);

    feed_calls(&s, 10 * MS, 1, 10);
    assert_int_equal(feed(&s, (struct weir__sample){ .in_flight_max = 10 }), 10);
}

/* concurrency-limits#165: a base that is taken under load makes the load look like none. */
TEST(test_L12_known_the_limit_drifts_up_under_load)
{
    struct subject s = subject_from(20, 1000);
    int64_t settled = 0;

    for (int i = 0; i < 20000;
         i++) { /* a backend of 10: it takes as many times longer as there are more */
        feed_calls(&s, s.limit > 10 ? s.limit * MS : 10 * MS, 1, s.limit);
        settled = i == 100 ? s.limit : settled;
    }
    assert_in_range(settled, 10, 30);
    assert_true(s.limit > 2 * settled);
}
