/* fair.c -- who gets the places of a queue, and its turns: keys that would take all of it, asks for
 * many permits, options that change while some wait. */
#include "unit/test.h"

#include "unit/guarding.h"
#include "queue/queue.h"
#include "random.h"

#define CROWD 80

struct visitor {
    struct weir_waiter waiter;
    struct weir_permit permit;
    int order; /* of its turn, from 1; 0: it waits */
    enum weir_reason reason;
};

static struct weir_table *table;
static struct weir_guard *guard;
static struct weir_queue *queue;
static struct visitor visitors[CROWD];
static int turns;
static weir_time now;

static void open_guard(struct weir_guard_options options, struct weir_queue_options queue_options)
{
    struct weir_error error = { 0 };

    now = NOW;
    turns = 0;
    memset(visitors, 0, sizeof(visitors));
    table = private_table(false, 64);
    guard = guard_of(table, "g", &options);
    if (weir_queue_create(&queue, &queue_options, &error) != WEIR_OK)
        fail_msg("%s", error.text);
}

static int close_guard(void **state)
{
    weir_queue_destroy(queue);
    weir_table_destroy(table);
    return 0;
}

static void note_turn(struct weir_waiter *waiter, enum weir_reason reason)
{
    struct visitor *v = (struct visitor *)waiter;

    v->order = ++turns;
    v->reason = reason;
}

static struct weir_decision visit(int i, struct weir_ask ask)
{
    struct weir_decision d;

    visitors[i] = (struct visitor){ .waiter = { .turn = note_turn } };
    ask.now = now;
    ask.wait_max = ask.wait_max ? ask.wait_max : WEIR_FOREVER;
    weir_enter_later(guard, queue, &ask, &visitors[i].waiter, &visitors[i].permit, &d);
    return d;
}

static enum weir_reason visit_as(int i, const char *key)
{
    return (enum weir_reason)visit(i, ask_of(key, 1, now)).reason;
}

static enum weir_reason visit_for(int i, int64_t permits)
{
    return (enum weir_reason)visit(i, (struct weir_ask){ .cost = permits }).reason;
}

static void leave(int i)
{
    assert_true(weir_exit_next(guard, queue, &visitors[i].permit, WEIR_SUCCEEDED, now));
}

/* ------------------------------------------------------------------ keys ---- */

TEST_WITH(test_L11_a_key_has_no_more_waiters_than_permits, NULL, close_guard)
{
    open_guard((struct weir_guard_options){ .max = 4, .max_per_key = 3 },
               (struct weir_queue_options){ .max = 16 });
    for (int i = 0; i < 4; i++)
        assert_int_equal(visit(i, (struct weir_ask){ .cost = 1 }).reason, WEIR_GRANTED);
    for (int i = 4; i < 7; i++)
        assert_int_equal(visit_as(i, "greedy"), WEIR_BUSY);
    struct weir_decision d = visit(7, ask_of("greedy", 1, now));
    assert_fields(d, (allowed, false), (reason, WEIR_KEY_BUSY), (limit, 3), (remaining, 0));
    assert_true(d.retry > 0 && d.retry < S);
    struct weir_guard_info info = info_of(guard, now);
    assert_fields(info, (refused_key_busy, 1), (refused_full, 0));
    assert_int_equal(visit_as(8, "other"), WEIR_BUSY); /* there is room for others */
    assert_int_equal(visit_as(9, ""), WEIR_BUSY);
    assert_true(weir_queue_cancel(queue, &visitors[5].waiter));
    assert_int_equal(visit_as(10, "greedy"), WEIR_BUSY); /* a place came free */
    leave(0);
    assert_int_equal(visitors[4].order, 1);
    assert_int_equal(visit_as(11, "greedy"), WEIR_BUSY); /* and again */
    assert_int_equal(visit_as(12, "greedy"), WEIR_KEY_BUSY);
}

/* However many permits a key may have: one takes half of the queue; a newcomer finds a place. */
TEST_WITH(test_L11_no_key_takes_the_whole_queue, NULL, close_guard)
{
    int waits[3] = { 0 };

    open_guard((struct weir_guard_options){ .max = 1, .max_per_key = 1 },
               (struct weir_queue_options){ .max = 12 });
    assert_int_equal(
        weir_guard_change(guard, &(struct weir_guard_options){ .max = 100, .max_per_key = 100 },
                          NULL),
        WEIR_OK);
    assert_int_equal(visit_for(31, 100), WEIR_GRANTED);
    for (int i = 0; i < 12; i++)
        waits[0] += visit_as(i, "a") == WEIR_BUSY;
    assert_int_equal(waits[0], 6);
    for (int i = 12; i < 20; i++)
        waits[1] += visit_as(i, "b") == WEIR_BUSY;
    assert_int_equal(waits[1], 3);
    for (int i = 20; i < 23; i++) {
        char key[] = { (char)('c' + i - 20), '\0' };
        waits[2] += visit_as(i, key) == WEIR_BUSY;
    }
    assert_int_equal(waits[2], 3); /* as long as there is a place */
    assert_int_equal(visit_as(24, "z"), WEIR_FULL);
    for (int i = 0; i < 24; i++)
        weir_queue_cancel(queue, &visitors[i].waiter);
    assert_int_equal(visit_as(0, "a"), WEIR_BUSY);
}

/* A thread that meets late waiters of its key has them leave. */
TEST_WITH(test_L11_late_waiters_of_a_key_make_room, NULL, close_guard)
{
    struct weir_permit permit;
    struct weir_decision d;
    struct weir_ask ask = ask_of("a", 1, 0);

    open_guard((struct weir_guard_options){ .max = 1, .max_per_key = 1 },
               (struct weir_queue_options){ .max = 8 });
    now = weir_table_now(table);
    assert_int_equal(visit_for(0, 1), WEIR_GRANTED);
    ask.wait_max = 1; /* ns */
    assert_int_equal(visit(1, ask).reason, WEIR_BUSY);
    assert_false(weir_enter_wait(guard, queue, &ask, NULL, &permit, &d));
    assert_int_equal(visitors[1].reason, WEIR_LATE);
    assert_int_equal(d.reason, WEIR_LATE);
}

/* ---------------------------------------------------------- large and small ---- */

#define HOLD (100 * MS) /* while it is not known how long work takes */

/* 10 permits; 0 has six for long.  1 waits for eight, 2 to 9 for one each. */
static void let_a_large_ask_wait(void)
{
    open_guard((struct weir_guard_options){ .max = 10 }, (struct weir_queue_options){ .max = 0 });
    assert_int_equal(visit_for(0, 6), WEIR_GRANTED);
    assert_int_equal(visit_for(1, 8), WEIR_BUSY);
    for (int i = 2; i < 10; i++)
        assert_int_equal(visit_for(i, 1), WEIR_BUSY);
}

static int64_t poll_at(weir_time at)
{
    now = at;
    return weir_enter_poll(guard, queue, now);
}

TEST_WITH(test_L11_permits_gather_for_a_large_ask, NULL, close_guard)
{
    let_a_large_ask_wait();
    assert_int_equal(poll_at(NOW + HOLD - 1), 9);
    leave(0);
    assert_int_equal(visitors[1].order, 1);
    assert_int_equal(visitors[2].order, 2);
    assert_int_equal(visitors[3].order, 3);
    assert_int_equal(weir_queue_length(queue), 6);
}

TEST_WITH(test_L11_permits_are_not_idle_for_long, NULL, close_guard)
{
    let_a_large_ask_wait();
    poll_at(NOW); /* its turn has come */
    assert_int_equal(poll_at(NOW + HOLD - 1), 9);
    assert_int_equal(poll_at(NOW + HOLD), 5); /* four pass it */
    assert_int_equal(visitors[1].order, 0);
    for (int i = 2; i < 6; i++)
        assert_int_equal(visitors[i].order, i - 1);
    leave(2);
    assert_int_equal(visitors[6].order, 5);
    now = NOW + 2 * HOLD;
    leave(3); /* now none may */
    leave(4);
    assert_int_equal(poll_at(NOW + 4 * HOLD - 1), 4);
    assert_int_equal(poll_at(NOW + 4 * HOLD), 2);
    leave(0);
    assert_int_equal(visitors[1].order, 0); /* four of the small ones are at work */
    assert_int_equal(weir_queue_length(queue), 1);
}

/* Classes that pass a large ask of another do so by their weights. */
TEST_WITH(test_L11_those_that_pass_a_large_ask_keep_their_weights, NULL, close_guard)
{
    open_guard((struct weir_guard_options){ .max = 12 },
               (struct weir_queue_options){ .order = WEIR_WEIGHTED, .weights = { 1, 1, 2 } });
    assert_int_equal(visit_for(0, 6), WEIR_GRANTED);
    assert_int_equal(visit_for(1, 8), WEIR_BUSY);
    for (int i = 2; i < 14; i++)
        assert_int_equal(
            visit(i, (struct weir_ask){ .cost = 1, .user_class = (uint8_t)(i < 8 ? 1 : 2) }).reason,
            WEIR_BUSY);
    poll_at(NOW);
    assert_int_equal(poll_at(NOW + HOLD), 7);
    for (int i = 2; i < 14; i++)
        assert_int_equal(visitors[i].order != 0, i < 4 || (i >= 8 && i < 12));
}

/* However many small asks come, the large one is served: nobody passes it for longer than work
 * takes, at the latest in the stretch that is as long. */
TEST_WITH(test_L11_a_large_ask_does_not_starve, NULL, close_guard)
{
    struct {
        int who;
        weir_time until;
    } work[10];
    int n = 0;

    open_guard((struct weir_guard_options){ .max = 10 }, (struct weir_queue_options){ .max = 0 });
    assert_int_equal(visit_for(0, 6), WEIR_GRANTED);
    assert_int_equal(visit_for(1, 8), WEIR_BUSY);
    for (int step = 0; visitors[1].order == 0 && step < 600; step++, now += 10 * MS) {
        for (int i = n; i-- > 0;)
            if (work[i].until <= now) { /* its work has taken 300 ms */
                leave(work[i].who);
                visitors[work[i].who].permit.word = 0;
                work[i] = work[--n];
            }
        while (n < 10) { /* always one more than fits */
            int i = 2;
            while (visitors[i].permit.word != 0)
                i++;
            struct weir_decision d = visit(i, (struct weir_ask){ .cost = 1 });
            if (!d.allowed)
                weir_queue_cancel(queue, &visitors[i].waiter);
            if (!d.allowed)
                break;
            work[n].who = i;
            work[n++].until = now + 300 * MS;
        }
        if (step == 30)
            leave(0);
        weir_enter_poll(guard, queue, now);
    }
    assert_true(visitors[1].order > 0);
    assert_true(now - NOW < 5 * S);
}

/* An ask that cannot wait is refused only for permits that somebody waits for. */
TEST_WITH(test_L11_a_small_ask_that_cannot_wait_passes_too, NULL, close_guard)
{
    struct weir_ask ask = { .cost = 1 };
    struct weir_permit permit;
    struct weir_decision d;

    open_guard((struct weir_guard_options){ .max = 10 }, (struct weir_queue_options){ .max = 0 });
    assert_int_equal(visit_for(0, 6), WEIR_GRANTED);
    assert_int_equal(visit_for(1, 8), WEIR_BUSY);
    poll_at(NOW);
    ask.now = now;
    struct weir_waiter waiter = { .turn = note_turn };
    assert_false(weir_enter_later(guard, queue, &ask, &waiter, &permit, &d));
    poll_at(NOW + HOLD);
    ask.now = now;
    assert_true(weir_enter_later(guard, queue, &ask, &waiter, &permit, &d));
    assert_true(d.allowed);
    assert_int_equal(visit_for(2, 5), WEIR_BUSY); /* more than is free, less than the first */
    ask.cost = 6;
    assert_false(weir_enter_later(guard, queue, &ask, &waiter, &permit, &d));
    poll_at(NOW + 2 * HOLD);
    ask = (struct weir_ask){ .cost = 1, .now = now };
    assert_false(weir_enter_later(guard, queue, &ask, &waiter, &permit, &d));
    assert_int_equal(d.reason, WEIR_BUSY);
}

/* Only some are looked at for a turn; a newcomer passes none of those that were not. */
TEST_WITH(test_L11_nobody_passes_a_small_ask_behind_many_large_ones, NULL, close_guard)
{
    open_guard((struct weir_guard_options){ .max = 10 }, (struct weir_queue_options){ .max = 0 });
    assert_int_equal(visit_for(0, 6), WEIR_GRANTED);
    for (int i = 1; i <= 70; i++)
        assert_int_equal(visit_for(i, 8), WEIR_BUSY);
    assert_int_equal(visit_for(71, 1), WEIR_BUSY);
    poll_at(NOW);
    poll_at(NOW + HOLD);
    assert_int_equal(visit_for(72, 1), WEIR_BUSY);
    for (int i = 1; i <= 70; i++)
        assert_true(weir_queue_cancel(queue, &visitors[i].waiter));
    poll_at(NOW + HOLD);
    assert_int_equal(visitors[71].order, 1);
    assert_int_equal(visitors[72].order, 2);
}

TEST_WITH(test_an_ask_for_none_needs_one_permit, NULL, close_guard)
{
    open_guard((struct weir_guard_options){ .max = 1 }, (struct weir_queue_options){ .max = 0 });
    queue->open_to = 1; /* waiters for one permit have found none */
    assert_false(weir__queue_is_open_to(queue, 0));
    queue->open_to = 2;
    assert_true(weir__queue_is_open_to(queue, 0));
}

/* ------------------------------------------------------------ other options ---- */

TEST_WITH(test_L11_a_change_keeps_the_order_of_arrival, NULL, close_guard)
{
    open_guard((struct weir_guard_options){ .max = 1 },
               (struct weir_queue_options){ .max = 8, .order = WEIR_PRIORITY });
    assert_int_equal(visit_for(0, 1), WEIR_GRANTED);
    for (int i = 1; i < 7; i++) {
        weir_time wait = i == 3 ? S : WEIR_FOREVER;
        visit(i, (struct weir_ask){ .cost = 1, .priority = (int8_t)(i % 3), .wait_max = wait });
        now += MS;
    }
    weir__queue_change(queue, &(struct weir_queue_options){ .max = 2 });
    assert_int_equal(weir_queue_length(queue), 6); /* they stay, though there is room for two */
    struct weir_decision full = visit(7, (struct weir_ask){ .cost = 1 });
    assert_fields(full, (reason, WEIR_FULL), (limit, 2), (remaining, 0));
    weir__queue_change(queue, &(struct weir_queue_options){ .max = 9 });
    assert_int_equal(visit_for(7, 1), WEIR_BUSY);
    now = NOW + 2 * S;                       /* 3 is late */
    for (int i = 0, order = 1; i < 7; i++) { /* 3 left first */
        if (i == 3)
            continue;
        leave(i);
        assert_int_equal(visitors[i + 1 + (i == 2)].order, ++order);
    }
    assert_int_equal(visitors[3].reason, WEIR_LATE);
    assert_int_equal(weir_queue_length(queue), 0);
}

TEST_WITH(test_L11_a_change_of_the_order_holds_for_those_that_wait, NULL, close_guard)
{
    open_guard((struct weir_guard_options){ .max = 1, .max_per_key = 1 },
               (struct weir_queue_options){ .max = 8 });
    assert_int_equal(visit_for(0, 1), WEIR_GRANTED);
    for (int i = 1; i < 7; i++)
        visit(i, (struct weir_ask){ .cost = 1, .priority = (int8_t)(i % 3) });
    assert_int_equal(visit_as(7, "a"), WEIR_BUSY);
    weir__queue_change(queue, &(struct weir_queue_options){ .max = 16, .order = WEIR_PRIORITY });
    assert_int_equal(visit_as(8, "a"), WEIR_KEY_BUSY); /* 7 still counts */
    static const int expected[] = { 0, 2, 5, 1, 4, 3, 6, 7 };
    for (int i = 0; i < 7; i++) {
        leave(expected[i]);
        assert_int_equal(visitors[expected[i + 1]].order, i + 1);
    }
}

/* -------------------------------------------------------------- random walks ---- */

static bool waits(int i)
{
    return weir__own(&visitors[i].waiter)->queue != NULL;
}

/* Among waiters for equally many permits the first is first. */
static void expect_first(struct weir_waiter *waiter, enum weir_reason reason)
{
    const struct weir__own *own = weir__own(waiter);

    note_turn(waiter, reason);
    for (int i = 0; i < CROWD && reason == WEIR_GRANTED; i++) {
        const struct weir__own *other = weir__own(&visitors[i].waiter);
        assert_true(!waits(i) || other->ask.cost != own->ask.cost || other->arrival > own->arrival);
    }
}

/* If all that wait ask for one permit, none is free. */
static void expect_none_idle(void)
{
    bool any = false, large = false;

    for (int i = 0; i < CROWD; i++) {
        any |= waits(i);
        large |= waits(i) && weir__own(&visitors[i].waiter)->ask.cost > 1;
    }
    assert_true(!any || large || info_of(guard, now).in_flight == 6);
}

/* Somebody comes, leaves the queue, or ends its work. */
static void move(int i)
{
    static const char *const keys[] = { "", "a", "b", "c" };
    struct visitor *v = &visitors[i];

    if (waits(i) && one_in(4)) {
        assert_true(weir_queue_cancel(queue, &v->waiter));
    } else if (!waits(i) && v->permit.word != 0) {
        leave(i);
    } else if (!waits(i)) {
        (void)visit(i, ask_of(keys[between(0, 3)], one_in(3) ? between(2, 5) : 1, now));
        v->waiter.turn = expect_first;
    }
}

/* Asks of all sizes and keys come, work and go, options change, and nobody is forgotten. */
TEST_WITH(test_L11_random_walks, NULL, close_guard)
{
    random_state = 11;
    open_guard((struct weir_guard_options){ .max = 6, .max_per_key = 5 },
               (struct weir_queue_options){ .max = 24 });
    for (int step = 0; step < 20000; step++) {
        now += between(0, 20) * MS;
        if (one_in(200))
            weir__queue_change(queue, &(struct weir_queue_options){ .max = between(4, 24) });
        move(int_between(0, CROWD - 1));
        weir_enter_poll(guard, queue, now);
        expect_none_idle();
    }
    for (int round = 0; round < 3 * CROWD; round++, now += S)
        for (int i = 0; i < CROWD; i++)
            if (!waits(i) && visitors[i].permit.word != 0)
                leave(i);
    assert_int_equal(weir_queue_length(queue), 0);
    assert_int_equal(info_of(guard, now).in_flight, 0);
}
