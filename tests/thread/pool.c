/* pool.c -- many threads submit, cancel and look, while time goes on: each task runs or is refused,
 * exactly once.
 *
 *     thread-pool [ROUNDS]
 *
 * Time is a number that everybody moves on, so deadlines pass while tasks wait.  Never do more
 * tasks run at once than there may be threads, and never do more wait than may.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "random.h"
#include "weir-queue.h"

#define SUBMITTERS 4
#define TASKS      2000 /* of each submitter */
#define THREADS    3
#define QUEUE      5

enum fate { REFUSED_AT_ONCE = 1, TAKEN = 2, CANCELLED = 3 };

struct task {
    struct weir_task task;
    int ran, refused; /* atomic: how often */
    int fate;         /* what its submitter knows */
};

struct submitter {
    pthread_t thread;
    uint64_t seed;
    struct task *tasks;
    int64_t over_queue; /* times that more waited than may */
};

static weir_time now;
static int running, running_max;
static struct weir_pool *pool;
static int64_t failed, checked;

static weir_time read_now(void *context)
{
    (void)context;
    return __atomic_load_n(&now, __ATOMIC_SEQ_CST);
}

static const struct weir_clock clock_of_pool = { .now = read_now };

static void expect(int64_t got, int64_t wanted, const char *what)
{
    checked++;
    if (got == wanted)
        return;
    if (failed++ < 10)
        fprintf(stderr, "thread-pool: %s: got %" PRId64 ", expected %" PRId64 "\n", what, got,
                wanted);
}

static void run(struct weir_task *base)
{
    struct task *t = (struct task *)base;
    int n = __atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST),
        most = __atomic_load_n(&running_max, __ATOMIC_SEQ_CST);

    while (n > most && !__atomic_compare_exchange_n(&running_max, &most, n, false, __ATOMIC_SEQ_CST,
                                                    __ATOMIC_SEQ_CST))
        ;
    __atomic_add_fetch(&now, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&t->ran, 1, __ATOMIC_SEQ_CST);
    __atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
}

static void refused(struct weir_task *base, enum weir_reason reason)
{
    struct task *t = (struct task *)base;

    (void)reason;
    __atomic_add_fetch(&t->refused, 1, __ATOMIC_SEQ_CST);
}

static void invent_task(struct submitter *s, struct task *t)
{
    uint64_t dice = random64(&s->seed);

    *t = (struct task){ .task = { .run = run, .refused = refused } };
    t->task.waiter.priority = (int8_t)(dice % 16 - 8);
    t->task.waiter.user_class = (uint8_t)(dice >> 8 & 7);
    t->task.waiter.deadline = dice >> 16 & 1 ? read_now(NULL) + (weir_time)(dice >> 20 & 15) : 0;
}

static void *submit_many(void *argument)
{
    struct submitter *s = argument;

    for (int i = 0; i < TASKS; i++) {
        struct task *t = &s->tasks[i];
        struct weir_decision d;
        struct weir_pool_info info;
        invent_task(s, t);
        t->fate = weir_pool_submit(pool, &t->task, &d) ? TAKEN : REFUSED_AT_ONCE;
        __atomic_add_fetch(&now, (weir_time)(random64(&s->seed) % 3), __ATOMIC_SEQ_CST);
        if (t->fate == REFUSED_AT_ONCE)
            sched_yield(); /* the pool's threads shall have a chance, too */
        int back = (int)(random64(&s->seed) % 8);
        if (back <= i && s->tasks[i - back].fate == TAKEN &&
            weir_pool_cancel(pool, &s->tasks[i - back].task))
            s->tasks[i - back].fate = CANCELLED;
        if (random64(&s->seed) % 16 == 0) {
            weir_pool_get(pool, &info);
            s->over_queue += info.waiting > QUEUE || info.threads > THREADS;
        }
    }
    return NULL;
}

static void check(const struct submitter *s, int64_t fates[3])
{
    expect(s->over_queue, 0, "more waited, or there were more threads, than may");
    for (int i = 0; i < TASKS; i++) {
        const struct task *t = &s->tasks[i];
        expect(t->ran + t->refused, t->fate == TAKEN, "times that a task ran or was refused");
        fates[0] += t->ran;
        fates[1] += t->refused;
        fates[2] += t->fate == CANCELLED;
    }
}

static void play(uint64_t seed, bool drain, int64_t fates[3])
{
    struct submitter submitters[SUBMITTERS];
    struct weir_pool_options o = { .max_threads = THREADS,
                                   .min_threads = 1,
                                   .idle = 20,
                                   .max_queue = QUEUE,
                                   .clock = &clock_of_pool };

    o.queue.order = (enum weir_order)(seed % 3);
    o.queue.target = seed % 2 ? 4 : 0;
    o.queue.interval = 8;
    running_max = 0;
    if (weir_pool_create(&pool, &o, NULL) != WEIR_OK)
        exit(1);
    for (int i = 0; i < SUBMITTERS; i++) {
        submitters[i] = (struct submitter){ .seed = seed * 100 + (uint64_t)i,
                                            .tasks = calloc(TASKS, sizeof(struct task)) };
        pthread_create(&submitters[i].thread, NULL, submit_many, &submitters[i]);
    }
    for (int i = 0; i < SUBMITTERS; i++)
        pthread_join(submitters[i].thread, NULL);
    weir_pool_destroy(pool, drain);
    for (int i = 0; i < SUBMITTERS; i++) {
        check(&submitters[i], fates);
        free(submitters[i].tasks);
    }
    expect(running_max <= THREADS, true, "no more run at once than there may be threads");
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    int64_t fates[3] = { 0 };

    now = 1000 * WEIR_SECOND;
    for (int i = 0; i < 6 * rounds; i++)
        play((uint64_t)i, i / 3 % 2 == 0, fates);
    expect(fates[0] > 0 && fates[1] > 0 && fates[2] > 0, true,
           "some run, some are refused, some are cancelled");
    printf("thread-pool: %" PRId64 " ran, %" PRId64 " refused later, %" PRId64
           " cancelled; %" PRId64 " passed, %" PRId64 " failed\n",
           fates[0], fates[1], fates[2], checked - failed, failed);
    return failed > 0;
}
