/* overload.c -- without a guard overload is collapse; with one, whatever its controller, it is
 * not. */
#include "unit/test.h"

#include "trial.h"

TEST(test_L1_without_control_overload_collapses)
{
    static const char *const names[] = { "overload-2x", "overload-10x",  "overload-many-workers",
                                         "slows-5x",    "scales-1-to-4", "cold-cache" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        run_scenario(names[i], "none", 1);
        assert_at_most(outcome.goodput, 50);
        assert_at_least(outcome.wasted, 50);
    }
}

TEST(test_L1_a_fixed_limit_that_fits_holds_at_ten_times_the_load)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        run_scenario("overload-10x", "fixed:8", seed);
        assert_at_least(outcome.goodput, 93);
        assert_at_most(outcome.p99, 2 * plan.work_p99);
        assert_at_most(outcome.wasted, 1);
    }
}

/* ... and this is why limits should find themselves. */
TEST(test_L1_a_fixed_limit_does_not_follow_a_backend_that_grows)
{
    run_scenario("scales-1-to-4", "fixed:8", 1);
    assert_at_least(goodput_between(&outcome, 10 * S, 40 * S), 90);
    assert_at_most(goodput_between(&outcome, 45 * S, 90 * S), 60);
}

/* Each controller as published has scenarios that it does not like; but none is worse than no
 * control. */
TEST(test_L12_every_controller_is_better_than_none)
{
    const char *const *controllers = weir_controllers();

    for (const struct weir__embedded *e = weir__sim_files; e->name; e++) {
        double without = run_scenario(e->name, "none", 2)->goodput;
        for (size_t i = 0; controllers[i]; i++) {
            run_plan(controllers[i], 2);
            assert_at_least(outcome.goodput, without);
        }
    }
}

/* From half a minute after the peak on. */
TEST(test_G1_a_retry_storm_ends_behind_a_guard_and_not_without)
{
    run_scenario("retry-storm", "none", 1);
    assert_at_most(goodput_between(&outcome, 60 * S, 90 * S), 50);
    run_plan("fixed:8", 1);
    assert_at_least(goodput_between(&outcome, 60 * S, 90 * S), 97);
    run_plan("vegas", 1);
    assert_at_least(goodput_between(&outcome, 60 * S, 90 * S), 97);
}

TEST(test_G1_work_goes_on_after_a_silence)
{
    run_scenario("timeouts", "fixed:8", 1);
    assert_true(outcome.all.timed_out > 0);
    assert_at_most(goodput_between(&outcome, 26 * S, 35 * S), 0);
    assert_at_least(goodput_between(&outcome, 40 * S, 60 * S), 90);
}

static const char broken[] =
    "length: 60s\n"
    "warmup: 5s\n"
    "backend:\n"
    "  workers: 4\n"
    "  work: 20ms\n"
    "  changes: [{ from: 20s, to: 30s, errors: 100% }]\n"
    "clients: [{ rate: 0.5x, timeout: 1s }]\n"
    "guard: { breaker: { errors: 50%, min_calls: 20, window: 2s, open_for: 1s } }\n";

TEST(test_G4_the_breaker_cuts_a_broken_backend_off_and_tries_it_again)
{
    read_text("broken", broken, strlen(broken));
    run_plan("none", 1);
    int64_t failed = outcome.all.failed;
    assert_at_least(failed, 900);
    run_plan("fixed:64", 1);
    assert_at_most(outcome.all.failed, failed / 5);
    assert_at_least(outcome.all.open, failed / 2);
    assert_at_least(goodput_between(&outcome, 5 * S, 20 * S), 95);
    assert_at_least(goodput_between(&outcome, 50 * S, 60 * S),
                    85); /* it closes again: the open time has doubled a few times */
    assert_int_equal(outcome.permits_left, 0);
}

/* Nothing is answered for 30 s and nothing fails for 5: only calls in flight can tell. */
static const char hangs[] =
    "length: 120s\n"
    "backend: { workers: 64, work: 20ms, changes: [{ from: 40s, to: 70s, silent: true }] }\n"
    "clients: [{ rate: %s, timeout: 5s }]\n"
    "guard: { breaker: { errors: 50%%, slow: 500ms } }\n";

static double first_answer_after(weir_time from)
{
    size_t i = (size_t)(from / outcome.bucket);

    while (i < outcome.n_buckets && outcome.buckets[i].ok == 0)
        i++;
    return (double)((weir_time)i * outcome.bucket - from) / (double)S;
}

static double mean_in_flight(weir_time from, weir_time to)
{
    size_t first = (size_t)(from / outcome.bucket), end = (size_t)(to / outcome.bucket);
    double sum = 0;

    for (size_t i = first; i < end; i++)
        sum += outcome.buckets[i].in_flight;
    return sum / (double)(end - first);
}

TEST(test_G4_a_breaker_opens_before_a_dependency_that_hangs)
{
    static const struct {
        const char *rate;
        double per_second;
    } rows[] = { { "20/s", 20 }, { "100/s", 100 }, { "400/s", 400 } };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[400];
        int len = snprintf(text, sizeof(text), hangs, rows[i].rate);
        read_text("hangs", text, (size_t)len);
        for (uint64_t seed = 1; seed <= 3; seed++) {
            run_plan("fixed:1000", seed);
            /* without the breaker 5 s of requests; only min_calls makes it late */
            assert_at_most(mean_in_flight(40 * S, 70 * S), 0.3 * rows[i].per_second + 3);
            assert_at_most(first_answer_after(70 * S), 17);
            assert_at_least(goodput_between(&outcome, 90 * S, 120 * S), 95);
        }
    }
}
