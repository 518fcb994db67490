/* bbr.c -- what is finished times the shortest time; numbers from the tests of go-kratos/aegis
 * among them. */
#include "unit/test.h"

#include "unit/samples.h"

#define PART (100 * MS)

static struct subject subject_bbr(void)
{
    return subject_of(&(struct weir_adaptive_options){ .controller = "bbr" });
}

static int64_t feed_refusing(struct subject *s, weir_time rtt, int64_t n, int64_t refused)
{
    return feed(s, (struct weir__sample){ .succeeded = n,
                                          .entered = n,
                                          .refused = refused,
                                          .mean = rtt,
                                          .in_flight_max = s->limit });
}

/* aegis: parts of 200, 300 ... 1100 that took 5.5, 15.5 ... 95.5 ms; without the last one 1000 * 6
 * * 10 / 1000. */
TEST(test_L12_as_many_as_are_finished_in_the_shortest_time)
{
    struct subject s = subject_bbr();
    for (int i = 0; i < 10; i++)
        feed_calls(&s, 5500 * WEIR_MICROSECOND + i * 10 * MS, (i + 2) * 100, 10);
    assert_int_equal(s.limit, 60);
}

TEST(test_L12_the_part_that_is_being_filled_does_not_count)
{
    struct subject s = subject_bbr();
    assert_int_equal(feed_calls(&s, 10 * MS, 1000, 10),
                     20); /* nothing is known yet: the initial limit */
    assert_int_equal(feed_calls(&s, 10 * MS, 2000, 10), 100);
    assert_int_equal(feed_calls(&s, 10 * MS, 1, 10), 200);
}

TEST(test_L12_times_are_milliseconds_rounded_up)
{
    struct subject s = subject_bbr();
    feed_calls(&s, 1, 1000, 10);
    assert_int_equal(feed_calls(&s, 2 * MS, 1000, 10), 10);
    struct subject t = subject_bbr();
    feed_calls(&t, 2 * MS + 1, 1000, 10);
    assert_int_equal(feed_calls(&t, 3 * MS, 1000, 10), 30);
}

TEST(test_L12_ten_seconds_are_remembered)
{
    struct subject s = subject_bbr();
    feed_calls(&s, 10 * MS, 1000, 10);
    for (int i = 1; i < 100; i++)
        assert_int_equal(feed_calls(&s, 50 * MS, 100, 10),
                         100); /* 1000 of the one, 10 ms of the same */
    assert_int_equal(feed_calls(&s, 50 * MS, 100, 10), 50);
}

/* Two samples in a part add up, one over two parts is halved. */
TEST(test_L12_samples_and_parts_need_not_agree)
{
    struct subject s = subject_bbr();
    for (int i = 0; i < 2; i++)
        feed(&s, (struct weir__sample){ .span = PART / 2, .succeeded = 500, .mean = 10 * MS });
    assert_int_equal(feed_calls(&s, 10 * MS, 1, 1), 100);
    struct subject t = subject_bbr();
    feed(&t, (struct weir__sample){ .span = 2 * PART, .succeeded = 2000, .mean = 10 * MS });
    assert_int_equal(feed_calls(&t, 10 * MS, 1, 1), 100);
    struct subject u = subject_bbr();
    feed(&u, (struct weir__sample){ .span = 60 * S, .succeeded = 600000, .mean = 10 * MS });
    assert_int_equal(feed_calls(&u, 10 * MS, 1, 1), 100);
}

TEST(test_L12_a_gap_forgets)
{
    struct subject s = subject_bbr();
    for (int i = 0; i < 10; i++)
        feed_calls(&s, 10 * MS, 1000, 10);
    s.now += 20 * S;
    assert_int_equal(feed_calls(&s, 10 * MS, 1000, 10), 20);
    s.now -= 40 * S;
    assert_int_equal(feed_calls(&s, 10 * MS, 1000, 10), 20);
}

/* A backend of 50, 20 ms each, from a limit of 2: the limit must find it, or it would be a trap. */
TEST(test_L12_finds_more_while_somebody_is_refused)
{
    struct subject s =
        subject_of(&(struct weir_adaptive_options){ .controller = "bbr", .initial = 2 });
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < 600; i++) {
        int64_t at_work = s.limit < 50 ? s.limit : 50;
        weir_time took = s.limit > 50 ? 20 * MS * s.limit / 50 : 20 * MS;
        feed_refusing(&s, took, at_work * 5, 100);
        if (i > 100) {
            least = s.limit < least ? s.limit : least;
            most = s.limit > most ? s.limit : most;
        }
    }
    assert_in_range(least, 45, 55);
    assert_in_range(most, 55, 75);
}

TEST(test_L12_says_what_it_knows)
{
    struct subject s = subject_bbr();
    char text[64];
    feed_calls(&s, 10 * MS, 1000, 10);
    feed_calls(&s, 10 * MS, 1000, 10);
    s.plan.row->tell(s.state, text, sizeof(text));
    assert_string_equal(text, "10000/s, 10ms");
}
