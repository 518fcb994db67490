/* pool.c -- a bulkhead with threads of its own: threads before the queue, the queue before refusal;
 * a task runs or is refused, once.
 *
 * Tasks stand at a gate until the test lets them through, and time is what the test says: nothing
 * here waits for a clock but where it says so.
 */
#include "unit/test.h"

#include "unit/fixture.h"
#include "weir-queue.h"

#include <pthread.h>
#include <sched.h>

#define JOBS 16

/* One task, and what became of it. */
struct job {
    struct weir_task task;
    int begun, ended, refused; /* how often */
    enum weir_reason reason;
    bool straight; /* it does not stand at the gate */
    int order;     /* of its beginning, from 1 */
    char thread[16];
    pthread_t by; /* the thread that ran or refused it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool gate_open;
static int begun, threads_gone;
static struct job jobs[JOBS];
static weir_time virtual_now;
static struct weir_pool *pool;

static weir_time read_virtual(void *context)
{
    return __atomic_load_n(&virtual_now, __ATOMIC_SEQ_CST);
}

static const struct weir_clock virtual_clock = { .now = read_virtual };

static void set_now(weir_time now)
{
    __atomic_store_n(&virtual_now, now, __ATOMIC_SEQ_CST);
}

static void run(struct weir_task *task)
{
    struct job *job = (struct job *)task;

    pthread_mutex_lock(&lock);
    job->begun++;
    job->order = ++begun;
    job->by = pthread_self();
    pthread_getname_np(pthread_self(), job->thread, sizeof(job->thread));
    pthread_cond_broadcast(&changed);
    while (!gate_open && !job->straight)
        pthread_cond_wait(&changed, &lock);
    job->ended++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void refused(struct weir_task *task, enum weir_reason reason)
{
    struct job *job = (struct job *)task;

    pthread_mutex_lock(&lock);
    job->refused++;
    job->reason = reason;
    job->by = pthread_self();
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void wait_begun(int i)
{
    pthread_mutex_lock(&lock);
    while (jobs[i].begun == 0)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void wait_over(int i)
{
    pthread_mutex_lock(&lock);
    while (jobs[i].ended + jobs[i].refused == 0)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void open_gate(void)
{
    pthread_mutex_lock(&lock);
    gate_open = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static struct weir_pool_info info(void)
{
    struct weir_pool_info out;

    weir_pool_get(pool, &out);
    return out;
}

/* All threads are back from what they did. */
static void wait_resting(void)
{
    while (info().working > 0)
        sched_yield();
}

static void open_pool(struct weir_pool_options options)
{
    struct weir_error error = { 0 };

    memset(jobs, 0, sizeof(jobs));
    for (int i = 0; i < JOBS; i++)
        jobs[i].task = (struct weir_task){ .run = run, .refused = refused };
    gate_open = false;
    begun = threads_gone = 0;
    set_now(NOW);
    if (weir_pool_create(&pool, &options, &error) != WEIR_OK)
        fail_msg("%s", error.text);
}

static int close_pool(void **state)
{
    open_gate();
    weir_pool_destroy(pool, true);
    pool = NULL;
    return 0;
}

static struct weir_decision submit(int i)
{
    struct weir_decision d;

    memset(&d, 0, sizeof(d));
    bool taken = weir_pool_submit(pool, &jobs[i].task, &d);
    assert_int_equal(taken, d.allowed);
    return d;
}

/* Submitted, and at the gate. */
static void occupy(int i)
{
    assert_true(submit(i).allowed);
    wait_begun(i);
}

static struct weir_pool_options small(int32_t threads, int64_t queue)
{
    return (struct weir_pool_options){
        .max_threads = threads, .min_threads = 1, .max_queue = queue, .clock = &virtual_clock
    };
}

/* ------------------------------------------------ threads, queue, refusal ---- */

/* Hystrix #1964, #1851: with a queue, its pool never grew beyond its core. */
RACE_WITH(test_G3_the_pool_grows_to_its_maximum_before_anything_waits, NULL, close_pool)
{
    open_pool(small(3, 2));
    assert_int_equal(info().threads, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(submit(i).remaining, 2 - i);
        wait_begun(i); /* with nothing but threads at work all three are at work */
        assert_fields(info(), (threads, i + 1), (working, i + 1), (waiting, 0));
    }
    assert_true(submit(3).allowed);
    assert_true(submit(4).allowed);
    assert_fields(info(), (threads, 3), (waiting, 2));
}

RACE_WITH(test_G3_beyond_threads_and_queue_it_is_refused, NULL, close_pool)
{
    open_pool(small(2, 2));
    occupy(0);
    occupy(1);
    submit(2);
    submit(3);
    struct weir_decision d = submit(4);
    assert_int_equal(d.reason, WEIR_FULL);
    assert_true(d.retry > 0);
    assert_int_equal(info().refused, 1);
    open_gate();
    for (int i = 0; i < 4; i++)
        wait_over(i);
    wait_resting();
    assert_int_equal(info().run, 4);
    assert_int_equal(jobs[4].begun + jobs[4].refused, 0); /* neither function was called */
    assert_true(submit(4).allowed);
    wait_over(4);
}

RACE_WITH(test_G3_without_a_queue_nobody_waits, NULL, close_pool)
{
    open_pool(small(1, WEIR_NO_QUEUE));
    occupy(0);
    assert_int_equal(submit(1).reason, WEIR_FULL);
    assert_false(weir_pool_cancel(pool, &jobs[0].task));
    assert_int_equal(info().waiting, 0);
    open_gate();
    wait_resting();
    assert_true(submit(1).allowed);
    wait_over(1);
}

RACE_WITH(test_a_thread_that_rests_is_used_before_one_is_started, NULL, close_pool)
{
    open_pool(small(4, 2));
    gate_open = true;
    for (int i = 0; i < 8; i++) {
        assert_true(submit(i).allowed);
        wait_over(i);
        wait_resting();
        assert_int_equal(info().threads, 1);
    }
    gate_open = false;
    occupy(8);
    occupy(9);
    open_gate();
    wait_resting();
    assert_int_equal(submit(10).remaining, 3); /* one works, the other rests */
    wait_over(10);
}

RACE_WITH(test_what_waits_runs_in_the_order_of_the_queue, NULL, close_pool)
{
    static const int priorities[] = { 0, -3, 7, 0, 7 }, order[] = { 4, 6, 2, 5, 3 };
    struct weir_pool_options options = small(1, 8);

    options.queue.order = WEIR_PRIORITY;
    open_pool(options);
    occupy(0);
    for (int i = 0; i < 5; i++) {
        jobs[i + 1].task.waiter.priority = (int8_t)priorities[i];
        assert_true(submit(i + 1).allowed);
    }
    open_gate();
    for (int i = 1; i <= 5; i++) {
        wait_over(i);
        assert_int_equal(jobs[i].order, order[i - 1]);
    }
}

RACE_WITH(test_threads_have_the_name_of_the_pool, NULL, close_pool)
{
    struct weir_pool_options options = small(1, 1);

    options.name = "a-name-that-is-too-long";
    open_pool(options);
    occupy(0);
    open_gate();
    wait_resting();
    submit(1); /* by then it has it: the name is given when the thread has been started */
    wait_over(1);
    assert_string_equal(jobs[1].thread, "a-name-that-is-");
}

/* --------------------------------------------------------------- idleness ---- */

/* Hystrix #1242: idle threads were never freed. */
RACE_WITH(test_G3_idle_threads_end_but_for_the_minimum, NULL, close_pool)
{
    struct weir_pool_options options = small(5, 2);

    options.min_threads = 2;
    options.idle = 10 * S;
    open_pool(options);
    for (int i = 0; i < 5; i++)
        occupy(i);
    open_gate();
    wait_resting();
    assert_int_equal(info().threads, 5);
    set_now(NOW + 10 * S - 1);
    assert_int_equal(info().threads, 5);
    set_now(NOW + 10 * S);
    assert_int_equal(info().threads, 2);
    set_now(NOW + 1000 * S);
    assert_int_equal(info().threads, 2);
    gate_open = false;
    for (int i = 5; i < 10;
         i++) /* and it grows again at once, though those told to end may not have done so */
        occupy(i);
    assert_fields(info(), (threads, 5), (working, 5));
}

RACE_WITH(test_by_default_ten_threads_stay_and_the_others_rest_for_a_minute, NULL, close_pool)
{
    open_pool((struct weir_pool_options){ .clock = &virtual_clock });
    for (int i = 0; i < 12; i++)
        occupy(i);
    open_gate();
    wait_resting();
    set_now(NOW + 60 * S - 1);
    assert_int_equal(info().threads, 12);
    set_now(NOW + 60 * S);
    assert_int_equal(info().threads, 10);
}

RACE_WITH(test_by_default_a_hundred_may_wait, NULL, close_pool)
{
    open_pool((struct weir_pool_options){ .max_threads = 1, .clock = &virtual_clock });
    occupy(0);
    struct weir_decision d = submit(1);
    assert_fields(d, (limit, 100), (remaining, 99));
}

RACE_WITH(test_a_thread_that_works_is_not_idle, NULL, close_pool)
{
    struct weir_pool_options options = small(2, 2);

    options.idle = S;
    open_pool(options);
    occupy(0);
    occupy(1);
    set_now(NOW + 100 * S);
    assert_int_equal(info().threads, 2);
}

static pthread_key_t last_words;

static void tell_gone(void *value)
{
    pthread_mutex_lock(&lock);
    threads_gone++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void run_with_last_words(struct weir_task *task)
{
    pthread_setspecific(last_words, task);
    run(task);
}

/* By the host's clock, and with nobody looking: what is waited for is the end of the thread. */
RACE(test_an_idle_thread_ends_by_itself)
{
    assert_int_equal(pthread_key_create(&last_words, tell_gone), 0);
    open_pool(
        (struct weir_pool_options){ .max_threads = 3, .min_threads = 1, .idle = WEIR_MILLISECOND });
    for (int i = 0; i < 3; i++)
        jobs[i].task.run = run_with_last_words;
    for (int i = 0; i < 3; i++)
        occupy(i);
    open_gate();
    pthread_mutex_lock(&lock);
    while (threads_gone < 2)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    assert_int_equal(info().threads, 1);
    close_pool(NULL);
    assert_int_equal(threads_gone, 3); /* destroy returns when all threads have ended */
    pthread_key_delete(last_words);
}

/* -------------------------------------------------------------- deadlines ---- */

static void submit_until(int i, weir_time deadline)
{
    jobs[i].task.waiter.deadline = deadline;
    assert_true(submit(i).allowed);
}

RACE_WITH(test_G3_who_is_too_late_is_refused_by_a_worker_and_at_the_deadline_runs, NULL, close_pool)
{
    open_pool(small(1, 4));
    occupy(0);
    submit_until(1, NOW + 9);
    submit_until(2, NOW + 10);
    submit_until(3, 0);
    set_now(NOW + 10);
    open_gate();
    for (int i = 1; i <= 3; i++)
        wait_over(i);
    assert_fields(jobs[1], (refused, 1), (reason, WEIR_LATE), (begun, 0));
    assert_int_equal(jobs[2].ended, 1);
    assert_int_equal(jobs[3].ended, 1);
    assert_int_equal(info().refused, 1);
}

RACE_WITH(test_who_is_too_late_makes_room_for_who_submits, NULL, close_pool)
{
    open_pool(small(1, 2));
    occupy(0);
    submit_until(1, NOW + 5);
    submit_until(2, NOW + 5);
    assert_int_equal(submit(3).reason, WEIR_FULL);
    set_now(NOW + 6);
    assert_true(submit(3).allowed);
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(jobs[i].refused, 1);
        assert_true(pthread_equal(jobs[i].by, pthread_self()));
    }
    assert_int_equal(info().waiting, 1);
}

RACE_WITH(test_who_is_too_late_already_is_refused_though_a_thread_is_free, NULL, close_pool)
{
    open_pool(small(1, 2));
    jobs[0].task.waiter.deadline = NOW - 1;
    assert_int_equal(submit(0).reason, WEIR_LATE);
    assert_int_equal(info().threads, 0);
    jobs[0].straight = true;
    submit_until(0, NOW);
    wait_over(0);
    assert_int_equal(jobs[0].ended, 1);
}

/* ------------------------------------------------------------- cancelling ---- */

RACE_WITH(test_only_what_waits_can_be_cancelled, NULL, close_pool)
{
    open_pool(small(1, 2));
    occupy(0);
    submit(1);
    submit(2);
    assert_false(weir_pool_cancel(pool, &jobs[0].task));
    assert_true(weir_pool_cancel(pool, &jobs[1].task));
    assert_false(weir_pool_cancel(pool, &jobs[1].task));
    assert_int_equal(info().waiting, 1);
    open_gate();
    wait_over(2);
    wait_resting();
    assert_int_equal(jobs[1].begun + jobs[1].refused, 0);
    assert_false(weir_pool_cancel(pool, &jobs[2].task));
    assert_true(submit(1).allowed);
    wait_over(1);
}

/* -------------------------------------------------------------- the end ---- */

static void *open_gate_when_refused(void *last)
{
    wait_over(*(int *)last);
    open_gate();
    return NULL;
}

RACE_WITH(test_G3_destroy_refuses_what_waits, NULL, close_pool)
{
    int last = 3;
    pthread_t opener;

    open_pool(small(2, 8));
    occupy(0);
    occupy(1);
    submit(2);
    submit(3);
    pthread_create(&opener, NULL, open_gate_when_refused, &last);
    weir_pool_destroy(pool, false); /* returns when those at work are done, and that is when the
                                       others have been refused */
    pthread_join(opener, NULL);
    pool = NULL;
    for (int i = 0; i < 4; i++) {
        assert_fields(jobs[i], (ended, i < 2), (refused, i >= 2));
    }
    assert_int_equal(jobs[3].reason, WEIR_CANCELLED);
}

/* A task that submits another when it has been let through. */
static struct weir_decision inner;

static void run_and_submit(struct weir_task *task)
{
    run(task);
    weir_pool_submit(pool, &jobs[9].task, &inner);
}

static void *open_gate_when_ending(void *argument)
{
    struct weir_decision d;

    jobs[8].task.waiter.deadline = NOW - 1; /* never taken: it only asks whether the pool ends */
    do
        weir_pool_submit(pool, &jobs[8].task, &d);
    while (d.reason != WEIR_CANCELLED);
    open_gate();
    return NULL;
}

RACE_WITH(test_G3_destroy_drains_and_takes_nothing_new, NULL, close_pool)
{
    pthread_t opener;

    open_pool(small(2, 8));
    jobs[0].task.run = run_and_submit;
    for (int i = 0; i < 2; i++)
        occupy(i);
    for (int i = 2; i < 7; i++)
        submit(i);
    pthread_create(&opener, NULL, open_gate_when_ending, NULL);
    weir_pool_destroy(pool, true);
    pthread_join(opener, NULL);
    pool = NULL;
    for (int i = 0; i < 7; i++)
        assert_int_equal(jobs[i].ended, 1);
    assert_int_equal(inner.reason, WEIR_CANCELLED);
    assert_int_equal(jobs[9].begun + jobs[9].refused, 0);
}

TEST_WITH(test_an_unused_pool_can_be_destroyed, NULL, close_pool)
{
    open_pool((struct weir_pool_options){ 0 });
    weir_pool_destroy(pool, false);
    weir_pool_destroy(NULL, true);
    pool = NULL;
}

/* ----------------------------------------------------- no thread to be had ---- */

/* Threads with stacks larger than all memory cannot be started. */
static void set_stack(size_t size)
{
    pthread_attr_t attr;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, size);
    assert_int_equal(pthread_setattr_default_np(&attr), 0);
    pthread_attr_destroy(&attr);
}

RACE_WITH(test_when_no_thread_can_be_started, NULL, close_pool)
{
    size_t usual;
    pthread_attr_t attr;

    pthread_getattr_default_np(&attr);
    pthread_attr_getstacksize(&attr, &usual);
    pthread_attr_destroy(&attr);
    open_pool(small(3, 2));
    set_stack((size_t)1 << 50);
    struct weir_decision none = submit(0);
    set_stack(usual);
    assert_int_equal(none.reason, WEIR_BUSY); /* nobody would ever come for it */
    assert_int_equal(info().threads, 0);
    occupy(0);
    set_stack((size_t)1 << 50);
    struct weir_decision one = submit(1);
    set_stack(usual);
    assert_true(one.allowed); /* it waits for the one that there is */
    assert_int_equal(info().waiting, 1);
    open_gate();
    wait_over(1);
    assert_true(pthread_equal(jobs[0].by, jobs[1].by));
}

/* ------------------------------------------------------------------ options ---- */

TEST(test_options_that_make_no_sense_are_refused_with_the_reason)
{
    static const struct {
        struct weir_pool_options options;
        const char *says;
    } rows[] = {
        { { .max_threads = -1 }, "1 to 65536" },
        { { .max_threads = 65537 }, "1 to 65536" },
        { { .min_threads = -1 }, "0 or more" },
        { { .idle = -1 }, "idle" },
        { { .max_queue = -2 }, "WEIR_NO_QUEUE" },
        { { .max_queue = 1048577 }, "1 to 1048576" },
        { { .queue = { .weights = { -1 } } }, "class 0" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct weir_pool *out = (struct weir_pool *)&jobs;
        struct weir_error error = { 0 };
        assert_int_equal(weir_pool_create(&out, &rows[i].options, &error), WEIR_INVALID);
        assert_ptr_equal(out, &jobs);
        assert_contains(error.text, rows[i].says);
    }
}
