/* bench.h -- what the bench programs share: CPU time, medians, one figure a line. */
#ifndef WEIR_BENCH_BENCH_H
#define WEIR_BENCH_BENCH_H

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/hash.h"
#include "weir.h"

#define ROUNDS 5

/* CPU time of this thread, in ns: what a busy neighbour does to the wall clock does not count. */
static inline double cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline double wall_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static inline double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), by_value);
    return values[n / 2];
}

/* What the optimizer must not take away. */
static inline void keep(uint64_t value)
{
    __asm__ volatile("" : : "r"(value) : "memory");
}

static inline void figure(const char *name, double value, const char *unit)
{
    printf("%s\t%.4g\t%s\n", name, value, unit);
    fflush(stdout);
}

/* ns of CPU for one of n runs of the work, the median of ROUNDS rounds after one to warm up. */
typedef void (*work_function)(void *context, int64_t n);

static inline double measure(work_function work, void *context, int64_t n)
{
    double rounds[ROUNDS];

    work(context, n / 4 + 1);
    for (int i = 0; i < ROUNDS; i++) {
        double begin = cpu_ns();
        work(context, n);
        rounds[i] = (cpu_ns() - begin) / (double)n;
    }
    return median(rounds, ROUNDS);
}

/* Threads begin together.  Each on a core of its own, or two may share one and look fast by never
 * meeting. */
static inline void wait_for_all(int *gate, int wanted, int number)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)number, &set);
    pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
    __atomic_fetch_add(gate, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(gate, __ATOMIC_ACQUIRE) < wanted)
        ;
}

static inline void die(const char *what, const struct weir_error *e)
{
    fprintf(stderr, "bench: %s: %s\n", what, e->text);
    exit(1);
}

static inline struct weir_limit parse_limit(const char *text)
{
    struct weir_limit limit;
    struct weir_error e;

    if (weir_limit_parse(&limit, text, &e) != WEIR_OK)
        die(text, &e);
    return limit;
}

#endif
