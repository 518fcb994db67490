/* call.c -- weir_call: work under a guard, and its fallback. */
#include "unit/test.h"

#include "unit/waiting.h"

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

TEST_WITH(test_call_runs_the_work_under_the_guard, NULL, close_guard)
{
    struct weir_guard_info info;

    open_semaphore(1);
    assert_true(call(WEIR_SUCCEEDED, true));
    assert_fields(called, (worked, 1), (in_flight, 1), (fell_back, 0));
    weir_guard_get(guard, now, &info);
    assert_fields(info, (in_flight, 0), (succeeded, 1));
}

TEST_WITH(test_call_falls_back_when_refused, NULL, close_guard)
{
    struct weir_decision d;

    open_semaphore(1);
    hold(1);
    assert_false(call(WEIR_SUCCEEDED, false));
    assert_fields(called, (worked, 0), (fell_back, 1), (told.reason, WEIR_BUSY));
    struct weir_call without = { .work = work, .context = &called };
    assert_false(weir_call(guard, &(struct weir_ask){ .cost = 1 }, &jumping, &without, &d));
}

TEST_WITH(test_call_falls_back_on_errors_if_told_to, NULL, close_guard)
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

TEST_WITH(test_call_by_the_table_s_clock, NULL, close_guard)
{
    struct weir_call c = { .work = work, .context = &called };
    struct weir_decision d;

    open_semaphore(1);
    memset(&called, 0, sizeof(called));
    assert_true(weir_call(guard, &(struct weir_ask){ .cost = 1 }, NULL, &c, &d));
    assert_int_equal(called.worked, 1);
}
