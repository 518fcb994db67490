/* guard.c -- what entering a guard and leaving it costs.
 *
 *     guard [one | threads | loop N | keys N | plain N | busy N]
 *
 *     one       one thread, enter and exit in turn: with a number of permits, with a breaker
 *               besides, with the adaptive limit besides, on a table of shared memory, and refused
 *     threads   two threads on one guard, and each on its own
 *     loop      N pairs with everything and nothing else: for callgrind; keys: with permits by key
 *               alone; plain: with permits alone; busy: refused for lack of permits
 *
 * The time is supplied, and runs as it would at ten thousand calls a second, so that what a guard
 * does now and then (the controller's look, a new part of the breaker's window) is in the figures
 * as often as it would be there.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define PAIRS    2000000
#define INTERVAL (100 * WEIR_MICROSECOND) /* between two calls */
#define WORK     (20 * WEIR_MICROSECOND)  /* how long each takes */

struct subject {
    struct weir_table *table;
    struct weir_guard *guard;
    weir_time now;
    bool entered; /* what is expected */
    int64_t keys; /* that take turns, a power of two; 0: none */
};

static const struct weir_guard_options permits = { .max = 1000 };
static const struct weir_guard_options breaker = {
    .max = 1000,
    .breaker = { .error_percent = 50, .slow = WEIR_SECOND, .window = 10 * WEIR_SECOND },
};
static const struct weir_guard_options everything = {
    .max = 1000,
    .breaker = { .error_percent = 50, .slow = WEIR_SECOND, .window = 10 * WEIR_SECOND },
    .adaptive = { .controller = WEIR_ADAPTIVE },
};
static const struct weir_guard_options by_key = { .max = 1000, .max_per_key = 10 };
static const struct weir_guard_options one_permit = { .max = 1, .lease = 3600 * WEIR_SECOND };

static struct weir_table *open_table(const char *path)
{
    struct weir_table *table;
    struct weir_error e;

    if (weir_table_create(&table,
                          &(struct weir_table_options){ .path = path, .keys = 1000, .slab = 4096 },
                          &e) != WEIR_OK)
        die("table", &e);
    return table;
}

static struct weir_guard *open_guard(struct weir_table *table, const char *name,
                                     const struct weir_guard_options *options)
{
    struct weir_guard *guard;
    struct weir_error e;

    if (weir_guard_create(&guard, table, name, options, &e) != WEIR_OK)
        die(name, &e);
    return guard;
}

static struct subject open_subject(const char *path, const struct weir_guard_options *options)
{
    struct subject s = { .table = open_table(path), .now = 1000 * WEIR_SECOND, .entered = true };

    s.guard = open_guard(s.table, "bench", options);
    return s;
}

static void close_subject(struct subject *s)
{
    weir_table_destroy(s->table);
}

/* A figure of another path than the one that is meant is worse than none. */
static void check(const char *what, int64_t n, int64_t wanted)
{
    if (n == wanted)
        return;
    fprintf(stderr, "bench: %s: %lld entered instead of %lld\n", what, (long long)n,
            (long long)wanted);
    exit(1);
}

static void pairs(void *context, int64_t n)
{
    struct subject *s = context;
    int64_t entered = 0;

    for (int64_t i = 0; i < n; i++) {
        struct weir_ask ask = { .cost = 1, .now = s->now };
        struct weir_permit permit;
        struct weir_decision d;
        if (weir_enter(s->guard, &ask, &permit, &d)) {
            entered++;
            weir_exit(s->guard, &permit, WEIR_SUCCEEDED, s->now + WORK);
        }
        keep((uint64_t)d.remaining);
        s->now += INTERVAL;
    }
    check("pairs", entered, s->entered ? n : 0);
}

/* Each with the next of the keys, of 16 bytes. */
static void pairs_by_key(void *context, int64_t n)
{
    struct subject *s = context;
    int64_t entered = 0;

    for (int64_t i = 0; i < n; i++) {
        int64_t name[2] = { i & (s->keys - 1), 0 };
        struct weir_ask ask = { .key = { name, sizeof(name) }, .cost = 1, .now = s->now };
        struct weir_permit permit;
        struct weir_decision d;
        if (weir_enter(s->guard, &ask, &permit, &d)) {
            entered++;
            weir_exit(s->guard, &permit, WEIR_SUCCEEDED, s->now + WORK);
        }
        keep((uint64_t)d.remaining);
        s->now += INTERVAL;
    }
    check("pairs by key", entered, s->entered ? n : 0);
}

/* As a caller does who has no clock of its own: the table's, before and after. */
static void pairs_by_clock(void *context, int64_t n)
{
    struct subject *s = context;
    int64_t entered = 0;

    for (int64_t i = 0; i < n; i++) {
        struct weir_ask ask = { .cost = 1, .now = weir_table_now(s->table) };
        struct weir_permit permit;
        struct weir_decision d;
        if (weir_enter(s->guard, &ask, &permit, &d)) {
            entered++;
            weir_exit(s->guard, &permit, WEIR_SUCCEEDED, weir_table_now(s->table));
        }
        keep((uint64_t)d.remaining);
    }
    check("pairs by clock", entered, n);
}

static void entered_by(const char *name, const char *path, const struct weir_guard_options *options,
                       work_function work)
{
    struct subject s = open_subject(path, options);
    struct weir_guard_info info;

    s.keys = 1;
    figure(name, measure(work, &s, PAIRS), "ns");
    weir_guard_get(s.guard, s.now, &info);
    check(name, info.succeeded, PAIRS / 4 + 1 + ROUNDS * PAIRS);
    close_subject(&s);
}

/* After some seconds of work, so that it is known how long work takes. */
static struct subject open_busy(void)
{
    struct subject s = open_subject(NULL, &one_permit);
    struct weir_permit permit;
    struct weir_decision d;

    pairs(&s, 30000);
    weir_enter(s.guard, &(struct weir_ask){ .cost = 1, .now = s.now }, &permit, &d);
    s.entered = false;
    return s;
}

static void refused_busy(void)
{
    struct subject s = open_busy();

    figure("guard.refused.busy", measure(pairs, &s, PAIRS), "ns");
    close_subject(&s);
}

static void loop_busy(int64_t n)
{
    struct subject s = open_busy();

    pairs(&s, n);
    close_subject(&s);
}

static void refused_key(void)
{
    struct weir_guard_options o = { .max_per_key = 1, .lease = 3600 * WEIR_SECOND };
    struct subject s = open_subject(NULL, &o);
    struct weir_permit permit;
    struct weir_decision d;
    int64_t name[2] = { 0, 0 };
    struct weir_ask ask = { .key = { name, sizeof(name) }, .cost = 1, .now = s.now };

    weir_enter(s.guard, &ask, &permit, &d);
    s.entered = false;
    s.keys = 1;
    figure("guard.refused.key", measure(pairs_by_key, &s, PAIRS), "ns");
    close_subject(&s);
}

static void refused_open(void)
{
    struct subject s = open_subject(NULL, &everything);

    weir_guard_force(s.guard, WEIR_FORCE_OPEN, s.now);
    s.entered = false;
    figure("guard.refused.open", measure(pairs, &s, PAIRS), "ns");
    close_subject(&s);
}

static void shared(void)
{
    char path[60];

    snprintf(path, sizeof(path), "/dev/shm/weir-bench-guard.%d", (int)getpid());
    entered_by("guard.shared", path, &everything, pairs);
    unlink(path);
}

static void one(void)
{
    entered_by("guard.permits", NULL, &permits, pairs);
    entered_by("guard.key", NULL, &by_key, pairs_by_key);
    entered_by("guard.breaker", NULL, &breaker, pairs);
    entered_by("guard.everything", NULL, &everything, pairs);
    entered_by("guard.everything.clock", NULL, &everything, pairs_by_clock);
    shared();
    refused_busy();
    refused_key();
    refused_open();
}

static void loop(int64_t n, const struct weir_guard_options *options, work_function work)
{
    struct subject s = open_subject(NULL, options);

    s.keys = 1;
    work(&s, n);
    close_subject(&s);
}

/* ------------------------------------------------------------- threads ---- */

#define THREAD_PAIRS 2000000
/* Threads do not run in step: at a closer interval one that is behind by some milliseconds of real
 * time is not seconds behind in ours. */
#define THREAD_INTERVAL WEIR_MICROSECOND

struct runner {
    struct weir_guard *guard;
    int *gate;
    int wanted, number;
    double begin, end;
};

static void *run_pairs(void *argument)
{
    struct runner *r = argument;
    int64_t entered = 0;

    wait_for_all(r->gate, r->wanted, r->number);
    r->begin = wall_ns();
    for (int64_t i = 0; i < THREAD_PAIRS; i++) {
        struct weir_ask ask = { .cost = 1, .now = 1000 * WEIR_SECOND + i * THREAD_INTERVAL };
        struct weir_permit permit;
        struct weir_decision d;
        if (weir_enter(r->guard, &ask, &permit, &d)) {
            entered++;
            weir_exit(r->guard, &permit, WEIR_SUCCEEDED, ask.now + THREAD_INTERVAL / 2);
        }
    }
    r->end = wall_ns();
    check("threads", entered, THREAD_PAIRS);
    return NULL;
}

static double run_round(struct weir_guard *const *guards, int n)
{
    pthread_t threads[2];
    struct runner runners[2];
    int gate = 0;
    double begin = 0, end = 0;

    for (int i = 0; i < n; i++) {
        runners[i] = (struct runner){ .guard = guards[i], .gate = &gate, .wanted = n, .number = i };
        pthread_create(&threads[i], NULL, run_pairs, &runners[i]);
    }
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
        begin = i == 0 || runners[i].begin < begin ? runners[i].begin : begin;
        end = runners[i].end > end ? runners[i].end : end;
    }
    return (end - begin) / ((double)n * THREAD_PAIRS);
}

/* ns of wall time per pair, of all threads together; the least of the rounds, since what disturbs
 * can only add.  Guards are new in each, or the time would step back. */
static double run_threads(int n, bool same)
{
    double best = 0;

    for (int round = 0; round < ROUNDS; round++) {
        struct weir_table *table = open_table(NULL);
        struct weir_guard *guards[2] = { open_guard(table, "first", &everything),
                                         open_guard(table, same ? "first" : "second",
                                                    &everything) };
        double each = run_round(guards, n);
        best = round == 0 || each < best ? each : best;
        weir_table_destroy(table);
    }
    return best;
}

static void threads(void)
{
    double alone = run_threads(1, true), apart = run_threads(2, false),
           together = run_threads(2, true);

    figure("guard.threads.one", alone, "ns");
    figure("guard.threads.two-guards", apart, "ns");
    figure("guard.threads.two-guards.speed-up", alone / apart, "times");
    figure("guard.threads.one-guard", together, "ns");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "one";

    if (strcmp(what, "one") == 0)
        one();
    else if (strcmp(what, "threads") == 0)
        threads();
    else if (strcmp(what, "loop") == 0)
        loop(argc > 2 ? atoll(argv[2]) : 1000, &everything, pairs);
    else if (strcmp(what, "keys") == 0)
        loop(argc > 2 ? atoll(argv[2]) : 1000, &by_key, pairs_by_key);
    else if (strcmp(what, "plain") == 0)
        loop(argc > 2 ? atoll(argv[2]) : 1000, &permits, pairs);
    else if (strcmp(what, "busy") == 0)
        loop_busy(argc > 2 ? atoll(argv[2]) : 1000);
    else
        return 2;
    return 0;
}
