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
        busy += outcome.measured.busy + outcome.measured.shed;
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

TEST(test_L12_weirs_own_refuses_hardly_anybody_up_to_four_fifths_of_the_capacity)
{
    check_refused(WEIR_ADAPTIVE, 0.5, 0.05);
    check_refused(WEIR_ADAPTIVE, 0.7, 0.2);
    check_refused(WEIR_ADAPTIVE, 0.8, 1);
}

/* As published, each has its own load up to which nobody is refused; percentile's depends on its
 * target. */
TEST(test_L12_no_controller_refuses_at_half_of_the_capacity)
{
    static const struct {
        const char *controller;
        double load, most;
    } rows[] = {
        { "percentile", 0.5, 0.1 },
        { "aimd", 0.5, 0.1 },
        { "vegas", 0.5, 0.5 },
        { "gradient2", 0.5, 0.5 },
    };
    const char *const *names = weir_controllers();
    size_t n = 1; /* Weir's own: above */

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++, n++)
        check_refused(rows[i].controller, rows[i].load, rows[i].most);
    for (size_t i = 0; names[i]; i++)
        n--;
    assert_int_equal(n, 0); /* none is left out */
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
