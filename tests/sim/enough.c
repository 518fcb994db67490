/* enough.c -- never too little: a guard with an adaptive limit does not refuse while the backend
 * has room.  A controller that refuses everything would pass every other law. */
#include "unit/test.h"

#include "trial.h"

#define SEEDS 3

static void read_load(int workers, double load)
{
    char text[300];
    int len = snprintf(text, sizeof(text),
                       "length: 60s\n"
                       "warmup: 10s\n"
                       "backend: { workers: %d, work: 20ms }\n"
                       "clients: [{ rate: %.2fx, timeout: 2s }]\n"
                       "guard: { target: 250ms }\n",
                       workers, load);

    read_text("load", text, (size_t)len);
}

/* Of what comes, per cent, over the seeds. */
static double refused(const char *controller)
{
    int64_t busy = 0, requests = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run_plan(controller, seed);
        busy += outcome.measured.busy + outcome.measured.shed + outcome.measured.open;
        requests += outcome.measured.requests;
    }
    return share(busy, requests);
}

static void check_refused(const char *controller, double load, double most)
{
    static const int workers[] = { 1, 8, 32 };

    for (size_t i = 0; i < sizeof(workers) / sizeof(workers[0]); i++) {
        read_load(workers[i], load);
        assert_at_most(refused(controller), most);
    }
}

/* "Never refuses while less than x of the capacity is used", for each controller: at most this many
 * per cent of what comes, at 50, 70 and 90 % of the capacity, with 1, 8 and 32 workers. */
#define LOADS 3
static const double loads[LOADS] = { 0.5, 0.7, 0.9 };

static void check_loads(const char *controller, const double most[LOADS])
{
    for (int i = 0; i < LOADS; i++)
        check_refused(controller, loads[i], most[i]);
}

/* Its promise is for up to 64 workers. */
TEST(test_L12_weirs_own_refuses_hardly_anybody_below_the_capacity)
{
    check_loads(WEIR_ADAPTIVE, (const double[LOADS]){ 0.05, 0.1, 2 });
    check_refused(WEIR_ADAPTIVE, 0.8, 1);
    for (int i = 0; i < LOADS; i++) {
        read_load(64, loads[i]);
        assert_at_most(refused(WEIR_ADAPTIVE), i < 2 ? 0.1 : 1);
    }
}

TEST(test_L12_published_controllers_refuse_few_below_the_capacity)
{
    check_loads("aimd", (const double[LOADS]){ 0.1, 0.5, 2 });
    check_loads("vegas", (const double[LOADS]){ 0.1, 1.5, 8 });
    check_loads("gradient2", (const double[LOADS]){ 0.1, 1, 4 });
}

/* Its target is a bound too: one worker alone makes 1 in 100 wait longer than 250 ms from 60 % of
 * the capacity on. */
TEST(test_L12_percentile_refuses_nobody_below_the_capacity_if_the_target_is_kept)
{
    check_refused("percentile", 0.5, 0.1);
    for (int i = 1; i < LOADS; i++) {
        read_load(8, loads[i]);
        assert_at_most(refused("percentile"), 0.1);
        read_load(32, loads[i]);
        assert_at_most(refused("percentile"), 0.1);
    }
}

TEST(test_L12_no_controller_is_left_out)
{
    static const char *const tested[] = { "weir", "percentile", "aimd", "vegas", "gradient2" };
    size_t n = 0;

    for (; weir_controllers()[n]; n++)
        assert_string_equal(weir_controllers()[n], tested[n]);
    assert_int_equal(n, sizeof(tested) / sizeof(tested[0]));
}

/* A silence says nothing about the number of workers, even if it is the first thing to happen. */
TEST(test_L12_slow_work_is_let_in_again_after_a_silence)
{
    static const char silence[] =
        "length: 90s\n"
        "warmup: 45s\n"
        "backend: { workers: 12, work: 700ms, changes: [{ from: 20s, to: 31s, silent: true }] }\n"
        "clients: [{ rate: 0.45x, timeout: 4s }]\n";

    read_text("silence", silence, strlen(silence));
    assert_at_most(refused(WEIR_ADAPTIVE), 1);
}

/* What was learnt in trouble does not outlast it by ten seconds. */
static const char after[] =
    "length: 90s\n"
    "warmup: 40s\n"
    "backend: { workers: 8, work: 20ms%s }\n"
    "clients: [{ rate: [0.6x, { at: 10s, rate: %s }, { at: 30s, rate: 0.6x }], timeout: 500ms }]\n";

TEST(test_L12_nobody_is_refused_soon_after_trouble)
{
    static const struct {
        const char *backend, *rate;
    } troubles[] = {
        { "", "5x" },
        { ", changes: [{ from: 10s, to: 30s, silent: true }]", "0.6x" },
        { ", changes: [{ from: 10s, to: 30s, slower: 8x }]", "0.6x" },
        { ", changes: [{ from: 10s, to: 30s, workers: 2 }]", "0.6x" },
    };

    for (size_t i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++) {
        char text[500];
        int len = snprintf(text, sizeof(text), after, troubles[i].backend, troubles[i].rate);
        read_text("after", text, (size_t)len);
        assert_at_most(refused(WEIR_ADAPTIVE), 1);
    }
}

/* A burst in the start, whose requests nearly all time out, says nothing about the workers. */
TEST(test_L12_a_burst_in_the_start_does_not_take_the_permits)
{
    static const char bursts[] =
        "length: 60s\n"
        "warmup: 15s\n"
        "backend: { workers: 25, work: { shape: constant, mean: 512ms }, contention: 0.2% }\n"
        "clients: [{ rate: 0.93x, burst: { every: 10s, for: 1.4s, rate: 5.6x }, timeout: 812ms "
        "}]\n";

    read_text("bursts", bursts, strlen(bursts));
    for (uint64_t seed = 1; seed <= 6; seed++) {
        run_plan(WEIR_ADAPTIVE, seed);
        assert_at_least(outcome.goodput, 75);
    }
}

/* Bursts that the backend works off are no hang: slow is ten times the mean. */
TEST(test_G4_a_breaker_refuses_nobody_below_the_capacity)
{
    static const char text[] = "length: 120s\n"
                               "warmup: 10s\n"
                               "backend: { workers: 1, work: 20ms }\n"
                               "clients: [{ rate: 0.7x }]\n"
                               "guard: { breaker: { errors: 50%, slow: 200ms } }\n";

    read_text("bursts", text, strlen(text));
    assert_at_most(refused("fixed:1000"), 0);
}

/* Their shares are fractions. */
TEST(test_G7_classes_refuse_nobody_below_the_capacity)
{
    static const char text[] =
        "length: 60s\n"
        "backend: { workers: 3, work: 300ms }\n"
        "clients: [{ name: a, rate: 0.3x, class: x }, { name: b, rate: 0.2x, class: y }, { name: "
        "c, rate: 0.2x, class: z }]\n"
        "guard: { concurrency: { max: 1000, weights: { x: 4, y: 3, z: 5 } } }\n";

    read_text("classes", text, strlen(text));
    assert_at_most(refused("fixed:1000"), 0);
}
