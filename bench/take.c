/* take.c -- what a decision on a key costs, beside the bounds that the machine sets.
 *
 *     take hot | hot-loop N | threads | log N | full N | keys N [narrow|wide] [roomy]
 *
 *     hot       one key in cache, against hashing the key plus the bare step
 *     hot-loop  N takes on one hot key and nothing else: for callgrind
 *     threads   one and two threads: on different keys, and on one key against a mutex
 *     log       a key under a sliding log of N stamps, half of them used
 *     full      a new key in a table that N keys fill, none of them idle
 *     keys      N random keys, one by one and in batches of 16, against one dependent load, and a
 *               prefetched load and compare-and-swap, in a region of the same size
 */
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"
#include "table/slot.h"

#define BATCH 16

struct subject {
    struct weir_table *table;
    struct weir_limiter *limiter;
    int64_t keys;
    uint64_t seed;
    weir_time now;
    unsigned char *region;
    size_t bytes;
};

/* A key as programs have them: 16 bytes, a number and something constant. */
struct name {
    uint64_t number, rest;
};

static struct weir_key key_of(struct name *name, uint64_t number)
{
    *name = (struct name){ number, 0x7265736f75726365u };
    return (struct weir_key){ name, sizeof(*name) };
}

static struct subject open_table(int64_t keys, int64_t room, bool narrow)
{
    struct subject s = { .keys = keys, .now = 1000 * WEIR_SECOND };
    struct weir_table_options o = {
        .keys = room, .narrow = narrow, .slab = 4096, .limiters = 1, .bans = 1, .guards = 1
    };
    struct weir_limit limit = parse_limit("gcra 1000/1s burst 10");
    struct weir_error e;

    if (weir_table_create(&s.table, &o, &e) != WEIR_OK ||
        weir_limiter_create(&s.limiter, s.table, "bench", &limit, &e) != WEIR_OK)
        die("table", &e);
    return s;
}

/* ------------------------------------------------------------------ hot ---- */

static void take_hot(void *context, int64_t n)
{
    struct subject *s = context;
    struct name name;
    struct weir_decision d;
    struct weir_key key = key_of(&name, 42);

    for (int64_t i = 0; i < n; i++) {
        struct weir_ask a = { .key = key, .cost = 1, .now = s->now };
        weir_take(s->limiter, &a, &d);
        keep((uint64_t)d.remaining);
        s->now += WEIR_MILLISECOND;
    }
}

static void take_hot_refused(void *context, int64_t n)
{
    struct subject *s = context;
    struct name name;
    struct weir_decision d;
    struct weir_key key = key_of(&name, 42);

    for (int64_t i = 0; i < n; i++) {
        struct weir_ask a = { .key = key, .cost = 1, .now = s->now };
        weir_take(s->limiter, &a, &d);
        keep((uint64_t)d.remaining);
    }
}

static void hash_only(void *context, int64_t n)
{
    struct subject *s = context;
    struct name name;
    struct weir_key key = key_of(&name, 42);

    for (int64_t i = 0; i < n; i++) {
        keep((uint64_t)&name);
        struct weir__hash h = weir__hash_key(s->table->secrets, 7, key);
        keep(h.tag ^ h.place);
    }
}

static void step_only(void *context, int64_t n)
{
    struct subject *s = context;
    uint64_t state[2] = { 0, 0 };
    struct weir_decision d;

    for (int64_t i = 0; i < n; i++) {
        struct weir_ask a = { .cost = 1, .now = s->now };
        weir_step(&s->limiter->era->plan, state, &a, &d);
        keep((uint64_t)d.remaining);
        s->now += WEIR_MILLISECOND;
    }
}

static void hot(void)
{
    for (int narrow = 1; narrow >= 0; narrow--) {
        struct subject s = open_table(1000, 1000, narrow);
        const char *kind = narrow ? "narrow" : "wide";
        char label[80];
        double hash = measure(hash_only, &s, 20000000), step = measure(step_only, &s, 20000000),
               take = measure(take_hot, &s, 20000000);
        if (narrow) {
            figure("hash.16-bytes", hash, "ns");
            figure("step.beside-take", step, "ns");
        }
        snprintf(label, sizeof(label), "take.hot.%s", kind);
        figure(label, take, "ns");
        snprintf(label, sizeof(label), "take.hot.%s.refused", kind);
        figure(label, measure(take_hot_refused, &s, 20000000), "ns");
        snprintf(label, sizeof(label), "take.hot.%s.over-hash-and-step", kind);
        figure(label, take / (hash + step), "times");
        weir_table_destroy(s.table);
    }
}

static void hot_loop(int64_t n)
{
    struct subject s = open_table(1000, 1000, true);

    take_hot(&s, n);
    weir_table_destroy(s.table);
}

/* ------------------------------------------------------------------ keys ---- */

static void fill(struct subject *s)
{
    struct name name;
    struct weir_decision d;

    for (int64_t i = 0; i < s->keys; i++) {
        struct weir_ask a = { .key = key_of(&name, (uint64_t)i), .cost = 1, .now = s->now };
        weir_take(s->limiter, &a, &d);
    }
    s->now += WEIR_SECOND;
}

static void take_random(void *context, int64_t n)
{
    struct subject *s = context;
    struct name name;
    struct weir_decision d;

    for (int64_t i = 0; i < n; i++) {
        struct weir_ask a = { .key = key_of(&name, weir__mix64(s->seed++) % (uint64_t)s->keys),
                              .cost = 1,
                              .now = s->now };
        weir_take(s->limiter, &a, &d);
        keep((uint64_t)d.remaining);
        s->now += 100;
    }
}

static void take_batches(void *context, int64_t n)
{
    struct subject *s = context;
    struct name names[BATCH];
    struct weir_item items[BATCH];
    struct weir_decision d[BATCH];

    for (int64_t i = 0; i < n; i += BATCH) {
        for (int j = 0; j < BATCH; j++)
            items[j] = (struct weir_item){ s->limiter,
                                           { .key = key_of(&names[j], weir__mix64(s->seed++) %
                                                                          (uint64_t)s->keys),
                                             .cost = 1,
                                             .now = s->now } };
        weir_take_many(items, BATCH, d);
        keep((uint64_t)d[BATCH - 1].remaining);
        s->now += 100 * BATCH;
    }
}

/* Where a load goes depends on what the one before found (always 0, which only we know). */
static void load_dependent(void *context, int64_t n)
{
    struct subject *s = context;
    uint64_t lines = s->bytes / 64, at = 0;

    for (int64_t i = 0; i < n; i++)
        at = *(volatile uint64_t *)(void *)(s->region + (weir__mix64(s->seed++ + at) % lines) * 64);
    keep(at);
}

static void load_and_swap(void *context, int64_t n)
{
    struct subject *s = context;
    uint64_t lines = s->bytes / 64, *at[BATCH];

    for (int64_t i = 0; i < n; i += BATCH) {
        for (int j = 0; j < BATCH; j++) {
            at[j] = (uint64_t *)(void *)(s->region + (weir__mix64(s->seed++) % lines) * 64);
            __builtin_prefetch(at[j], 1);
        }
        for (int j = 0; j < BATCH; j++) {
            uint64_t seen = __atomic_load_n(at[j], __ATOMIC_ACQUIRE);
            __atomic_compare_exchange_n(at[j], &seen, seen, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE);
        }
    }
}

/* Interleaved rounds, so that a busy moment of the machine falls on all alike. */
static void compare(struct subject *s, const char *name, int64_t n)
{
    static const struct {
        const char *what;
        work_function work;
    } works[] = { { "one-by-one", take_random },
                  { "batch-16", take_batches },
                  { "dependent-load", load_dependent },
                  { "load-and-swap", load_and_swap } };
    double rounds[4][ROUNDS], middle[4];
    char label[100];
    for (int w = 0; w < 4; w++)
        works[w].work(s, n / 4);
    for (int r = 0; r < ROUNDS; r++)
        for (int w = 0; w < 4; w++) {
            double begin = cpu_ns();
            works[w].work(s, n);
            rounds[w][r] = (cpu_ns() - begin) / (double)n;
        }
    for (int w = 0; w < 4; w++) {
        middle[w] = median(rounds[w], ROUNDS);
        snprintf(label, sizeof(label), "keys.%s.%s", name, works[w].what);
        figure(label, middle[w], "ns");
    }
    snprintf(label, sizeof(label), "keys.%s.one-by-one-over-dependent-load", name);
    figure(label, middle[0] / middle[2], "times");
    snprintf(label, sizeof(label), "keys.%s.batch-over-load-and-swap", name);
    figure(label, middle[1] / middle[3], "times");
}

static void keys(int64_t n, bool narrow, int64_t room)
{
    struct subject s = open_table(n, room, narrow);
    struct weir_table_stats stats;
    char name[60], label[100];

    snprintf(name, sizeof(name), "%s.%" PRId64 "%s", narrow ? "narrow" : "wide", n,
             room > n ? ".roomy" : "");
    fill(&s);
    weir_table_stats(s.table, -1, &stats);
    s.bytes = (size_t)(stats.slots * (narrow ? 16 : 32));
    s.region = mmap(NULL, s.bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    madvise(s.region, s.bytes, MADV_HUGEPAGE);
    memset(s.region, 0, s.bytes);
    compare(&s, name, n < 1000000 ? 4000000 : 2000000);
    snprintf(label, sizeof(label), "keys.%s.bytes-per-key", name);
    figure(label, (double)(stats.bytes - 4096) / (double)stats.keys, "bytes");
    snprintf(label, sizeof(label), "keys.%s.filling", name);
    figure(label, (double)stats.keys / (double)stats.slots, "share");
    snprintf(label, sizeof(label), "keys.%s.evicted-early", name);
    figure(label, (double)stats.evicted_early / (double)n, "share");
    munmap(s.region, s.bytes);
    weir_table_destroy(s.table);
}

/* Filled as promised (82 %), or with some room (75 %). */
static void keys_in(int64_t n, bool narrow, bool roomy)
{
    keys(n, narrow, roomy ? n / 75 * 82 : n);
}

/* ------------------------------------------------------------- threads ---- */

#define THREAD_TAKES 10000000

struct runner {
    struct subject *s;
    uint64_t key;
    int *gate;
    int wanted, number;
    double begin, end;
    pthread_mutex_t *mutex;
    double *bucket;
};

static void *take_in_thread(void *argument)
{
    struct runner *r = argument;
    struct name name;
    struct weir_key key = key_of(&name, r->key);
    struct weir_decision d;

    wait_for_all(r->gate, r->wanted, r->number);
    r->begin = wall_ns();
    for (int64_t i = 0; i < THREAD_TAKES; i++) {
        struct weir_ask a = { .key = key,
                              .cost = 1,
                              .now = 1000 * WEIR_SECOND + i * 1000 * WEIR_MILLISECOND };
        weir_take(r->s->limiter, &a, &d);
    }
    r->end = wall_ns();
    return NULL;
}

/* The peer: a token bucket under a mutex, the time supplied, the key given. */
static void *take_under_mutex(void *argument)
{
    struct runner *r = argument;

    wait_for_all(r->gate, r->wanted, r->number);
    r->begin = wall_ns();
    for (int64_t i = 0; i < THREAD_TAKES; i++) {
        double now = 1000 + (double)i;
        pthread_mutex_lock(r->mutex);
        double tokens = r->bucket[0] + (now - r->bucket[1]) * 1000;
        tokens = tokens > 10 ? 10 : tokens;
        if (tokens >= 1)
            tokens -= 1;
        r->bucket[0] = tokens;
        r->bucket[1] = now;
        pthread_mutex_unlock(r->mutex);
    }
    r->end = wall_ns();
    return NULL;
}

/* ns of wall time per decision, of all threads together; the least of five, since what disturbs can
 * only add. */
static double run_threads(struct subject *s, int n, bool same_key, void *(*work)(void *))
{
    double best = 0;
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[2];
        struct runner runners[2];
        double bucket[2] = { 10, 0 };
        int gate = 0;
        for (int i = 0; i < n; i++) {
            runners[i] = (struct runner){ .s = s,
                                          .key = same_key ? 1 : (uint64_t)(1000 * i + 1),
                                          .gate = &gate,
                                          .wanted = n,
                                          .number = i,
                                          .mutex = &mutex,
                                          .bucket = bucket };
            pthread_create(&threads[i], NULL, work, &runners[i]);
        }
        double begin = 0, end = 0;
        for (int i = 0; i < n; i++) {
            pthread_join(threads[i], NULL);
            begin = i == 0 || runners[i].begin < begin ? runners[i].begin : begin;
            end = runners[i].end > end ? runners[i].end : end;
        }
        double each = (end - begin) / ((double)n * THREAD_TAKES);
        best = round == 0 || each < best ? each : best;
    }
    return best;
}

static void threads(void)
{
    struct subject s = open_table(100000, 100000, true);
    double one = run_threads(&s, 1, true, take_in_thread),
           two = run_threads(&s, 2, false, take_in_thread);
    double same = run_threads(&s, 2, true, take_in_thread),
           mutex = run_threads(&s, 2, true, take_under_mutex);

    figure("threads.one", one, "ns");
    figure("threads.two-keys", two, "ns");
    figure("threads.two-keys.speed-up", one / two, "times");
    figure("threads.one-key", same, "ns");
    figure("threads.one-key.mutex", mutex, "ns");
    figure("threads.one-key.mutex-over-weir", mutex / same, "times");
    weir_table_destroy(s.table);
}

/* ------------------------------------------------------------------ log ---- */

/* One stamp more, one expired, over and over. */
static void take_log(void *context, int64_t n)
{
    struct subject *s = context;
    struct weir_decision d;

    for (int64_t i = 0; i < n; i++) {
        struct weir_ask a = { .key = { "k", 1 }, .cost = 1, .now = s->now };
        weir_take(s->limiter, &a, &d);
        keep((uint64_t)d.remaining);
        s->now += 2 * WEIR_SECOND / s->keys;
    }
}

static void log_of(int64_t stamps)
{
    struct subject s = { .keys = stamps, .now = 1000 * WEIR_SECOND };
    struct weir_table_options o = { .keys = 1000, .slab = 64 * (stamps * 8 + 65536), .guards = 1 };
    struct weir_limit limit = { .algorithm = "sliding-log",
                                .count = stamps,
                                .period = WEIR_SECOND };
    struct weir_error e;
    char name[32];

    if (weir_table_create(&s.table, &o, &e) != WEIR_OK ||
        weir_limiter_create(&s.limiter, s.table, "bench", &limit, &e) != WEIR_OK)
        die("table", &e);
    take_log(&s, stamps);
    snprintf(name, sizeof(name), "take.log.%" PRId64, stamps);
    figure(name, measure(take_log, &s, 100000000 / (stamps + 10000)), "ns");
    weir_table_destroy(s.table);
}

/* ----------------------------------------------------------------- full ---- */

static void take_new(void *context, int64_t n)
{
    struct subject *s = context;
    struct weir_decision d;
    struct name name;

    for (int64_t i = 0; i < n; i++) {
        struct weir_ask a = { .key = key_of(&name, s->seed++), .cost = 1, .now = s->now };
        weir_take(s->limiter, &a, &d);
        keep((uint64_t)d.remaining);
    }
}

static void full_of(const char *text, const char *name, int64_t keys)
{
    struct subject s = { .now = 1000 * WEIR_SECOND };
    struct weir_table_options o = { .keys = keys, .guards = 1 };
    struct weir_limit limit = parse_limit(text);
    struct weir_error e;
    char label[64];

    if (weir_table_create(&s.table, &o, &e) != WEIR_OK ||
        weir_limiter_create(&s.limiter, s.table, "bench", &limit, &e) != WEIR_OK)
        die("table", &e);
    take_new(&s, 2 * keys);
    snprintf(label, sizeof(label), "take.full.%s", name);
    figure(label, measure(take_new, &s, 20000), "ns");
    weir_table_destroy(s.table);
}

static void full(int64_t keys)
{
    full_of("gcra 5/1h", "gcra", keys);
    full_of("sliding-window 5/1h", "window-10", keys);
    full_of("sliding-window 5/1h buckets=60", "window-60", keys);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "hot";

    if (strcmp(what, "hot") == 0)
        hot();
    else if (strcmp(what, "hot-loop") == 0)
        hot_loop(argc > 2 ? atoll(argv[2]) : 1000);
    else if (strcmp(what, "threads") == 0)
        threads();
    else if (strcmp(what, "log") == 0)
        log_of(argc > 2 ? atoll(argv[2]) : 1000);
    else if (strcmp(what, "full") == 0)
        full(argc > 2 ? atoll(argv[2]) : 1000000);
    else if (strcmp(what, "keys") == 0)
        keys_in(argc > 2 ? atoll(argv[2]) : 1000000, argc <= 3 || strcmp(argv[3], "wide") != 0,
                argc > 4 && strcmp(argv[4], "roomy") == 0);
    else
        return 2;
    return 0;
}
