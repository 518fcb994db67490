/* waiting.h -- shared by the tests of waiting: a clock that jumps, a guard and its queue. */
#ifndef WEIR_TESTS_UNIT_WAITING_H
#define WEIR_TESTS_UNIT_WAITING_H

#include "unit/fixture.h"
#include "weir-queue.h"

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

static inline weir_time read_now(void *context)
{
    return now;
}

static inline void jump(void *context, weir_time span)
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

static inline void open_guard(struct weir_guard_options options,
                              struct weir_queue_options queue_options)
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

static inline void open_semaphore(int64_t permits)
{
    open_guard((struct weir_guard_options){ .max = permits }, (struct weir_queue_options){ 0 });
}

static inline int close_guard(void **state)
{
    weir_queue_destroy(queue);
    weir_table_destroy(table);
    return 0;
}

static struct weir_permit held[8];

/* All of the n permits are out. */
static inline void hold(int n)
{
    for (int i = 0; i < n; i++) {
        struct weir_ask ask = { .cost = 1, .now = now };
        struct weir_decision d;
        assert_true(weir_enter(guard, &ask, &held[i], &d));
    }
}

static inline void exit_first(void)
{
    assert_true(weir_exit(guard, &held[0], WEIR_SUCCEEDED, now));
}

static inline struct weir_guard_info info(void)
{
    struct weir_guard_info out;

    weir_guard_get(guard, now, &out);
    return out;
}

static inline int64_t in_flight(void)
{
    return info().in_flight;
}

#endif
