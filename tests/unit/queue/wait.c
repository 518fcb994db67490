/* wait.c -- threads that wait for a permit: as long as it takes, for a time, not at all.
 *
 * Time is virtual: a sleep moves it, and what is to happen meanwhile is written down before.  Where
 * threads sleep for real, they are woken by what is tested, not by time.
 */
#include "unit/test.h"

#include "unit/waiting.h"

#include <pthread.h>
#include <sched.h>

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

/* --------------------------------------------------------------- semaphores ---- */

TEST_WITH(test_G2_fail_fast, NULL, close_guard)
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

TEST_WITH(test_G2_with_a_timeout_it_waits_so_long_and_no_longer, NULL, close_guard)
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

TEST_WITH(test_G2_a_permit_that_comes_free_meanwhile_is_had_within_5_ms, NULL, close_guard)
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

TEST_WITH(test_G2_a_permit_that_comes_free_at_the_deadline_is_had, NULL, close_guard)
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

TEST_WITH(test_G2_blocking_waits_as_long_as_it_takes, NULL, close_guard)
{
    struct weir_permit permit;

    open_semaphore(1);
    hold(1);
    renew_first();
    assert_true(acquire(WEIR_FOREVER, &permit).allowed);
    assert_true(now > NOW + 3600 * S);
}

TEST_WITH(test_the_permit_of_a_lease_that_is_over_goes_to_who_waits, NULL, close_guard)
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
TEST_WITH(test_an_open_breaker_is_not_waited_for, NULL, close_guard)
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

TEST_WITH(test_who_waits_is_sent_away_when_the_breaker_opens, NULL, close_guard)
{
    struct weir_permit permit;

    open_semaphore(1);
    hold(1);
    plan.at = NOW + 50 * MS;
    plan.act = open_breaker;
    assert_int_equal(acquire(WEIR_FOREVER, &permit).reason, WEIR_OPEN);
    assert_in_range(now, NOW + 50 * MS, NOW + 55 * MS);
}

TEST_WITH(test_what_can_never_be_had_is_not_waited_for, NULL, close_guard)
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

RACE_WITH(test_G2_a_thread_that_sleeps_is_handed_the_permit, NULL, close_guard)
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
RACE_WITH(test_G2_a_thread_that_sleeps_finds_a_permit_that_came_free, NULL, close_guard)
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

/* A turn that takes as long as it takes others to have theirs. */
static pthread_t waiting_thread;
static bool joined;

static void let_the_thread_in(struct weir_waiter *waiter, enum weir_reason reason)
{
    assert_int_equal(reason, WEIR_GRANTED);
    assert_true(weir_exit(guard, &held[1], WEIR_SUCCEEDED, weir_table_now(table)));
    if (!pthread_equal(waiting_thread, pthread_self())) { /* else it was the quickest */
        pthread_join(waiting_thread, NULL);
        joined = true;
    }
}

static void wait_in_a_turn(struct weir_waiter *waiter, enum weir_reason reason)
{
    assert_int_equal(reason, WEIR_GRANTED);
    assert_int_equal(pthread_create(&waiting_thread, NULL, waiter->context, NULL), 0);
    enter_for_ever(NULL);
}

static void *exit_when_somebody_waits(void *argument)
{
    while (weir_queue_length(queue) == 0)
        sched_yield();
    weir_exit(guard, &held[1], WEIR_SUCCEEDED, weir_table_now(table));
    return NULL;
}

static void have_a_turn(struct weir_waiter *waiter, struct weir_permit *permit)
{
    struct weir_decision d;
    struct weir_ask ask = { .cost = 1, .wait_max = WEIR_FOREVER, .now = now };

    joined = false;
    assert_true(weir_enter_later(guard, queue, &ask, waiter, permit, &d));
    assert_int_equal(d.reason, WEIR_BUSY);
}

static void end_a_turn(struct weir_permit *permit)
{
    if (!joined)
        pthread_join(waiting_thread, NULL);
    assert_true(thread_entered);
    assert_true(weir_exit(guard, permit, WEIR_SUCCEEDED, weir_table_now(table)));
    assert_true(weir_exit(guard, &thread_permit, WEIR_SUCCEEDED, weir_table_now(table)));
}

RACE_WITH(test_L11_a_turn_that_takes_long_holds_up_nobody, NULL, close_guard)
{
    struct weir_permit permit;
    struct weir_waiter waiter = { .turn = let_the_thread_in };

    open_semaphore(2);
    now = weir_table_now(table);
    hold(2);
    have_a_turn(&waiter, &permit);
    assert_int_equal(pthread_create(&waiting_thread, NULL, enter_for_ever, NULL), 0);
    while (weir_queue_length(queue) < 2)
        sched_yield();
    weir_exit_next(guard, queue, &held[0], WEIR_SUCCEEDED, weir_table_now(table));
    end_a_turn(&permit);
}

/* A thread that waits polls for the others, and is the one that calls it. */
static void *enter_and_exit(void *argument)
{
    struct weir_permit permit;
    struct weir_decision d;
    struct weir_ask ask = { .cost = 1, .wait_max = WEIR_FOREVER };

    *(bool *)argument = weir_enter_wait(guard, queue, &ask, NULL, &permit, &d) &&
                        weir_exit(guard, &permit, WEIR_SUCCEEDED, weir_table_now(table));
    return NULL;
}

static void let_both_threads_in(struct weir_waiter *waiter, enum weir_reason reason)
{
    assert_true(weir_exit(guard, &held[2], WEIR_SUCCEEDED, weir_table_now(table)));
    let_the_thread_in(waiter, reason);
}

RACE_WITH(test_L11_a_turn_that_takes_long_does_not_keep_others_from_polling, NULL, close_guard)
{
    struct weir_permit permit;
    struct weir_waiter waiter = { .turn = let_both_threads_in };
    pthread_t polls;
    bool entered = false;

    open_semaphore(3);
    now = weir_table_now(table);
    hold(3);
    have_a_turn(&waiter, &permit);
    assert_int_equal(pthread_create(&polls, NULL, enter_and_exit, &entered), 0);
    while (weir_queue_length(queue) < 2)
        sched_yield();
    assert_int_equal(pthread_create(&waiting_thread, NULL, enter_for_ever, NULL), 0);
    while (weir_queue_length(queue) < 3)
        sched_yield();
    assert_true(weir_exit(guard, &held[0], WEIR_SUCCEEDED, weir_table_now(table)));
    pthread_join(polls, NULL);
    assert_true(entered);
    end_a_turn(&permit);
}

RACE_WITH(test_L11_in_a_turn_one_may_wait, NULL, close_guard)
{
    struct weir_permit permit;
    struct weir_waiter waiter = { .turn = wait_in_a_turn, .context = exit_when_somebody_waits };

    open_semaphore(2);
    now = weir_table_now(table);
    hold(2);
    have_a_turn(&waiter, &permit);
    weir_exit_next(guard, queue, &held[0], WEIR_SUCCEEDED, weir_table_now(table));
    end_a_turn(&permit);
}

TEST_WITH(test_G2_by_the_host_s_clock_a_wait_ends, NULL, close_guard)
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

/* In shadow everybody comes in, also who would have to wait, and leaves nothing behind. */
TEST_WITH(test_G4_in_shadow_nobody_waits, NULL, close_guard)
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
