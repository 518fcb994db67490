/* wait.c -- waiting for a permit: semaphores that block, that block for a time, that do not; turns
 * in event loops; work under a guard.
 *
 * Time is virtual: a sleep moves it, and what is to happen meanwhile is written down before.  Where
 * threads sleep for real, they are woken by what is tested, not by time.
 */
#include "unit/test.h"

#include "unit/fixture.h"
#include "weir-queue.h"

#include <pthread.h>
#include <sched.h>

#define MS WEIR_MILLISECOND

static struct weir_table *table;
static struct weir_guard *guard;
static struct weir_queue *queue;

/* -------------------------------------------------------- a clock that jumps ---- */

static weir_time now;
static int sleeps;

/* What is to happen at a moment. */
static struct {
    weir_time at;
    void (*act)(void);
} plan;

static weir_time read_now(void *context)
{
    return now;
}

static void jump(void *context, weir_time span)
{
    sleeps++;
    assert_true(span > 0);
    now += span;
    if (plan.act != NULL && now >= plan.at) {
        void (*act)(void) = plan.act;
        plan.act = NULL;
        act();
    }
}

static const struct weir_clock jumping = { .now = read_now, .sleep = jump };

/* ------------------------------------------------------------------ a guard ---- */

static void open_guard(struct weir_guard_options options, struct weir_queue_options queue_options)
{
    struct weir_error error = { 0 };

    now = NOW;
    sleeps = 0;
    plan.act = NULL;
    table = private_table(false, 64);
    if (weir_guard_create(&guard, table, "dependency", &options, &error) != WEIR_OK ||
        weir_queue_create(&queue, &queue_options, &error) != WEIR_OK)
        fail_msg("%s", error.text);
}

static void open_semaphore(int64_t permits)
{
    open_guard((struct weir_guard_options){ .max = permits }, (struct weir_queue_options){ 0 });
}

static int set_up_visitors(void **state);

static int close_guard(void **state)
{
    weir_queue_destroy(queue);
    weir_table_destroy(table);
    return 0;
}

static struct weir_permit held[8];

/* All of the n permits are out. */
static void hold(int n)
{
    for (int i = 0; i < n; i++) {
        struct weir_ask ask = { .cost = 1, .now = now };
        struct weir_decision d;
        assert_true(weir_enter(guard, &ask, &held[i], &d));
    }
}

static void exit_first(void)
{
    assert_true(weir_exit(guard, &held[0], WEIR_SUCCEEDED, now));
}

static struct weir_decision acquire(weir_time wait_max, struct weir_permit *permit)
{
    struct weir_ask ask = { .cost = 1, .wait_max = wait_max };
    struct weir_decision d;
    bool entered = weir_enter_wait(guard, queue, &ask, &jumping, permit, &d);

    assert_int_equal(entered, d.allowed);
    assert_int_equal(entered, permit->word != 0);
    assert_int_equal(weir_queue_length(queue), 0);
    return d;
}

static struct weir_guard_info info(void)
{
    struct weir_guard_info out;

    weir_guard_get(guard, now, &out);
    return out;
}

static int64_t in_flight(void)
{
    return info().in_flight;
}

/* --------------------------------------------------------------- semaphores ---- */

TEST_WITH(test_G2_fail_fast, set_up_visitors, close_guard)
{
    struct weir_permit permits[3], none;

    open_semaphore(3);
    for (int i = 0; i < 3; i++)
        assert_true(acquire(0, &permits[i]).allowed);
    assert_int_equal(acquire(0, &none).reason, WEIR_BUSY);
    assert_true(weir_exit_next(guard, queue, &permits[1], WEIR_SUCCEEDED, now));
    assert_true(acquire(0, &permits[1]).allowed);
    assert_int_equal(acquire(0, &none).reason, WEIR_BUSY);
    assert_int_equal(sleeps, 0);
    assert_int_equal(in_flight(), 3);
}

TEST_WITH(test_G2_with_a_timeout_it_waits_so_long_and_no_longer, set_up_visitors, close_guard)
{
    struct weir_permit permit;

    open_semaphore(2);
    hold(2);
    struct weir_decision d = acquire(123 * MS + 4, &permit);
    assert_int_equal(d.reason, WEIR_LATE);
    assert_true(d.retry > 0);
    assert_int_equal(now, NOW + 123 * MS + 4);
    assert_int_equal(in_flight(), 2);
}

TEST_WITH(test_G2_a_permit_that_comes_free_meanwhile_is_had_within_5_ms, set_up_visitors,
          close_guard)
{
    struct weir_permit permit;

    open_semaphore(2);
    hold(2);
    plan.at = NOW + 52 * MS;
    plan.act = exit_first;
    assert_true(acquire(100 * MS, &permit).allowed);
    assert_in_range(now, NOW + 52 * MS, NOW + 57 * MS);
    assert_int_equal(permit.since, now);
    assert_int_equal(in_flight(), 2);
}

TEST_WITH(test_G2_a_permit_that_comes_free_at_the_deadline_is_had, set_up_visitors, close_guard)
{
    struct weir_permit permit;

    open_semaphore(1);
    hold(1);
    plan.at = NOW + 33 * MS;
    plan.act = exit_first;
    assert_true(acquire(33 * MS, &permit).allowed);
    assert_int_equal(now, NOW + 33 * MS);
}

static void renew_first(void)
{
    assert_true(weir_permit_renew(guard, &held[0], now));
    plan.at = now + 30 * S;
    plan.act = now < NOW + 3600 * S ? renew_first : exit_first;
}

TEST_WITH(test_G2_blocking_waits_as_long_as_it_takes, set_up_visitors, close_guard)
{
    struct weir_permit permit;

    open_semaphore(1);
    hold(1);
    renew_first();
    assert_true(acquire(WEIR_FOREVER, &permit).allowed);
    assert_true(now > NOW + 3600 * S);
}

TEST_WITH(test_the_permit_of_a_lease_that_is_over_goes_to_who_waits, set_up_visitors, close_guard)
{
    struct weir_permit permit;

    open_guard((struct weir_guard_options){ .max = 1, .lease = 2 * S },
               (struct weir_queue_options){ 0 });
    hold(1);
    assert_true(acquire(WEIR_FOREVER, &permit).allowed);
    assert_in_range(now, NOW + 2 * S, NOW + 4 * S);
    assert_false(weir_exit(guard, &held[0], WEIR_SUCCEEDED, now));
}

/* Only what is busy is waited for. */
TEST_WITH(test_an_open_breaker_is_not_waited_for, set_up_visitors, close_guard)
{
    struct weir_permit permit;

    open_semaphore(1);
    weir_guard_force(guard, WEIR_FORCE_OPEN, now);
    assert_int_equal(acquire(WEIR_FOREVER, &permit).reason, WEIR_OPEN);
    assert_int_equal(sleeps, 0);
}

static void open_breaker(void)
{
    weir_guard_force(guard, WEIR_FORCE_OPEN, now);
}

TEST_WITH(test_who_waits_is_sent_away_when_the_breaker_opens, set_up_visitors, close_guard)
{
    struct weir_permit permit;

    open_semaphore(1);
    hold(1);
    plan.at = NOW + 50 * MS;
    plan.act = open_breaker;
    assert_int_equal(acquire(WEIR_FOREVER, &permit).reason, WEIR_OPEN);
    assert_in_range(now, NOW + 50 * MS, NOW + 55 * MS);
}

TEST_WITH(test_what_can_never_be_had_is_not_waited_for, set_up_visitors, close_guard)
{
    struct weir_permit permit;
    struct weir_decision d;

    open_semaphore(2);
    assert_false(weir_enter_wait(guard, queue,
                                 &(struct weir_ask){ .cost = 3, .wait_max = WEIR_FOREVER },
                                 &jumping, &permit, &d));
    assert_int_equal(d.reason, WEIR_TOO_BIG);
    assert_false(weir_enter_wait(guard, queue,
                                 &(struct weir_ask){ .cost = -1, .wait_max = WEIR_FOREVER },
                                 &jumping, &permit, &d));
    assert_int_equal(d.reason, WEIR_BAD_ASK);
}

/* ------------------------------------------------------------- event loops ---- */

/* A waiter and its answer. */
struct visitor {
    struct weir_waiter waiter;
    struct weir_permit permit;
    int told, order;
    enum weir_reason reason;
    bool leaves_at_once; /* in its turn it exits, and lets in the next */
};

static struct visitor visitors[8];
static int turns;

static void note_turn(struct weir_waiter *waiter, enum weir_reason reason)
{
    struct visitor *v = (struct visitor *)waiter;

    v->told++;
    v->order = ++turns;
    v->reason = reason;
    assert_int_equal(reason == WEIR_GRANTED, v->permit.word != 0);
    if (v->leaves_at_once && reason == WEIR_GRANTED)
        assert_true(weir_exit_next(guard, queue, &v->permit, WEIR_SUCCEEDED, now));
}

static struct weir_decision visit_as(int i, struct weir_ask ask)
{
    struct weir_decision d;
    struct visitor *v = &visitors[i];
    bool leaves = v->leaves_at_once;

    *v = (struct visitor){ .waiter = { .turn = note_turn }, .leaves_at_once = leaves };
    ask.now = now;
    bool taken = weir_enter_later(guard, queue, &ask, &v->waiter, &v->permit, &d);
    assert_int_equal(taken, d.allowed || d.reason == WEIR_BUSY);
    assert_int_equal(d.allowed, v->permit.word != 0);
    return d;
}

static struct weir_decision visit(int i, weir_time wait_max)
{
    return visit_as(i, (struct weir_ask){ .cost = 1, .wait_max = wait_max });
}

static int set_up_visitors(void **state)
{
    memset(visitors, 0, sizeof(visitors));
    turns = 0;
    return 0;
}

TEST_WITH(test_a_turn_is_told_once_and_in_order, set_up_visitors, close_guard)
{
    open_semaphore(1);
    assert_true(visit(0, S).allowed);
    assert_int_equal(visitors[0].told, 0); /* it knows */
    for (int i = 1; i < 4; i++)
        assert_int_equal(visit(i, S).reason, WEIR_BUSY);
    for (int i = 0; i < 3; i++) {
        assert_true(weir_exit_next(guard, queue, &visitors[i].permit, WEIR_SUCCEEDED, now));
        assert_int_equal(visitors[i + 1].told, 1);
        assert_int_equal(visitors[i + 1].reason, WEIR_GRANTED);
        assert_int_equal(weir_queue_length(queue), 2 - i);
    }
    assert_true(weir_exit_next(guard, queue, &visitors[3].permit, WEIR_SUCCEEDED, now));
    assert_int_equal(in_flight(), 0);
}

TEST_WITH(test_nobody_overtakes, set_up_visitors, close_guard)
{
    struct weir_permit permit;
    struct weir_decision d;
    struct weir_ask ask = { .cost = 1, .now = now };

    open_semaphore(1);
    hold(1);
    visit(0, S);
    exit_first(); /* a permit is free, and nobody was told */
    assert_false(weir_enter_wait(guard, queue, &ask, &jumping, &permit, &d));
    assert_int_equal(d.reason, WEIR_BUSY);
    assert_int_equal(visit(1, S).reason, WEIR_BUSY);
    assert_int_equal(weir_enter_poll(guard, queue, now), 1);
    assert_fields(visitors[0], (reason, WEIR_GRANTED), (told, 1));
    assert_int_equal(visitors[1].told, 0);
    weir_queue_cancel(queue, &visitors[1].waiter);
}

/* Demand that finds others before it is demand: shedding and adaptive limits see it. */
TEST_WITH(test_G7_asks_behind_a_waiter_are_counted, set_up_visitors, close_guard)
{
    open_guard((struct weir_guard_options){ .max = 1 },
               (struct weir_queue_options){ .order = WEIR_PRIORITY });
    hold(1);
    visit_as(0, (struct weir_ask){ .cost = 1, .wait_max = S, .priority = 1 });
    assert_int_equal(info().refused_busy, 0);
    struct weir_ask ask = { .cost = 1, .now = now };
    struct weir_permit permit;
    struct weir_decision d;
    assert_false(weir_enter_wait(guard, queue, &ask, &jumping, &permit, &d));
    assert_int_equal(info().refused_busy, 1);
    weir_queue_cancel(queue, &visitors[0].waiter);
}

TEST_WITH(test_a_higher_priority_is_before_those_who_wait, set_up_visitors, close_guard)
{
    open_guard((struct weir_guard_options){ .max = 1 },
               (struct weir_queue_options){ .order = WEIR_PRIORITY });
    hold(1);
    visit_as(0, (struct weir_ask){ .cost = 1, .wait_max = S, .priority = -1 });
    visit_as(1, (struct weir_ask){ .cost = 1, .wait_max = S, .priority = 1 });
    exit_first();
    assert_false(visit_as(2, (struct weir_ask){ .cost = 1, .wait_max = S, .priority = 1 }).allowed);
    assert_true(visit_as(3, (struct weir_ask){ .cost = 1, .wait_max = S, .priority = 2 }).allowed);
    for (int i = 3, next = 1; next >= 0; i = next, next = next == 1 ? 2 : next == 2 ? 0 : -1) {
        weir_exit_next(guard, queue, &visitors[i].permit, WEIR_SUCCEEDED, now);
        assert_int_equal(visitors[next].reason, WEIR_GRANTED);
    }
}

TEST_WITH(test_classes_share_the_turns, set_up_visitors, close_guard)
{
    open_guard((struct weir_guard_options){ .max = 1 },
               (struct weir_queue_options){ .order = WEIR_WEIGHTED });
    hold(1);
    for (int i = 0; i < 3; i++)
        visit_as(i, (struct weir_ask){ .cost = 1, .wait_max = S, .user_class = i == 2 });
    weir_exit_next(guard, queue, &held[0], WEIR_SUCCEEDED, now);
    weir_exit_next(guard, queue, &visitors[0].permit, WEIR_SUCCEEDED, now);
    assert_int_equal(visitors[1].told, 0);
    assert_int_equal(visitors[2].reason, WEIR_GRANTED); /* alone in its class */
    weir_exit_next(guard, queue, &visitors[2].permit, WEIR_SUCCEEDED, now);
    assert_int_equal(visitors[1].told, 1);
}

TEST_WITH(test_who_is_too_late_is_told_so_by_a_poll, set_up_visitors, close_guard)
{
    open_semaphore(1);
    hold(1);
    visit(0, 10 * MS);
    visit(1, 20 * MS);
    now = NOW + 10 * MS;
    assert_int_equal(weir_enter_poll(guard, queue, now),
                     2); /* at its deadline its turn may still come */
    now++;
    assert_int_equal(weir_enter_poll(guard, queue, now), 1);
    assert_fields(visitors[0], (told, 1), (reason, WEIR_LATE));
    now = NOW + 20 * MS;
    weir_exit_next(guard, queue, &held[0], WEIR_SUCCEEDED, now);
    assert_int_equal(visitors[1].reason, WEIR_GRANTED);
}

/* 0 means no deadline. */
TEST_WITH(test_a_deadline_may_be_at_0, set_up_visitors, close_guard)
{
    open_semaphore(1);
    now = -10 * MS;
    hold(1);
    visit(0, 10 * MS);
    now = 2;
    assert_int_equal(weir_enter_poll(guard, queue, now), 0);
    assert_int_equal(visitors[0].reason, WEIR_LATE);
}

TEST_WITH(test_who_cannot_wait_is_refused, set_up_visitors, close_guard)
{
    open_guard((struct weir_guard_options){ .max = 1 }, (struct weir_queue_options){ .max = 2 });
    hold(1);
    struct weir_decision d;
    struct weir_ask impatient = { .cost = 1, .now = now };
    visitors[0].waiter.turn = note_turn;
    assert_false(
        weir_enter_later(guard, queue, &impatient, &visitors[0].waiter, &visitors[0].permit, &d));
    assert_int_equal(d.reason, WEIR_BUSY);
    assert_int_equal(info().refused_busy, 1);
    visit(1, S);
    visit(2, S);
    assert_int_equal(visit(3, S).reason, WEIR_FULL);
    assert_int_equal(info().refused_full, 1);
    assert_true(weir_queue_cancel(queue, &visitors[2].waiter));
    assert_int_equal(visitors[2].waiter.reason, WEIR_CANCELLED);
    assert_int_equal(visitors[2].told, 0);
    assert_int_equal(visit(3, S).reason, WEIR_BUSY);
    weir_exit_next(guard, queue, &held[0], WEIR_SUCCEEDED, now);
    assert_int_equal(visitors[1].reason, WEIR_GRANTED);
    assert_false(weir_queue_cancel(queue, &visitors[1].waiter));
}

TEST_WITH(test_a_thread_finds_room_where_others_are_too_late, set_up_visitors, close_guard)
{
    struct weir_permit permit;
    struct weir_decision d;

    open_guard((struct weir_guard_options){ .max = 1 }, (struct weir_queue_options){ .max = 1 });
    hold(1);
    visit(0, 10 * MS);
    now += S;
    plan.at = now + 50 * MS;
    plan.act = exit_first;
    assert_true(weir_enter_wait(guard, queue, &(struct weir_ask){ .cost = 1, .wait_max = S },
                                &jumping, &permit, &d));
    assert_int_equal(visitors[0].reason, WEIR_LATE);
}

TEST_WITH(test_in_a_turn_anything_may_be_done, set_up_visitors, close_guard)
{
    open_semaphore(1);
    hold(1);
    for (int i = 0; i < 6; i++) {
        visitors[i].leaves_at_once = true;
        visit(i, S);
    }
    weir_exit_next(guard, queue, &held[0], WEIR_SUCCEEDED, now); /* each lets in the next */
    for (int i = 0; i < 6; i++) {
        assert_fields(visitors[i], (told, 1), (order, i + 1));
    }
    assert_int_equal(in_flight(), 0);
}

TEST_WITH(test_who_needs_more_is_not_passed_by, set_up_visitors, close_guard)
{
    open_semaphore(3);
    hold(3);
    visit_as(0, (struct weir_ask){ .cost = 2, .wait_max = S });
    visit(1, S);
    weir_exit_next(guard, queue, &held[0], WEIR_SUCCEEDED,
                   now); /* one is free: the first needs two */
    assert_int_equal(visitors[0].told + visitors[1].told, 0);
    weir_exit_next(guard, queue, &held[1], WEIR_SUCCEEDED, now);
    assert_fields(visitors[0], (reason, WEIR_GRANTED), (told, 1));
    assert_int_equal(visitors[1].told, 0);
    weir_exit_next(guard, queue, &held[2], WEIR_SUCCEEDED, now);
    assert_int_equal(visitors[1].told, 1);
    assert_int_equal(in_flight(), 3);
}

TEST_WITH(test_those_who_wait_are_sent_away_when_the_breaker_opens, set_up_visitors, close_guard)
{
    open_semaphore(1);
    hold(1);
    for (int i = 0; i < 3; i++)
        visit(i, S);
    weir_guard_force(guard, WEIR_FORCE_OPEN, now);
    assert_int_equal(weir_enter_poll(guard, queue, now), 0);
    for (int i = 0; i < 3; i++) {
        assert_fields(visitors[i], (told, 1), (reason, WEIR_OPEN));
    }
}

/* --------------------------------------------------------- threads that sleep ---- */

static bool thread_entered;
static struct weir_permit thread_permit;

static void *enter_for_ever(void *argument)
{
    struct weir_decision d;

    thread_entered =
        weir_enter_wait(guard, queue, &(struct weir_ask){ .cost = 1, .wait_max = WEIR_FOREVER },
                        NULL, &thread_permit, &d);
    return NULL;
}

static pthread_t start_thread_that_waits(void)
{
    pthread_t thread;

    now = weir_table_now(table);
    hold(1);
    thread_entered = false;
    assert_int_equal(pthread_create(&thread, NULL, enter_for_ever, NULL), 0);
    while (weir_queue_length(queue) == 0)
        sched_yield();
    return thread;
}

TEST_WITH(test_G2_a_thread_that_sleeps_is_handed_the_permit, set_up_visitors, close_guard)
{
    open_semaphore(1);
    pthread_t thread = start_thread_that_waits();

    assert_true(weir_exit_next(guard, queue, &held[0], WEIR_SUCCEEDED, weir_table_now(table)));
    pthread_join(thread, NULL); /* it may be offering turns itself just now */
    assert_int_equal(weir_queue_length(queue), 0);
    assert_true(thread_entered);
    assert_true(weir_exit(guard, &thread_permit, WEIR_SUCCEEDED, weir_table_now(table)));
}

/* As if by another process: nobody is told.  The thread that polled has gone: another polls. */
TEST_WITH(test_G2_a_thread_that_sleeps_finds_a_permit_that_came_free, set_up_visitors, close_guard)
{
    open_semaphore(1);
    for (int i = 0; i < 2; i++) {
        pthread_t thread = start_thread_that_waits();
        exit_first();
        pthread_join(thread, NULL);
        assert_true(thread_entered);
        assert_true(weir_exit(guard, &thread_permit, WEIR_SUCCEEDED, weir_table_now(table)));
    }
}

TEST_WITH(test_G2_by_the_host_s_clock_a_wait_ends, set_up_visitors, close_guard)
{
    struct weir_permit permit;
    struct weir_decision d;

    open_semaphore(1);
    now = weir_table_now(table);
    hold(1);
    assert_false(weir_enter_wait(guard, queue, &(struct weir_ask){ .cost = 1, .wait_max = MS },
                                 NULL, &permit, &d));
    assert_int_equal(d.reason, WEIR_LATE);
    assert_int_equal(weir_queue_length(queue), 0);
}

/* ------------------------------------------------------------------ weir_call ---- */

static struct {
    enum weir_outcome outcome;
    int worked, fell_back;
    struct weir_decision told;
    int64_t in_flight;
} called;

static enum weir_outcome work(void *context)
{
    assert_ptr_equal(context, &called);
    called.worked++;
    called.in_flight = in_flight();
    now += 7 * MS;
    return called.outcome;
}

static void fall_back(void *context, const struct weir_decision *decision)
{
    assert_ptr_equal(context, &called);
    called.fell_back++;
    called.told = *decision;
}

static bool call(enum weir_outcome outcome, bool fallback_on_error)
{
    struct weir_call c = { .work = work,
                           .fallback = fall_back,
                           .context = &called,
                           .fallback_on_error = fallback_on_error };
    struct weir_decision d;

    memset(&called, 0, sizeof(called));
    called.outcome = outcome;
    return weir_call(guard, &(struct weir_ask){ .cost = 1 }, &jumping, &c, &d);
}

TEST_WITH(test_call_runs_the_work_under_the_guard, set_up_visitors, close_guard)
{
    struct weir_guard_info info;

    open_semaphore(1);
    assert_true(call(WEIR_SUCCEEDED, true));
    assert_fields(called, (worked, 1), (in_flight, 1), (fell_back, 0));
    weir_guard_get(guard, now, &info);
    assert_fields(info, (in_flight, 0), (succeeded, 1));
}

TEST_WITH(test_call_falls_back_when_refused, set_up_visitors, close_guard)
{
    struct weir_decision d;

    open_semaphore(1);
    hold(1);
    assert_false(call(WEIR_SUCCEEDED, false));
    assert_fields(called, (worked, 0), (fell_back, 1), (told.reason, WEIR_BUSY));
    struct weir_call without = { .work = work, .context = &called };
    assert_false(weir_call(guard, &(struct weir_ask){ .cost = 1 }, &jumping, &without, &d));
}

TEST_WITH(test_call_falls_back_on_errors_if_told_to, set_up_visitors, close_guard)
{
    static const struct {
        enum weir_outcome outcome;
        int falls;
    } rows[] = { { WEIR_SUCCEEDED, 0 },
                 { WEIR_FAILED, 1 },
                 { WEIR_TIMED_OUT, 1 },
                 { WEIR_DROPPED, 1 },
                 { WEIR_IGNORED, 0 } };
    struct weir_guard_info info;
    open_semaphore(1);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_true(call(rows[i].outcome, true));
        assert_int_equal(called.fell_back, rows[i].falls);
        assert_true(call(rows[i].outcome, false));
        assert_fields(called, (fell_back, 0), (worked, 1));
    }
    weir_guard_get(guard, now, &info);
    assert_fields(info, (succeeded, 2), (failed, 2), (timed_out, 2), (dropped, 2), (in_flight, 0));
}

TEST_WITH(test_call_by_the_table_s_clock, set_up_visitors, close_guard)
{
    struct weir_call c = { .work = work, .context = &called };
    struct weir_decision d;

    open_semaphore(1);
    memset(&called, 0, sizeof(called));
    assert_true(weir_call(guard, &(struct weir_ask){ .cost = 1 }, NULL, &c, &d));
    assert_int_equal(called.worked, 1);
}

/* In shadow everybody comes in, also who would have to wait, and leaves nothing behind. */
TEST_WITH(test_G4_in_shadow_nobody_waits, set_up_visitors, close_guard)
{
    struct weir_permit p;

    open_guard((struct weir_guard_options){ .max = 1, .mode = WEIR_SHADOW },
               (struct weir_queue_options){ 0 });
    hold(1);
    struct weir_decision d = acquire(S, &p);
    assert_true(d.allowed);
    assert_int_equal(sleeps, 0);
    assert_int_equal(in_flight(), 2);
    assert_true(weir_exit(guard, &p, WEIR_SUCCEEDED, now));
    weir_guard_force(guard, WEIR_FORCE_OPEN, now);
    assert_true(acquire(S, &p).allowed);
    assert_true(weir_exit(guard, &p, WEIR_SUCCEEDED, now));
    exit_first();
    assert_int_equal(in_flight(), 0);
}

/* A turn that is over at once, a hundred thousand times: not one inside the other. */
static int turns_had;

static void turn_and_exit(struct weir_waiter *waiter, enum weir_reason reason)
{
    assert_int_equal(reason, WEIR_GRANTED);
    turns_had++;
    assert_true(weir_exit_next(guard, queue, waiter->context, WEIR_SUCCEEDED, now));
}

TEST_WITH(test_L11_turns_that_end_at_once_are_not_one_inside_the_other, set_up_visitors,
          close_guard)
{
    enum { MANY = 100000 };
    open_guard((struct weir_guard_options){ .max = 1 }, (struct weir_queue_options){ .max = MANY });
    FINALLY(memory_drop) struct weir_waiter *waiters = calloc(MANY, sizeof(*waiters));
    FINALLY(memory_drop) struct weir_permit *permits = calloc(MANY, sizeof(*permits));
    hold(1);
    for (int i = 0; i < MANY; i++) {
        struct weir_decision d;
        struct weir_ask ask = { .cost = 1, .wait_max = WEIR_FOREVER, .now = now };
        waiters[i].turn = turn_and_exit;
        waiters[i].context = &permits[i];
        assert_true(weir_enter_later(guard, queue, &ask, &waiters[i], &permits[i], &d));
    }
    assert_true(weir_exit_next(guard, queue, &held[0], WEIR_SUCCEEDED, now));
    assert_int_equal(turns_had, MANY);
    assert_int_equal(in_flight(), 0);
}
