/* breaker.c -- the circuit breaker: its options, its edges, and the defects of others.
 *
 * What it does step by step is in tests/vectors/guards/breaker.vec; that it does so in any order,
 * in tests/property/breaker.c; that it does so with many threads, in tests/thread/breaker.c.
 */
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include "unit/test.h"

#include "weir-queue.h"
#include "guard/breaker.h"

#define NOW (1000 * WEIR_SECOND)

/* A breaker, and what the last ask said. */
struct world {
    struct weir__breaker b;
    struct weir__breaker_plan plan;
    struct weir__breaker_move move;
    weir_time retry;
};

static struct world fresh(struct weir_breaker_options o)
{
    struct world w = { .retry = 0 };
    struct weir_error e = { 0 };

    if (weir__breaker_plan_make(&w.plan, &o, 42, &e) != WEIR_OK)
        fail_msg("%s", e.text);
    return w;
}

/* 0: no; -1: yes, and not a probe; else the probe. */
static int ask(struct world *w, weir_time now)
{
    uint32_t probe;

    if (!weir__breaker_ask(&w->plan, &w->b, now, &probe, &w->retry, &w->move))
        return 0;
    return probe == 0 ? -1 : (int)probe;
}

static bool tell(struct world *w, int probe, bool bad, weir_time now)
{
    struct weir__breaker_move m =
        weir__breaker_tell(&w->plan, &w->b, probe < 0 ? 0 : (uint32_t)probe, bad, 0, now);

    return m.from != m.to;
}

static void tell_often(struct world *w, int n, bool bad, weir_time now)
{
    for (int i = 0; i < n; i++)
        tell(w, 0, bad, now);
}

static struct weir__breaker_view look(const struct world *w, weir_time now)
{
    struct weir__breaker_view v;

    weir__breaker_look(&w->plan, &w->b, now, &v);
    return v;
}

/* Open since NOW, for a second, and then tried with `probes` probes. */
static struct world opened(int probes)
{
    struct world w = fresh((struct weir_breaker_options){ .error_percent = 50,
                                                          .min_calls = 1,
                                                          .open_for = WEIR_SECOND,
                                                          .open_max = WEIR_SECOND,
                                                          .jitter_percent = -1,
                                                          .probes = probes });

    tell(&w, 0, true, NOW);
    return w;
}

/* ----------------------------------------------------------------- options ---- */

TEST(test_G4_options_have_defaults)
{
    struct world w =
        fresh((struct weir_breaker_options){ .error_percent = 30, .slow = WEIR_SECOND });

    assert_fields(w.plan, (on, true), (slow_percent, 50), (part, 10 * WEIR_SECOND / 16),
                  (min_calls, 20), (probes, 3), (jitter_percent, 10), (open_for, 5 * WEIR_SECOND),
                  (open_max, 15 * WEIR_SECOND));
    w = fresh((struct weir_breaker_options){ .errors = 3, .calls = 5, .jitter_percent = -1 });
    assert_fields(w.plan, (min_calls, 5), (calls, 5), (jitter_percent, 0), (slow_percent, 0));
}

TEST(test_G4_no_options_are_no_breaker)
{
    struct world w = fresh((struct weir_breaker_options){ 0 });

    assert_false(w.plan.on);
    assert_int_equal(ask(&w, NOW), -1);
    assert_false(tell(&w, 0, true, NOW));
    assert_int_equal(look(&w, NOW).state, WEIR_BREAKER_CLOSED);
}

TEST(test_G4_options_that_make_no_sense_are_refused)
{
    static const struct {
        struct weir_breaker_options o;
        const char *says;
    } rows[] = {
        { { .error_percent = 101 }, "error_percent must be from 1% to 100%" },
        { { .error_percent = -1 }, "error_percent" },
        { { .errors = -1 }, "errors must be from 1 to 1000000" },
        { { .errors = 2000000 }, "errors must be from 1 to 1000000" },
        { { .slow = -1 }, "slow must be more than 0 and at most 1h" },
        { { .slow = WEIR_SECOND, .slow_percent = 101 }, "slow_percent must be from 1% to 100%" },
        { { .errors = 1, .slow_percent = 50 }, "slow_percent needs slow" },
        { { .errors = 1, .window = 999999 }, "window must be from 1ms to 366d" },
        { { .errors = 1, .window = WEIR_SECOND, .calls = 5 }, "not both" },
        { { .errors = 1, .calls = 1025 }, "calls must be from 1 to 1024" },
        { { .errors = 1, .min_calls = -5 }, "min_calls" },
        { { .errors = 1, .open_for = INT64_MAX }, "open_for" },
        { { .errors = 1, .open_for = 2 * WEIR_SECOND, .open_max = WEIR_SECOND },
          "open_max is shorter" },
        { { .errors = 1, .open_max = WEIR_SECOND }, "open_max is shorter" },
        { { .errors = 1, .jitter_percent = 101 }, "jitter_percent" },
        { { .errors = 1, .jitter_percent = -2 }, "jitter_percent must be from 0% to 100%" },
        { { .errors = 1, .probes = 256 }, "probes must be from 1 to 255" },
        { { .probes = 3 }, "needs error_percent, errors or slow" },
        { { .above = true }, "needs error_percent, errors or slow" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct weir__breaker_plan plan = { .seed = 77 };
        struct weir_error e = { 0 };
        assert_int_equal(weir__breaker_plan_make(&plan, &rows[i].o, 1, &e), WEIR_INVALID);
        assert_int_equal(plan.seed, 77);
        if (!strstr(e.text, rows[i].says))
            fail_msg("'%s' does not say '%s'", e.text, rows[i].says);
        assert_int_equal(weir__breaker_plan_make(&plan, &rows[i].o, 1, NULL), WEIR_INVALID);
    }
}

/* -------------------------------------------------------------- the edges ---- */

TEST(test_G4_zeros_are_fresh)
{
    struct world w = fresh((struct weir_breaker_options){ .error_percent = 50 });

    assert_fields(look(&w, 0), (state, WEIR_BREAKER_CLOSED), (calls, 0));
    assert_int_equal(ask(&w, 0), -1);
    tell_often(&w, 19, true, 0);
    assert_int_equal(ask(&w, 0), -1);
    assert_true(tell(&w, 0, true, 0));
    assert_int_equal(ask(&w, 0), 0);
}

TEST(test_G4_time_may_be_anything)
{
    struct world w = opened(1);

    assert_int_equal(ask(&w, INT64_MAX), 1 + 1);
    assert_true(tell(&w, 2, true, INT64_MAX)); /* opens for ever: there is no later */
    assert_int_equal(look(&w, INT64_MAX).retry_at, INT64_MAX);
    assert_true(ask(&w, INT64_MIN) > 0); /* too far ahead to be true */
    tell(&w, 3, false, INT64_MIN);
    assert_int_equal(look(&w, INT64_MIN).state, WEIR_BREAKER_CLOSED);
    tell(&w, 0, false, INT64_MIN);
    assert_int_equal(look(&w, INT64_MIN).calls, 1);
}

/* 1.2, 1.3, 1.5, 1.8(3): products differ in what happens exactly at a threshold; here that is said
 * by `above`. */
static void at_the_threshold(struct weir_breaker_options o, int good, int bad, weir_time took)
{
    for (int above = 0; above < 2; above++) {
        o.above = above;
        struct world w = fresh(o);
        tell_often(&w, good, false, NOW);
        for (int i = 0; i < bad; i++)
            weir__breaker_tell(&w.plan, &w.b, 0, took == 0, took, NOW);
        assert_int_equal(look(&w, NOW).state, above ? WEIR_BREAKER_CLOSED : WEIR_BREAKER_OPEN);
        weir__breaker_tell(&w.plan, &w.b, 0, took == 0, took, NOW);
        assert_int_equal(look(&w, NOW).state, WEIR_BREAKER_OPEN);
    }
}

TEST(test_G4_equal_opens_unless_above)
{
    for (int32_t calls = 0; calls <= 1000; calls += 1000) {
        at_the_threshold(
            (struct weir_breaker_options){ .error_percent = 50, .min_calls = 20, .calls = calls },
            10, 10, 0);
        at_the_threshold(
            (struct weir_breaker_options){ .error_percent = 1, .min_calls = 20, .calls = calls },
            99, 1, 0);
        at_the_threshold(
            (struct weir_breaker_options){ .errors = 7, .min_calls = 1, .calls = calls }, 0, 7, 0);
        at_the_threshold(
            (struct weir_breaker_options){
                .slow = 5, .slow_percent = 80, .min_calls = 10, .calls = calls },
            2, 8, 6);
    }
}

TEST(test_G4_equal_all_opens_even_above)
{
    struct world w =
        fresh((struct weir_breaker_options){ .error_percent = 100, .min_calls = 3, .above = true });

    tell_often(&w, 3, true, NOW);
    assert_int_equal(look(&w, NOW).state, WEIR_BREAKER_OPEN);
}

TEST(test_G4_slow_is_longer_than)
{
    struct world w =
        fresh((struct weir_breaker_options){ .slow = 50, .slow_percent = 100, .min_calls = 1 });

    weir__breaker_tell(&w.plan, &w.b, 0, false, 50, NOW);
    assert_int_equal(look(&w, NOW).slow, 0);
    weir__breaker_tell(&w.plan, &w.b, 0, false, 51, NOW);
    assert_int_equal(look(&w, NOW).slow, 1);
}

/* Two million and more in one part: the counts are halved, and the ratio stays. */
TEST(test_G4_a_part_does_not_overflow)
{
    struct world w = fresh((struct weir_breaker_options){
        .error_percent = 60, .min_calls = 1, .slow = 5, .slow_percent = 60 });
    int n = (1 << 21) + 10;

    for (int i = 0; i < n; i++)
        weir__breaker_tell(&w.plan, &w.b, 0, i % 2, i % 2 ? 6 : 0, NOW);
    struct weir__breaker_view v = look(&w, NOW);
    assert_int_equal(v.state, WEIR_BREAKER_CLOSED);
    assert_in_range(v.calls, n / 2 - 1, n / 2 + 20);
    assert_in_range(v.errors, v.calls / 2 - 10, v.calls / 2 + 10);
    assert_in_range(v.slow, v.calls / 2 - 10, v.calls / 2 + 10);
}

TEST(test_G4_jitter_is_within_and_the_same_again)
{
    weir_time least = INT64_MAX, most = 0;

    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct weir_breaker_options o = {
            .errors = 1, .min_calls = 1, .open_for = 1000, .open_max = 1000, .jitter_percent = 20
        };
        struct world w = { .retry = 0 }, again = { .retry = 0 };
        weir__breaker_plan_make(&w.plan, &o, seed, NULL);
        weir__breaker_plan_make(&again.plan, &o, seed, NULL);
        tell(&w, 0, true, 0);
        tell(&again, 0, true, 0);
        assert_int_equal(w.b.at, again.b.at);
        assert_in_range(w.b.at, 800, 1200);
        least = w.b.at < least ? w.b.at : least;
        most = w.b.at > most ? w.b.at : most;
    }
    assert_true(least < 805 && most > 1195);
}

TEST(test_G4_jitter_is_another_each_time)
{
    struct world w = fresh((struct weir_breaker_options){ .errors = 1,
                                                          .min_calls = 1,
                                                          .open_for = WEIR_SECOND,
                                                          .open_max = WEIR_SECOND,
                                                          .probes = 1 });
    weir_time now = 0, last = 0;

    tell(&w, 0, true, now);
    for (int i = 0; i < 20; i++) {
        weir_time span = w.b.at - now;
        assert_int_not_equal(span, last);
        last = span;
        now = w.b.at;
        tell(&w, ask(&w, now), true, now);
    }
}

TEST(test_G4_back_off_stays_at_its_most)
{
    struct world w = fresh((struct weir_breaker_options){ .errors = 1,
                                                          .min_calls = 1,
                                                          .open_for = 3,
                                                          .open_max = 1000,
                                                          .jitter_percent = -1,
                                                          .probes = 1 });
    weir_time now = 0;

    tell(&w, 0, true, now);
    for (int i = 0; i < 200; i++) {
        weir_time expected = i < 9 ? (weir_time)3 << i : 1000;
        assert_int_equal(w.b.at - now, expected);
        now = w.b.at;
        tell(&w, ask(&w, now), true, now);
    }
}

TEST(test_G4_the_clock_steps_back_and_nothing_waits_for_ever)
{
    struct world w = opened(1);

    assert_int_equal(ask(&w, NOW - WEIR_SECOND), 0); /* an ask that was overtaken is not let in */
    assert_int_equal(w.retry, 2 * WEIR_SECOND);
    assert_int_equal(look(&w, 5).retry_at, 5);
    assert_true(ask(&w, 5) > 0);
    assert_int_equal(w.move.to, WEIR_BREAKER_HALF_OPEN);
}

static weir_time read_late(void *context)
{
    return *(weir_time *)context;
}

TEST(test_G4_a_caller_that_was_stopped_makes_no_window_forget)
{
    weir_time present = NOW;
    struct weir_clock clock = { .now = read_late, .context = &present };
    struct world w = fresh((struct weir_breaker_options){ .error_percent = 50, .min_calls = 20 });

    w.plan.clock = &clock;
    tell_often(&w, 9, true, NOW);
    tell(&w, 0, false, NOW - 60 * WEIR_SECOND); /* it had read the clock a minute ago */
    tell_often(&w, 9, true, NOW);
    assert_int_equal(look(&w, NOW).calls, 19);
    assert_true(tell(&w, 0, true, NOW));
}

static weir_time read_ticking(void *context)
{
    return (*(weir_time *)context)++;
}

/* Parts of six times the length begin long before those that were counted. */
TEST(test_G4_a_longer_window_while_at_work)
{
    weir_time now = 1790000000 * WEIR_SECOND, present = now + 1;
    struct weir_clock clock = { .now = read_ticking, .context = &present };
    struct world w = fresh((struct weir_breaker_options){ .error_percent = 50, .min_calls = 20 });

    w.plan.clock = &clock;
    for (int i = 0; i < 5; i++, w.plan.part *= 6)
        tell(&w, 0, true, now);
    w.plan.part /= 6;
    assert_int_equal(look(&w, now).calls, 5);
}

TEST(test_G4_a_caller_ahead_of_a_short_window_holds_up_nobody)
{
    weir_time present = NOW + 1;
    struct weir_clock clock = { .now = read_ticking, .context = &present };
    struct world w = fresh((struct weir_breaker_options){
        .error_percent = 50, .min_calls = 20, .window = WEIR_SECOND / 10 });

    w.plan.clock = &clock;
    tell(&w, 0, true, NOW + WEIR_SECOND / 2);
    tell(&w, 0, true, NOW);
    assert_true(present < NOW + WEIR_MILLISECOND);
}

TEST(test_G4_a_caller_that_was_stopped_is_no_probe_before_its_time)
{
    weir_time present = NOW;
    struct weir_clock clock = { .now = read_late, .context = &present };
    struct world w = opened(1);

    w.plan.clock = &clock;
    assert_int_equal(ask(&w, NOW - 60 * WEIR_SECOND), 0);
    assert_int_equal(w.retry, WEIR_SECOND);
    present += WEIR_SECOND;
    assert_true(ask(&w, NOW - 60 * WEIR_SECOND) > 0);
}

/* Options of a guard can be changed while it is at work. */
TEST(test_G4_a_shorter_open_time_while_it_is_open)
{
    struct world w = opened(1);

    w.plan.open_for = w.plan.open_max = WEIR_MILLISECOND;
    assert_int_equal(look(&w, NOW).retry_at, NOW + WEIR_SECOND);
    assert_int_equal(ask(&w, NOW), 0);
    assert_int_equal(look(&w, NOW - 5 * WEIR_MILLISECOND).retry_at, NOW - 5 * WEIR_MILLISECOND);
    assert_true(ask(&w, NOW - 5 * WEIR_MILLISECOND) > 0);
}

TEST(test_G4_fewer_probes_while_they_are_back)
{
    struct world w = opened(8);
    int probe = ask(&w, NOW + WEIR_SECOND);

    for (int i = 1; i < 5; i++)
        ask(&w, NOW + WEIR_SECOND);
    for (int i = 0; i < 3; i++)
        tell(&w, probe, false, NOW + WEIR_SECOND);
    weir__breaker_give(&w.b, (uint32_t)probe);
    weir__breaker_give(&w.b, (uint32_t)probe);
    w.plan.probes = 2;
    assert_int_equal(look(&w, NOW).state, WEIR_BREAKER_HALF_OPEN);
    assert_true(ask(&w, NOW + WEIR_SECOND) > 0); /* they begin anew */
    assert_false(tell(&w, probe, false, NOW + WEIR_SECOND));
    assert_true(ask(&w, NOW + WEIR_SECOND) > 0);
    assert_true(tell(&w, probe, false, NOW + WEIR_SECOND));
    assert_int_equal(look(&w, NOW).state, WEIR_BREAKER_CLOSED);
}

TEST(test_G4_another_window_while_at_work)
{
    struct world w =
        fresh((struct weir_breaker_options){ .errors = 1000, .min_calls = 1, .calls = 1000 });

    tell_often(&w, 1900, false, NOW);
    w.plan.calls = 10;
    tell_often(&w, 10, true, NOW);
    assert_fields(look(&w, NOW), (calls, 10), (errors, 10));
    w.plan.part = WEIR_MILLISECOND;
    w.plan.calls = 0;
    tell_often(&w, 3, true, NOW);
    assert_int_equal(look(&w, NOW).calls, 3);
    w.plan.part = WEIR_SECOND; /* part numbers are smaller now */
    tell_often(&w, 3, true, NOW);
    assert_int_equal(look(&w, NOW).calls, 6);
    assert_int_equal(look(&w, NOW + 16 * WEIR_SECOND).calls, 0);
}

TEST(test_G4_a_view_takes_nothing)
{
    struct world w = opened(1);
    struct weir__breaker before;

    for (int i = 0; i < 3; i++) {
        memcpy(&before, &w.b, sizeof(before));
        look(&w, NOW + 5 * WEIR_SECOND);
        assert_memory_equal(&before, &w.b, sizeof(before));
        ask(&w, NOW + i * WEIR_SECOND);
    }
}

TEST(test_G4_no_changes_nothing)
{
    struct world w = opened(1);
    struct weir__breaker before;

    memcpy(&before, &w.b, sizeof(before));
    assert_int_equal(ask(&w, NOW), 0);
    assert_int_equal(w.retry, WEIR_SECOND);
    assert_memory_equal(&before, &w.b, sizeof(before));
    ask(&w, NOW + WEIR_SECOND);
    memcpy(&before, &w.b, sizeof(before));
    assert_int_equal(ask(&w, NOW + WEIR_SECOND), 0);
    assert_true(w.retry > 0);
    assert_memory_equal(&before, &w.b, sizeof(before));
}

TEST(test_G4_a_probe_cannot_be_given_or_told_twice)
{
    struct world w = opened(3);
    int probe = ask(&w, NOW + WEIR_SECOND);

    for (int i = 0; i < 5; i++)
        weir__breaker_give(&w.b, (uint32_t)probe);
    tell_often(&w, 5, true, NOW + WEIR_SECOND);
    assert_fields(look(&w, NOW), (state, WEIR_BREAKER_HALF_OPEN), (calls, 0));
    for (int i = 0; i < 3; i++)
        assert_true(ask(&w, NOW + WEIR_SECOND) > 0);
    assert_int_equal(ask(&w, NOW + WEIR_SECOND), 0);
}

/* ---------------------------------------------------- the defects of others ---- */

/* Half-open for ever, because a rule after the breaker refuses the probe. */
TEST(test_G4_sentinel_1638_probe_refused_elsewhere)
{
    struct world w = opened(1);

    for (int i = 0; i < 100; i++) {
        int probe = ask(&w, NOW + WEIR_SECOND);
        assert_true(probe > 0);
        assert_int_equal(ask(&w, NOW + WEIR_SECOND), 0);
        weir__breaker_give(&w.b, (uint32_t)probe);
    }
    assert_true(tell(&w, ask(&w, NOW + WEIR_SECOND), false, NOW + WEIR_SECOND));
    assert_int_equal(look(&w, NOW).state, WEIR_BREAKER_CLOSED);
}

/* A window that tumbles does not see what lies on both sides of its edge; wherever the edge is,
 * there is none. */
TEST(test_G4_sentinel_3130_no_edge_in_the_window)
{
    for (int start = 0; start < 64; start++) {
        struct world w = fresh((struct weir_breaker_options){
            .errors = 10, .min_calls = 1, .window = 16 * WEIR_SECOND });
        for (int i = 0; i < 10; i++) {
            assert_int_equal(look(&w, NOW).state, WEIR_BREAKER_CLOSED);
            tell(&w, 0, true, NOW + start * WEIR_SECOND / 4 + i * WEIR_SECOND);
        }
        assert_int_equal(look(&w, NOW).state, WEIR_BREAKER_OPEN);
    }
}

/* Fewer results than min_calls come back in half-open: here min_calls does not matter there, nor
 * does the window's length. */
TEST(test_G4_resilience4j_903_stuck_below_min_calls)
{
    struct world w = fresh((struct weir_breaker_options){ .error_percent = 25,
                                                          .window = WEIR_SECOND,
                                                          .min_calls = 10,
                                                          .open_for = WEIR_SECOND,
                                                          .jitter_percent = -1,
                                                          .probes = 8 });
    weir_time now = NOW + WEIR_SECOND;

    tell_often(&w, 10, true, NOW);
    for (int i = 0; i < 8; i++, now += WEIR_SECOND) /* each in a window of its own */
        tell(&w, ask(&w, now), false, now);
    assert_int_equal(look(&w, now).state, WEIR_BREAKER_CLOSED);
}

/* Probes whose calls never return: when their leases end they are given, and others may try. */
TEST(test_G4_resilience4j_935_unresponsive_probes)
{
    struct world w = opened(4);
    int probes[4];

    for (int i = 0; i < 4; i++)
        probes[i] = ask(&w, NOW + WEIR_SECOND);
    assert_int_equal(ask(&w, NOW + 3600 * WEIR_SECOND), 0);
    for (int i = 0; i < 4; i++)
        weir__breaker_give(&w.b, (uint32_t)probes[i]);
    for (int i = 0; i < 3; i++)
        tell(&w, ask(&w, NOW + 3600 * WEIR_SECOND), false, NOW + 3600 * WEIR_SECOND);
    assert_int_equal(look(&w, NOW).state, WEIR_BREAKER_CLOSED);
}

/* Good probes must close it; the last of them, and no more than needed. */
TEST(test_G4_resilience4j_994_good_probes_close_it)
{
    struct world w = fresh((struct weir_breaker_options){ .error_percent = 5,
                                                          .slow = 5 * WEIR_SECOND,
                                                          .slow_percent = 5,
                                                          .calls = 5,
                                                          .min_calls = 5,
                                                          .probes = 5 });

    tell_often(&w, 5, true, NOW);
    for (int i = 0; i < 5; i++) {
        assert_int_not_equal(look(&w, NOW).state, WEIR_BREAKER_CLOSED);
        tell(&w, ask(&w, NOW + 60 * WEIR_SECOND), false, NOW + 60 * WEIR_SECOND);
    }
    assert_int_equal(look(&w, NOW).state, WEIR_BREAKER_CLOSED);
}

/* The last probe ends with what is ignored. */
TEST(test_G4_resilience4j_544_last_probe_ignored)
{
    struct world w = opened(2);
    weir_time now = NOW + WEIR_SECOND;

    tell(&w, ask(&w, now), false, now);
    for (int i = 0; i < 10; i++)
        weir__breaker_give(&w.b, (uint32_t)ask(&w, now));
    assert_int_equal(look(&w, now).state, WEIR_BREAKER_HALF_OPEN);
    tell(&w, ask(&w, now), false, now);
    assert_int_equal(look(&w, now).state, WEIR_BREAKER_CLOSED);
}

/* To look whether it is open took a probe. */
TEST(test_G4_resilience4j_858_looking_takes_no_probe)
{
    struct world w = opened(1);

    for (int i = 0; i < 100; i++)
        assert_int_equal(look(&w, NOW + WEIR_SECOND).state, WEIR_BREAKER_OPEN);
    assert_true(ask(&w, NOW + WEIR_SECOND) > 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(look(&w, NOW + WEIR_SECOND).state, WEIR_BREAKER_HALF_OPEN);
}

/* Permits lost or counted twice when results arrive from before the change: neither old work nor
 * old probes are probes. */
TEST(test_G4_resilience4j_1568_results_of_before_are_no_probes)
{
    struct world w = opened(3);
    weir_time now = NOW + WEIR_SECOND;
    int old = ask(&w, now);

    ask(&w, now);
    ask(&w, now);
    tell(&w, old, true, now);
    assert_true(tell(&w, old, true, now)); /* open again; the third is still out */
    now += WEIR_SECOND;
    int probe = ask(&w, now);
    assert_int_not_equal(probe, old);
    tell(&w, old, true, now);
    weir__breaker_give(&w.b, (uint32_t)old);
    tell_often(&w, 100, true, now);
    assert_int_equal(look(&w, now).calls, 0);
    assert_true(ask(&w, now) > 0 && ask(&w, now) > 0);
    assert_int_equal(ask(&w, now), 0);
}

/* At the change from open to half-open the ask that makes it is the first of the probes, not one
 * more. */
TEST(test_G4_resilience4j_1432_no_more_than_the_probes)
{
    struct world w = opened(5);
    int let = 0;

    for (int i = 0; i < 50; i++)
        let += ask(&w, NOW + WEIR_SECOND) > 0;
    assert_int_equal(let, 5);
}

/* Half-open to half-open is no change, and no event reports one. */
TEST(test_G4_resilience4j_674_half_open_once)
{
    struct world w = opened(5);
    int changes = 0;

    for (int i = 0; i < 50; i++) {
        ask(&w, NOW + WEIR_SECOND);
        changes += w.move.from != w.move.to;
        assert_true(w.move.from == w.move.to ||
                    (w.move.from == WEIR_BREAKER_OPEN && w.move.to == WEIR_BREAKER_HALF_OPEN));
    }
    assert_int_equal(changes, 1);
}

TEST(test_G4_forced)
{
    struct world w = opened(2);
    int probe = ask(&w, NOW + WEIR_SECOND);

    weir__breaker_force(&w.b, WEIR_FORCE_OPEN, NOW);
    assert_int_equal(ask(&w, INT64_MAX), 0);
    assert_int_equal(w.retry, WEIR_NEVER);
    assert_int_equal(look(&w, NOW).retry_at, WEIR_NEVER);
    assert_false(tell(&w, probe, false, NOW));
    weir__breaker_force(&w.b, WEIR_FORCE_CLOSED, NOW);
    assert_int_equal(ask(&w, NOW), -1);
    tell_often(&w, 100, true, NOW);
    assert_fields(look(&w, NOW), (force, WEIR_FORCE_CLOSED), (state, WEIR_BREAKER_CLOSED),
                  (errors, 100));
    weir__breaker_force(&w.b, WEIR_UNFORCED, NOW);
    assert_int_equal(look(&w, NOW).calls, 0);
    weir__breaker_give(&w.b, (uint32_t)probe);
    assert_true(tell(&w, 0, true, NOW));
    assert_int_equal(w.b.at, NOW + WEIR_SECOND); /* the back-off begins anew */
}
