/* gradient2.c -- the time now against that on the long run, as published, with what is known of
 * it. */
#include "unit/test.h"

#include "unit/samples.h"

static struct subject subject_from(int64_t initial, int64_t min, int64_t max)
{
    return subject_of(&(struct weir_adaptive_options){
        .controller = "gradient2", .initial = initial, .min = min, .max = max });
}

TEST(test_L12_grows_by_what_may_wait)
{
    struct subject s = subject_from(0, 0, 0);

    for (int i = 1; i <= 300; i++) {
        int64_t expected = (200 + 8 * (int64_t)i) / 10; /* 0.2 * 4 a sample */
        assert_in_range(feed_calls(&s, 10 * MS, 10, s.limit), expected < 200 ? expected - 1 : 200,
                        expected < 200 ? expected : 200);
    }
    assert_int_equal(s.limit, 200);
}

TEST(test_L12_half_must_be_in_use)
{
    struct subject s = subject_from(0, 0, 0);

    for (int i = 0; i < 50; i++)
        assert_int_equal(feed_calls(&s, 10 * MS, 10, 9), 20);
    feed_calls(&s, 10 * MS, 10, 10);
    assert_int_equal(feed_calls(&s, 10 * MS, 10, 11), 21);
}

/* 100, long 10 ms, short 30 ms: gradient 1.5 * (10 * 599 + 30 * 2) / 601 / 30 = 0.5033. */
TEST(test_L12_shrinks_by_the_gradient)
{
    struct subject s = subject_from(100, 1, 200);

    for (int i = 0; i < 10; i++)
        feed_calls(&s, 10 * MS, 10, 10);
    assert_int_equal(s.limit, 100);
    assert_int_equal(feed_calls(&s, 30 * MS, 10, 100), 90); /* 80 + 0.2 * 54.33 = 90.87 */
    assert_int_equal(feed_calls(&s, 1000 * MS, 10, 90),
                     82); /* never less than half: 0.9 * 90.87 + 0.8 = 82.58 */
    assert_int_equal(feed_calls(&s, 10 * MS, 10, 82), 83);
}

/* The first ten are a mean, and the long time shrinks faster when load has gone. */
TEST(test_L12_the_long_run)
{
    struct subject s = subject_from(100, 1, 200);
    char text[64];

    for (int i = 1; i <= 10; i++) {
        feed_calls(&s, i * 10 * MS, 10, 0);
        s.plan.row->tell(s.state, text, sizeof(text));
        char expected[64];
        snprintf(expected, sizeof(expected), "long %dms", 5 + 5 * i);
        assert_string_equal(text, expected);
    }
    feed_calls(&s, 10 * MS, 10, 0); /* (55 * 599 + 10 * 2) / 601 * 0.95 = 52.108 */
    s.plan.row->tell(s.state, text, sizeof(text));
    assert_string_equal(text, "long 52ms");
}

TEST(test_L12_nothing_seen_changes_nothing)
{
    struct subject s = subject_from(0, 0, 0);

    assert_int_equal(feed_lost(&s, 10, 10, 20), 20);
    assert_int_equal(feed(&s, (struct weir__sample){ .in_flight_max = 20 }), 20);
}

/* concurrency-limits#137: the time is that of a time-out, constantly, and some of it is even told:
 * it climbs. */
TEST(test_L12_known_constant_time_outs_climb)
{
    struct subject s = subject_from(0, 0, 0);

    for (int i = 0; i < 40; i++)
        feed(&s, (struct weir__sample){
                     .succeeded = 10, .dropped = 10, .mean = S, .in_flight_max = s.limit });
    assert_in_range(s.limit, 51, 52);
}

/* At a gradient of 0.8 it comes to rest at 4 / 0.2 whatever the backend could do. */
TEST(test_L12_known_rests_where_the_gradient_says)
{
    struct subject s = subject_from(100, 1, 200);
    double longer = 10e6;

    for (int i = 0; i < 10; i++)
        feed_calls(&s, 10 * MS, 10, 0);
    for (int i = 0; i < 300;
         i++) { /* always this much slower than the long run, however that has followed */
        double rtt = 1.875 * longer * 599 / 601 / (1 - 1.875 * 2 / 601);
        longer = rtt / 1.875;
        feed_calls(&s, (weir_time)rtt, 10, s.limit);
    }
    assert_in_range(s.limit, 19, 20);
}
