/* percentile.c -- halve, slow start, settle: against small backends whose behaviour is a
 * formula. */
#include "unit/test.h"

#include "unit/samples.h"

/* -------------------------------------------------------------- a backend ---- */

/* `servers` at once, `service` each; the others wait.  There is always somebody who wants in,
 * `demand` at most. */
struct plant {
    double servers;
    weir_time service;
    int64_t demand;
    weir_time before; /* how long it took under the last limit */
};

/* Of n calls that took about `middle`: from 0.7 to 1.3 of it, evenly; thousands at 1000 places. */
static void spread(struct subject *s, weir_time middle, int64_t n)
{
    int64_t places = n < 1000 ? n : 1000;

    for (int64_t i = 0; i < places; i++)
        add_times(s, middle * 7 / 10 + middle * 6 / 10 * i / (places > 1 ? places - 1 : 1),
                  n * (i + 1) / places - n * i / places);
}

/* One look at it: those that were at work when the look began took as long as under the limit
 * before. */
static int64_t look_at(struct subject *s, struct plant *p)
{
    double at_work = (double)(s->limit < p->demand ? s->limit : p->demand);
    weir_time took =
        at_work > p->servers ? (weir_time)((double)p->service * at_work / p->servers) : p->service;
    int64_t n = (int64_t)(at_work * (double)s->plan.sample_span / (double)took),
            old = (int64_t)at_work < n ? (int64_t)at_work : n;

    spread(s, p->before ? p->before : took, old);
    spread(s, took, n - old);
    p->before = took;
    return feed(s, (struct weir__sample){ .succeeded = n,
                                          .entered = n,
                                          .refused = p->demand > s->limit ? n : 0,
                                          .mean = took,
                                          .min = took,
                                          .in_flight_max = (int64_t)at_work,
                                          .in_flight = (int64_t)at_work });
}

/* The limit at which 1.3 times the time is the target. */
static double best_of(const struct plant *p, weir_time target, int percentile)
{
    double slowest = 0.7 + 0.6 * percentile / 100;

    return p->servers * (double)target / (double)p->service / slowest;
}

struct range {
    int64_t least, most;
};

static struct range watch(struct subject *s, struct plant *p, int looks,
                          int64_t (*look)(struct subject *s, struct plant *p))
{
    struct range r = { INT64_MAX, 0 };

    for (int i = 0; i < looks; i++) {
        int64_t limit = look(s, p);
        r.least = limit < r.least ? limit : r.least;
        r.most = limit > r.most ? limit : r.most;
    }
    return r;
}

static void assert_within(struct range r, double low, double high)
{
    if ((double)r.least < low || (double)r.most > high)
        fail_msg("was %lld to %lld, not within %.1f to %.1f", (long long)r.least, (long long)r.most,
                 low, high);
}

static struct subject subject_with(int32_t percentile)
{
    return subject_of(&(struct weir_adaptive_options){
        .controller = "percentile", .target = 100 * MS, .percentile = percentile });
}

/* ------------------------------------------------------------ concurrency ---- */

TEST(test_L12_doubles_halves_and_starts_slowly)
{
    static const int64_t expected[] = { 40, 80, 40, 50, 70 };
    struct subject s = subject_with(99);
    struct plant p = { .servers = 20, .service = 20 * MS, .demand = 1000 };
    int64_t last = s.limit;
    size_t n = 0;

    for (int i = 0; i < 60; i++) {
        int64_t limit = look_at(&s, &p);
        if (limit != last) {
            assert_true(n < COUNT_OF(expected));
            assert_int_equal(limit, expected[n++]);
        }
        last = limit;
    }
    assert_int_equal(
        n, COUNT_OF(expected)); /* and there it stays: from 7/8 of the target to the target */
}

TEST(test_L12_settles_just_below_what_is_best)
{
    static const double servers[] = { 3, 7.3, 20, 31, 100, 1000 };

    for (size_t i = 0; i < COUNT_OF(servers); i++)
        for (int percentile = 90; percentile <= 99; percentile += 9) {
            struct subject s = subject_with(percentile);
            struct plant p = { .servers = servers[i], .service = 20 * MS, .demand = 100000 };
            double best = best_of(&p, s.plan.target, percentile);
            watch(&s, &p, 100, look_at);
            assert_within(watch(&s, &p, 1000, look_at), best * 0.8 - 1, best * 1.04 + 1);
        }
}

TEST(test_L12_recovers_when_the_backend_gets_faster_and_follows_when_slower)
{
    struct subject s = subject_with(99);
    struct plant p = { .servers = 20, .service = 20 * MS, .demand = 100000 };
    static const double servers[] = { 20, 80, 5, 6, 300, 250, 2, 20 };

    for (size_t i = 0; i < COUNT_OF(servers); i++) {
        p.servers = servers[i];
        double best = best_of(&p, s.plan.target, 99);
        watch(&s, &p, 60, look_at); /* a minute */
        assert_within(watch(&s, &p, 100, look_at), best * 0.8 - 1, best * 1.04 + 1);
    }
}

/* A cliff: up to `servers` at 20 ms, one more and it is a second.  There is no limit at which it is
 * just right. */
static int64_t look_at_cliff(struct subject *s, struct plant *p)
{
    weir_time took = (double)s->limit > p->servers ? WEIR_SECOND : 20 * MS;
    int64_t n = s->limit * s->plan.sample_span / took;

    spread(s, took, n);
    return feed(
        s,
        (struct weir__sample){
            .succeeded = n, .entered = n, .refused = n, .mean = took, .in_flight_max = s->limit });
}

TEST(test_L12_each_cut_is_half_the_last_one)
{
    static const double parts[] = { 2, 4, 8, 16, 32, 32, 32 };
    struct subject s = subject_with(99);
    struct plant p = { .servers = 1270 };
    size_t n = 0;

    for (int64_t last = s.limit, i = 0; i < 600; i++, last = s.limit)
        if (look_at_cliff(&s, &p) < last && n < COUNT_OF(parts)) {
            assert_int_equal(last, 1280); /* every way up ends where it broke first */
            assert_int_equal(s.limit, (int64_t)(1280 - 1280 / parts[n++]));
        }
    assert_int_equal(n, COUNT_OF(parts));
}

TEST(test_L12_on_a_cliff_the_swings_become_small_and_rare)
{
    struct subject s = subject_with(99);
    struct plant p = { .servers = 1270 };
    int above = 0;

    watch(&s, &p, 200, look_at_cliff);
    for (int i = 0; i < 1000; i++) {
        above += s.limit > 1270;
        look_at_cliff(&s, &p);
        assert_in_range(s.limit, 1240 - 1, 1280);
    }
    assert_true(above > 0 && above <= 120);
}

/* ------------------------------------------------------------------- rate ---- */

/* Work comes at the rate that is let in; the closer that is to what the backend can do the longer
 * it takes, and what is above that waits; five seconds' worth at most, the rest is dropped. */
static double backlog;

static int64_t look_at_rate(struct subject *s, struct plant *p)
{
    double capacity = p->servers * 1e9 / (double)p->service,
           rate = (double)(s->limit < p->demand ? s->limit : p->demand);
    double span = (double)s->plan.sample_span / 1e9,
           load = rate < capacity * 0.99 ? rate / capacity : 0.99;

    backlog += (rate - capacity) * span;
    double room = capacity * 5, dropped = backlog > room ? backlog - room : 0;
    backlog = backlog < 0 ? 0 : backlog - dropped;
    weir_time took = (weir_time)((double)p->service / (1 - load) + backlog / capacity * 1e9);
    int64_t n = (int64_t)((rate < capacity ? rate : capacity) * span);
    spread(s, took, n);
    return feed(s, (struct weir__sample){ .succeeded = n,
                                          .entered = (int64_t)(rate * span),
                                          .refused = p->demand > s->limit ? n : 0,
                                          .dropped = (int64_t)dropped,
                                          .mean = took,
                                          .in_flight_max = 1 });
}

static double best_rate(const struct plant *p, weir_time target)
{
    return p->servers * 1e9 / (double)p->service *
           (1 - 1.294 * (double)p->service / (double)target);
}

TEST(test_L12_rate_settles_recovers_and_follows)
{
    struct subject s = subject_of(&(struct weir_adaptive_options){
        .controller = "percentile", .target = 100 * MS, .rate = true });
    struct plant p = { .servers = 20, .service = 20 * MS, .demand = 10000000 };
    static const double servers[] = { 20, 100, 4, 20 };

    backlog = 0;
    for (size_t i = 0; i < COUNT_OF(servers); i++) {
        p.servers = servers[i];
        double best = best_rate(&p, s.plan.target);
        watch(&s, &p, 100, look_at_rate);
        assert_within(watch(&s, &p, 200, look_at_rate), best * 0.85, best * 1.03);
    }
}

TEST(test_L12_rate_rises_only_while_it_is_used)
{
    struct subject s = subject_of(&(struct weir_adaptive_options){
        .controller = "percentile", .target = 100 * MS, .rate = true });
    struct plant p = { .servers = 20, .service = 20 * MS, .demand = 200 };

    backlog = 0;
    assert_within(watch(&s, &p, 500, look_at_rate), 20, 320);
}

/* ------------------------------------------------------- known defects not ---- */

TEST(test_L12_constant_time_outs_do_not_climb)
{
    struct subject s = subject_with(99);

    for (int i = 0; i < 200; i++)
        feed_lost(&s, 0, 20, s.limit);
    assert_int_equal(s.limit, 1);
    for (int i = 0; i < 200; i++)
        assert_int_equal(feed_lost(&s, 0, 20, s.limit), 1);
}

/* gradient2 climbs here: the time is bad, but constantly so. */
TEST(test_L12_a_time_that_is_constantly_bad_does_not_climb)
{
    struct subject s = subject_with(99);

    for (int i = 0; i < 100; i++)
        assert_true(feed_calls(&s, WEIR_SECOND, 20, s.limit) <= 20);
    assert_int_equal(s.limit, 1);
}

TEST(test_L12_drops_count_as_slow)
{
    for (int64_t dropped = 0; dropped <= 40; dropped += 5) {
        struct subject s = subject_with(99);
        for (int i = 0; i < 20; i++) {
            add_times(&s, 10 * MS, 1000);
            feed(&s, (struct weir__sample){ .succeeded = 1000,
                                            .dropped = dropped,
                                            .entered = 1000,
                                            .mean = 10 * MS,
                                            .in_flight_max = s.limit });
        }
        if (dropped <= 10)
            assert_true(s.limit > 1000);
        else
            assert_true(s.limit < 20);
    }
}

TEST(test_L12_work_that_never_ends_is_slow)
{
    struct subject s = subject_with(99);

    for (int i = 0; i < 60; i++)
        feed(&s, (struct weir__sample){ .in_flight = 20, .in_flight_max = 20 });
    assert_int_equal(s.limit, 1);
}

TEST(test_L12_does_not_drift_when_unused)
{
    struct subject s = subject_with(99);
    struct plant p = { .servers = 20, .service = 20 * MS, .demand = 12 };

    assert_within(watch(&s, &p, 1000, look_at), 20, 20);
    p.demand = 30;
    assert_within(watch(&s, &p, 1000, look_at), 20, 80);
}

/* Half of 10000 would still be all that is there. */
TEST(test_L12_cuts_from_what_is_in_use)
{
    struct subject s = subject_of(&(struct weir_adaptive_options){
        .controller = "percentile", .target = 100 * MS, .initial = 10000 });

    for (int i = 0; s.limit == 10000 && i < 10; i++)
        feed_calls(&s, WEIR_SECOND, 200, 40);
    assert_int_equal(s.limit, 20);
}

/* vegas and gradient2 take the slow rise for the new normal. */
TEST(test_L12_does_not_follow_a_base_that_slowly_rises)
{
    struct subject s = subject_with(99);
    struct plant p = { .servers = 20, .service = 20 * MS, .demand = 100000 };

    watch(&s, &p, 100, look_at);
    for (int i = 0; i < 300; i++) {
        p.service += p.service / 300;
        look_at(&s, &p);
        assert_true((double)s.limit <= best_of(&p, s.plan.target, 99) * 1.1 + 1);
    }
    assert_true((double)s.limit >= best_of(&p, s.plan.target, 99) * 0.8 - 1);
}

/* ---------------------------------------------------------------- looking ---- */

TEST(test_L12_the_percentile_is_the_one_asked_for)
{
    for (int32_t percentile = 90; percentile <= 99; percentile += 9) {
        struct subject s = subject_with(percentile);
        for (int i = 0; i < 20; i++) {
            add_times(&s, 500 * MS, 50); /* one in twenty is slow */
            feed_calls(&s, 10 * MS, 950, s.limit);
        }
        assert_true(percentile == 90 ? s.limit > 1000 : s.limit < 20);
    }
}

TEST(test_L12_waits_until_it_has_seen_enough)
{
    struct subject s = subject_with(99);

    for (int i = 1; i < 10; i++)
        assert_int_equal(feed_calls(&s, WEIR_SECOND, 19, 20),
                         20); /* 171 are too few for one in a hundred ... */
    assert_int_equal(feed_calls(&s, WEIR_SECOND, 19, 20),
                     10); /* ... but all there were in ten seconds */
}

TEST(test_L12_nothing_seen_changes_nothing)
{
    struct subject s = subject_with(99);

    for (int i = 0; i < 100; i++)
        assert_int_equal(feed(&s, (struct weir__sample){ 0 }), 20);
}

/* Exponential times: the percentile that is seen jumps about, the limit must not. */
TEST(test_L12_noise_does_not_shake_it)
{
    struct subject s = subject_with(90);
    uint64_t seed = 5;
    double sum = 0;

    for (int i = 0; i < 1000; i++) {
        double mean = s.limit > 20 ? (double)s.limit : 20; /* in ms: 20 servers, 20 ms */
        int64_t n = (int64_t)(1000 / mean * (double)s.limit);
        for (int64_t k = 0; k < n; k++) {
            double u = (double)(random64(&seed) >> 11) * 0x1p-53 + 1e-12, e = 0;
            while (u < 0.5) { /* -ln u, by halves */
                u *= 2;
                e += 0.693147;
            }
            add_times(&s, (weir_time)(mean * (e + 2 * (1 - u) / (1 + u)) * 1e6), 1);
        }
        feed(&s, (struct weir__sample){
                     .succeeded = n, .entered = n, .refused = n, .in_flight_max = s.limit });
        sum += i >= 100 ? (double)s.limit : 0;
        if (i >= 100)
            assert_in_range(s.limit, 25,
                            52); /* 2.3 times the mean is the 90th: at 43 it is the target */
    }
    assert_true(sum / 900 > 33 && sum / 900 < 44);
}

TEST(test_L12_stays_within_its_bounds)
{
    struct subject s = subject_of(&(struct weir_adaptive_options){
        .controller = "percentile", .target = 100 * MS, .initial = 10, .min = 4, .max = 30 });

    for (int i = 0; i < 50; i++)
        assert_in_range(feed_calls(&s, 10 * MS, 1000, s.limit), 4, 30);
    assert_int_equal(s.limit, 30);
    for (int i = 0; i < 50; i++)
        assert_in_range(feed_calls(&s, WEIR_SECOND, 1000, s.limit), 4, 30);
    assert_int_equal(s.limit, 4);
    for (int i = 0; i < 50; i++)
        feed_calls(&s, 10 * MS, 1000, s.limit);
    assert_int_equal(s.limit, 30);
}

TEST(test_L12_says_what_it_does)
{
    struct subject s = subject_with(99);
    char text[64];

    s.plan.row->tell(s.state, text, sizeof(text));
    assert_string_equal(text, "fresh, at 0s");
    for (int i = 0; i < 3; i++)
        feed_calls(&s, WEIR_SECOND, 1000, s.limit);
    s.plan.row->tell(s.state, text, sizeof(text));
    assert_non_null(strstr(text, "cut, at 9"));
    feed_lost(&s, 1, 1, 1);
    feed_lost(&s, 1, 10000, 1);
    feed_lost(&s, 1, 10000, 1);
    s.plan.row->tell(s.state, text, sizeof(text));
    assert_string_equal(text, "cut, at lost");
}
