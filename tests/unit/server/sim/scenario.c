/* scenario.c -- the load of a scenario at a moment; and the order of events. */
#include "unit/test.h"

#include "server/sim/sim.h"

#define S WEIR_SECOND

static struct weir__sim_plan plan;

static void read_plan(const char *text)
{
    struct weir_error error = { 0 };

    if (weir__sim_plan_parse(&plan, text, strlen(text), NULL, &error) != WEIR_OK)
        fail_msg("%s", error.text);
}

TEST(test_rates_in_steps_ramps_and_bursts)
{
    const struct weir__sim_group_plan *g = &plan.groups[0];

    read_plan("length: 60s\nbackend: { workers: 4, work: 20ms }\n"
              "clients: [{ rate: [1x, { at: 10s, rate: 300/s }, { at: 20s, rate: 100/s, over: 10s "
              "}], burst: { every: 40s, for: 2s, rate: "
              "5x } }]\n");
    assert_int_equal(weir__sim_plan_capacity(&plan.backend), 200000);
    assert_int_equal(weir__sim_plan_rate(g, 0), 200000);
    assert_int_equal(weir__sim_plan_rate(g, 10 * S - 1), 200000);
    assert_int_equal(weir__sim_plan_rate(g, 10 * S), 300000);
    assert_int_equal(weir__sim_plan_rate(g, 25 * S), 200000); /* half way down */
    assert_int_equal(weir__sim_plan_rate(g, 30 * S), 100000);
    assert_int_equal(weir__sim_plan_rate(g, 38 * S - 1), 100000);
    assert_int_equal(weir__sim_plan_rate(g, 38 * S), 1000000);
    assert_int_equal(weir__sim_plan_rate(g, 40 * S), 100000);
    assert_int_equal(weir__sim_plan_rate_max(g), 1000000);
    assert_int_equal(weir__sim_plan_rate_next(g, 0), 10 * S);
    assert_int_equal(weir__sim_plan_rate_next(g, 31 * S), 38 * S);
    assert_int_equal(weir__sim_plan_rate_next(g, 38 * S), 40 * S);
}

TEST(test_changes_of_the_backend)
{
    const struct weir__sim_backend_plan *b = &plan.backend;

    read_plan(
        "length: 60s\nclients: [{ rate: 1x, timeout: 1s }]\n"
        "backend:\n  workers: 4\n  work: 20ms\n  cold: { factor: 5x, requests: 100 }\n  changes:\n"
        "    - { from: 10s, to: 20s, slower: 2x }\n    - { from: 10s, to: 30s, drift: 3x }\n"
        "    - { from: 40s, workers: 16 }\n    - { from: 50s, to: 51s, silent: true }\n    - { "
        "from: 52s, to: 53s, errors: 25% }\n");
    assert_int_equal(weir__sim_plan_slowness(b, 9 * S), WEIR__SIM_ONE);
    assert_int_equal(weir__sim_plan_slowness(b, 15 * S),
                     4 * WEIR__SIM_ONE); /* twice two: the drift is half way */
    assert_int_equal(weir__sim_plan_slowness(b, 20 * S), 3 * WEIR__SIM_ONE);
    assert_int_equal(weir__sim_plan_slowness(b, 25 * S), 2 * WEIR__SIM_ONE);
    assert_int_equal(weir__sim_plan_slowness(b, 30 * S), WEIR__SIM_ONE);
    assert_int_equal(weir__sim_plan_workers(b, 39 * S), 4);
    assert_int_equal(weir__sim_plan_workers(b, 40 * S), 16);
    assert_int_equal(weir__sim_plan_coldness(b, 0), 5 * WEIR__SIM_ONE);
    assert_int_equal(weir__sim_plan_coldness(b, 50), 3 * WEIR__SIM_ONE);
    assert_int_equal(weir__sim_plan_coldness(b, 100), WEIR__SIM_ONE);
    assert_null(weir__sim_plan_find(b, WEIR__SIM_CHANGE_SILENT, 50 * S - 1));
    assert_non_null(weir__sim_plan_find(b, WEIR__SIM_CHANGE_SILENT, 50 * S));
    assert_null(weir__sim_plan_find(b, WEIR__SIM_CHANGE_SILENT, 51 * S));
}

TEST(test_a_drift_of_any_length_goes_from_one_to_its_factor_and_back)
{
    struct weir__sim_backend_plan b = {
        .changes = { { .kind = WEIR__SIM_CHANGE_DRIFT, .factor = WEIR__SIM_ONE / 100 } },
        .n_changes = 1,
    };

    for (b.changes[0].to = 1; b.changes[0].to <= 5; b.changes[0].to++) {
        for (weir_time at = 0; at < b.changes[0].to; at++)
            assert_in_range(weir__sim_plan_slowness(&b, at), WEIR__SIM_ONE / 100, WEIR__SIM_ONE);
    }
}

static void assert_near(double value, double wanted)
{
    if (value < wanted - 0.01 || value > wanted + 0.01)
        fail_msg("%g is not %g", value, wanted);
}

/* The least of what comes and of what can be done: 100/s, then 200/s of 400/s, then nothing, then
 * half. */
TEST(test_what_is_possible)
{
    struct weir__sim_bucket buckets[8] = { 0 };

    read_plan(
        "length: 40s\nwarmup: 5s\nclients: [{ rate: [0.5x, { at: 10s, rate: 2x }], timeout: 1s }]\n"
        "backend: { workers: 4, work: 20ms, changes: [{ from: 20s, to: 30s, silent: true }, { "
        "from: 30s, errors: 50% }] }\n");
    assert_near(weir__sim_plan_possible(&plan, 5 * S, buckets, 8), 500 + 2000 + 1000);
    assert_near(buckets[0].possible, 500);
    assert_near(buckets[2].possible, 1000);
    assert_near(buckets[5].possible, 0);
    assert_near(buckets[7].possible, 500);
}

/* Half of the calls fail after 2 ms, the others take 20: in 22 ms a worker has one good result. */
TEST(test_what_fails_early_leaves_time)
{
    static struct weir__sim_bucket buckets[8];

    read_plan("length: 11s\nwarmup: 0s\nclients: [{ rate: 10x, timeout: 1s }]\n"
              "backend: { workers: 1, work: 20ms, changes: [{ from: 0s, to: 11s, errors: 50%, "
              "after: 2ms }] }\n");
    assert_near(weir__sim_plan_possible(&plan, 5 * S, buckets, 8), 500);
    read_plan(
        "length: 11s\nwarmup: 0s\nclients: [{ rate: 10x, timeout: 1s }]\n"
        "backend: { workers: 1, work: 20ms, changes: [{ from: 0s, to: 11s, errors: 50% }] }\n");
    assert_near(weir__sim_plan_possible(&plan, 5 * S, buckets, 8), 275);
}

TEST(test_the_earliest_happens_first_and_equals_in_their_order)
{
    struct weir__sim_agenda agenda = { 0 };
    struct weir__sim_agenda_item item, last = { .at = -1 };
    struct weir__sim_dice dice = { 1 };

    assert_false(weir__sim_agenda_next(&agenda, &item));
    for (uint32_t i = 0; i < 5000; i++)
        weir__sim_agenda_add(&agenda, (struct weir__sim_agenda_item){
                                          .at = weir__sim_dice_below(&dice, 500), .who = i });
    for (int i = 0; i < 5000; i++) {
        assert_true(weir__sim_agenda_next(&agenda, &item));
        assert_true(item.at > last.at || (item.at == last.at && item.who > last.who));
        last = item;
    }
    assert_false(weir__sim_agenda_next(&agenda, &item));
    weir__sim_agenda_clear(&agenda);
}
