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

/* Reserving permits cannot serve them when there are few: traffic comes at random.  They wait. */
static void check_trial(int permits, const char *load, const char *queue, double least)
{
    char text[500];
    int len = snprintf(text, sizeof(text),
                       "length: 60s\n"
                       "warmup: 15s\n"
                       "backend: { workers: %d, work: 20ms }\n"
                       "clients:\n"
                       "  - { name: important, rate: 0.4x, priority: 4, timeout: 2s, users: 200 }\n"
                       "  - { name: normal, rate: 0.4x, timeout: 2s, users: 200 }\n"
                       "  - { name: bulk, rate: %s, priority: -4, timeout: 2s, users: 1000 }\n"
                       "guard: { shed: true, concurrency: { %s } }\n",
                       permits, load, queue);
    char controller[16];

    read_text("few permits", text, (size_t)len);
    snprintf(controller, sizeof(controller), "fixed:%d", permits);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        run_plan(controller, seed);
        assert_at_most(kept_out(0), 0);
        assert_at_least(served(0), 99.5); /* the last ones are at work when the time is over */
        assert_at_least(outcome.goodput, least);
    }
}

TEST(test_G7_the_important_are_all_served_even_with_one_permit_if_they_wait)
{
    static const int permits[] = { 1, 2, 4, 8 };

    for (size_t i = 0; i < 4; i++)
        check_trial(permits[i], "10x", "wait: { 4: 1s }", permits[i] < 4 ? 88 : 93);
}

/* Nothing is written about who waits: all that fit into the capacity do. */
TEST(test_G7_by_default_priorities_that_fit_wait)
{
    static const int permits[] = { 1, 2, 4, 8 };

    for (size_t i = 0; i < 4; i++) {
        check_trial(permits[i], "10x", "queue: 100", 94);
        assert_at_least(served(1), 97);
        check_trial(permits[i], "2x", "queue: 100", permits[i] < 4 ? 92 : 94);
    }
}

/* As many do when it is written how long, were it the default. */
TEST(test_G7_with_a_wait_that_is_written_priorities_that_fit_wait)
{
    static const int permits[] = { 1, 4, 8 };

    for (size_t i = 0; i < 3; i++) {
        check_trial(permits[i], "10x", "queue: 128, wait: 1s", 94);
        assert_at_least(served(1), 95);
    }
    check_trial(4, "10x", "queue: 128, wait: 200ms", 94);
}

/* Below the capacity everybody fits, and around it the important find a place in the queue. */
TEST(test_G7_by_default_nobody_is_refused_below_the_capacity)
{
    static const int permits[] = { 1, 2, 4, 16 };

    for (size_t i = 0; i < 4; i++) {
        check_trial(permits[i], "0.02x", "queue: 100", 96);
        assert_at_least(served(1), 99);
        check_trial(permits[i], "0.3x", "queue: 100", 94);
        assert_at_least(served(1), 85);
    }
}

/* Two priorities above 0, together a little too much: those between do not take all places. */
TEST(test_G7_by_default_the_most_important_find_a_place)
{
    static const int permits[] = { 1, 4, 8 };
    static const int places[] = { 10, 100 };
    static const double most[] = { 3, 0.5 };
    char text[500], controller[16];

    for (size_t i = 0; i < 6; i++) {
        int n = permits[i / 2];
        int len = snprintf(text, sizeof(text),
                           "length: 60s\n"
                           "warmup: 15s\n"
                           "backend: { workers: %d, work: 20ms }\n"
                           "clients:\n"
                           "  - { name: most, rate: 0.3x, priority: 7, timeout: 2s, users: 200 }\n"
                           "  - { name: some, rate: 0.8x, priority: 3, timeout: 2s, users: 200 }\n"
                           "guard: { shed: true, concurrency: { queue: %d } }\n",
                           n, places[i % 2]);
        read_text("above 0", text, (size_t)len);
        snprintf(controller, sizeof(controller), "fixed:%d", n);
        for (uint64_t seed = 1; seed <= 2; seed++) {
            run_plan(controller, seed);
            assert_at_most(kept_out(0), most[i % 2]);
        }
    }
}

/* The highest priority alone is more than fits, or nearly: a part of it waits, so that no permit is
 * idle while it is refused. */
TEST(test_G7_by_default_a_priority_that_fits_in_part_fills_the_permits)
{
    static const int permits[] = { 1, 2, 4 };
    static const char *const loads[] = { "3x", "0.8x" };
    static const double most[] = { 70, 3 };
    char text[500], controller[16];

    for (size_t i = 0; i < 6; i++) {
        int n = permits[i / 2];
        int len = snprintf(text, sizeof(text),
                           "length: 60s\n"
                           "warmup: 15s\n"
                           "backend: { workers: %d, work: 20ms }\n"
                           "clients:\n"
                           "  - { name: most, rate: %s, priority: 4, timeout: 2s, users: 200 }\n"
                           "  - { name: rest, rate: 1x, timeout: 2s, users: 200 }\n"
                           "guard: { shed: true, concurrency: { queue: 1024 } }\n",
                           n, loads[i % 2]);
        read_text("in part", text, (size_t)len);
        snprintf(controller, sizeof(controller), "fixed:%d", n);
        for (uint64_t seed = 1; seed <= 2; seed++) {
            run_plan(controller, seed);
            assert_at_most(kept_out(0), most[i % 2]);
            assert_at_least(outcome.goodput, 96);
        }
    }
}
