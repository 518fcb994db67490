/* Calls that hang: what a sweep tells the breaker about permits that are out for too long (G4). */
#include "unit/test.h"

#include "unit/guarding.h"

static enum weir_breaker_state breaker_at(struct weir_guard *g, weir_time now)
{
    return info_of(g, now).breaker;
}

/* A window full of successes, and then calls that do not come back. */
TEST(test_G4_calls_in_flight_for_too_long_open_the_breaker)
{
    A_GUARD(g, .max = 100, .breaker = { .slow = S, .min_calls = 10 });
    struct weir_permit p[10], quick;
    for (int i = 0; i < 200; i++) {
        assert_true(enter_at(g, NOW, &quick));
        assert_true(weir_exit(g, &quick, WEIR_SUCCEEDED, NOW));
    }
    for (int i = 0; i < 10; i++)
        assert_true(enter_at(g, NOW + 2 * S, &p[i]));
    assert_int_equal(breaker_at(g, NOW + 29 * S / 10), WEIR_BREAKER_CLOSED);
    assert_int_equal(breaker_at(g, NOW + 34 * S / 10), WEIR_BREAKER_OPEN);
}

/* Half of those that ended since were quick, and more than half altogether: it stays closed. */
TEST(test_G4_a_few_calls_that_hang_do_not)
{
    A_GUARD(g, .max = 100, .breaker = { .slow = S, .min_calls = 10 });
    struct weir_permit p[10], quick;
    for (int i = 0; i < 10; i++)
        assert_true(enter_at(g, NOW, &p[i]));
    for (int i = 0; i < 11; i++) {
        assert_true(enter_at(g, NOW + S / 2, &quick));
        assert_true(weir_exit(g, &quick, WEIR_SUCCEEDED, NOW + S / 2));
    }
    assert_int_equal(breaker_at(g, NOW + 2 * S), WEIR_BREAKER_CLOSED);
    assert_int_equal(breaker_at(g, NOW + 5 * S), WEIR_BREAKER_CLOSED);
}

TEST(test_G4_probes_that_hang_open_it_again)
{
    A_GUARD(g, .max = 100, .lease = 60 * S,
            .breaker = { .slow = S, .min_calls = 1, .open_for = 5 * S, .jitter_percent = -1 });
    struct weir_permit p, probes[3];
    assert_true(enter_at(g, NOW, &p));
    assert_true(weir_exit(g, &p, WEIR_TIMED_OUT, NOW + S));
    assert_int_equal(breaker_at(g, NOW + S), WEIR_BREAKER_OPEN);
    assert_true(enter_at(g, NOW + 6 * S, &probes[0]) && enter_at(g, NOW + 6 * S, &probes[1]));
    assert_int_equal(breaker_at(g, NOW + 69 * S / 10), WEIR_BREAKER_HALF_OPEN);
    assert_int_equal(breaker_at(g, NOW + 74 * S / 10), WEIR_BREAKER_OPEN);
    assert_true(weir_exit(g, &probes[0], WEIR_SUCCEEDED, NOW + 8 * S)); /* too late to matter */
    assert_int_equal(breaker_at(g, NOW + 8 * S), WEIR_BREAKER_OPEN);
}

/* Neither while their clients send them, nor while these read the answer; but they do as soon as
 * somebody works at them again, and a lease ends half a lease later. */
TEST(test_G4_calls_that_wait_for_their_clients_do_not_hang)
{
    A_GUARD(g, .max = 10, .lease = 10 * S, .breaker = { .slow = S, .min_calls = 10 });
    struct weir_permit p[10];
    for (int i = 0; i < 10; i++)
        assert_true(enter_at(g, NOW, &p[i]));
    for (int t = 0; t < 40 * 4; t++) {
        for (int i = 0; i < 10 && t % 16 == 0; i++)
            assert_true(weir_permit_idle(g, &p[i], NOW + t * S / 4));
        assert_int_equal(breaker_at(g, NOW + t * S / 4), WEIR_BREAKER_CLOSED);
        assert_int_equal(info_of(g, NOW + t * S / 4).in_flight, 10);
    }
    for (int i = 0; i < 9; i++)
        assert_true(weir_permit_renew(g, &p[i], NOW + 40 * S));
    assert_true(weir_permit_idle(g, &p[9], NOW + 40 * S));
    assert_int_equal(breaker_at(g, NOW + 42 * S), WEIR_BREAKER_CLOSED); /* nine are too few */
    assert_true(weir_permit_renew(g, &p[9], NOW + 42 * S));
    assert_int_equal(breaker_at(g, NOW + 429 * S / 10), WEIR_BREAKER_CLOSED);
    assert_int_equal(breaker_at(g, NOW + 434 * S / 10), WEIR_BREAKER_OPEN);
    assert_true(weir_permit_idle(g, &p[0], NOW + 44 * S));
    assert_int_equal(info_of(g, NOW + 58 * S).in_flight, 1);
    assert_int_equal(info_of(g, NOW + 60 * S).in_flight, 0);
    assert_false(weir_exit(g, &p[0], WEIR_SUCCEEDED, NOW + 60 * S));
}

/* Nor do they keep others from being probes for longer than an open time; one at a time, and what
 * the slow one says in the end counts too. */
TEST(test_G4_beside_probes_that_wait_for_their_clients_others_go)
{
    A_GUARD(g, .max = 100, .lease = 60 * S,
            .breaker = { .slow = S, .min_calls = 1, .open_for = 5 * S, .probes = 1 });
    struct weir_permit p, slow[2], quick;
    assert_true(enter_at(g, NOW, &p));
    assert_true(weir_exit(g, &p, WEIR_TIMED_OUT, NOW + S));
    assert_true(enter_at(g, NOW + 30 * S, &slow[0]));
    assert_true(weir_permit_idle(g, &slow[0], NOW + 31 * S));
    assert_false(enter_at(g, NOW + 34 * S, &quick));
    assert_true(enter_at(g, NOW + 35 * S, &slow[1]));
    assert_true(weir_permit_idle(g, &slow[1], NOW + 355 * S / 10));
    assert_false(enter_at(g, NOW + 36 * S, &quick));
    assert_int_equal(breaker_at(g, NOW + 39 * S), WEIR_BREAKER_HALF_OPEN);
    assert_true(enter_at(g, NOW + 40 * S, &quick));
    assert_true(weir_exit_after(g, &slow[1], WEIR_SUCCEEDED, S / 2, NOW + 40 * S));
    assert_int_equal(breaker_at(g, NOW + 40 * S), WEIR_BREAKER_CLOSED);
    assert_true(weir_exit(g, &quick, WEIR_FAILED, NOW + 41 * S));
    assert_true(weir_exit(g, &slow[0], WEIR_FAILED, NOW + 41 * S));
    assert_int_equal(breaker_at(g, NOW + 41 * S), WEIR_BREAKER_CLOSED); /* decided before */
}

/* A probe that is at work again is awaited, for a lease. */
TEST(test_G4_a_probe_that_works_again_is_waited_for)
{
    A_GUARD(g, .max = 100, .lease = 60 * S,
            .breaker = { .errors = 1, .min_calls = 1, .open_for = 5 * S, .probes = 1 });
    struct weir_permit p, probe;
    assert_true(enter_at(g, NOW, &p));
    assert_true(weir_exit(g, &p, WEIR_FAILED, NOW));
    assert_true(enter_at(g, NOW + 10 * S, &probe));
    assert_true(weir_permit_idle(g, &probe, NOW + 11 * S));
    assert_true(weir_permit_renew(g, &probe, NOW + 12 * S));
    assert_false(enter_at(g, NOW + 70 * S, &p));
    assert_true(enter_at(g, NOW + 74 * S, &p));
}

/* Callers that vanish are seen once: after the next closing they say nothing new. */
TEST(test_G4_calls_that_hang_do_not_open_it_twice)
{
    A_GUARD(g, .max = 100, .lease = 60 * S,
            .breaker = { .slow = S / 2, .min_calls = 20, .open_for = S, .jitter_percent = -1 });
    struct weir_permit lost;
    int opened = 0;
    for (int i = 0; i < 25; i++)
        assert_true(enter_at(g, NOW, &lost));
    for (int i = 0, before = 0; i < 30 * 20; i++) {
        work(g, NOW + i * 50 * MS, MS, WEIR_SUCCEEDED);
        int open = breaker_at(g, NOW + i * 50 * MS + MS) == WEIR_BREAKER_OPEN;
        opened += open && !before;
        before = open;
    }
    assert_int_equal(opened, 1);
}

/* Calls of 10 ms each, `n` of them; then the dependency hangs, and they come for `more`.  The
 * breaker's state then. */
static enum weir_breaker_state hang_after(struct weir_guard *g, int n, weir_time every,
                                          weir_time more)
{
    struct weir_permit p[64] = { 0 };
    weir_time now = NOW, out = 10 * MS / every;

    for (weir_time i = 0; i < n; i++, now += every) {
        if (i >= out)
            assert_true(weir_exit(g, &p[(i - out) % 64], WEIR_SUCCEEDED, now));
        assert_true(enter_at(g, now, &p[i % 64]));
    }
    for (weir_time end = now + more; now < end; now += every)
        enter_at(g, now, &p[0]);
    return breaker_at(g, now);
}

TEST(test_G4_a_hang_is_seen_soon_whatever_succeeded_before)
{
    struct weir_breaker_options slow = { .slow = S / 2, .slow_percent = 50 }, calls = slow;

    calls.calls = 100;
    A_GUARD(g, .max = 64, .breaker = slow);
    struct weir_guard *full =
        guard_of(table, "full", &(struct weir_guard_options){ .max = 25, .breaker = slow });
    struct weir_guard *ring =
        guard_of(table, "ring", &(struct weir_guard_options){ .max = 1000, .breaker = calls });
    assert_int_equal(hang_after(g, 1600, S / 800, S), WEIR_BREAKER_OPEN);
    assert_int_equal(hang_after(full, 4000, S / 2000, S), WEIR_BREAKER_OPEN);
    assert_int_equal(hang_after(ring, 1300, S / 100, S), WEIR_BREAKER_OPEN);
}

/* A burst in which a tenth of the calls is slow by nature, and then no calls at all. */
TEST(test_G4_silence_is_no_hang)
{
    A_GUARD(g, .max = 2000, .breaker = { .slow = S / 2, .slow_percent = 50 });
    struct weir_permit quick[900], slow[100];
    for (int i = 0; i < 1000; i++)
        assert_true(enter_at(g, NOW, i < 900 ? &quick[i] : &slow[i - 900]));
    for (int i = 0; i < 900; i++)
        assert_true(weir_exit(g, &quick[i], WEIR_SUCCEEDED, NOW + MS));
    for (int i = 0; i < 40; i++)
        assert_int_equal(breaker_at(g, NOW + i * S / 20), WEIR_BREAKER_CLOSED);
    for (int i = 0; i < 100; i++)
        assert_true(weir_exit(g, &slow[i], WEIR_SUCCEEDED, NOW + 2 * S));
    assert_int_equal(breaker_at(g, NOW + 2 * S), WEIR_BREAKER_CLOSED);
}

/* One worker, 10 ms each: a burst that it works off in order.  Every call ends later than it
 * should, and one after the other does end.  The last `left` never do. */
static enum weir_breaker_state work_off(struct weir_guard *g, int burst, int left, weir_time more)
{
    struct weir_permit p[80];
    weir_time now = NOW;

    for (int i = 0; i < 300; i++, now += 10 * MS)
        work(g, now, MS, WEIR_SUCCEEDED);
    for (int i = 0; i < burst; i++)
        assert_true(enter_at(g, now, &p[i]));
    for (int i = 0; i < burst - left; i++, now += 10 * MS) {
        assert_int_equal(breaker_at(g, now), WEIR_BREAKER_CLOSED);
        assert_true(weir_exit(g, &p[i], WEIR_SUCCEEDED, now));
    }
    assert_int_equal(breaker_at(g, now), WEIR_BREAKER_CLOSED);
    return breaker_at(g, now + more);
}

TEST(test_G4_a_queue_that_moves_does_not_hang)
{
    struct weir_breaker_options slow = { .slow = S / 5, .slow_percent = 50, .window = 4 * S };

    A_GUARD(g, .max = 100, .breaker = slow);
    struct weir_guard *full =
        guard_of(table, "full", &(struct weir_guard_options){ .max = 80, .breaker = slow });
    struct weir_guard *hangs =
        guard_of(table, "hangs", &(struct weir_guard_options){ .max = 100, .breaker = slow });
    assert_int_equal(work_off(g, 80, 0, S), WEIR_BREAKER_CLOSED);
    assert_int_equal(work_off(full, 80, 0, S), WEIR_BREAKER_CLOSED);
    assert_int_equal(work_off(hangs, 80, 60, S), WEIR_BREAKER_OPEN);
}

/* It moves, but what comes now would be out for seconds. */
TEST(test_G4_a_queue_that_nobody_can_work_off_hangs)
{
    struct weir_breaker_options slow = { .slow = S / 5, .slow_percent = 50 };

    A_GUARD(g, .max = 100, .breaker = slow);
    struct weir_permit p[80];
    for (int i = 0; i < 80; i++)
        assert_true(enter_at(g, NOW, &p[i]));
    for (int i = 0; i < 7; i++)
        assert_true(weir_exit(g, &p[i], WEIR_SUCCEEDED, NOW + (i + 1) * 50 * MS));
    assert_int_equal(breaker_at(g, NOW + 2 * S / 5), WEIR_BREAKER_OPEN);
}

/* Callers of an older episode that have vanished are no queue. */
TEST(test_G4_what_was_lost_before_is_no_queue)
{
    struct weir_breaker_options slow = { .slow = S / 5, .slow_percent = 50, .open_for = S };
    struct weir_permit p[140];

    A_GUARD(g, .max = 300, .lease = 600 * S, .breaker = slow);
    for (int i = 0; i < 120; i++)
        assert_true(enter_at(g, NOW, &p[i]));
    assert_int_equal(breaker_at(g, NOW + S), WEIR_BREAKER_OPEN);
    weir_time now = NOW + 4 * S;
    for (int i = 0; i < 20; i++)
        work(g, now + i * S / 50, MS, WEIR_SUCCEEDED);
    now += 2 * S;
    assert_int_equal(breaker_at(g, now), WEIR_BREAKER_CLOSED);
    for (int i = 120; i < 140; i++)
        assert_true(enter_at(g, now, &p[i]));
    for (int i = 0; i < 13; i++)
        assert_true(weir_exit(g, &p[120 + i], WEIR_SUCCEEDED, now + (i + 1) * 20 * MS));
    assert_int_equal(breaker_at(g, now + 370 * MS), WEIR_BREAKER_CLOSED);
}

/* Others that came later have ended: they do not wait for their turn. */
TEST(test_G4_calls_that_others_overtake_hang)
{
    A_GUARD(g, .max = 100, .breaker = { .slow = S / 5, .slow_percent = 50 });
    struct weir_permit p[30];
    for (int i = 0; i < 30; i++)
        assert_true(enter_at(g, NOW, &p[i]));
    for (int i = 1; i < 20; i++)
        work(g, NOW + i * S / 50, MS, WEIR_SUCCEEDED);
    assert_int_equal(breaker_at(g, NOW + S / 2), WEIR_BREAKER_OPEN);
}

/* A call of 100 ms each 10 ms for a minute, but of each ten `hang` never end.  How many were
 * refused. */
static int hang_in_part(struct weir_breaker_options breaker, int hang)
{
    static struct weir_permit p[6000];
    int refused = 0;

    A_GUARD(g, .max = 10000, .breaker = breaker);
    for (int i = 0; i < 6000; i++) {
        weir_time now = NOW + i * 10 * MS;
        refused += !enter_at(g, now, &p[i]);
        if (i >= 10 && i % 10 >= hang)
            weir_exit(g, &p[i - 10], WEIR_SUCCEEDED, now);
    }
    return refused;
}

/* They are compared with all that end, also when more hang than the window has seen end. */
TEST(test_G4_a_part_that_hangs_opens_it_only_beyond_the_threshold)
{
    const struct weir_breaker_options windows[] = { { .slow = S / 2 },
                                                    { .slow = S / 2, .calls = 20 },
                                                    { .slow = S / 2, .window = S } };

    for (int i = 0; i < 3; i++) {
        assert_int_equal(hang_in_part(windows[i], 3), 0);
        assert_in_range(hang_in_part(windows[i], 6), 3000, 6000);
    }
}

/* Of 500 calls in 50 s 25 hang, and then nobody comes: nothing is left to compare them with. */
TEST(test_G4_a_few_that_hang_do_not_open_it_in_a_silence)
{
    struct weir_permit p;

    for (int calls = 0; calls <= 20; calls += 20) {
        A_GUARD(g, .max = 100, .breaker = { .slow = S / 2, .calls = calls });
        for (int i = 0; i < 500; i++) {
            assert_true(enter_at(g, NOW + i * S / 10, &p));
            if (i % 20 != 0)
                assert_true(weir_exit(g, &p, WEIR_SUCCEEDED, NOW + i * S / 10));
        }
        for (int i = 0; i < 60; i++)
            assert_int_equal(breaker_at(g, NOW + 50 * S + i * S / 4), WEIR_BREAKER_CLOSED);
    }
}

/* One of a hundred takes seconds, and so many come that a window of calls is full in no time. */
TEST(test_G4_a_window_of_calls_is_not_full_of_late_ones)
{
    enum { SLOW = 5000, QUICK = 40 };
    static struct weir_permit slow[SLOW / 100], quick[QUICK];

    A_GUARD(g, .max = 1000, .breaker = { .slow = S / 2, .calls = 20 });
    for (int i = 0; i < 20000; i++) { /* each ms */
        weir_time now = NOW + i * MS;
        bool is_slow = i % 100 == 0;
        struct weir_permit *p = is_slow ? &slow[i / 100 % (SLOW / 100)] : &quick[i % QUICK];
        if (i >= (is_slow ? SLOW : QUICK) && p->word != 0)
            assert_true(weir_exit(g, p, WEIR_SUCCEEDED, now));
        assert_true(enter_at(g, now, p));
    }
    assert_int_equal(breaker_at(g, NOW + 20 * S), WEIR_BREAKER_CLOSED);
}

/* One of a hundred takes long by nature, and meanwhile others wait for a worker: one late call does
 * not make the window as short as itself. */
TEST(test_G4_one_late_call_does_not_shorten_the_window)
{
    struct weir_permit late, p[200];
    weir_time now = NOW;

    A_GUARD(g, .max = 300, .breaker = { .slow = S / 5, .slow_percent = 50 });
    for (int i = 0; i < 1000; i++, now += 5 * MS)
        work(g, now, MS, WEIR_SUCCEEDED);
    assert_true(enter_at(g, now, &late));
    for (int i = 0; i < 200; i++)
        assert_true(enter_at(g, now + i * MS / 10, &p[i]));
    now += S / 8;
    for (int i = 0; i < 200; i++, now += 3 * MS) {
        assert_true(weir_exit(g, &p[i], WEIR_SUCCEEDED, now));
        assert_int_equal(breaker_at(g, now), WEIR_BREAKER_CLOSED);
    }
    assert_int_equal(breaker_at(g, NOW + 6 * S), WEIR_BREAKER_CLOSED);
}

/* Threads come with times that they read a moment ago. */
TEST(test_G4_a_call_that_has_just_ended_for_another_thread_is_no_hang)
{
    struct weir__breaker b = { .moved = NOW + MS };

    assert_false(weir__breaker_is_stuck(&b, S / 5, NOW - S / 4, NOW));
    assert_true(weir__breaker_is_stuck(&b, S / 5, NOW - S, NOW));
    assert_true(weir__breaker_is_stuck(&b, S / 5, NOW - S / 4, NOW + S));
    assert_true(weir__breaker_is_stuck(&b, S / 5, NOW - S / 4, NOW - 10 * S));
}
