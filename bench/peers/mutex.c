/* mutex.c -- what most people write first: a token bucket under a pthread mutex, measured as a peer
 * of Weir.
 *
 * Tokens are a double and the time is an argument, so this is the arithmetic of every hand-made
 * limiter without its clock.
 *
 *     peer.mutex.granted, .refused       CPU time of an ask, one thread asking
 *     peer.mutex.two-threads-total-ns    two threads on two cores and one bucket, granted: wall
 *                                        time over the asks of both
 *     peer.mutex.two-threads-total-rate  the same as asks a second
 *     peer.mutex.two-threads-cores       how much of two cores they had: well below 2, something
 *                                        else ran on one, they met less often and the two figures
 *                                        above flatter the mutex
 *
 * Each figure is the median of ROUNDS rounds.  The asks of one thread are TICK apart.
 */
#define _GNU_SOURCE /* sched_getaffinity, pthread_setaffinity_np */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 5, ASKS = 20 * 1000 * 1000, TICK = 100 };

struct bucket {
    pthread_mutex_t lock;
    double tokens, burst, per_ns;
    int64_t at; /* the time `tokens` is true for */
};

/* Not inlined, as a library's would not be. */
__attribute__((noinline)) static bool take(struct bucket *b, double cost, int64_t now)
{
    bool granted = false;

    pthread_mutex_lock(&b->lock);
    if (now > b->at) {
        b->tokens += (double)(now - b->at) * b->per_ns;
        if (b->tokens > b->burst)
            b->tokens = b->burst;
        b->at = now;
    }
    if (b->tokens >= cost) {
        b->tokens -= cost;
        granted = true;
    }
    pthread_mutex_unlock(&b->lock);
    return granted;
}

static int64_t clock_ns(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void die(const char *why)
{
    fprintf(stderr, "mutex: %s\n", why);
    exit(1);
}

/* The count proves that the path meant was the path measured, and keeps the work from being
 * optimised away. */
static double one_thread(struct bucket bucket, int granted_expected)
{
    int granted = 0;
    int64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);

    for (int64_t i = 1; i <= ASKS; i++)
        granted += take(&bucket, 1, i * TICK);
    int64_t spent = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
    if (granted != granted_expected)
        die("not the answers this measures");
    return (double)spent / ASKS;
}

/* Two threads, each on a core of its own: on one core they would take turns and never meet.  The
 * first to have asked ASKS times ends it for both, so that none is measured alone. */
struct contest {
    struct bucket bucket;
    pthread_barrier_t start;
    atomic_bool over;
};

struct runner {
    struct contest *contest;
    int cpu;
    int64_t asked, start, end, cpu_time;
};

static void *runner_run(void *arg)
{
    struct runner *r = arg;
    struct contest *c = r->contest;
    int64_t asked = 0;
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    CPU_SET((size_t)r->cpu, &cpus);
    if (pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus) != 0)
        die("cannot choose a core");
    pthread_barrier_wait(&c->start);
    r->start = clock_ns(CLOCK_MONOTONIC);
    while (asked < ASKS && !atomic_load_explicit(&c->over, memory_order_relaxed)) {
        asked++;
        if (!take(&c->bucket, 1, asked * TICK))
            die("not the answers this measures");
    }
    atomic_store(&c->over, true);
    r->end = clock_ns(CLOCK_MONOTONIC);
    r->cpu_time = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    r->asked = asked;
    return NULL;
}

static double two_threads(struct bucket bucket, const int cpus[2], double *cores)
{
    struct contest c = { .bucket = bucket };
    struct runner r[2] = { { .contest = &c, .cpu = cpus[0] }, { .contest = &c, .cpu = cpus[1] } };
    pthread_t threads[2];

    pthread_barrier_init(&c.start, NULL, 2);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, runner_run, &r[i]) != 0)
            die("no thread");
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&c.start);
    int64_t start = r[0].start < r[1].start ? r[0].start : r[1].start;
    int64_t end = r[0].end > r[1].end ? r[0].end : r[1].end;
    *cores = (double)(r[0].cpu_time + r[1].cpu_time) / (double)(end - start);
    return (double)(end - start) / (double)(r[0].asked + r[1].asked);
}

/* The first two cores this process may use; false if there is but one. */
static bool two_cpus(int cpus[2])
{
    cpu_set_t allowed;
    int found = 0;

    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return false;
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
        if (CPU_ISSET((size_t)cpu, &allowed))
            cpus[found++] = cpu;
    return found == 2;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof(*values), by_value);
    return values[ROUNDS / 2];
}

/* glibc's mutex leaves out its atomic instructions while a process has one thread, and a process
 * that needs a mutex has more.  So a second thread exists, asleep on a lock that main holds.  (On
 * the machine this was written on both ways cost the same.) */
static pthread_mutex_t parked = PTHREAD_MUTEX_INITIALIZER;

static void *park(void *arg)
{
    pthread_mutex_lock(&parked);
    pthread_mutex_unlock(&parked);
    return arg;
}

int main(void)
{
    /* The burst covers two threads whose times overtake each other, which then earn nothing. */
    const struct bucket generous = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .tokens = 1e9, .burst = 1e9, .per_ns = 1
    };
    const struct bucket mean = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .tokens = 0, .burst = 1, .per_ns = 1e-15
    };
    double granted[ROUNDS], refused[ROUNDS], both[ROUNDS], cores[ROUNDS];
    int cpus[2];
    bool contested = two_cpus(cpus);
    pthread_t sleeper;

    pthread_mutex_lock(&parked);
    if (pthread_create(&sleeper, NULL, park, NULL) != 0)
        die("no thread");
    for (int i = 0; i < ROUNDS; i++) {
        granted[i] = one_thread(generous, ASKS);
        refused[i] = one_thread(mean, 0);
        if (contested)
            both[i] = two_threads(generous, cpus, &cores[i]);
    }
    pthread_mutex_unlock(&parked);
    pthread_join(sleeper, NULL);

    printf("peer.mutex.granted\t%.2f\tns\n", median(granted));
    printf("peer.mutex.refused\t%.2f\tns\n", median(refused));
    if (!contested)
        return 0;
    printf("peer.mutex.two-threads-total-ns\t%.2f\tns\n", median(both));
    printf("peer.mutex.two-threads-total-rate\t%.0f\tops/s\n", 1e9 / median(both));
    printf("peer.mutex.two-threads-cores\t%.2f\tcores\n", median(cores));
    return 0;
}
