/* enter-later.c -- waiting in event loops: turns that are told. */
#include "unit/test.h"

#include "unit/waiting.h"

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
    struct weir_permit permit;
    struct weir_decision behind;
    assert_false(weir_enter_wait(guard, queue, &impatient, &jumping, &permit, &behind));
    assert_fields(behind, (reason, WEIR_BUSY), (retry, d.retry));
    struct weir_decision full = visit(3, S);
    assert_fields(full, (reason, WEIR_FULL), (retry, d.retry)); /* no place is free any sooner */
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

TEST_WITH(test_L11_late_waiters_take_no_place, set_up_visitors, close_guard)
{
    open_guard((struct weir_guard_options){ .max = 1 }, (struct weir_queue_options){ .max = 2 });
    hold(1);
    visit(0, MS);
    visit(1, MS);
    assert_int_equal(visit(2, S).reason, WEIR_FULL);
    now += 2 * MS;
    assert_int_equal(visit(2, S).reason, WEIR_BUSY);
    assert_int_equal(visit(3, S).reason, WEIR_BUSY);
    assert_int_equal(visit(4, S).reason, WEIR_FULL);
    assert_int_equal(visitors[0].told + visitors[1].told, 0); /* by a poll, not by newcomers */
    assert_true(weir_queue_cancel(queue, &visitors[1].waiter));
    assert_false(weir_queue_cancel(queue, &visitors[1].waiter));
    assert_int_equal(weir_enter_poll(guard, queue, now), 2);
    assert_fields(visitors[0], (told, 1), (reason, WEIR_LATE));
    assert_int_equal(visitors[1].told, 0);
    weir_exit_next(guard, queue, &held[0], WEIR_SUCCEEDED, now);
    assert_fields(visitors[2], (told, 1), (reason, WEIR_GRANTED));
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

/* In its turn it waits for another permit. */
static void wait_in_its_turn(struct weir_waiter *waiter, enum weir_reason reason)
{
    struct visitor *v = (struct visitor *)waiter;
    struct weir_ask ask = { .cost = 1, .wait_max = S };
    struct weir_decision d;

    note_turn(waiter, reason);
    assert_true(weir_enter_wait(guard, queue, &ask, &jumping, &held[7], &d));
    assert_true(weir_exit_next(guard, queue, &held[7], WEIR_SUCCEEDED, now));
    assert_int_equal(v->told, 1);
}

TEST_WITH(test_L11_a_turn_that_waits_lets_those_behind_it_have_theirs, set_up_visitors, close_guard)
{
    open_semaphore(1);
    hold(1);
    for (int i = 0; i < 3; i++) {
        visitors[i].leaves_at_once = true;
        visit(i, WEIR_FOREVER);
    }
    visitors[0].waiter.turn =
        wait_in_its_turn; /* its exit lets in the next, which is not told yet */
    assert_true(weir_exit_next(guard, queue, &held[0], WEIR_SUCCEEDED, now));
    for (int i = 0; i < 3; i++) {
        assert_fields(visitors[i], (told, 1), (order, i + 1), (reason, WEIR_GRANTED));
    }
    assert_int_equal(in_flight(), 0);
}

/* Likewise if a thread that waits has called the turn. */
TEST_WITH(test_L11_in_a_thread_that_waits_turns_may_wait_for_each_other, set_up_visitors,
          close_guard)
{
    struct weir_permit permit;
    struct weir_decision d;

    open_semaphore(3);
    hold(3);
    for (int i = 0; i < 3; i++) {
        visitors[i].leaves_at_once = i > 0;
        visit(i, WEIR_FOREVER);
        assert_true(weir_exit(guard, &held[i], WEIR_SUCCEEDED, now));
    }
    visitors[0].waiter.turn = wait_in_its_turn;
    assert_true(weir_enter_wait(guard, queue, &(struct weir_ask){ .cost = 1, .wait_max = S },
                                &jumping, &permit, &d));
    for (int i = 0; i < 3; i++) {
        assert_fields(visitors[i], (told, 1), (order, i + 1), (reason, WEIR_GRANTED));
    }
    assert_int_equal(in_flight(), 2);
}
