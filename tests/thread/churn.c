/* churn.c -- limiters and guards come and go under threads and processes that use them, some of
 * which are stopped or killed.
 *
 *     churn [ROUNDS]
 *
 * Every worker takes two limiters or a guard by some of a few names, charges a key of its own on
 * both limiters at once, changes their limits now and then, and looks later whether the charge is
 * still there; then it drops or releases them.  All of them tend the table, and time passes two
 * seconds at a time.  What somebody uses must stay, and when everybody has gone, nothing may be
 * left.
 */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "random.h"
#include "table/holders.h"

#define PROCESSES 4
#define THREADS   2
#define NAMES     6
/* What a kill may leave until the table is next alone: bytes in the slab, a wrong count of keys. */
#define KILL_COST 1024
#define KILL_KEYS THREADS
#define LEASE     (3600 * WEIR_SECOND)
#define DAY       (86400 * WEIR_SECOND)

static const char *const limits[NAMES] = {
    "gcra 10/3650d",         "sliding-window 10/3650d", "sliding-log 10/3650d",
    "fixed-window 10/3650d", "token-bucket 10/3650d",   "gcra 10/3650d",
};

/* Shared by all processes. */
static struct {
    weir_time now;
    int64_t turns, wrong;
} * shared;

static void complain(const char *what, const char *name, int64_t got)
{
    if (__atomic_fetch_add(&shared->wrong, 1, __ATOMIC_RELAXED) < 10)
        fprintf(stderr, "churn: %s: %s: %" PRId64 "\n", name, what, got);
}

static weir_time now_of(void)
{
    return __atomic_load_n(&shared->now, __ATOMIC_RELAXED);
}

static void tend(struct weir_table *table)
{
    weir_table_tend(table, __atomic_add_fetch(&shared->now, 2 * WEIR_SECOND, __ATOMIC_RELAXED));
}

#define COST   3
#define BUCKET 4 /* in limits */

struct used {
    struct weir_limiter *limiter;
    unsigned n;
    char name[8];
    uint32_t version; /* at least as old as that which the key was charged under */
};

static struct weir_limit limit_of(unsigned n, int64_t count)
{
    struct weir_limit limit = { 0 };

    if (weir_limit_parse(&limit, limits[n], NULL) != WEIR_OK)
        abort();
    limit.count = count;
    return limit;
}

static bool join(struct weir_table *table, unsigned n, struct used *out)
{
    struct weir_limit limit = limit_of(n, 10);
    struct weir_plan plan;
    struct weir_error error = { 0 };

    out->n = n;
    snprintf(out->name, sizeof(out->name), "l%u", n);
    if (weir__plan_make(&plan, &limit, &error) == WEIR_OK &&
        weir__limiter_join(&out->limiter, table, out->name, &plan, &error) == WEIR_OK) {
        out->version = weir__limiter_era(out->limiter)->version;
        return true;
    }
    complain(error.text, out->name, 0);
    return false;
}

/* Somebody else may change it at the same time. */
static void change(const struct used *u, uint64_t *random)
{
    struct weir_limit limit = limit_of(u->n, 10 + (int64_t)(random64(random) % 2) * 10);
    struct weir_error error = { 0 };

    if (weir_limiter_change(u->limiter, &limit, now_of(), &error) != WEIR_OK)
        complain(error.text, u->name, 0);
}

/* Under any limit the key has used what it was charged; of a bucket the tokens stay that it had, if
 * they fit.  After more changes than are remembered it counts as spent. */
static void check(const struct used *u, int64_t *key)
{
    struct weir_ask ask = { .key = { key, sizeof(*key) }, .now = now_of() };
    struct weir_decision d;

    weir_peek(u->limiter, &ask, &d);
    bool remembered = weir__limiter_era(u->limiter)->version - u->version < WEIR__PAST;
    int64_t most = u->n == BUCKET ? d.limit : d.limit - COST, least = !remembered      ? 0
                                                                      : u->n == BUCKET ? 10 - COST
                                                                                       : most;
    if (d.remaining < least || d.remaining > most)
        complain("a key in use has another charge", u->name, d.remaining);
}

static void leave(const struct used *u, bool dropped)
{
    if (dropped)
        weir_limiter_drop(u->limiter);
    else
        weir_limiter_release(u->limiter);
}

static void charge(const struct used u[2], int64_t *key)
{
    struct weir_ask ask = { .key = { key, sizeof(*key) }, .cost = COST, .now = now_of() };
    struct weir_item items[2] = { { u[0].limiter, ask }, { u[1].limiter, ask } };
    struct weir_decision d;

    if (!weir_take_all(items, 2, &d))
        complain("a fresh key is refused", u[d.item].name, d.remaining);
}

static void use_limiters(struct weir_table *table, uint64_t *random, int64_t *key)
{
    unsigned n = (unsigned)(random64(random) % NAMES),
             m = (n + 1 + (unsigned)(random64(random) % (NAMES - 1))) % NAMES;
    struct used u[2];

    if (!join(table, n, &u[0]) || !join(table, m, &u[1]))
        return;
    charge(u, key);
    for (unsigned i = 0, turns = (unsigned)(random64(random) % 8); i < turns; i++) {
        tend(table);
        if (random64(random) % 8 == 0)
            change(&u[i % 2], random);
    }
    check(&u[0], key);
    check(&u[1], key);
    leave(&u[0], random64(random) % 2);
    leave(&u[1], random64(random) % 2);
}

static void leave_guard(struct weir_table *table, struct weir_guard *guard, uint64_t *random)
{
    weir_guard_drop(guard);
    for (uint64_t i = random64(random) % 80; i > 0; i--)
        tend(table);
}

static void use_guard(struct weir_table *table, uint64_t *random)
{
    struct weir_guard *guard;
    struct weir_permit permit;
    struct weir_error error = { 0 };
    struct weir_decision d;
    struct weir_ask ask = { .now = now_of() };
    struct weir_guard_options options = { .max = 1000, .lease = LEASE };
    char name[8];

    snprintf(name, sizeof(name), "g%u", (unsigned)(random64(random) % 2));
    if (weir_guard_create(&guard, table, name, &options, &error) != WEIR_OK) {
        complain(error.text, name, 0);
        return;
    }
    bool entered = weir_enter(guard, &ask, &permit, &d);
    if (!entered)
        complain("an ask is refused", name, d.reason);
    tend(table);
    bool outlives = random64(random) % 4 == 0;
    if (outlives) /* its guard: then it may be gone */
        leave_guard(table, guard, random);
    bool exited = !entered || weir_exit(guard, &permit, WEIR_SUCCEEDED, now_of());
    if (outlives)
        return;
    if (!exited && now_of() - ask.now < LEASE) /* it may have been stopped for long */
        complain("a permit of a guard in use has gone", name, 0);
    if (random64(random) % 2)
        weir_guard_drop(guard);
    else
        weir_guard_release(guard);
}

struct worker {
    struct weir_table *table;
    uint64_t seed;
    int rounds;
};

static void *work(void *context)
{
    const struct worker *w = context;
    uint64_t random = w->seed;

    for (int i = 0; i < w->rounds; i++) {
        int64_t key = (int64_t)(w->seed << 32) + i;
        if (random64(&random) % 4)
            use_limiters(w->table, &random, &key);
        else
            use_guard(w->table, &random);
        __atomic_fetch_add(&shared->turns, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void be_process(const char *path, uint64_t seed, int rounds)
{
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    struct weir_table *table;

    if (weir_table_attach(&table, path, NULL) != WEIR_OK)
        _exit(1);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){ table, seed * THREADS + i + 1, rounds };
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0)
            _exit(1);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    weir_table_destroy(table);
    _exit(0);
}

static int64_t turns(void)
{
    return __atomic_load_n(&shared->turns, __ATOMIC_RELAXED);
}

/* Stops one again and again, and kills another in the middle. */
static void disturb(const pid_t *pids, int rounds)
{
    int64_t all = (int64_t)rounds * PROCESSES * THREADS, stops = 0;
    bool killed = false;

    while (turns() < all / 2 && waitpid(pids[1], NULL, WNOHANG) == 0) {
        int64_t before = turns();
        kill(pids[1], SIGSTOP);
        while (turns() < before + 20 && turns() < all / 2) /* the others go on */
            sched_yield();
        kill(pids[1], SIGCONT);
        if (++stops > 5 && !killed) {
            kill(pids[0], SIGKILL);
            killed = true;
        }
    }
    kill(pids[0], SIGKILL);
}

static int check_end(struct weir_table *table)
{
    struct weir_table_stats s;

    weir__holders_bury(table, weir_table_now(table) + 10 * WEIR_SECOND); /* of the killed one */
    shared->now += 4000 * DAY;
    for (int i = 0; i < 5000; i++)
        tend(table);
    weir_table_stats(table, -1, &s);
    bool left_behind =
        s.limiters != 0 || s.guards != 0 || llabs(s.keys) > KILL_KEYS || s.slab_used > KILL_COST;
    if (left_behind)
        fprintf(stderr,
                "churn: left behind: %" PRId64 " limiters, %" PRId64 " guards, %" PRId64
                " keys, %" PRId64 " bytes of large states\n",
                s.limiters, s.guards, s.keys, s.slab_used);
    return left_behind;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    char path[] = "/dev/shm/weir-churn-XXXXXX";
    struct weir_table_options options = { .path = path, .keys = 100000, .guards = 16 };
    struct weir_table *table;
    struct weir_error error;
    pid_t pids[PROCESSES];

    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    close(mkstemp(path));
    unlink(path);
    if (shared == MAP_FAILED || weir_table_create(&table, &options, &error) != WEIR_OK) {
        fprintf(stderr, "churn: %s\n", error.text);
        return 1;
    }
    /* It stays behind the table's own clock: a caller that was stopped is told by that. */
    shared->now = weir_table_now(table) - 6 * DAY;
    struct weir_guard *guard = weir_guard_find(table, "none"); /* it can tell whether one is busy */
    (void)guard;
    for (unsigned i = 0; i < PROCESSES; i++)
        if ((pids[i] = fork()) == 0)
            be_process(path, i, rounds);
    disturb(pids, rounds);
    int failed = 0;
    for (int i = 0; i < PROCESSES; i++) {
        int status = 0;
        failed += waitpid(pids[i], &status, 0) == pids[i] && i > 0 && status != 0;
    }
    failed += check_end(table) + (shared->wrong > 0);
    weir_table_destroy(table);
    unlink(path);
    printf("%" PRId64 " turns, %s\n", shared->turns, failed ? "wrong" : "all right");
    return failed != 0;
}
