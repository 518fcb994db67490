/* check-later.c -- requests that wait in the queues of guards, and grants that are given back. */
#include "unit/test.h"

#include "engine/waiting-lines.h"
#include "unit/guests.h"

/* ------------------------------------------------------------------ undo ---- */

static struct weir_visit ask_later(struct weir *weir, const char *request, weir_time now,
                                   weir_time wait, struct weir_taken *taken)
{
    struct request r = request_of(request);
    struct weir_visit v = { .attrs = r.attrs,
                            .n = r.n,
                            .ask = { .cost = 1, .wait_max = wait, .now = now },
                            .taken = taken };

    assert_true(weir_check_later(weir, &v));
    v.attrs = NULL;
    return v;
}

static uint64_t random_below(uint64_t *seed, uint64_t n)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % n;
}

/* One of two engines grants a request and takes that back before its turn; from then on, as before,
 * both say the same. */
static void compare_undone(const char *limit, uint64_t seed)
{
    char text[200];

    snprintf(text, sizeof(text), RULES("- { name: r, key: \"{ip}\", limit: \"%s\" }\n"), limit);
    OWN(weir) *weir = engine_of(text), *twin = engine_of(text);
    struct weir_taken taken;
    weir_time now = NOW;

    for (int i = 0; i < 200; i++) {
        weir_time wait = (weir_time)random_below(&seed, 3) * WEIR_SECOND;
        now += (weir_time)random_below(&seed, 400) * WEIR_MILLISECOND;
        if (random_below(&seed, 3) == 0) {
            struct weir_visit v = ask_later(weir, "ip=::1", now, wait, &taken);
            if (!v.ruling.decision.allowed)
                continue;
            if (v.ruling.decision.wait > 0)
                now += (weir_time)random_below(&seed, (uint64_t)v.ruling.decision.wait + 1);
            weir_check_undo(weir, &taken, now);
        }
        struct weir_decision a = ask_later(weir, "ip=::1", now, wait, NULL).ruling.decision,
                             b = ask_later(twin, "ip=::1", now, wait, NULL).ruling.decision;
        if (memcmp(&a, &b, sizeof(a)) != 0)
            fail_msg("%s: ask %d: remaining %d and %d, wait %d and %d ms", limit, i,
                     (int)a.remaining, (int)b.remaining, (int)(a.wait / WEIR_MILLISECOND),
                     (int)(b.wait / WEIR_MILLISECOND));
    }
}

TEST(test_N4_undone_was_never_taken)
{
    static const char *const limits[] = {
        "gcra 5/1s",
        "gcra 3/1s burst 7",
        "token-bucket 5/1s burst 3",
        "leaky-bucket 4/1s",
        "leaky-bucket 4/1s queue 6",
        "fixed-window 6/2s",
        "sliding-log 6/2s",
        "sliding-window 6/2s",
        "sliding-log 200/2s",
        "smooth 5/1s",
        "1000/day",
    };

    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
        for (uint64_t seed = 1; seed <= 10; seed++)
            compare_undone(limits[i], seed);
}

TEST(test_N4_undo_gives_back_all_limits_and_shadows)
{
    OWN(weir) *weir = engine_of(RULES("- { name: a, key: \"{ip}\", limit: [2/1h, 3/1d] }\n"
                                      "- { name: b, limit: 4/1h }\n"
                                      "- { name: s, limit: 2/1h, mode: shadow }\n"));
    struct weir_taken taken;

    for (int i = 0; i < 9; i++) {
        struct weir_visit v = ask_later(weir, "ip=::1", NOW, 0, &taken);
        assert_true(v.ruling.decision.allowed);
        assert_int_equal(v.ruling.decision.remaining, 1);
        assert_null(v.ruling.shadow);
        assert_int_equal(taken.n, 4);
        weir_check_undo(weir, &taken, NOW);
        assert_int_equal(taken.n, 0);
        weir_check_undo(weir, &taken, NOW); /* once more changes nothing */
    }
    ask_later(weir, "ip=::1", NOW, 0, &taken);
    ask_later(weir, "ip=::1", NOW, 0, &taken);
    assert_false(ask_later(weir, "ip=::1", NOW, 0, &taken).ruling.decision.allowed);
    assert_int_equal(taken.n, 0);
}

/* Units that time has given back are not given back twice. */
TEST(test_N4_undo_after_its_time_gives_nothing)
{
    OWN(weir) *weir = engine_of(RULES("- { name: a, limit: 1/1s }\n- { name: b, limit: "
                                      "fixed-window 9/10s }\n"));
    struct weir_taken first, second;
    weir_time later = NOW + WEIR_SECOND;

    ask_later(weir, "", NOW, 0, &first);
    assert_true(ask_later(weir, "", later, 0, &second).ruling.decision.allowed);
    weir_check_undo(weir, &first, later);
    assert_false(ask_later(weir, "", later, 0, NULL).ruling.decision.allowed);
    weir_check_undo(weir, &second, later);
    assert_true(ask_later(weir, "", later, 0, NULL).ruling.decision.allowed);
}

/* The limiter may be gone when it is undone, and another in its place. */
TEST(test_N4_undo_under_other_rules)
{
    OWN(weir) *weir = engine_of(RULES("- { name: a, limit: 1/1h }\n"));
    struct weir_taken taken;

    ask_later(weir, "", NOW, 0, &taken);
    use(weir, RULES("- { name: z, limit: 5/1h }\n"), NOW);
    weir_table_tend(weir_table_of(weir), NOW + 7200 * WEIR_SECOND);
    weir_check_undo(weir, &taken, NOW);
    assert_int_equal(ask_later(weir, "", NOW, 0, NULL).ruling.decision.remaining, 4);
}

/* ---------------------------------------------------------------- queues ---- */

#define QUEUE_FOR(wait) GUARDS("- { name: g, concurrency: { max: 1, queue: 3, wait: " wait " } }\n")
#define QUEUE(rest)     QUEUE_FOR("1s" rest)

TEST(test_N4_waiters_get_permits_in_their_order)
{
    OWN(weir) *weir = engine_of(QUEUE(""));
    struct guest a, b, c;

    assert_true(come(weir, &a, "", NOW));
    assert_false(come(weir, &b, "", NOW));
    assert_false(come(weir, &c, "", NOW));
    assert_int_equal(weir_check_poll(weir, NOW), 2);
    go(weir, &a, NOW);
    assert_true(b.turned && !c.turned);
    assert_entered(b.visit, 1);
    assert_false(come(weir, &a, "", NOW)); /* behind c */
    go(weir, &b, NOW);
    assert_true(c.turned && !a.turned);
    go(weir, &c, NOW);
    assert_true(a.turned);
    go(weir, &a, NOW);
    assert_int_equal(in_flight(weir, "g", NOW), 0);
    assert_int_equal(guard_info(weir, "g", NOW).refused_busy, 0);
}

TEST(test_N4_waiters_by_priority)
{
    OWN(weir) *weir = engine_of(
        GUARDS("- { name: g, priority: \"{header.p}\", concurrency: { max: 1, queue: 3, wait: 1s, "
               "order: priority } }\n"));
    struct guest a, low, high;

    assert_true(come(weir, &a, "", NOW));
    assert_false(come(weir, &low, "header.p=-3", NOW));
    assert_false(come(weir, &high, "header.p=3", NOW));
    go(weir, &a, NOW);
    assert_true(high.turned && !low.turned);
}

/* The other half of the places is for the important. */
TEST(test_G7_with_shed_all_wait_while_half_of_the_queue_is_free)
{
    OWN(weir) *weir = engine_of(
        GUARDS("- { name: g, priority: \"{header.p}\", shed: true, concurrency: { max: 1, "
               "queue: 4 } }\n"));
    struct guest a, b, c, d, high;

    assert_true(come(weir, &a, "", NOW));
    assert_false(come(weir, &b, "header.p=-8", NOW));
    assert_false(come(weir, &c, "", NOW));
    assert_true(come(weir, &d, "", NOW));
    assert_refused_by_guard(d.visit, "g", WEIR_BUSY);
    assert_false(come(weir, &high, "header.p=1", NOW));
    go(weir, &a, NOW);
    assert_true(high.turned);
    assert_int_equal(guard_info(weir, "g", NOW).refused_busy, 1);
}

TEST(test_N4_waiters_that_leave_or_are_late)
{
    OWN(weir) *weir = engine_of(QUEUE(""));
    struct guest a, b, c, d, e;

    assert_true(come(weir, &a, "", NOW));
    assert_false(come(weir, &b, "", NOW));
    assert_false(come(weir, &c, "", NOW + WEIR_MILLISECOND));
    assert_false(come(weir, &d, "", NOW + WEIR_MILLISECOND));
    assert_true(come(weir, &e, "", NOW + WEIR_MILLISECOND));
    assert_fields(e.visit.ruling.decision, (reason, WEIR_FULL), (retry, 100 * WEIR_MILLISECOND));
    assert_true(weir_check_cancel(weir, &b.visit, NOW));
    assert_false(weir_check_cancel(weir, &b.visit, NOW));
    assert_false(b.turned);
    go(weir, &a, NOW + WEIR_MILLISECOND);
    assert_true(c.turned && !d.turned);
    assert_int_equal(weir_check_poll(weir, NOW + 2 * WEIR_SECOND), 0);
    assert_true(d.turned);
    assert_refused_by_guard(d.visit, "g", WEIR_LATE);
    struct weir_guard_info info = guard_info(weir, "g", NOW);
    assert_fields(info, (refused_full, 1), (refused_late, 1), (in_flight, 1));
    struct weir_totals totals;
    weir_totals_get(weir, &totals);
    assert_fields(totals, (checked, 4), (allowed, 2), (refused, 2)); /* b has left */
}

/* Nobody has been told that it is late, and yet there is room: for everybody, and for each key. */
TEST(test_N4_late_waiters_take_no_place)
{
    static const char *const rules[] = {
        QUEUE(""), GUARDS("- { name: g, concurrency: { max: 1, key: \"{ip}\", total: 1, queue: 6, "
                          "wait: 1s } }\n")
    };

    for (int i = 0; i < 2; i++) {
        OWN(weir) *weir = engine_of(rules[i]);
        struct guest a, b, c, d, e;
        assert_true(come(weir, &a, "ip=10.0.0.1", NOW));
        assert_false(come(weir, &b, "ip=10.0.0.2", NOW));
        assert_false(come(weir, &c, "ip=10.0.0.3", NOW));
        assert_false(come(weir, &d, "ip=10.0.0.4", NOW));
        assert_true(come(weir, &e, "ip=10.0.0.4", NOW));
        assert_false(come(weir, &e, "ip=10.0.0.4", NOW + 2 * WEIR_SECOND));
        assert_false(b.turned || c.turned || d.turned); /* not here: only by a poll */
        assert_true(weir_check_cancel(weir, &c.visit, NOW + 2 * WEIR_SECOND));
        assert_int_equal(weir_check_poll(weir, NOW + 2 * WEIR_SECOND), 1);
        assert_true(b.turned && !c.turned && d.turned);
        assert_refused_by_guard(b.visit, "g", WEIR_LATE);
        assert_int_equal(guard_info(weir, "g", NOW).refused_late, 2);
        go(weir, &a, NOW + 2 * WEIR_SECOND);
        assert_entered(e.visit, 1);
    }
}

/* ... nor one of a priority's places. */
TEST(test_G7_with_shed_late_waiters_take_no_place)
{
    OWN(weir) *weir = engine_of(GUARDS("- { name: g, shed: true, concurrency: { max: 1, queue: 2 } "
                                       "}\n"));
    struct guest a, b, c;

    assert_true(come(weir, &a, "", NOW));
    assert_false(come(weir, &b, "", NOW));
    assert_true(come(weir, &c, "", NOW + WEIR_SECOND));
    assert_refused_by_guard(c.visit, "g", WEIR_BUSY);
    assert_int_equal(weir__ruled_wait(weir, "g", &(struct weir_ask){ .now = NOW + WEIR_SECOND }),
                     0);
    assert_int_equal(
        weir__ruled_wait(weir, "g", &(struct weir_ask){ .now = NOW + WEIR_SECOND + 1 }),
        WEIR_SECOND);
    assert_false(come(weir, &c, "", NOW + WEIR_SECOND + 1));
    go(weir, &a, NOW + WEIR_SECOND + 1);
    assert_refused_by_guard(b.visit, "g", WEIR_LATE);
    assert_entered(c.visit, 1);
}

/* ... nor does it keep a newcomer from a free permit; and when it is told, it is told when to ask
 * again. */
TEST(test_N4_a_late_waiter_keeps_nobody_out)
{
    OWN(weir) *weir = engine_of(QUEUE(""));
    struct guest a, b, c;

    assert_true(come(weir, &a, "", NOW));
    assert_false(come(weir, &b, "", NOW));
    weir_check_exit(weir, &a.visit.entry, WEIR_IGNORED, NOW);
    assert_true(come(weir, &c, "", NOW + WEIR_SECOND + 1));
    assert_entered(c.visit, 1);
    weir_check_poll(weir, NOW + WEIR_SECOND + 1);
    assert_refused_by_guard(b.visit, "g", WEIR_LATE);
    assert_fields(b.visit.ruling.decision, (limit, 1), (remaining, 0));
    assert_int_equal(b.visit.ruling.decision.retry, 100 * WEIR_MILLISECOND); /* as busy */
}

/* One that offers turns needs a stripe of the engine, and asks have all of them if there are enough
 * threads. */
TEST(test_N4_an_ask_does_not_wait_for_one_that_offers_turns)
{
    OWN(weir) *weir = engine_of(QUEUE(""));
    struct guest a, b;

    assert_true(come(weir, &a, "", NOW));
    assert_false(come(weir, &b, "", NOW));
    pthread_mutex_t *offers = &weir__line_first(weir)->queue->lock;
    pthread_mutex_lock(offers);
    struct weir_ruling ruling = ask_later(weir, "", NOW, 0, NULL).ruling;
    pthread_mutex_unlock(offers);
    assert_int_equal(ruling.decision.reason, WEIR_BUSY);
}

/* Turns that are over at once: not one inside the other, for the stack is small. */
static int turns_had, turns_inside;
static struct weir *turns_of;

static void turn_and_go(struct weir_visit *visit)
{
    assert_true(visit->ruling.decision.allowed);
    assert_int_equal(turns_inside++, 0);
    turns_had++;
    weir_check_exit(turns_of, &visit->entry, WEIR_SUCCEEDED, NOW);
    weir_check_poll(turns_of, NOW);
    turns_inside--;
}

TEST(test_N4_turns_that_end_at_once_are_not_one_inside_the_other)
{
    OWN(weir) *weir = engine_of(QUEUE(""));
    struct guest a, waiting[3];

    turns_of = weir;
    turns_had = turns_inside = 0;
    assert_true(come(weir, &a, "", NOW));
    for (int i = 0; i < 3; i++) {
        assert_false(come(weir, &waiting[i], "", NOW));
        waiting[i].visit.turn = turn_and_go;
    }
    go(weir, &a, NOW);
    assert_int_equal(turns_had, 3);
    assert_int_equal(in_flight(weir, "g", NOW), 0);
}

static void fill(struct weir *weir, const char *guard, struct weir_permit *out)
{
    struct weir_decision d;
    struct weir_ask ask = { .cost = 1, .now = NOW };

    assert_true(weir_enter(weir_guard_find(weir_table_of(weir), guard), &ask, out, &d));
}

/* But not for longer than the first one lets it. */
TEST(test_N4_waits_at_one_guard_after_another)
{
    OWN(weir) *weir =
        engine_of(GUARDS("- { name: g, concurrency: { max: 1, queue: 3, wait: 1s } }\n"
                         "- { name: h, concurrency: { max: 1, queue: 3, wait: 9s } }\n"));
    struct weir_guard *g = weir_guard_find(weir_table_of(weir), "g"),
                      *h = weir_guard_find(weir_table_of(weir), "h");
    struct weir_permit in_g, in_h;
    struct guest a;
    weir_time late = NOW + WEIR_SECOND;

    for (int granted = 1; granted >= 0; granted--) {
        fill(weir, "g", &in_g);
        fill(weir, "h", &in_h);
        assert_false(come(weir, &a, "", NOW));
        assert_true(weir_exit(g, &in_g, WEIR_SUCCEEDED, NOW));
        assert_int_equal(weir_check_poll(weir, NOW), 1);
        assert_true(!a.turned && in_flight(weir, "g", NOW) == 0);
        assert_int_equal(a.visit.queue_max, WEIR_FOREVER); /* the caller's */
        assert_int_equal(weir_check_poll(weir, late), 1);
        if (granted)
            assert_true(weir_exit(h, &in_h, WEIR_SUCCEEDED, late));
        assert_int_equal(weir_check_poll(weir, late + !granted), 0);
        assert_true(a.turned);
        if (granted)
            assert_entered(a.visit, 2);
        else
            assert_refused_by_guard(a.visit, "h", WEIR_LATE);
        go(weir, &a, NOW);
    }
}

static struct guest cancels, cancelled;

static void turn_and_cancel(struct weir_visit *visit)
{
    on_turn(visit);
    assert_false(weir_check_cancel(turns_of, &cancelled.visit, NOW));
}

/* Both have had their turn at g, and the first one cancels the other, which would go on to h. */
TEST(test_N4_one_that_is_cancelled_does_not_wait_elsewhere)
{
    OWN(weir) *weir = engine_of(GUARDS(
        "- { name: g, concurrency: { max: 2, queue: 3, wait: 1s } }\n"
        "- { name: h, match: { ip: \"*\" }, concurrency: { max: 1, queue: 3, wait: 9s } }\n"));
    struct weir_permit in_g[2], in_h;

    turns_of = weir;
    fill(weir, "g", &in_g[0]);
    fill(weir, "g", &in_g[1]);
    fill(weir, "h", &in_h);
    assert_false(come(weir, &cancels, "", NOW));
    cancels.visit.turn = turn_and_cancel;
    assert_false(come(weir, &cancelled, "ip=10.0.0.1", NOW));
    for (int i = 0; i < 2; i++)
        weir_exit(weir_guard_find(weir_table_of(weir), "g"), &in_g[i], WEIR_SUCCEEDED, NOW);
    assert_int_equal(weir_check_poll(weir, NOW), 0);
    assert_true(cancels.turned && cancelled.turned);
    assert_refused_by_guard(cancelled.visit, "g", WEIR_CANCELLED);
}

/* Its turn comes in the last nanosecond of its time, and another guard is busy. */
TEST(test_N4_at_its_deadline_it_is_late_not_busy)
{
    OWN(weir) *weir =
        engine_of(GUARDS("- { name: g, concurrency: { max: 1, queue: 3, wait: 1s } }\n"
                         "- { name: h, concurrency: { max: 1, queue: 3, wait: 9s } }\n"));
    struct weir_permit in_g, in_h;
    struct guest a;
    weir_time late = NOW + WEIR_SECOND;

    fill(weir, "g", &in_g);
    fill(weir, "h", &in_h);
    assert_false(come(weir, &a, "", NOW));
    assert_true(weir_exit(weir_guard_find(weir_table_of(weir), "g"), &in_g, WEIR_SUCCEEDED, late));
    assert_int_equal(weir_check_poll(weir, late), 0);
    assert_true(a.turned);
    assert_refused_by_guard(a.visit, "h", WEIR_LATE);
    struct weir_guard_info info = guard_info(weir, "h", late);
    assert_fields(info, (refused_late, 1), (refused_busy, 0));
    struct weir_totals totals;
    weir_totals_get(weir, &totals);
    assert_fields(totals, (checked, 1), (allowed, 0), (refused, 1));
}

/* A turn in vain at which another guard was busy too does not change which one it waits for. */
TEST(test_N4_a_late_request_names_the_guard_that_it_waited_at)
{
    OWN(weir) *weir =
        engine_of(GUARDS("- { name: g, concurrency: 1 }\n"
                         "- { name: h, concurrency: { max: 2, queue: 3, wait: 1s } }\n"));
    struct weir_permit in_g, in_h[2];
    struct guest a;

    fill(weir, "h", &in_h[0]);
    fill(weir, "h", &in_h[1]);
    assert_false(come(weir, &a, "", NOW));
    fill(weir, "g", &in_g);
    assert_int_equal(weir_check_poll(weir, NOW), 1);
    assert_int_equal(weir_check_poll(weir, NOW + 2 * WEIR_SECOND), 0);
    assert_refused_by_guard(a.visit, "h", WEIR_LATE);
    assert_int_equal(a.visit.ruling.decision.limit, 2);
}

/* As long as there is no permit for those behind it either. */
static void keep_place_with(const char *queue)
{
    char rules[300];

    snprintf(rules, sizeof(rules),
             GUARDS("- { name: g, match: { uri: [/a, /c] }, concurrency: { max: 1%s } }\n"
                    "- { name: h, match: { uri: [/a, /b] }, concurrency: { max: 1, wait: 1s } }\n"),
             queue);
    OWN(weir) *weir = engine_of(rules);
    struct guest in_h, a, b, in_g;

    assert_true(come(weir, &in_h, "uri=/b", NOW));
    assert_false(come(weir, &a, "uri=/a", NOW));
    assert_false(come(weir, &b, "uri=/b", NOW));
    assert_true(come(weir, &in_g, "uri=/c", NOW));
    assert_int_equal(weir_check_poll(weir, NOW), 2);
    go(weir, &in_g, NOW);
    go(weir, &in_h, NOW);
    assert_true(a.turned && !b.turned);
    assert_entered(a.visit, 2);
    go(weir, &a, NOW);
    assert_true(b.turned);
    assert_int_equal(guard_info(weir, "g", NOW).refused_busy, 0);
}

TEST(test_N4_keeps_its_place_while_another_guard_is_busy_too)
{
    keep_place_with(", wait: 1s");
}

TEST(test_N4_keeps_its_place_while_a_guard_without_a_queue_is_busy)
{
    keep_place_with("");
}

/* Both kinds of requests need the permit of h; whose queue was there first must not matter. */
static void share_a_permit(bool h_first)
{
    OWN(weir) *weir =
        engine_of(GUARDS("- { name: g, match: { uri: /a }, concurrency: { max: 1, wait: 1s } }\n"
                         "- { name: h, match: { uri: [/a, /b] }, concurrency: { max: 1, wait: 1s "
                         "} }\n"));
    struct guest guests[6] = { 0 };
    int done[2] = { 0, 0 }, at_work = 0;
    weir_time now = NOW;

    for (int k = 0; k < 6; k++) { /* three of each kind */
        int i = h_first ? k : 5 - k;
        guests[i].turned = come(weir, &guests[i], i % 2 ? "uri=/b" : "uri=/a", now++);
    }
    for (int turns = 0; turns < 600; turns++) {
        while (!guests[at_work].turned)
            at_work = (at_work + 1) % 6;
        assert_true(guests[at_work].visit.ruling.decision.allowed);
        done[at_work % 2]++;
        go(weir, &guests[at_work], now += WEIR_MILLISECOND);
        guests[at_work].turned =
            come(weir, &guests[at_work], at_work % 2 ? "uri=/b" : "uri=/a", now);
    }
    assert_in_range(done[0], 200, 400);
    assert_in_range(done[1], 200, 400);
}

TEST(test_N4_two_queues_share_a_permit)
{
    share_a_permit(false);
    share_a_permit(true);
}

/* Rules that let it wait no longer are for those who come: it keeps its place and its deadline. */
static void wait_on_under(const char *rules)
{
    OWN(weir) *weir = engine_of(QUEUE(""));
    struct guest a, b, c, d;
    weir_time late = NOW + WEIR_SECOND;

    assert_true(come(weir, &a, "", NOW));
    assert_false(come(weir, &b, "", NOW));
    assert_false(come(weir, &c, "", NOW));
    use(weir, rules, NOW);
    assert_int_equal(weir_check_poll(weir, NOW), 2);
    assert_int_equal(guard_info(weir, "g", NOW).refused_busy, 0);
    assert_true(come(weir, &d, "", NOW));
    assert_refused_by_guard(d.visit, "g", WEIR_BUSY);
    go(weir, &a, late);
    assert_true(b.turned && !c.turned);
    assert_entered(b.visit, 1);
    assert_int_equal(weir_check_poll(weir, late + 1), 0);
    assert_refused_by_guard(c.visit, "g", WEIR_LATE);
    assert_int_equal(guard_info(weir, "g", NOW).refused_busy, 1);
}

TEST(test_N4_a_waiter_stays_when_rules_let_nobody_wait_any_more)
{
    wait_on_under(GUARDS("- { name: g, concurrency: 1 }\n"));
}

TEST(test_N4_a_waiter_stays_when_rules_let_only_others_wait)
{
    wait_on_under(QUEUE_FOR("{ 3: 1s }"));
}

TEST(test_N4_without_a_queue_nobody_waits)
{
    OWN(weir) *weir = engine_of(GUARDS("- { name: g, concurrency: 1 }\n"));
    struct guest a, b;

    assert_true(come(weir, &a, "", NOW));
    assert_true(come(weir, &b, "", NOW));
    assert_refused_by_guard(b.visit, "g", WEIR_BUSY);
    assert_int_equal(guard_info(weir, "g", NOW).refused_busy, 1);
}
