/* shedding.c -- when there is too much, who gets what: priorities and classes. */
#include "unit/test.h"

#include "trial.h"

static double served(size_t group)
{
    return share(outcome.groups[group].measured.ok, outcome.groups[group].measured.requests);
}

static double kept_out(size_t group)
{
    const struct weir__sim_fates *f = &outcome.groups[group].measured;

    return share(f->busy + f->shed, f->requests);
}

TEST(test_G7_the_lowest_priority_is_shed_first)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        run_scenario("three-priorities", "fixed:8", seed);
        assert_at_least(kept_out(2), kept_out(1));
        assert_at_least(kept_out(1) + 2, kept_out(0));
        assert_int_equal(outcome.groups[0].measured.shed, 0);
    }
}

/* Permits are left for them; but few of 16, so those in the middle find all out now and then,
 * though far less often than the lowest. */
TEST(test_G7_the_important_are_served)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        run_scenario("three-priorities", "fixed:16", seed);
        assert_at_least(served(0), 94);
        assert_at_least(served(1), 4 * served(2));
        assert_at_least(outcome.goodput, 88);
    }
}

TEST(test_G7_a_flood_does_not_drown_the_other_tenant)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        run_scenario("two-tenants", "fixed:16", seed);
        assert_at_least(served(0), 96);
        assert_at_most(outcome.unfairness, 1.1);
        assert_at_least(outcome.goodput, 88);
    }
}

static const char weighted[] =
    "length: 60s\n"
    "warmup: 20s\n"
    "backend: { workers: 8, work: 20ms }\n"
    "clients:\n"
    "  - { name: gold, class: gold, rate: 3x, timeout: 1s }\n"
    "  - { name: silver, class: silver, rate: 3x, timeout: 1s }\n"
    "  - { name: free, class: free, rate: 3x, timeout: 1s }\n"
    "guard: { shed: true, concurrency: { weights: { gold: 3, silver: 2, free: 1 } } }\n";

TEST(test_G7_classes_get_their_parts_by_weight)
{
    read_text("weighted", weighted, strlen(weighted));
    run_plan("fixed:16", 1);
    assert_at_most(outcome.unfairness, 1.15);
}
