/* The gate: enter and exit (L1, G1, G2). */
#include "unit/test.h"

#include "unit/guarding.h"

TEST(test_L1_no_more_than_n_are_in_and_exit_makes_room)
{
    A_GUARD(g, .max = 3);
    struct weir_permit p[4];
    struct weir_decision d;
    for (int i = 0; i < 3; i++) {
        assert_true(weir_enter(g, &(struct weir_ask){ .cost = 1, .now = NOW }, &p[i], &d));
        assert_fields(d, (limit, 3), (remaining, 2 - i));
    }
    assert_false(weir_enter(g, &(struct weir_ask){ .cost = 1, .now = NOW }, &p[3], &d));
    assert_fields(d, (reason, WEIR_BUSY), (remaining, 0));
    assert_true(d.retry > 0);
    assert_int_equal(p[3].word, 0);
    assert_true(weir_exit(g, &p[1], WEIR_SUCCEEDED, NOW + MS));
    assert_true(enter_at(g, NOW + MS, &p[3]));
    assert_int_equal(info_of(g, NOW + MS).in_flight, 3);
}

static enum weir_reason why_not_for(struct weir_guard *g, int64_t cost, weir_time now)
{
    struct weir_permit p;
    struct weir_decision d;

    weir_enter(g, &(struct weir_ask){ .cost = cost, .now = now }, &p, &d);
    return (enum weir_reason)d.reason;
}

TEST(test_G2_a_large_ask_is_told_how_many_permits_are_free)
{
    A_GUARD(g, .max = 3);
    struct weir_permit p, q;
    struct weir_decision d;

    assert_true(enter_at(g, NOW, &p));
    assert_false(weir_enter(g, &(struct weir_ask){ .cost = 3, .now = NOW }, &q, &d));
    assert_fields(d, (reason, WEIR_BUSY), (remaining, 2));
}

/* Without a permit, by the short way and by the long one. */
TEST(test_L1_a_refusal_is_counted_once_and_says_why)
{
    A_GUARD(g, .max = 2);
    struct weir_permit p[2];
    assert_true(enter_at(g, NOW, &p[0]) && enter_at(g, NOW, &p[1]));
    for (int64_t cost = 0; cost < 3; cost++)
        assert_int_equal(why_not_for(g, cost, NOW), WEIR_BUSY);
    assert_int_equal(why_not_for(g, 3, NOW), WEIR_TOO_BIG);
    assert_int_equal(why_not_for(g, -1, NOW), WEIR_BAD_ASK);
    assert_int_equal(why_not_for(g, 1, NOW + S), WEIR_BUSY); /* a tick is due */
    assert_int_equal(info_of(g, NOW).refused_busy, 4);
    weir_guard_force(g, WEIR_FORCE_OPEN, NOW);
    assert_int_equal(why_not_for(g, 1, NOW), WEIR_OPEN);
    weir_guard_force(g, WEIR_UNFORCED, NOW);
    weir_exit(g, &p[0], WEIR_SUCCEEDED, NOW + S);
    assert_true(enter_at(g, NOW + S, &p[0]));
    assert_int_equal(why_not_for(g, 1, NOW + 3 * S), WEIR_BUSY);
    assert_int_equal(g->record->free_in, S / 2);
    assert_int_equal(info_of(g, NOW + 3 * S).refused_busy, 5);
    assert_int_equal(info_of(g, NOW + 3 * S).refused_open, 1);
    assert_int_equal(weir__guard_wanting(g->record), 5);
    assert_int_equal(weir_guard_change(g, &(struct weir_guard_options){ .max = 3 }, NULL), WEIR_OK);
    assert_int_equal(why_not_for(g, 1, NOW + 3 * S), WEIR_GRANTED);
}

TEST(test_G1_a_cost_of_0_is_1)
{
    A_GUARD(g, .max = 3);
    struct weir_permit p;
    struct weir_decision d;
    assert_true(weir_enter(g, &(struct weir_ask){ .now = NOW }, &p, &d));
    assert_int_equal(info_of(g, NOW).in_flight, 1);
}

TEST(test_G7_each_class_has_its_cut_and_those_beyond_count_as_the_last)
{
    A_GUARD(g, .max = 3, .shed = true, .classes = { { "free", 1 }, { "paid", 1 } });
    assert_int_equal(why_not(g, NOW), WEIR_GRANTED);
    g->record->shed.cuts[0] = (uint64_t)WEIR__RANKS << 32; /* all */
    for (uint8_t user_class = 0; user_class < 4; user_class++) {
        struct weir_permit p;
        struct weir_decision d;
        struct weir_ask ask = { .cost = 1, .user_class = user_class, .now = NOW };
        weir_enter(g, &ask, &p, &d);
        assert_int_equal(d.reason, user_class == 0 ? WEIR_SHED : WEIR_GRANTED);
    }
}

/* Though a permit is free; but what is said before that is said, and in shadow it is in. */
TEST(test_L11_who_is_behind_others_gets_no_permit)
{
    A_GUARD(g, .max = 3);
    struct weir__enter_how how = { .behind = true };
    struct weir_ask ask = { .cost = 1, .now = NOW };
    struct weir_permit p;
    struct weir_decision d;
    assert_false(weir__guard_enter(g, &ask, &how, &p, &d));
    assert_int_equal(d.reason, WEIR_BUSY);
    weir_guard_force(g, WEIR_FORCE_OPEN, NOW);
    assert_false(weir__guard_enter(g, &ask, &how, &p, &d));
    assert_int_equal(d.reason, WEIR_OPEN);
    weir_guard_force(g, WEIR_UNFORCED, NOW);
    how.mode = WEIR_SHADOW;
    assert_true(weir__guard_enter(g, &ask, &how, &p, &d));
    struct weir_guard_info info = info_of(g, NOW);
    assert_fields(info, (in_flight, 1), (refused_busy, 1), (shadow_refused, 1));
}

/* An ask that finds no permit is demand once, whether it waits, is refused in the end, or would
 * have waited. */
TEST(test_L12_who_waits_is_demand_once)
{
    A_GUARD(g, .max = 1);
    struct weir__enter_how how = { .waits = true };
    struct weir_ask ask = { .cost = 1, .now = NOW };
    struct weir_permit p;
    struct weir_decision d;
    assert_true(enter_at(g, NOW, &p));
    for (int i = 0; i < 3; i++) {
        assert_false(weir__guard_enter(g, &ask, &how, &p, &d));
        how.again = true; /* it has its turn */
    }
    assert_fields(*g->record, (queued, 1));
    assert_int_equal(weir__guard_wanting(g->record), 0);
    weir__guard_count_refused(g, WEIR_LATE);
    assert_fields(*g->record, (queued, 0));
    assert_int_equal(weir__guard_wanting(g->record), 1);
    how = (struct weir__enter_how){ .waits = true, .mode = WEIR_SHADOW };
    assert_true(weir__guard_enter(g, &ask, &how, &p, &d));
    assert_fields(*g->record, (queued, 1));
    assert_int_equal(weir__guard_wanting(g->record), 1);
}

TEST(test_G1_a_permit_is_given_back_once)
{
    A_GUARD(g, .max = 2);
    struct weir_permit p, copy, none = { 0 };
    assert_true(enter_at(g, NOW, &p));
    copy = p;
    assert_true(weir_exit(g, &p, WEIR_SUCCEEDED, NOW));
    assert_int_equal(p.word, 0);
    assert_false(weir_exit(g, &p, WEIR_SUCCEEDED, NOW));
    assert_false(weir_exit(g, &copy, WEIR_SUCCEEDED, NOW));
    assert_false(weir_exit(g, &none, WEIR_SUCCEEDED, NOW));
    none = (struct weir_permit){ .word = 77, .seat = UINT32_MAX }; /* nonsense reaches nothing */
    assert_false(weir_exit(g, &none, WEIR_SUCCEEDED, NOW));
    struct weir_guard_info info = info_of(g, NOW);
    assert_fields(info, (in_flight, 0), (succeeded, 1), (entered, 1));
}

TEST(test_G1_a_copy_does_not_give_back_the_next_one_in_its_slot)
{
    A_GUARD(g, .max = 2);
    struct weir_permit p, next, copy;
    assert_true(enter_at(g, NOW, &p));
    copy = p;
    assert_true(weir_exit(g, &p, WEIR_SUCCEEDED, NOW));
    for (int i = 0; i < 2000; i++) { /* at one and the same instant */
        struct weir_permit again = copy;
        assert_true(enter_at(g, NOW, &next));
        assert_false(weir_exit(g, &again, WEIR_SUCCEEDED, NOW));
        assert_true(weir_exit(g, &next, WEIR_SUCCEEDED, NOW));
    }
}

TEST(test_G1_entered_counts_work_not_permits)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard *g = guard_of(table, "g", NULL);
    struct weir_permit p;
    struct weir_decision d;
    assert_true(weir_enter(g, &(struct weir_ask){ .cost = 5, .now = NOW }, &p, &d));
    assert_fields(info_of(g, NOW), (in_flight, 5), (entered, 1));
    weir__guard_undo(g, &p); /* it was not entered, but the figure was told */
    assert_fields(info_of(g, NOW), (in_flight, 0), (entered, 1));
    assert_true(weir_enter(g, &(struct weir_ask){ .cost = 1, .now = NOW }, &p, &d));
    assert_fields(info_of(g, NOW), (in_flight, 1), (entered, 1));
}

TEST(test_G2_n_permits_at_once_all_or_none)
{
    A_GUARD(g, .max = 10);
    struct weir_permit a, b, c;
    struct weir_decision d;
    assert_true(weir_enter(g, &(struct weir_ask){ .cost = 7, .now = NOW }, &a, &d));
    assert_false(weir_enter(g, &(struct weir_ask){ .cost = 4, .now = NOW }, &b, &d));
    assert_true(weir_enter(g, &(struct weir_ask){ .cost = 3, .now = NOW }, &b, &d));
    assert_false(weir_enter(g, &(struct weir_ask){ .cost = 11, .now = NOW }, &c, &d));
    assert_fields(d, (reason, WEIR_TOO_BIG), (retry, WEIR_NEVER));
    assert_false(weir_enter(g, &(struct weir_ask){ .cost = -1, .now = NOW }, &c, &d));
    assert_int_equal(d.reason, WEIR_BAD_ASK);
    weir_exit(g, &a, WEIR_SUCCEEDED, NOW);
    assert_int_equal(info_of(g, NOW).in_flight, 3);
    weir_exit(g, &b, WEIR_SUCCEEDED, NOW);
    assert_int_equal(info_of(g, NOW).in_flight, 0);
}

TEST(test_G1_outcomes_are_counted_and_ignored_ones_teach_nothing)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard *g = guard_of(table, "g", NULL);
    for (int i = 0; i <= WEIR_IGNORED; i++)
        for (int k = 0; k <= i; k++)
            assert_true(work(g, NOW, 5 * MS, (enum weir_outcome)i));
    struct weir_guard_info info = info_of(g, NOW + 5 * MS);
    assert_fields(info, (succeeded, 1), (failed, 2), (timed_out, 3), (dropped, 4), (entered, 15),
                  (limit, 1024));
    assert_string_equal(weir_outcome_name(WEIR_DROPPED), "dropped");
}

TEST(test_G4_the_breaker_refuses_and_its_probe_comes_back_if_a_later_check_refuses)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard_options o = {
        .max = 2,
        .breaker = { .errors = 2, .min_calls = 2, .open_for = S, .probes = 1, .jitter_percent = -1 }
    };
    struct weir_guard *g = guard_of(table, "g", &o);
    struct weir_permit slow[2], p;
    struct weir_decision d;
    assert_true(enter_at(g, NOW, &slow[0])); /* one is at work all the time */
    work(g, NOW, MS, WEIR_FAILED);
    work(g, NOW, MS, WEIR_FAILED);
    assert_false(weir_enter(g, &(struct weir_ask){ .cost = 1, .now = NOW + 2 * MS }, &p, &d));
    assert_fields(d, (reason, WEIR_OPEN), (retry, S - MS));
    assert_false(weir_enter(g, &(struct weir_ask){ .cost = 2, .now = NOW + 2 * S }, &p,
                            &d)); /* a probe, but it needs two permits */
    assert_int_equal(d.reason, WEIR_BUSY);
    assert_true(
        enter_at(g, NOW + 2 * S, &p)); /* so the probe is still to be had (Sentinel #1638) */
    assert_int_equal(why_not(g, NOW + 2 * S), WEIR_OPEN);
    weir__guard_undo(g, &p); /* and so after a rate limit has refused */
    assert_true(enter_at(g, NOW + 2 * S, &p));
    weir_exit(g, &p, WEIR_IGNORED, NOW + 2 * S);
    assert_true(enter_at(g, NOW + 2 * S, &p));
    weir_exit(g, &p, WEIR_SUCCEEDED, NOW + 2 * S + MS);
    assert_int_equal(info_of(g, NOW + 2 * S + MS).breaker, WEIR_BREAKER_CLOSED);
    assert_true(weir_exit(g, &slow[0], WEIR_SUCCEEDED, NOW + 3 * S));
}

TEST(test_G4_forced_open_and_closed_with_and_without_a_breaker)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard *plain = guard_of(table, "plain", NULL);
    struct weir_guard *g = guard_of(
        table, "g", &(struct weir_guard_options){ .breaker = { .errors = 1, .min_calls = 1 } });
    struct weir_guard *both[] = { plain, g };
    for (int i = 0; i < 2; i++) {
        weir_guard_force(both[i], WEIR_FORCE_OPEN, NOW);
        assert_int_equal(why_not(both[i], NOW), WEIR_OPEN);
        assert_int_equal(why_not(both[i], NOW + 1000 * S), WEIR_OPEN);
        assert_int_equal(info_of(both[i], NOW).force, WEIR_FORCE_OPEN);
        weir_guard_force(both[i], WEIR_UNFORCED, NOW);
        assert_int_equal(why_not(both[i], NOW), WEIR_GRANTED);
        assert_int_equal(info_of(both[i], NOW).events[0].kind, WEIR_GUARD_EVENT_FORCE);
        assert_int_equal(info_of(both[i], NOW).events[0].number, 2);
    }
    weir_guard_force(g, WEIR_FORCE_CLOSED, NOW);
    for (int i = 0; i < 10; i++)
        assert_true(work(g, NOW, MS, WEIR_FAILED));
}

TEST(test_G4_shadow_lets_through_and_counts)
{
    A_GUARD(g, .max = 2, .mode = WEIR_SHADOW);
    struct weir_permit p[6];
    for (int i = 0; i < 6; i++)
        assert_true(enter_at(g, NOW, &p[i]));
    struct weir_guard_info info = info_of(g, NOW);
    assert_fields(info, (in_flight, 6), (shadow_refused, 4), (refused_busy, 0));
    for (int i = 0; i < 6; i++)
        assert_true(weir_exit(g, &p[i], WEIR_SUCCEEDED, NOW));
    assert_int_equal(info_of(g, NOW).in_flight, 0);
    struct weir_error e;
    assert_ok(weir_guard_change(g, &(struct weir_guard_options){ .max = 2, .mode = WEIR_OFF }, &e));
    for (int i = 0; i < 6; i++)
        assert_true(enter_at(g, NOW, &p[i]));
    assert_int_equal(info_of(g, NOW).in_flight, 0);
    assert_false(weir_exit(g, &p[0], WEIR_SUCCEEDED, NOW)); /* there is nothing to give back */
}

/* in_flight is too low: a process was stopped for seconds after another's death. */
TEST(test_L1_without_a_seat_nobody_is_let_in)
{
    A_GUARD(g, .max = 2, .mode = WEIR_SHADOW);
    struct weir_permit permit;
    struct weir_error e;
    for (uint64_t i = 0; i < g->record->seats + 10; i++)
        assert_true(enter_at(g, NOW, &permit));
    assert_int_equal(g->record->in_flight, g->record->seats);
    assert_ok(weir_guard_change(g, &(struct weir_guard_options){ .max = 2 }, &e));
    g->record->in_flight = 0;
    assert_int_equal(why_not(g, NOW), WEIR_BUSY);
    assert_int_equal(g->record->in_flight, 0);
}

TEST(test_G5_degradation_switches_off_step_by_step)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard *extra =
        guard_of(table, "extra", &(struct weir_guard_options){ .degrade = 1 });
    struct weir_guard *useful =
        guard_of(table, "useful", &(struct weir_guard_options){ .degrade = 3 });
    struct weir_guard *vital = guard_of(table, "vital", NULL);
    bool by_hand = true;
    assert_int_equal(weir_degradation_get(table, &by_hand), 0);
    assert_false(by_hand);
    for (int degradation = 0; degradation <= 4; degradation++) {
        weir_degradation_set(table, degradation, NOW);
        assert_int_equal(weir_degradation_get(table, &by_hand), degradation);
        assert_true(by_hand);
        assert_int_equal(why_not(extra, NOW), degradation >= 1 ? WEIR_DEGRADED : WEIR_GRANTED);
        assert_int_equal(why_not(useful, NOW), degradation >= 3 ? WEIR_DEGRADED : WEIR_GRANTED);
        assert_int_equal(why_not(vital, NOW), WEIR_GRANTED);
    }
    weir_degradation_set(table, WEIR_DEGRADATION_AUTO, NOW);
    assert_int_equal(weir_degradation_get(table, &by_hand), 0);
    assert_false(by_hand);
}

TEST(test_G5_an_open_breaker_raises_degradation_and_a_closed_one_lowers_it)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard_options o = {
        .raises = 2,
        .breaker = { .errors = 1, .min_calls = 1, .open_for = S, .probes = 1, .jitter_percent = -1 }
    };
    struct weir_guard *payments = guard_of(table, "payments", &o);
    struct weir_guard *extra =
        guard_of(table, "extra", &(struct weir_guard_options){ .degrade = 2 });
    weir_time now = NOW;
    work(payments, now, MS, WEIR_TIMED_OUT);
    assert_int_equal(why_not(payments, now += 200 * MS), WEIR_OPEN);
    assert_int_equal(weir_degradation_get(table, NULL), 2);
    assert_int_equal(why_not(extra, now), WEIR_DEGRADED);
    now += S;
    assert_true(work(payments, now, MS, WEIR_SUCCEEDED));
    now += 200 * MS;
    assert_int_equal(why_not(payments, now), WEIR_GRANTED);
    assert_int_equal(weir_degradation_get(table, NULL), 0);
    assert_int_equal(why_not(extra, now), WEIR_GRANTED);
}

TEST(test_L12_an_adaptive_rate_bounds_how_many_enter)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_adaptive_options a = {
        .controller = "percentile", .target = S, .initial = 100, .max = 1000, .rate = true
    };
    struct weir_guard *g = guard_of(table, "g", &(struct weir_guard_options){ .adaptive = a });
    int entered = 0;
    for (weir_time t = 0; t < 90 * MS; t += MS / 2)
        entered += work(g, NOW + t, 0, WEIR_SUCCEEDED);
    assert_in_range(entered, 15,
                    20); /* 100 per second for 0.09 s, and a tenth of a second at once */
    work(g, NOW + 90 * MS, 0, WEIR_IGNORED); /* what was never begun gives its turn back */
    assert_true(work(g, NOW + 90 * MS, 0, WEIR_SUCCEEDED));
    assert_int_equal(why_not(g, NOW + 90 * MS), WEIR_LIMITED);
}

/* A nanosecond is too coarse for the price of one at this rate: 3.33 ns. */
TEST(test_L12_an_adaptive_rate_is_exact)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_adaptive_options a = { .controller = "percentile",
                                       .target = S,
                                       .initial = 300000000,
                                       .max = 300000000,
                                       .rate = true };
    struct weir_guard *g =
        guard_of(table, "g", &(struct weir_guard_options){ .max = 16384, .adaptive = a });
    struct weir_ask ask = { .cost = 16384, .now = NOW };
    struct weir_permit p;
    struct weir_decision d;
    int64_t entered = 0;
    while (weir_enter(g, &ask, &p, &d) && ++entered < 10000)
        weir_exit(g, &p, WEIR_SUCCEEDED, ask.now);
    assert_int_equal(entered, 30000000 / 16384);
    for (ask.now = NOW; ask.now < NOW + 10 * MS;) {
        assert_false(weir_enter(g, &ask, &p, &d));
        ask.now += d.retry - 1;
        assert_false(weir_enter(g, &ask, &p, &d)); /* `retry` is exact */
        assert_int_equal(d.retry, 1);
        ask.now += 1;
        assert_true(weir_enter(g, &ask, &p, &d));
        weir_exit(g, &p, WEIR_SUCCEEDED, ask.now);
        entered++;
    }
    assert_int_equal(entered, (30000000 + 3000000) / 16384 + 1);
}

TEST(test_L12_a_debt_is_not_taken_for_a_clock_that_stepped)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_adaptive_options a = {
        .controller = "percentile", .target = S, .initial = 1, .max = 1, .rate = true
    };
    struct weir_guard *g =
        guard_of(table, "g", &(struct weir_guard_options){ .max = 16384, .adaptive = a });
    struct weir_permit p;
    struct weir_decision d;
    assert_true(weir_enter(g, &(struct weir_ask){ .cost = 5000, .now = NOW }, &p, &d));
    weir_exit(g, &p, WEIR_SUCCEEDED, NOW);
    for (int i = 0; i < 1000; i++)
        assert_false(weir_enter(g, &(struct weir_ask){ .cost = 1, .now = NOW + i * S }, &p, &d));
}

TEST(test_G4_a_breaker_that_is_taken_away_while_open_lets_everybody_in)
{
    A_GUARD(g, .breaker = { .errors = 1, .min_calls = 1 });
    struct weir_error error;
    work(g, NOW, MS, WEIR_FAILED);
    assert_int_equal(why_not(g, NOW + MS), WEIR_OPEN);
    assert_ok(weir_guard_change(g, NULL, &error));
    for (int i = 0; i < 100; i++)
        assert_true(work(g, NOW + MS + i * 100 * MS, MS, WEIR_SUCCEEDED));
    struct weir_guard_info info = info_of(g, NOW + 20 * S);
    assert_int_equal(info.breaker, WEIR_BREAKER_CLOSED);
    assert_fields(info.events[0], (kind, WEIR_GUARD_EVENT_BREAKER), (to, WEIR_BREAKER_CLOSED));
    weir_guard_force(g, WEIR_FORCE_OPEN, NOW + 21 * S);
    assert_int_equal(why_not(g, NOW + 21 * S), WEIR_OPEN);
}

TEST(test_G4_probes_that_are_renewed_are_not_lost)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard_options o = {
        .lease = 500 * MS,
        .breaker = { .errors = 1, .min_calls = 1, .open_for = S, .probes = 1, .jitter_percent = -1 }
    };
    struct weir_guard *g = guard_of(table, "g", &o);
    struct weir_permit p;
    work(g, NOW, MS, WEIR_FAILED);
    assert_true(enter_at(g, NOW + 2 * S, &p));
    for (int i = 1; i <= 50; i++) {
        assert_true(weir_permit_renew(g, &p, NOW + 2 * S + i * 100 * MS));
        assert_int_equal(why_not(g, NOW + 2 * S + i * 100 * MS), WEIR_OPEN);
    }
    assert_true(weir_exit(g, &p, WEIR_SUCCEEDED, NOW + 8 * S));
    assert_int_equal(info_of(g, NOW + 8 * S).breaker, WEIR_BREAKER_CLOSED);
}

/* Callers half a second apart do not make each other tick at every ask. */
TEST(test_callers_whose_clocks_differ_do_not_tick_each_time)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard *g = guard_of(table, "g", NULL);
    work(g, NOW, MS, WEIR_SUCCEEDED);
    int64_t at = g->record->tick_at;
    for (int i = 0; i < 100; i++)
        work(g, NOW - 500 * MS + i, MS, WEIR_SUCCEEDED);
    assert_int_equal(g->record->tick_at, at);
    work(g, NOW - 100 * S, MS, WEIR_SUCCEEDED); /* that is a step */
    assert_int_not_equal(g->record->tick_at, at);
}

TEST(test_time_before_0_and_a_clock_that_steps_back_wedge_nothing)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard_options o = { .max = 2,
                                    .adaptive = { .controller = WEIR_ADAPTIVE },
                                    .breaker = { .error_percent = 50 } };
    struct weir_guard *g = guard_of(table, "g", &o);
    static const weir_time times[] = { 1000 * S,      -5,    0,         INT64_MAX,
                                       INT64_MAX - 1, 5 * S, INT64_MIN, 1000 * S };
    for (int round = 0; round < 50; round++)
        for (size_t i = 0; i < COUNT_OF(times); i++) {
            struct weir_permit p;
            if (enter_at(g, times[i], &p))
                weir_exit(g, &p, WEIR_SUCCEEDED, times[(i + 3) % COUNT_OF(times)]);
            info_of(g, times[i]);
        }
    assert_true(work(g, 1000 * S, MS, WEIR_SUCCEEDED));
    assert_int_equal(info_of(g, 1000 * S).in_flight, 0);
}
