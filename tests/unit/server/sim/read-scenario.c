/* read-scenario.c -- scenario files: their members, and their mistakes. */
#include "unit/test.h"

#include "server/sim/sim.h"

#define S  WEIR_SECOND
#define MS WEIR_MILLISECOND

static struct weir__sim_plan plan;

static int parse(const char *text, struct weir_error *error)
{
    return weir__sim_plan_parse(&plan, text, strlen(text), NULL, error);
}

TEST(test_everything_can_be_said)
{
    struct weir_error error = { 0 };
    const char *text = "about: all of it\nlength: 90s\nwarmup: 5s\nseed: 42\n"
                       "backend:\n  workers: 8\n  queue: 100\n  work: { shape: lognormal, mean: "
                       "10ms, floor: 1ms, spread: 0.75 }\n"
                       "  contention: 1.5%\n  slowest: 4x\n  cancels: true\n"
                       "clients:\n"
                       "  - { name: web, class: gold, priority: -3, rate: 2.5x, users: 7, timeout: "
                       "250ms, arrival: even,\n"
                       "      retry: { times: 2, after: 50ms, factor: 1.5x, jitter: true, on: "
                       "[timeout, error] } }\n"
                       "  - { loop: { clients: 12, think: 2s } }\n"
                       "guard: { target: 250ms, percentile: 90, shed: true, concurrency: { max: "
                       "99, weights: { free: 1, gold: 3 } },\n"
                       "  breaker: { errors: 40%, slow: 300ms, open_for: 2s } }\n";

    if (parse(text, &error) != WEIR_OK)
        fail_msg("%s", error.text);
    assert_string_equal(plan.about, "all of it");
    assert_fields(plan, (length, 90 * S), (seed, 42), (backend.queue, 100),
                  (backend.work.shape, WEIR__SIM_WORK_LOGNORMAL), (backend.work.spread, 750000),
                  (backend.contention, 15000), (backend.slowest, 4 * WEIR__SIM_ONE),
                  (backend.cancels, true), (n_groups, 2));
    const struct weir__sim_group_plan *g = &plan.groups[0];
    assert_string_equal(g->name, "web");
    assert_fields(*g, (class, 1), (priority, -3));
    assert_int_equal(g->points[0].rate, 2000000); /* 2.5 times 800 a second */
    assert_true(g->even && g->jitter);
    assert_fields(*g, (retry_on, WEIR__SIM_RETRY_TIMEOUT | WEIR__SIM_RETRY_ERROR),
                  (back_off_factor, 1500000));
    assert_fields(plan, (groups[1].loop, 12), (guard.max, 99), (guard.adaptive.target, 250 * MS),
                  (guard.breaker.error_percent, 40));
    assert_true(plan.work_p99 > 20 * MS);
}

#define B "backend: { workers: 4, work: 20ms }\n"
#define C "clients: [{ rate: 2x, timeout: 1s }]\n"

TEST(test_mistakes_are_named_with_their_place)
{
    static const struct {
        const char *text, *place, *what;
    } cases[] = {
        { B, "1:", "no clients" },
        { C, "1:", "no backend" },
        { B C "lenght: 5s\n", "3:1:", "did you mean 'length'" },
        { B C "length: 5h\n", "3:9:", "from 1s to" },
        { B C "length: 10s\nwarmup: 10s\n", "4:9:", "warmup must be shorter than the length" },
        { "backend: { workers: 0 }\n" C, "1:21:", "workers" },
        { "backend: { work: { shape: bimodal, mean: 20ms, slow: 2s, slow_share: 5% } }\n" C,
          "1:", "nothing is left" },
        { "backend: { work: { shape: gauss } }\n" C, "1:27:", "shape cannot be 'gauss'" },
        { "backend: { contention: 1 }\n" C, "1:24:", "from 0% to 100%" },
        { "backend: { changes: [{ from: 5s, to: 4s, slower: 2x }] }\n" C,
          "1:22:", "end after it begins" },
        { "backend: { changes: [{ from: 5s, slower: 2x, errors: 5% }] }\n" C, "1:22:", "several" },
        { "backend: { changes: [{ from: 5s, silent: true }] }\nclients: [{ rate: 1x }]\n",
          "2:10:", "need a timeout" },
        { B "clients: [{ rate: fast }]\n", "2:19:", "such as 2x" },
        { B "clients: [{ rate: 2x, loop: { clients: 1 } }]\n", "2:11:", "either a rate" },
        { B "clients: [{ timeout: 1s }]\n", "2:11:", "either a rate" },
        { B "clients: [{ rate: 2x, priority: 9 }]\n", "2:33:", "-8 to 7" },
        { B "clients: [{ rate: 2x, class: gold }]\n", "2:30:", "no classes" },
        { B "clients: [{ name: a, rate: 2x }, { name: a, rate: 2x }]\n", "2:42:", "already" },
        { B "clients: [{ rate: [{ at: 5s, rate: 1x }, { at: 4s, rate: 1x }] }]\n",
          "2:42:", "order of time" },
        { B "clients: [{ rate: 2x, retry: { on: [luck] } }]\n", "2:37:", "on cannot be 'luck'" },
        { B "clients: [{ rate: 900000/s }]\n", "2:10:", "too many" },
        { B C "guard: { breaker: { open_for: 1s } }\n", "3:", "never opens" },
        { B C "guard: { concurrency: { max: 2, key: x } }\n", "3:", "must be \"{user}\"" },
        { B C "guard: { concurrency: { max: 2, key: \"{ip}\" } }\n", "3:", "must be \"{user}\"" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct weir_error error = { 0 };
        char place[64];
        snprintf(place, sizeof(place), "scenario:%s", cases[i].place);
        plan.seed = 4711;
        assert_int_equal(parse(cases[i].text, &error), WEIR_INVALID);
        if (strncmp(error.text, place, strlen(place)) != 0 ||
            strstr(error.text, cases[i].what) == NULL)
            fail_msg("%s: not what was expected: %s, at %s", cases[i].text, error.text, place);
        assert_int_equal(plan.seed, 4711);
    }
}

TEST(test_L1_permits_of_each_user)
{
    struct weir_error error = { 0 };

    if (parse(B C "guard: { concurrency: { max: 2, total: 9, key: \"{user}\" } }\n", &error))
        fail_msg("%s", error.text);
    assert_fields(plan, (guard.max, 9), (guard.max_per_key, 2));
}

TEST(test_the_scenarios_of_the_program_are_right)
{
    size_t n = 0;

    for (const struct weir__embedded *e = weir__sim_files; e->name; e++, n++) {
        struct weir_error error = { 0 };
        if (weir__sim_plan_parse(&plan, e->text, e->len, NULL, &error) != WEIR_OK)
            fail_msg("%s: %s", e->name, error.text);
        assert_true(plan.about[0] != '\0' && plan.guard.adaptive.target > 0);
    }
    assert_true(n >= 11);
}
