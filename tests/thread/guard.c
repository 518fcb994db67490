/* guard.c -- many threads, or many processes, on one guard.
 *
 *     guard [ROUNDS]
 *
 *     hold     at a frozen instant all ask and nobody gives back: exactly as many as there are
 *              permits come in
 *     churn    all enter and exit as fast as they can, with different costs: what is held never
 *              adds up to more than there are permits, and in the end nothing is out
 *     look     while they churn another looks at the guard all the time, and what it sees makes
 *              sense
 *     lease    while they churn, time goes on and leases end under their hands: still never too
 *              many, and every permit comes back once
 *
 * Each also for the permits of one key, while other keys come and go in a table that is full.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard/guard.h"
#include "thread/processes.h"

#define WORKERS 4
#define PERMITS 7
#define ALL     100 /* of the guard, if only the key's count */
#define NOW     (1000 * WEIR_SECOND)

static int passed, failed;

static bool keyed;

static struct weir_ask ask_for(int64_t cost, weir_time now)
{
    return (struct weir_ask){ .key = { "k", keyed }, .cost = cost, .now = now };
}

static void expect(bool ok, const char *what, int64_t got, int64_t wanted)
{
    passed += ok;
    failed += !ok;
    if (!ok && failed <= 10)
        fprintf(stderr, "guard: %s: got %" PRId64 ", expected %" PRId64 "\n", what, got, wanted);
}

struct shared {
    int64_t done, looks, odd; /* of the onlooker */
    int64_t ready, finished, granted, held, most, entered, returned, late;
    int64_t clock; /* goes on in steps, moved by any of them */
};

struct worker {
    struct weir_guard *guard;
    struct shared *shared;
    int kind, rounds, number;
};

enum { HOLD, CHURN, LEASE, KINDS };
static const char *const kinds[] = { "hold", "churn", "lease" };

static void meet(int64_t *here)
{
    __atomic_add_fetch(here, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(here, __ATOMIC_SEQ_CST) < WORKERS)
        sched_yield();
}

static void hold(struct worker *w)
{
    struct weir_ask ask = ask_for(1, NOW);
    struct weir_permit p;
    struct weir_decision d;

    for (int i = 0; i < 3 * PERMITS; i++)
        if (weir_enter(w->guard, &ask, &p, &d))
            __atomic_add_fetch(&w->shared->granted, 1, __ATOMIC_RELAXED);
}

/* A key that is new each time, and has its permit. */
static void pass_by(struct worker *w, int i, weir_time now)
{
    int name[2] = { w->number, i };
    struct weir_ask ask = { .key = { name, sizeof(name) }, .cost = 1, .now = now };
    struct weir_permit p;
    struct weir_decision d;

    if (!keyed)
        return;
    if (!weir_enter(w->guard, &ask, &p, &d) || !weir_exit(w->guard, &p, WEIR_IGNORED, now))
        __atomic_add_fetch(&w->shared->odd, 1, __ATOMIC_RELAXED);
}

static void note_most(struct shared *s, int64_t held)
{
    int64_t most = __atomic_load_n(&s->most, __ATOMIC_RELAXED);

    while (held > most && !__atomic_compare_exchange_n(&s->most, &most, held, true,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* What is held is counted after it was got and before it is given back, so it can only be less than
 * what is out. */
static void churn(struct worker *w)
{
    struct shared *s = w->shared;

    for (int i = 0; i < w->rounds; i++) {
        struct weir_permit p;
        struct weir_decision d;
        int64_t cost = 1 + (i + w->number) % 3;
        struct weir_ask ask = ask_for(cost, NOW);
        pass_by(w, i, NOW);
        if (!weir_enter(w->guard, &ask, &p, &d))
            continue;
        note_most(s, __atomic_add_fetch(&s->held, cost, __ATOMIC_SEQ_CST));
        __atomic_add_fetch(&s->entered, 1, __ATOMIC_RELAXED);
        __atomic_sub_fetch(&s->held, cost, __ATOMIC_SEQ_CST);
        if (weir_exit(w->guard, &p, (enum weir_outcome)(i % 9 == 0), NOW + 1000))
            __atomic_add_fetch(&s->returned, 1, __ATOMIC_RELAXED);
    }
}

static void lease(struct worker *w)
{
    struct shared *s = w->shared;
    struct weir_permit kept[4] = { { 0 } };

    for (int i = 0; i < w->rounds; i++) {
        weir_time now = __atomic_add_fetch(&s->clock, 3 * WEIR_MILLISECOND, __ATOMIC_RELAXED);
        struct weir_permit *p = &kept[i % 4];
        struct weir_decision d;
        if (p->word != 0) {
            bool back = weir_exit(w->guard, p, WEIR_SUCCEEDED, now);
            __atomic_add_fetch(back ? &s->returned : &s->late, 1, __ATOMIC_RELAXED);
        }
        struct weir_ask ask = ask_for(1, now);
        if (i + 4 < w->rounds && weir_enter(w->guard, &ask, p, &d))
            __atomic_add_fetch(&s->entered, 1, __ATOMIC_RELAXED);
    }
}

/* What is read while it changes may be a little old, but never what cannot be. */
static void *look(void *context)
{
    struct worker *w = context;
    struct weir_guard_info info;
    char text[64];

    while (__atomic_load_n(&w->shared->done, __ATOMIC_ACQUIRE) == 0) {
        weir_guard_get(
            w->guard, w->kind == LEASE ? __atomic_load_n(&w->shared->clock, __ATOMIC_RELAXED) : NOW,
            &info);
        weir_guard_tell(w->guard, text, sizeof(text));
        __atomic_add_fetch(&w->shared->looks, 1, __ATOMIC_RELAXED);
        int64_t most = keyed ? ALL : PERMITS;
        bool odd = info.limit != most || info.in_flight > most || info.reclaimed < 0 ||
                   info.succeeded < 0 || info.p99 < 0 ||
                   weir_guard_key_in_flight(w->guard, ask_for(1, NOW).key) > PERMITS;
        __atomic_add_fetch(&w->shared->odd, odd, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void *run(void *context)
{
    struct worker *w = context;

    meet(&w->shared->ready);
    (w->kind == HOLD ? hold : w->kind == CHURN ? churn : lease)(w);
    meet(&w->shared->finished); /* the permits of a process that has ended are free again */
    return NULL;
}

static void run_threads(struct worker *workers)
{
    pthread_t threads[WORKERS], looker;

    if (workers->kind != HOLD)
        pthread_create(&looker, NULL, look, workers);
    while (workers->kind != HOLD && __atomic_load_n(&workers->shared->looks, __ATOMIC_RELAXED) == 0)
        sched_yield();
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, run, &workers[i]);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    __atomic_store_n(&workers->shared->done, 1, __ATOMIC_RELEASE);
    if (workers->kind != HOLD)
        pthread_join(looker, NULL);
}

static void run_processes(struct worker *workers)
{
    pid_t pids[WORKERS];

    for (int i = 0; i < WORKERS; i++)
        if ((pids[i] = fork()) == 0) {
            run(&workers[i]);
            _exit(0);
        }
    for (int i = 0; i < WORKERS; i++)
        waitpid(pids[i], NULL, 0);
}

static void check(struct weir_guard *guard, const struct shared *s, int kind, bool processes)
{
    char what[64];

    snprintf(what, sizeof(what), "%s, %s%s", kinds[kind], processes ? "processes" : "threads",
             keyed ? ", by key" : "");
    if (kind == HOLD) {
        expect(s->granted == PERMITS, what, s->granted, PERMITS);
        return;
    }
    struct weir_guard_info info;
    weir_time now = kind == CHURN ? NOW : s->clock;
    for (int i = 0; i < 40; i++)
        weir_guard_get(guard, now += WEIR_SECOND, &info);
    expect(s->entered > 0, what, s->entered, 1);
    expect(processes || s->looks > 0, what, s->looks, 1);
    expect(s->odd == 0, what, s->odd, 0);
    expect(s->most <= PERMITS, what, s->most, PERMITS);
    expect(info.in_flight == 0, what, info.in_flight, 0);
    int64_t out = weir_guard_key_in_flight(guard, ask_for(1, NOW).key);
    expect(out == 0, what, out, 0);
    expect(s->entered == s->returned + s->late, what, s->returned + s->late, s->entered);
    expect(kind == LEASE || s->late == 0, what, s->late, 0);
    expect(info.reclaimed == s->late, what, info.reclaimed, s->late);
    expect(info.succeeded + info.failed == s->returned, what, info.succeeded + info.failed,
           s->returned);
}

static void test(int kind, bool processes, int rounds)
{
    static int number;
    char path[64];
    struct weir_error e;
    struct weir_table *table = NULL;
    struct weir_guard *guard = NULL;
    struct weir_guard_options o = { .max = PERMITS,
                                    .lease = kind == LEASE ? 20 * WEIR_MILLISECOND : 0 };

    if (keyed)
        o.max = ALL, o.max_per_key = PERMITS;
    else
        o.adaptive = (struct weir_adaptive_options){
            .controller = "vegas", .initial = PERMITS, .min = PERMITS, .max = PERMITS
        };
    o.breaker.error_percent = 90;
    snprintf(path, sizeof(path), "/dev/shm/weir-thread-guard-%d-%d", (int)getpid(), number++);
    struct shared *s =
        mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    s->clock = NOW;
    if (weir_table_create(&table,
                          &(struct weir_table_options){
                              .path = processes ? path : NULL, .keys = 16, .mode = 0600 },
                          &e) ||
        weir_guard_create(&guard, table, "g", &o, &e)) {
        fprintf(stderr, "guard: %s\n", e.text);
        exit(1);
    }
    struct worker workers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        workers[i] = (struct worker){ guard, s, kind, rounds, i };
    (processes ? run_processes : run_threads)(workers);
    check(guard, s, kind, processes);
    weir_table_destroy(table);
    munmap(s, sizeof(*s));
    unlink(path);
}

int main(int argc, char **argv)
{
    int times = argc > 1 ? atoi(argv[1]) : 1;

    for (int i = 0; i < times; i++)
        for (int kind = 0; kind < 2 * KINDS; kind++) {
            keyed = kind >= KINDS;
            test(kind % KINDS, false, 20000);
            if (PROCESSES_RACE)
                test(kind % KINDS, true, 20000);
        }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
