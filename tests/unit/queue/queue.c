/* queue.c -- those who wait: who is next, who is too late, who is dropped, and what is said of a
 * wait. */
#include "unit/test.h"

#include "unit/fixture.h"
#include "queue/queue.h"

OWNS(weir_queue)

#define MS     WEIR_MILLISECOND
#define CROWD  64
#define NOBODY (-1)

static struct weir_queue *queue;
static struct weir_waiter waiters[CROWD];
static struct weir_waiter *gone;

static void open_queue(struct weir_queue_options options)
{
    struct weir_error error = { 0 };

    memset(waiters, 0, sizeof(waiters));
    queue = NULL;
    if (weir_queue_create(&queue, &options, &error) != WEIR_OK)
        fail_msg("%s", error.text);
}

static int close_queue(void **state)
{
    weir_queue_destroy(queue);
    queue = NULL;
    return 0;
}

static struct weir_decision put_for(int i, weir_time deadline, weir_time now)
{
    struct weir_decision d;

    memset(&d, 0xa5, sizeof(d));
    waiters[i].deadline = deadline;
    bool waits = weir_queue_put(queue, &waiters[i], now, &d);
    assert_int_equal(waits, d.allowed);
    assert_int_equal(d.reason == WEIR_GRANTED, d.allowed);
    return d;
}

static void put(int i, weir_time now)
{
    assert_true(put_for(i, 0, now).allowed);
}

static void put_class(int i, int user_class, weir_time now)
{
    waiters[i].user_class = (uint8_t)user_class;
    put(i, now);
}

static void put_priority(int i, int priority, weir_time now)
{
    waiters[i].priority = (int8_t)priority;
    put(i, now);
}

/* The next in the queue, by its number. */
static int next_at(weir_time now)
{
    struct weir_waiter *w = weir_queue_next(queue, now, &gone);

    return w == NULL ? NOBODY : (int)(w - waiters);
}

/* The numbers of those who left: "3 5". */
static const char *names(const struct weir_waiter *w)
{
    static char text[4 * CROWD + 1];

    text[0] = '\0';
    for (; w != NULL; w = w->next) {
        assert_int_equal(w->reason, WEIR_LATE);
        assert_null(weir__own(w)->queue);
        snprintf(text + strlen(text), sizeof(text) - strlen(text), text[0] ? " %d" : "%d",
                 (int)(w - waiters));
    }
    return text;
}

/* ------------------------------------------------------------------ order ---- */

TEST_WITH(test_L11_fifo_is_first_in_first_out, NULL, close_queue)
{
    open_queue((struct weir_queue_options){ 0 });
    assert_int_equal(next_at(NOW), NOBODY);
    for (int i = 0; i < 5; i++)
        put_priority(i, i, NOW + i); /* priority does not matter here */
    for (int i = 0; i < 5; i++) {
        assert_int_equal(next_at(NOW + 10), i);
        assert_null(gone);
        assert_null(weir__own(&waiters[i])->queue);
        assert_int_equal(waiters[i].reason, WEIR_GRANTED);
    }
    assert_int_equal(next_at(NOW + 10), NOBODY);
}

TEST_WITH(test_L11_the_highest_priority_goes_first_and_equals_in_their_order, NULL, close_queue)
{
    static const int priorities[] = { 0, -8, 7, 0, 7, -1 }, order[] = { 2, 4, 0, 3, 5, 1 };

    open_queue((struct weir_queue_options){ .order = WEIR_PRIORITY });
    for (int i = 0; i < 6; i++)
        put_priority(i, priorities[i], NOW);
    for (int i = 0; i < 6; i++)
        assert_int_equal(next_at(NOW), order[i]);
}

TEST_WITH(test_priorities_and_classes_beyond_the_ends_count_as_the_ends, NULL, close_queue)
{
    open_queue((struct weir_queue_options){ .order = WEIR_PRIORITY });
    put_priority(0, -128, NOW);
    put_priority(1, -8, NOW);
    put_priority(2, 127, NOW);
    put_priority(3, 7, NOW);
    assert_int_equal(next_at(NOW), 2);
    assert_int_equal(next_at(NOW), 3);
    assert_int_equal(next_at(NOW), 0);
    assert_int_equal(next_at(NOW), 1);
    close_queue(NULL);
    open_queue((struct weir_queue_options){ .order = WEIR_WEIGHTED });
    put_class(0, 255, NOW);
    put_class(1, 7, NOW);
    put_class(2, 8, NOW);
    put_class(3, 6, NOW);
    assert_int_equal(next_at(NOW), 3); /* the first of its class; the others share one */
    for (int i = 0; i < 3; i++)
        assert_int_equal(next_at(NOW), i);
}

/* Serves `turns` and puts each waiter in again, so that no class is ever empty. */
static void serve_and_put_back(int turns, int counts[3])
{
    memset(counts, 0, 3 * sizeof(*counts));
    for (int i = 0; i < turns; i++) {
        int who = next_at(NOW);
        assert_true(who >= 0);
        counts[waiters[who].user_class]++;
        put(who, NOW);
    }
}

TEST_WITH(test_L11_weights_3_2_1_are_served_3_2_1_in_every_round, NULL, close_queue)
{
    int counts[3];

    open_queue((struct weir_queue_options){ .order = WEIR_WEIGHTED, .weights = { 3, 2, 1 } });
    for (int i = 0; i < 12; i++)
        put_class(i, i % 3, NOW);
    for (int round = 0; round < 1000; round++) {
        serve_and_put_back(6, counts);
        assert_int_equal(counts[0], 3);
        assert_int_equal(counts[1], 2);
        assert_int_equal(counts[2], 1);
    }
}

TEST_WITH(test_L11_nobody_starves_beside_a_weight_of_1000, NULL, close_queue)
{
    int counts[3];

    open_queue((struct weir_queue_options){ .order = WEIR_WEIGHTED, .weights = { 1000, 1, 1 } });
    for (int i = 0; i < 6; i++)
        put_class(i, i % 3, NOW);
    for (int round = 0; round < 10; round++) {
        serve_and_put_back(1002, counts);
        assert_in_range(counts[0], 999, 1001);
        assert_in_range(counts[1], 1, 2);
        assert_in_range(counts[2], 1, 2);
    }
}

TEST_WITH(test_weighted_a_class_that_was_empty_has_saved_nothing_up, NULL, close_queue)
{
    int counts[3];

    open_queue((struct weir_queue_options){ .order = WEIR_WEIGHTED, .weights = { 1, 1, 1 } });
    put_class(0, 0, NOW);
    put_class(1, 0, NOW);
    serve_and_put_back(1000, counts); /* class 1 is not there for a thousand turns */
    put_class(2, 1, NOW);
    put_class(3, 1, NOW);
    serve_and_put_back(10, counts);
    assert_int_equal(counts[0], 5);
    assert_int_equal(counts[1], 5);
}

/* Virtual time goes round after some 24 million turns: here after four. */
TEST_WITH(test_weighted_a_class_that_was_empty_for_long_does_not_starve, NULL, close_queue)
{
    int counts[3];

    open_queue((struct weir_queue_options){ .order = WEIR_WEIGHTED, .weights = { 1, 1, 1 } });
    put_class(0, 0, NOW);
    put_class(1, 0, NOW);
    for (int turns = 0; turns < 8; turns++) {
        uint64_t stride = queue->lanes[0].stride;
        queue->lanes[0].stride = (uint64_t)1 << 62;
        serve_and_put_back(turns, counts);
        queue->lanes[0].stride = stride;
        serve_and_put_back(1, counts);
        put_class(2, 1, NOW);
        put_class(3, 1, NOW);
        serve_and_put_back(10, counts);
        assert_int_equal(counts[0], 5);
        assert_int_equal(counts[1], 5);
        assert_true(weir_queue_cancel(queue, &waiters[2]));
        assert_true(weir_queue_cancel(queue, &waiters[3]));
    }
}

TEST_WITH(test_weighted_turns_that_nobody_else_wanted_cost_nothing, NULL, close_queue)
{
    open_queue((struct weir_queue_options){ .order = WEIR_WEIGHTED, .weights = { 1, 1000 } });
    put_class(0, 0, NOW);
    assert_int_equal(next_at(NOW), 0); /* alone: the queue is empty after it */
    put_class(1, 1, NOW);
    put_class(2, 0, NOW);
    put_class(3, 1, NOW);
    assert_int_equal(next_at(NOW), 2); /* not after a thousand turns of class 1 */
    assert_int_equal(next_at(NOW), 1);
    assert_int_equal(next_at(NOW), 3);
}

/* ---------------------------------------------------------------- the bound ---- */

TEST_WITH(test_L11_it_is_bounded, NULL, close_queue)
{
    open_queue((struct weir_queue_options){ .max = 3 });
    for (int i = 0; i < 3; i++)
        assert_int_equal(put_for(i, 0, NOW).remaining, 2 - i);
    struct weir_decision d = put_for(3, 0, NOW);
    assert_fields(d, (reason, WEIR_FULL), (limit, 3));
    assert_true(d.retry > 0);
    assert_null(weir__own(&waiters[3])->queue);
    assert_int_equal(weir_queue_length(queue), 3);
    assert_int_equal(next_at(NOW), 0);
    put(3, NOW);
    assert_int_equal(put_for(4, 0, NOW).reason, WEIR_FULL);
}

/* ---------------------------------------------------------------- deadlines ---- */

TEST_WITH(test_L11_at_its_deadline_it_has_its_turn_and_a_nanosecond_later_it_leaves, NULL,
          close_queue)
{
    open_queue((struct weir_queue_options){ 0 });
    put_for(0, NOW + 5, NOW);
    assert_null(weir_queue_late(queue, NOW + 5));
    assert_int_equal(next_at(NOW + 5), 0);
    assert_null(gone);
    put_for(1, NOW + 5, NOW);
    put(2, NOW);
    assert_int_equal(next_at(NOW + 6), 2);
    assert_string_equal(names(gone), "1");
}

TEST_WITH(test_put_after_the_deadline_is_late_and_at_it_is_not, NULL, close_queue)
{
    open_queue((struct weir_queue_options){ 0 });
    assert_int_equal(put_for(0, NOW - 1, NOW).reason, WEIR_LATE);
    assert_true(put_for(0, NOW, NOW).allowed);
    assert_true(put_for(1, WEIR_FOREVER, NOW).allowed);
    assert_string_equal(names(weir_queue_late(queue, INT64_MAX)), "0");
    assert_int_equal(next_at(INT64_MAX), 1);
}

TEST_WITH(test_L11_those_too_late_leave_though_nobody_asks_who_is_next, NULL, close_queue)
{
    open_queue((struct weir_queue_options){ .max = 4 });
    put_for(0, NOW + 30, NOW);
    put_for(1, NOW + 10, NOW);
    put_for(2, 0, NOW);
    put_for(3, NOW + 20, NOW);
    assert_null(weir_queue_late(queue, NOW + 10));
    assert_string_equal(names(weir_queue_late(queue, NOW + 25)), "1 3"); /* the earliest first */
    assert_int_equal(weir_queue_length(queue), 2);
    put(4, NOW + 25);
    assert_int_equal(next_at(NOW + 30), 0);
    assert_int_equal(next_at(NOW + 30), 2);
    assert_int_equal(next_at(NOW + 30), 4);
}

TEST_WITH(test_deadlines_of_many_in_any_order, NULL, close_queue)
{
    uint64_t seed = 1;

    open_queue((struct weir_queue_options){ .max = CROWD, .order = WEIR_PRIORITY });
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < CROWD; i++) {
            waiters[i].priority = (int8_t)(random64(&seed) % 16 - 8);
            put_for(i, NOW + (weir_time)(random64(&seed) % 100), NOW);
        }
        for (int i = 0; i < CROWD; i += 3)
            assert_true(weir_queue_cancel(queue, &waiters[i]));
        for (weir_time now = NOW; now <= NOW + 100; now++) {
            for (struct weir_waiter *w = weir_queue_late(queue, now); w != NULL; w = w->next)
                assert_int_equal(w->deadline, now - 1);
        }
        assert_int_equal(weir_queue_length(queue), 0);
    }
}

/* -------------------------------------------------------------- cancelling ---- */

TEST_WITH(test_a_waiter_can_be_cancelled_once_while_it_waits, NULL, close_queue)
{
    open_queue((struct weir_queue_options){ 0 });
    OWN(weir_queue) *other = NULL;
    assert_ok(weir_queue_create(&other, &(struct weir_queue_options){ 0 }, NULL));
    for (int i = 0; i < 4; i++)
        put_for(i, NOW + 10, NOW);
    assert_false(weir_queue_cancel(other, &waiters[1]));
    assert_true(weir_queue_cancel(queue, &waiters[1])); /* in the middle */
    assert_int_equal(waiters[1].reason, WEIR_CANCELLED);
    assert_false(weir_queue_cancel(queue, &waiters[1]));
    assert_true(weir_queue_cancel(queue, &waiters[3])); /* the last */
    assert_true(weir_queue_cancel(queue, &waiters[0])); /* the first */
    assert_int_equal(next_at(NOW), 2);
    assert_false(weir_queue_cancel(queue, &waiters[2]));
    put(1, NOW); /* it may wait again */
    assert_int_equal(next_at(NOW), 1);
}

/* --------------------------------------------------------------- overload ---- */

/* Waiters 0, 1, 2 ... come every ms from NOW on. */
static void put_every_ms(int from, int to)
{
    for (int i = from; i < to; i++)
        put(i, NOW + i * MS);
}

TEST_WITH(test_overload_begins_when_a_whole_interval_was_late, NULL, close_queue)
{
    open_queue((struct weir_queue_options){ .target = 5 * MS, .interval = 20 * MS });
    put_every_ms(0, 30);
    assert_int_equal(next_at(NOW + 30 * MS), 0); /* late from here on */
    assert_int_equal(next_at(NOW + 50 * MS - 1), 1);
    assert_null(gone);
    assert_int_equal(next_at(NOW + 50 * MS),
                     29); /* all waited for more than 10 ms: only the last is kept */
    assert_string_equal(names(gone),
                        "2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28");
}

TEST_WITH(test_in_overload_who_waited_twice_the_target_goes_and_at_twice_it_does_not, NULL,
          close_queue)
{
    open_queue((struct weir_queue_options){ .target = 5 * MS, .interval = 20 * MS });
    put_every_ms(0, 40);
    assert_int_equal(next_at(NOW + 20 * MS), 0);
    assert_int_equal(next_at(NOW + 40 * MS), 30); /* 30 has waited for exactly 10 ms */
    assert_int_equal(weir_queue_length(queue), 9);
    assert_int_equal(next_at(NOW + 40 * MS + 1), 31);
    assert_null(gone);
    assert_int_equal(next_at(NOW + 42 * MS + 1), 33);
    assert_string_equal(names(gone), "32");
}

TEST_WITH(test_overload_ends_when_somebody_came_to_the_front_in_time, NULL, close_queue)
{
    open_queue((struct weir_queue_options){ .target = 5 * MS, .interval = 20 * MS });
    put_every_ms(0, 41);
    assert_int_equal(next_at(NOW + 20 * MS), 0);
    assert_int_equal(next_at(NOW + 40 * MS), 30);
    for (int i = 31; i < 36; i++)
        assert_int_equal(next_at(NOW + 40 * MS), i); /* 35 has waited for exactly the target */
    assert_int_equal(next_at(NOW + 55 * MS), 36); /* overloaded no more: 36 has waited for 19 ms */
    assert_null(gone);
}

TEST_WITH(test_overload_ends_when_the_queue_is_empty, NULL, close_queue)
{
    open_queue((struct weir_queue_options){ .target = 5 * MS, .interval = 20 * MS });
    put(0, NOW);
    put(1, NOW);
    assert_int_equal(next_at(NOW + 30 * MS), 0);
    assert_true(weir_queue_cancel(queue, &waiters[1])); /* however it comes to be empty */
    put(2, NOW + 30 * MS);
    put(3, NOW + 30 * MS);
    assert_int_equal(next_at(NOW + 80 * MS), 2);
    assert_null(gone);
}

TEST_WITH(test_a_burst_that_is_worked_off_within_the_interval_loses_nobody, NULL, close_queue)
{
    open_queue((struct weir_queue_options){ .target = 5 * MS });
    for (int i = 0; i < 50; i++)
        put(i, NOW);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(next_at(NOW + 2 * i * MS), i);
        assert_null(gone);
    }
}

TEST_WITH(test_without_a_target_nobody_is_dropped, NULL, close_queue)
{
    open_queue((struct weir_queue_options){ 0 });
    for (int i = 0; i < 50; i++)
        put(i, NOW);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(next_at(NOW + i * 3600 * S), i);
        assert_null(gone);
    }
}

TEST_WITH(test_newest_first_when_late, NULL, close_queue)
{
    open_queue((struct weir_queue_options){
        .target = 5 * MS, .interval = 20 * MS, .newest_first_when_late = true });
    put_every_ms(0, 41);
    assert_int_equal(next_at(NOW + 20 * MS), 0); /* not overloaded yet: the first */
    assert_int_equal(next_at(NOW + 39 * MS), 1);
    assert_int_equal(next_at(NOW + 40 * MS), 40);
    assert_string_equal(
        names(gone), "2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29");
    assert_int_equal(next_at(NOW + 40 * MS), 39);
    assert_int_equal(weir_queue_estimate(queue, 0, 0, NOW + 40 * MS),
                     0); /* the newest goes first */
    assert_int_equal(next_at(NOW + 46 * MS), 38);
    assert_string_equal(names(gone), "30 31 32 33 34 35");
    put(41, NOW + 46 * MS);
    assert_int_equal(next_at(NOW + 46 * MS), 41);
}

/* -------------------------------------------------------------- estimates ---- */

/* One turn every 10 ms, often enough for the pace to be known; numbers from 40 on are used. */
static void learn_pace(weir_time now)
{
    for (int i = 40; i < 57; i++)
        put(i, now);
    for (int i = 40; i < 57; i++)
        assert_int_equal(next_at(now + (i - 39) * 10 * MS), i);
}

TEST_WITH(test_estimates_are_the_pace_times_those_before, NULL, close_queue)
{
    weir_time now = NOW + 10 * S;

    open_queue((struct weir_queue_options){ 0 });
    for (int i = 0; i < 20; i++) /* nothing is known yet, so nobody is refused by it */
        assert_true(put_for(i, NOW + 1, NOW).allowed);
    assert_int_equal(weir_queue_estimate(queue, 0, 0, NOW), 0);
    weir_queue_late(queue, NOW + 2);
    learn_pace(NOW);
    for (int i = 0; i < 5; i++)
        assert_int_equal(put_for(i, 0, now).wait, i * 10 * MS);
    assert_int_equal(weir_queue_estimate(queue, 0, 0, now), 50 * MS);
    struct weir_decision d = put_for(5, now + 50 * MS - 1, now);
    assert_fields(d, (reason, WEIR_LATE), (retry, 1), (reset, 50 * MS));
    assert_int_equal(put_for(5, now + 50 * MS, now).reset, 60 * MS);
}

TEST_WITH(test_who_finds_it_full_is_told_when_the_next_has_its_turn, NULL, close_queue)
{
    weir_time now = NOW + 10 * S;

    open_queue((struct weir_queue_options){ .max = 20 });
    learn_pace(NOW);
    for (int i = 0; i < 20; i++)
        put(i, now);
    struct weir_decision d = put_for(20, 0, now);
    assert_fields(d, (reason, WEIR_FULL), (retry, 10 * MS), (reset, 200 * MS));
}

TEST_WITH(test_time_in_which_nobody_waited_is_no_pace, NULL, close_queue)
{
    open_queue((struct weir_queue_options){ 0 });
    learn_pace(NOW);
    learn_pace(NOW + 3600 * S);
    put(0, NOW + 7200 * S);
    assert_int_equal(weir_queue_estimate(queue, 0, 0, NOW + 7200 * S), 10 * MS);
}

TEST_WITH(test_a_slow_pace_locks_nobody_out_of_an_empty_queue, NULL, close_queue)
{
    weir_time now = NOW;

    open_queue((struct weir_queue_options){ 0 });
    for (int i = 0; i < 20; i++, now += 3600 * S) {
        put(0, now);
        assert_int_equal(next_at(now + 3600 * S), 0);
    }
    assert_true(put_for(0, now + 1, now).allowed); /* nobody is before it */
    assert_int_equal(put_for(1, now + S, now).reason, WEIR_LATE);
    for (int i = 0; i < 400; i++) { /* and so it is found out that it is fast now */
        assert_int_equal(next_at(now), 0);
        assert_true(put_for(0, now + 1, now).allowed);
    }
    assert_true(put_for(1, now + S, now).allowed);
}

TEST_WITH(test_estimates_respect_priorities, NULL, close_queue)
{
    weir_time now = NOW + 10 * S;

    open_queue((struct weir_queue_options){ .order = WEIR_PRIORITY });
    learn_pace(NOW);
    put_priority(0, 0, now);
    put_priority(1, 5, now);
    put_priority(2, -5, now);
    assert_int_equal(weir_queue_estimate(queue, 7, 0, now), 0);
    assert_int_equal(weir_queue_estimate(queue, 5, 0, now), 10 * MS);
    assert_int_equal(weir_queue_estimate(queue, 0, 0, now), 20 * MS);
    assert_int_equal(weir_queue_estimate(queue, -8, 0, now), 30 * MS);
}

TEST_WITH(test_estimates_respect_weights, NULL, close_queue)
{
    weir_time now = NOW + 10 * S;

    open_queue((struct weir_queue_options){ .order = WEIR_WEIGHTED, .weights = { 3, 2, 1 } });
    learn_pace(NOW);
    for (int i = 0; i < 30; i++)
        put_class(i, i % 3, now); /* ten of each */
    assert_int_equal(weir_queue_estimate(queue, 0, 0, now), (10 + 8 + 4) * 10 * MS);
    assert_int_equal(weir_queue_estimate(queue, 0, 2, now),
                     30 * 10 * MS); /* everybody before the last of the last class */
    assert_int_equal(weir_queue_estimate(queue, 0, 3, now), (3 + 2 + 1) * 10 * MS);
}

/* ------------------------------------------------------------------- clock ---- */

TEST_WITH(test_the_clock_may_step_back, NULL, close_queue)
{
    open_queue((struct weir_queue_options){ .target = 5 * MS, .interval = 20 * MS });
    put_for(0, NOW + S, NOW);
    put(1, NOW);
    assert_int_equal(next_at(NOW - 3600 * S), 0);
    put(2, NOW - 3600 * S);
    assert_int_equal(next_at(NOW - 3600 * S + 30 * MS), 1);
    assert_int_equal(next_at(0), 2);
    put(3, INT64_MAX);
    put(4, INT64_MAX);
    put(5, 0);
    assert_int_equal(next_at(INT64_MIN), 3);
    assert_int_equal(next_at(INT64_MAX), 4);
    assert_int_equal(next_at(INT64_MIN), 5);
    assert_null(gone);
    for (int i = 0; i < 20; i++) {
        put(0, INT64_MIN);
        next_at(INT64_MAX);
    }
    put(0, NOW);
    assert_true(weir_queue_estimate(queue, 0, 0, NOW) > 0);
}

/* ------------------------------------------------------------------ options ---- */

TEST(test_options_that_make_no_sense_are_refused_with_the_reason)
{
    static const struct {
        struct weir_queue_options options;
        const char *says;
    } rows[] = {
        { { .max = -1 }, "1 to 1048576" },
        { { .max = 1048577 }, "1 to 1048576" },
        { { .order = (enum weir_order)3 }, "weighted (2)" },
        { { .weights = { 1, -1 } }, "class 1" },
        { { .weights = { [7] = 1001 } }, "1 to 1000" },
        { { .target = -1 }, "target" },
        { { .interval = -1 }, "interval" },
        { { .newest_first_when_late = true }, "target" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct weir_queue *out = (struct weir_queue *)&rows;
        struct weir_error error = { 0 };
        assert_int_equal(weir_queue_create(&out, &rows[i].options, &error), WEIR_INVALID);
        assert_ptr_equal(out, &rows);
        assert_contains(error.text, rows[i].says);
    }
    weir_queue_destroy(NULL);
}
