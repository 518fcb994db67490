/* adaptive.c -- Weir's own controller against a small backend with a number of workers, a time
 * for the work, and a varying load. */
#include "unit/test.h"

#include "unit/samples.h"

struct plant {
    struct subject s;
    double workers, asks; /* asks: how many would be at work if all were let in */
    weir_time work;
    double contention; /* each call beyond the workers makes the work this much longer */
    bool silent;       /* nothing is answered; calls give up after 500 ms */
    double rest;       /* of a result */
    int64_t lowest, highest;
};

static struct plant plant_of(double workers, weir_time work, weir_time target)
{
    return (struct plant){ .s = subject_of(&(struct weir_adaptive_options){ .controller = "weir",
                                                                            .target = target }),
                           .workers = workers,
                           .work = work,
                           .asks = 1e6 };
}

static struct weir__sample sample_of(struct plant *p, weir_time span)
{
    double in = (double)p->s.limit < p->asks ? (double)p->s.limit : p->asks,
           extra = in > p->workers ? in - p->workers : 0;
    double took = (double)p->work * (1 + p->contention * extra) * (extra > 0 ? in / p->workers : 1);

    took = p->silent ? 5e8 : took;
    double results = in / took * (double)span + p->rest;
    int64_t n = (int64_t)results;
    p->rest = results - (double)n;
    struct weir__sample sample = { .span = span,
                                   .entered = n,
                                   .in_flight_max = (int64_t)in,
                                   .in_flight = (int64_t)in,
                                   .area = in * (double)span,
                                   .out = in * (double)span };
    sample.refused = p->asks > in ? 2 * (n + 1) : 0;
    sample.full = p->asks > in ? n : 0;
    if (p->silent) {
        sample.timed_out = n;
    } else {
        sample.succeeded = n;
        sample.mean = sample.min = n ? (weir_time)took : 0;
        add_times(&p->s, (weir_time)took, n);
    }
    return sample;
}

static void run(struct plant *p, weir_time length)
{
    p->lowest = INT64_MAX, p->highest = 0;
    for (weir_time end = p->s.now + length; p->s.now < end;) {
        int64_t limit = feed(&p->s, sample_of(p, 20 * MS));
        p->lowest = limit < p->lowest ? limit : p->lowest;
        p->highest = limit > p->highest ? limit : p->highest;
    }
}

TEST(test_L12_finds_how_many_are_needed)
{
    static const struct {
        double workers;
        weir_time work;
    } rows[] = { { 2, 100 * MS }, { 4, 20 * MS },  { 8, 1 * MS },
                 { 16, 20 * MS }, { 64, 20 * MS }, { 500, 50 * MS } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct plant p = plant_of(rows[i].workers, rows[i].work, 0);
        run(&p, 60 * S);
        run(&p, 30 * S);
        assert_in_range(p.lowest, (int64_t)(rows[i].workers * 0.85),
                        (int64_t)(rows[i].workers * 1.4) + 6);
        assert_in_range(p.highest, (int64_t)rows[i].workers, (int64_t)(rows[i].workers * 1.4) + 6);
    }
}

TEST(test_L12_slower_work_moves_nothing)
{
    struct plant p = plant_of(16, 20 * MS, 0);

    run(&p, 60 * S);
    p.work = 100 * MS;
    run(&p, 60 * S);
    assert_in_range(p.lowest, 12, 30);
    assert_in_range(p.highest, 12, 30);
    p.work = 20 * MS;
    run(&p, 60 * S);
    assert_in_range(p.lowest, 12, 30);
    assert_in_range(p.highest, 12, 30);
}

TEST(test_L12_follows_workers_up_and_down)
{
    struct plant p = plant_of(4, 20 * MS, 0);

    run(&p, 60 * S);
    p.workers = 16;
    run(&p, 10 * S);
    assert_true(p.s.limit >= 15);
    run(&p, 20 * S);
    p.workers = 4;
    run(&p, 30 * S);
    assert_true(p.s.limit <= 11);
}

/* The time rises with the queue; that is not the work, however long it lasts. */
TEST(test_L12_does_not_drift_under_load)
{
    struct plant p = plant_of(10, 10 * MS, 0);

    p.contention = 0.01;
    run(&p, 30 * S);
    run(&p, 3600 * S);
    assert_in_range(p.lowest, 8, 20);
    assert_in_range(p.highest, 8, 20);
}

TEST(test_L12_light_load_raises_nothing)
{
    struct plant p = plant_of(8, 20 * MS, 0);

    p.asks = 3;
    run(&p, 600 * S);
    assert_true(p.highest <= 23); /* the first, and a breath */
    p.asks = 1e6;
    run(&p, 10 * S);
    assert_in_range(p.s.limit, 7, 20);
}

TEST(test_L12_time_outs_lower_it_and_it_is_soon_back)
{
    struct plant p = plant_of(8, 20 * MS, 0);

    run(&p, 60 * S);
    int64_t before = p.s.limit;
    p.silent = true;
    run(&p, 5 * S);
    assert_true(p.s.limit <= before / 2);
    run(&p, 600 * S); /* concurrency-limits#137: what is always bad is not normal */
    assert_true(p.highest <= before / 2);
    assert_true(p.lowest >= 1);
    p.silent = false;
    run(&p, 3 * S);
    assert_true(p.s.limit >= 8);
}

/* One slow worker and a limit of 20: now and then an answer, else time-outs, which leave permits
 * free for others that will time out.  That permits are free says nothing good then. */
TEST(test_L12_it_does_not_rise_while_most_time_out)
{
    struct plant p = plant_of(1, 700 * MS, 0);
    int64_t first = p.s.limit;

    for (int i = 0; i < 20; i++) {
        struct weir__sample sample = { .span = 500 * MS,
                                       .entered = 2,
                                       .timed_out = 2,
                                       .refused = i % 2,
                                       .full = i % 2,
                                       .in_flight = 17,
                                       .in_flight_max = 20,
                                       .area = 11e9,
                                       .out = 17 * 5e8 };
        if (i % 8 == 0) {
            sample.succeeded = 1;
            sample.mean = sample.min = 4 * S;
            add_times(&p.s, 4 * S, 1);
        }
        assert_true(feed(&p.s, sample) <= first);
    }
    assert_true(p.s.limit <= first / 2);
}

/* A backend without a queue: work beyond its 8 workers is dropped at once. */
static struct weir__sample dropping(struct plant *p, weir_time span)
{
    int64_t n = 8 * span / p->work, limit = p->s.limit < 8 ? p->s.limit : 8;

    add_times(&p->s, p->work, n * limit / 8);
    return (struct weir__sample){ .span = span,
                                  .succeeded = n * limit / 8,
                                  .dropped = p->s.limit > 8 ? 3 * n : 0,
                                  .entered = n,
                                  .refused = p->s.limit > 8 ? 0 : n,
                                  .full = n * limit / 8,
                                  .mean = p->work,
                                  .min = p->work,
                                  .in_flight = limit,
                                  .in_flight_max = p->s.limit < 9 ? p->s.limit : 9,
                                  .area = (double)(limit * span),
                                  .out = (double)(limit * span) };
}

TEST(test_L12_drops_are_a_roof_that_rises_again)
{
    struct plant p = plant_of(8, 20 * MS, 0);
    int64_t lowest = 99, highest = 0;

    for (int i = 0; i < 200; i++)
        feed(&p.s, dropping(&p, 20 * MS));
    for (int i = 0; i < 500; i++) {
        int64_t limit = feed(&p.s, dropping(&p, 20 * MS));
        lowest = limit < lowest ? limit : lowest;
        highest = limit > highest ? limit : highest;
    }
    assert_in_range(lowest, 7, 9);
    assert_in_range(highest, 8, 10);
    p.workers = 16;
    run(&p, 60 * S);
    assert_true(p.s.limit >= 15);
}

/* The headroom goes when the time is over the target; what the workers need does not. */
TEST(test_L12_the_target_is_a_cap)
{
    struct plant p = plant_of(4, 20 * MS, 24 * MS), q = plant_of(4, 100 * MS, 50 * MS);

    run(&p, 60 * S);
    run(&p, 10 * S);
    assert_true(p.highest <= 7);
    run(&q, 120 * S);
    assert_in_range(q.s.limit, 2, 8);
}

TEST(test_L12_stays_between_its_bounds)
{
    struct plant p = plant_of(100, 20 * MS, 0);

    p.s = subject_of(&(struct weir_adaptive_options){
        .controller = "weir", .initial = 10, .min = 6, .max = 30 });
    run(&p, 60 * S);
    assert_in_range(p.lowest, 6, 30);
    assert_int_equal(p.highest, 30);
    p.workers = 1;
    run(&p, 120 * S);
    assert_true(p.lowest >= 6);
}

TEST(test_L12_survives_nonsense)
{
    struct plant p = plant_of(8, 20 * MS, 0);
    char text[64] = "";

    for (int byte = 0; byte < 256; byte += 5) {
        memset(p.s.state, byte, sizeof(p.s.state));
        p.s.plan.row->tell(p.s.state, text, sizeof(text)); /* may say anything, but ends */
        run(&p, 1 * S);
        assert_in_range(p.s.limit, 1, 16384);
    }
    p.s.now += 3600 * S; /* the clock steps, and back */
    run(&p, 1 * S);
    p.s.now -= 7200 * S;
    run(&p, 60 * S);
    assert_in_range(p.s.limit, 7, 20);
    feed(&p.s, (struct weir__sample){ .span = -1 });
    feed(&p.s, (struct weir__sample){ .span = 20 * MS, .area = 1e300, .succeeded = INT64_MAX / 2 });
    run(&p, 60 * S);
    assert_in_range(p.s.limit, 1, 16384);
    p.s.plan.row->tell(p.s.state, text, sizeof(text));
    assert_non_null(strstr(text, "workers"));
}
