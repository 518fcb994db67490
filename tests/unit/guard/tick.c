/* What is done now and then: looks, shedding, degradation. */
#include "unit/test.h"

#include "unit/guarding.h"

/* n pieces of work, one every `every`, each `took` long; returns the time behind the last. */
static weir_time run(struct weir_guard *g, weir_time now, int n, weir_time every, weir_time took,
                     enum weir_outcome outcome)
{
    for (int i = 0; i < n; i++, now += every)
        work(g, now, took, outcome);
    return now;
}

TEST(test_L12_what_came_back_is_seen_by_quantiles_and_mean)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard *g = guard_of(table, "g", NULL);
    weir_time now = NOW;
    for (int i = 0; i < 2000; i++)
        now = run(g, now, 1, 2 * MS, i % 100 < 95 ? 10 * MS : 200 * MS, WEIR_SUCCEEDED);
    struct weir_guard_info info = info_of(g, now + S);
    assert_in_range(info.p50, 10 * MS * 96 / 100, 10 * MS * 104 / 100);
    assert_in_range(info.p90, 10 * MS * 96 / 100, 10 * MS * 104 / 100);
    assert_in_range(info.p99, 200 * MS * 96 / 100, 200 * MS * 104 / 100);
    assert_in_range(info.mean, 18 * MS, 21 * MS);
    assert_int_equal(info.succeeded, 2000);
    info_of(g, now + 30 * S);
    info = info_of(g, now + 60 * S); /* and forgotten */
    assert_fields(info, (p50, 0), (mean, 0), (succeeded, 2000));
}

TEST(test_while_nothing_succeeds_the_mean_is_of_failures_and_lasts_ten_seconds)
{
    A_GUARD(g, .max = 10);
    weir_time now = run(g, NOW, 100, 10 * MS, 30 * MS, WEIR_FAILED);
    assert_int_equal(info_of(g, now + S).mean, 30 * MS);
    assert_int_equal(info_of(g, now + 9 * S).mean, 30 * MS);
    assert_int_equal(info_of(g, now + 12 * S).mean, 0);
}

/* Whether a tick is done while this one is said to be at it. */
static bool ticks_beside(struct weir_guard *g, uint64_t ticker, weir_time now)
{
    g->record->ticker = ticker;
    g->record->learnt.looked = 0;
    g->record->tick_at = 0;
    info_of(g, now);
    return g->record->learnt.looked != 0;
}

TEST(test_one_ticks_at_a_time)
{
    A_GUARD(g, .max = 10);
    OWN(weir_table) *shared =
        table_with(&(struct weir_table_options){ .path = new_path(), .keys = 16 });
    struct weir_guard *there = guard_of(shared, "g", NULL);
    uint64_t now = ((uint64_t)(NOW >> 30) + 1) << 10, me = weir__holder_me(shared);
    assert_true(ticks_beside(g, 0, NOW));
    assert_false(ticks_beside(g, now, NOW));
    assert_false(ticks_beside(g, now, NOW + 3600 * S)); /* a thread of this process: it will end */
    assert_true(ticks_beside(there, 0, NOW));
    assert_false(ticks_beside(there, now | me, NOW + 60 * S));
    assert_true(ticks_beside(there, now | me, NOW + 70 * S)); /* too late to be true */
    assert_true(ticks_beside(there, now | (me + 1), NOW));    /* such a process is not there */
}

TEST(test_L12_an_adaptive_limit_follows_and_begins_anew_with_another_controller)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard_options o = {
        .max = 500, .adaptive = { .controller = "aimd", .initial = 40, .min = 10, .max = 100 }
    };
    struct weir_guard *g = guard_of(table, "g", &o);
    struct weir_error error;
    assert_int_equal(info_of(g, NOW).limit, 40);
    weir_time now = run(g, NOW, 1000, 10 * MS, MS, WEIR_DROPPED);
    assert_true(info_of(g, now).limit < 40);
    int64_t learnt = info_of(g, now).limit;
    o.lease = 30 * S; /* something else changes: what was learnt is kept */
    assert_ok(weir_guard_change(g, &o, &error));
    now = run(g, now, 200, 10 * MS, MS, WEIR_SUCCEEDED);
    assert_in_range(info_of(g, now).limit, learnt, learnt + 5);
    o.adaptive.controller = "vegas";
    o.adaptive.initial = 70;
    assert_ok(weir_guard_change(g, &o, &error));
    now = run(g, now, 200, 10 * MS, MS, WEIR_SUCCEEDED);
    assert_in_range(info_of(g, now).limit, 60, 80);
    char text[64];
    weir_guard_tell(g, text, sizeof(text));
    assert_string_equal(text, "base 1ms");
}

static int count_entering(struct weir_guard *g, weir_time now)
{
    struct weir_permit permit;
    int n = 0;

    while (n < 1000 && enter_at(g, now, &permit))
        n++;
    return n;
}

/* What was learnt holds until the next look, but within the new bounds. */
TEST(test_L12_a_lower_bound_holds_at_once)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard_options o = { .max = 500,
                                    .adaptive = { .controller = "weir", .initial = 400 } };
    struct weir_guard *g = guard_of(table, "g", &o);
    struct weir_error error;
    weir_time now = run(g, NOW, 200, 10 * MS, MS, WEIR_SUCCEEDED);
    assert_true(info_of(g, now).limit > 100);
    o = (struct weir_guard_options){ .max = 5, .adaptive.controller = "weir" };
    assert_ok(weir_guard_change(g, &o, &error));
    assert_int_equal(count_entering(g, now), 5);
    assert_int_equal(info_of(g, now).limit, 5);
}

/* A rate is no number of permits, nor the other way round. */
TEST(test_L12_another_kind_of_limit_begins_at_once)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard_options o = {
        .max = 500,
        .adaptive = { .controller = "percentile", .target = S, .initial = 1000000, .rate = true }
    };
    struct weir_guard *g = guard_of(table, "g", &o);
    struct weir_error error;
    weir_time now = run(g, NOW, 2000, 10 * MS, MS, WEIR_SUCCEEDED) - 9 * MS; /* the last exit */
    o.adaptive = (struct weir_adaptive_options){ .controller = "weir", .initial = 7 };
    assert_ok(weir_guard_change(g, &o, &error));
    assert_int_equal(count_entering(g, now), 7);
    assert_int_equal(info_of(g, now).limit, 7);
}

/* Permits out, over time: also of work that has not ended. */
TEST(test_L12_permits_out_are_integrated_over_time)
{
    A_GUARD(g, .max = 50, .adaptive = { .controller = "weir" });
    struct weir_permit permits[3];
    info_of(g, NOW);
    for (int i = 0; i < 3; i++)
        assert_true(enter_at(g, NOW + (i + 1) * 10 * MS, &permits[i]));
    info_of(g, NOW + 100 * MS);
    assert_true(g->record->learnt.out == (90 + 80 + 70) * (double)MS);
    assert_true(weir_exit(g, &permits[1], WEIR_IGNORED, NOW + 130 * MS));
    info_of(g, NOW + 200 * MS);
    assert_true(g->record->learnt.out == (190 + 110 + 170) * (double)MS);
    assert_true(weir_exit(g, &permits[0], WEIR_SUCCEEDED, NOW + 210 * MS));
    info_of(g, NOW + 300 * MS); /* a look */
    assert_true(g->record->learnt.out == 0);
    info_of(g, NOW + 400 * MS);
    assert_true(g->record->learnt.out == 100 * (double)MS);
}

/* Only work that has ended well or badly, and only once there is a limit of a controller. */
TEST(test_L12_ends_that_leave_a_full_gate_are_counted)
{
    A_GUARD(g, .max = 50, .adaptive = { .controller = "weir", .initial = 3, .min = 3, .max = 3 });
    struct weir_permit permits[3];
    work(g, NOW, MS, WEIR_SUCCEEDED);
    info_of(g, NOW + 100 * MS);
    assert_int_equal(g->record->limit, 3);
    static const enum weir_outcome outcomes[] = { WEIR_SUCCEEDED, WEIR_FAILED, WEIR_TIMED_OUT,
                                                  WEIR_DROPPED, WEIR_IGNORED };
    for (size_t i = 0; i < COUNT_OF(outcomes); i++) {
        weir_time now = NOW + 101 * MS;
        for (int k = 0; k < 3; k++)
            assert_true(enter_at(g, now, &permits[k]));
        weir_exit(g, &permits[0], outcomes[i], now);
        weir_exit(g, &permits[1], WEIR_SUCCEEDED, now);
        weir_exit(g, &permits[2], WEIR_SUCCEEDED, now);
        assert_int_equal(g->record->window.full, i < 2 ? i + 1 : 2);
    }
}

TEST(test_L12_a_guard_lowers_its_limit_while_work_is_lost)
{
    A_GUARD(g, .max = 500, .adaptive = { .controller = "weir", .initial = 40, .max = 100 });
    weir_time now = run(g, NOW, 1000, 10 * MS, 50 * MS, WEIR_DROPPED);
    int64_t low = info_of(g, now).limit;
    assert_true(low < 40);
    now = run(g, now, 1000, 10 * MS, 50 * MS, WEIR_SUCCEEDED);
    assert_true(info_of(g, now).limit > low);
}

/* Does 50 at a time, 50 ms each. */
struct backend {
    struct weir_guard *guard;
    struct {
        struct weir_permit permit;
        weir_time until; /* 0: nobody is there */
    } places[50];
};

/* Whose work is done leaves; a place that is free then, -1: none. */
static int free_place(struct backend *b, weir_time now)
{
    int place = -1;

    for (int i = 0; i < 50; i++) {
        if (b->places[i].until != 0 && b->places[i].until <= now) {
            weir_exit(b->guard, &b->places[i].permit, WEIR_SUCCEEDED, b->places[i].until);
            b->places[i].until = 0;
        }
        place = b->places[i].until == 0 ? i : place;
    }
    return place;
}

static bool ask_backend(struct backend *b, uint64_t user, int priority, weir_time now)
{
    int place = free_place(b, now);
    struct weir_ask ask = {
        .key = { &user, sizeof(user) }, .cost = 1, .priority = (int8_t)priority, .now = now
    };
    struct weir_permit permit;
    struct weir_decision d;

    if (!weir_enter(b->guard, &ask, &permit, &d))
        return false;
    assert_true(place >= 0);
    b->places[place].permit = permit;
    b->places[place].until = now + 50 * MS;
    return true;
}

/* Clients ask ten times as often as can be done; one in twenty is important. */
TEST(test_G7_when_permits_run_out_the_least_important_go_first)
{
    A_GUARD(g, .max = 50, .shed = true);
    struct backend backend = { .guard = g };
    int asked[2] = { 0, 0 }, in[2] = { 0, 0 };
    uint64_t seed = 5;
    for (weir_time now = NOW; now < NOW + 20 * S; now += 100 * WEIR_MICROSECOND) {
        int important = random64(&seed) % 20 == 0; /* 500 per second of 10,000; 1,000 can be done */
        bool entered = ask_backend(&backend, random64(&seed) % 1000, important ? 5 : 0, now);
        asked[important] += now >= NOW + 5 * S;
        in[important] += entered && now >= NOW + 5 * S;
    }
    assert_true(in[1] * 100 >= asked[1] * 96); /* nearly all of the important ones */
    assert_true(in[0] + in[1] >=
                15000 * 85 / 100); /* and most permits are in use: some are left for them */
    struct weir_guard_info info = info_of(g, NOW + 20 * S);
    assert_true(info.admitted_percent < 30);
    assert_true(info.refused_shed > info.refused_busy);
    assert_fields(info.events[0], (kind, WEIR_GUARD_EVENT_SHEDDING), (to, 1));
}

TEST(test_G5_degradation_that_is_asked_for_ends_though_nobody_comes_any_more)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard_options o = { .raises = 3,
                                    .breaker = { .errors = 1, .min_calls = 1, .open_for = S } };
    struct weir_guard *broken = guard_of(table, "broken", &o),
                      *other =
                          guard_of(table, "other", &(struct weir_guard_options){ .degrade = 1 });
    work(broken, NOW, MS, WEIR_FAILED);
    why_not(broken, NOW + 200 * MS);
    assert_int_equal(weir_degradation_get(table, NULL), 3);
    assert_int_equal(why_not(other, NOW + 5 * S), WEIR_DEGRADED);
    why_not(other, NOW + 20 * S);
    assert_int_equal(weir_degradation_get(table, NULL), 0);
    assert_int_equal(why_not(other, NOW + 20 * S), WEIR_GRANTED);
}

/* A server looks at all guards every second. */
TEST(test_G5_degradation_ends_though_somebody_looks_at_the_guard)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard_options o = { .raises = 3,
                                    .breaker = { .errors = 1, .min_calls = 1, .open_for = S } };
    struct weir_guard *broken = guard_of(table, "broken", &o);
    struct weir_permit probe;
    work(broken, NOW, MS, WEIR_FAILED);
    for (weir_time t = S; t < 10 * S; t += S) {
        info_of(broken, NOW + t);
        assert_int_equal(weir_degradation_get(table, NULL), 3);
    }
    info_of(broken, NOW + 12 * S);
    assert_int_equal(weir_degradation_get(table, NULL), 0);
    assert_true(enter_at(broken, NOW + 13 * S, &probe)); /* and a probe that is lost */
    info_of(broken, NOW + 72 * S);
    assert_int_equal(weir_degradation_get(table, NULL), 3);
    info_of(broken, NOW + 85 * S);
    assert_int_equal(weir_degradation_get(table, NULL), 0);
}

/* Such a breaker is tried at once: when somebody comes. */
TEST(test_G5_degradation_ends_though_the_breaker_was_to_be_tried_much_later)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard_options o = {
        .raises = 3, .breaker = { .errors = 1, .min_calls = 1, .open_for = 3600 * S }
    };
    struct weir_guard *broken = guard_of(table, "broken", &o);
    struct weir_permit probe;
    work(broken, NOW, MS, WEIR_FAILED);
    info_of(broken, NOW + S);
    assert_int_equal(weir_degradation_get(table, NULL), 3);
    o.breaker.open_for = S;
    assert_ok(weir_guard_change(broken, &o, NULL));
    info_of(broken, NOW + 2 * S);
    assert_int_equal(weir_degradation_get(table, NULL), 0);
    assert_true(enter_at(broken, NOW + 3 * S, &probe));
    info_of(broken, NOW + 4 * S);
    assert_int_equal(weir_degradation_get(table, NULL), 3);
    struct weir_guard *other =
        guard_of(table, "other", &(struct weir_guard_options){ .degrade = 1 });
    assert_int_equal(why_not(other, NOW + 5 * S), WEIR_DEGRADED);
    assert_int_equal(why_not(other, NOW - 900 * S), WEIR_GRANTED); /* the clock has been set back */
    info_of(broken, NOW - 900 * S);
    assert_int_equal(weir_degradation_get(table, NULL), 0);
}

/* What it needs to be well again is refused meanwhile. */
TEST(test_G5_a_guard_that_is_degraded_by_its_own_breaker_is_tried_again)
{
    A_GUARD(g, .raises = 1, .degrade = 1,
            .breaker = { .errors = 1, .min_calls = 1, .open_for = S, .probes = 2 });
    weir_time now = NOW;
    int done = 0;
    work(g, now, MS, WEIR_FAILED);
    for (; now < NOW + 60 * S; now += S)
        done += work(g, now, MS, WEIR_SUCCEEDED);
    assert_true(done > 30);
    assert_int_equal(info_of(g, now).breaker, WEIR_BREAKER_CLOSED);
}

TEST(test_G5_a_guard_whose_rule_has_gone_asks_for_no_degradation)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard_options o = { .raises = 3,
                                    .breaker = { .errors = 1, .min_calls = 1, .open_for = S } };
    struct weir_guard *broken = guard_of(table, "broken", &o);
    work(broken, NOW, MS, WEIR_FAILED);
    info_of(broken, NOW + S);
    assert_int_equal(weir_degradation_get(table, NULL), 3);
    weir_guard_drop(broken);
    info_of(broken, NOW + 2 * S);
    assert_int_equal(weir_degradation_get(table, NULL), 0);
}

TEST(test_G6_a_mean_time_above_what_is_allowed_sheds)
{
    A_GUARD(g, .system = { .mean_time = 50 * MS });
    weir_time now = run(g, NOW, 500, 10 * MS, 20 * MS, WEIR_SUCCEEDED);
    assert_int_equal(info_of(g, now).refused_shed, 0);
    now = run(g, now, 1000, 10 * MS, 200 * MS, WEIR_SUCCEEDED);
    struct weir_guard_info info = info_of(g, now);
    assert_true(info.refused_shed > 0);
    assert_true(info.pressure_percent > 0);
    now = run(g, now, 6000, 10 * MS, 10 * MS, WEIR_SUCCEEDED);
    info = info_of(g, now);
    assert_int_equal(info.pressure_percent, 0);
    assert_int_equal(why_not(g, now), WEIR_GRANTED);
}

TEST(test_G6_a_guard_that_stops_looking_at_its_host_lets_everybody_in_again)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard_options o = { .system = { .mean_time = 50 * MS } };
    struct weir_guard *g = guard_of(table, "g", &o);
    struct weir_error error;
    weir_time now = run(g, NOW, 1500, 10 * MS, 200 * MS, WEIR_SUCCEEDED);
    assert_true(info_of(g, now).pressure_percent > 0);
    o.system.mean_time = 0;
    assert_ok(weir_guard_change(g, &o, &error));
    now = run(g, now, 200, 10 * MS, 200 * MS, WEIR_SUCCEEDED);
    struct weir_guard_info info = info_of(g, now);
    assert_fields(info, (pressure_percent, 0), (admitted_percent, 100));
    assert_int_equal(weir_degradation_get(table, NULL), 0);
    assert_int_equal(info.events[0].to, 0); /* and so it is told */
}

TEST(test_L12_an_adaptive_rate_sheds_the_least_important)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_adaptive_options a = {
        .controller = "percentile", .target = S, .initial = 100, .max = 100, .rate = true
    };
    struct weir_guard *g =
        guard_of(table, "g", &(struct weir_guard_options){ .adaptive = a, .shed = true });
    int in[2] = { 0, 0 };
    for (int i = 0; i < 20000; i++) { /* 1,000 per second, for 20 s; one in 20 is important */
        struct weir_permit p;
        struct weir_decision d;
        struct weir_ask ask = { .key = { &i, sizeof(i) },
                                .cost = 1,
                                .priority = (int8_t)(i % 20 == 0 ? 3 : 0),
                                .now = NOW + i * MS };
        if (!weir_enter(g, &ask, &p, &d))
            continue;
        in[i % 20 == 0]++;
        weir_exit(g, &p, WEIR_SUCCEEDED, ask.now + MS);
    }
    struct weir_guard_info info = info_of(g, NOW + 20 * S);
    assert_true(info.refused_shed > info.refused_limited);
    assert_int_equal(info.refused_busy, 0);
    assert_true(in[1] >= 900 && in[0] + in[1] >= 1800);
}

GROUP(make_folder, remove_folder)

/* ------------------------------------------------------------ all guards ---- */

/* Enters both guards this often a second, and leaves at once. */
static void come(struct weir_guard *a, struct weir_guard *b, int rate, weir_time *now, int seconds)
{
    for (int i = 0; i < seconds * rate; i++, *now += S / rate) {
        struct weir_guard *g = i % 2 ? a : b;
        struct weir_permit p;
        if (enter_at(g, *now, &p))
            assert_true(weir_exit(g, &p, WEIR_SUCCEEDED, *now));
    }
}

TEST(test_G6_the_rate_of_all_guards_together)
{
    A_GUARD(g, .max = 100, .system.rate = 100);
    struct weir_guard *other = guard_of(g->table, "other", &(struct weir_guard_options){ 0 });
    weir_time now = NOW;

    come(g, other, 80, &now, 10);
    assert_int_equal(info_of(g, now).refused_shed, 0);
    come(g, other, 200, &now, 30);
    struct weir_guard_info info = info_of(g, now);
    assert_true(info.refused_shed > 0 && info.pressure_percent > 20);
    assert_int_equal(info_of(other, now).refused_shed, 0);
    come(g, other, 40, &now, 30);
    assert_int_equal(info_of(g, now).pressure_percent, 0);
}

TEST(test_G6_the_work_in_progress_of_all_guards_together)
{
    A_GUARD(g, .max = 100, .system.in_flight = 10);
    struct weir_guard *other =
        guard_of(g->table, "other", &(struct weir_guard_options){ .lease = 600 * S });
    struct weir_permit held[12];
    weir_time now = NOW;

    for (int i = 0; i < 12; i++)
        assert_true(enter_at(other, now, &held[i]));
    come(g, g, 100, &now, 10);
    assert_true(info_of(g, now).refused_shed > 0);
    for (int i = 0; i < 12; i++)
        assert_true(weir_exit(other, &held[i], WEIR_SUCCEEDED, now));
    come(g, g, 100, &now, 30);
    assert_int_equal(info_of(g, now).pressure_percent, 0);
}

/* Their holders are gone, and nobody asks that guard any more. */
TEST(test_G6_permits_whose_lease_is_over_are_no_work_in_progress)
{
    A_GUARD(g, .max = 100, .system.in_flight = 10);
    struct weir_guard *other =
        guard_of(g->table, "other", &(struct weir_guard_options){ .lease = 5 * S });
    struct weir_permit lost;
    weir_time now = NOW;

    for (int i = 0; i < 12; i++)
        assert_true(enter_at(other, now, &lost));
    come(g, g, 100, &now, 4);
    assert_true(info_of(g, now).refused_shed > 0);
    come(g, g, 100, &now, 30);
    assert_int_equal(info_of(g, now).pressure_percent, 0);
    assert_int_equal(info_of(other, now).reclaimed, 12);
}
