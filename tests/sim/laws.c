/* laws.c -- what holds in every trial, whatever the scenario and the controller: nothing is lost,
 * nothing is left, and it is repeatable. */
#include "unit/test.h"

#include "trial.h"

static int64_t fates(const struct weir__sim_fates *f)
{
    return f->ok + f->failed + f->timed_out + f->dropped + f->busy + f->shed + f->open;
}

/* Every attempt has one fate, every request is served or lost, and groups add up to the whole. */
static void check_accounts(const struct weir__sim_outcome *o)
{
    struct weir__sim_fates sum = { 0 };

    for (size_t i = 0; i < o->plan->n_groups; i++) {
        const struct weir__sim_fates *f = &o->groups[i].all;
        assert_int_equal(f->requests + f->retries, fates(f));
        assert_int_equal(f->requests, f->ok + f->lost);
        sum.requests += f->requests;
        sum.ok += f->ok;
        sum.lost += f->lost;
    }
    assert_int_equal(sum.requests, o->all.requests);
    assert_int_equal(sum.ok, o->all.ok);
    assert_int_equal(sum.lost, o->all.lost);
    assert_true(o->all.requests > 0);
    assert_int_equal(o->permits_left, 0);
}

/* No more are at work than there are permits. */
static void check_limit(const struct weir__sim_outcome *o, int64_t most)
{
    for (size_t i = 0; i < o->n_buckets; i++)
        assert_at_most(o->buckets[i].in_flight_max, most);
}

TEST(test_G1_every_request_has_one_fate_and_every_permit_comes_back)
{
    const char *const *controllers = weir_controllers();

    for (const struct weir__embedded *e = weir__sim_files; e->name; e++) {
        read_scenario(e->name);
        check_accounts(run_plan("none", 7));
        check_accounts(run_plan("fixed:5", 7));
        check_limit(&outcome, 5);
        for (size_t i = 0; controllers[i]; i++)
            check_accounts(run_plan(controllers[i], 7));
    }
}

TEST(test_same_seed_same_outcome)
{
    struct weir__sim_outcome *first = malloc(sizeof(*first));

    for (const struct weir__embedded *e = weir__sim_files; e->name; e++) {
        read_scenario(e->name);
        for (int i = 0; i < 2; i++) {
            run_plan(i ? "vegas" : "fixed", 3);
            memcpy(first, &outcome, sizeof(outcome));
            run_plan(i ? "vegas" : "fixed", 3);
            assert_memory_equal(first, &outcome, sizeof(outcome));
        }
        run_plan("fixed", 4);
        assert_int_not_equal(first->all.ok, 0);
        assert_int_not_equal(first->events, outcome.events);
    }
    free(first);
}

/* The same requests come at the same moments with the same work, whatever becomes of them. */
TEST(test_traffic_does_not_depend_on_the_controller)
{
    uint64_t arrivals[3];

    read_scenario("three-priorities");
    run_plan("none", 5);
    for (size_t i = 0; i < 3; i++)
        arrivals[i] = outcome.groups[i].arrivals;
    run_plan("fixed:3", 5);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(outcome.groups[i].arrivals, arrivals[i]);
    run_plan("fixed:3", 6);
    for (size_t i = 0; i < 3; i++)
        assert_int_not_equal(outcome.groups[i].arrivals, arrivals[i]);
}

static const char loop[] = "length: 30s\n"
                           "backend: { workers: 4, work: 20ms, queue: 50 }\n"
                           "clients: [{ name: loop, loop: { clients: 300, think: 500ms }, timeout: "
                           "1s, retry: { times: 1 } }]\n";

TEST(test_clients_in_a_loop_wait_for_their_answers)
{
    read_text("loop", loop, strlen(loop));
    check_accounts(run_plan("none", 1));
    check_limit(&outcome, 300);
    assert_true(outcome.all.dropped > 0);
    assert_at_least(outcome.goodput, 90); /* the bounded queue keeps it alive */
    check_accounts(run_plan("fixed:8", 1));
    assert_int_equal(outcome.all.dropped, 0);
}

static const char patient[] = "length: 10s\n"
                              "backend: { workers: 4, work: { shape: constant, mean: 20ms } }\n"
                              "clients: [{ rate: 0.5x, arrival: even }]\n";

/* Nothing by chance: 100 a second for 10 s, each takes 20 ms. */
TEST(test_an_even_load_that_fits_is_served_at_once)
{
    read_text("patient", patient, strlen(patient));
    check_accounts(run_plan("fixed:2", 1));
    assert_int_equal(outcome.all.requests, 999); /* the first comes after 10 ms */
    assert_int_equal(outcome.all.ok, 999);
    assert_int_equal(outcome.p50, 20 * MS);
    assert_int_equal(outcome.p99, 20 * MS);
    assert_true(outcome.wasted == 0);
}

static const char in_turn[] = "length: 20s\n"
                              "backend: { workers: 1, work: { shape: constant, mean: 20ms } }\n"
                              "clients: [{ rate: 2x, arrival: even, timeout: 1s }]\n"
                              "guard: { concurrency: { queue: 10 } }\n";

/* Whom an answer lets in at the guard does not overtake those that the backend has already. */
TEST(test_a_worker_takes_the_first_of_the_queue)
{
    read_text("in turn", in_turn, strlen(in_turn));
    check_accounts(run_plan("fixed:4", 1));
    assert_int_equal(outcome.all.timed_out, 0);
    assert_at_most(outcome.p99, (10 + 4) * 20 * MS);
    assert_at_least(outcome.goodput, 99);
}

TEST(test_an_unknown_controller_is_named_and_nothing_changes)
{
    struct weir_error error = { 0 };
    struct weir__sim_outcome *out = calloc(1, sizeof(*out));

    read_scenario("overload-2x");
    out->events = 42;
    assert_int_equal(
        weir__sim_run(out, &plan, &(struct weir__sim_options){ .controller = "fixed:0" }, &error),
        WEIR_INVALID);
    assert_non_null(strstr(error.text, "1 to 16384"));
    assert_int_equal(
        weir__sim_run(out, &plan, &(struct weir__sim_options){ .controller = "vegs" }, &error),
        WEIR_INVALID);
    assert_non_null(strstr(error.text, "vegas"));
    assert_int_equal(out->events, 42);
    free(out);
}
