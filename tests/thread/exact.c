/* exact.c -- many threads, or many processes, at one frozen instant: exactly what the limit allows
 * is granted, no more and no less.
 *
 *     exact [ROUNDS [KEYS]]   keys of each worker's flood
 *
 * Every algorithm, in a narrow and a wide table, private and shared by processes; then several
 * limits at once, mixed with single takes, gives, a change of limit under way, and a table so full
 * that every new key drives out another; and all of that at the same time.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "table/table.h"
#include "thread/processes.h"

#define WORKERS 4
#define KEYS    64
#define CROWD   16
#define MANY    24
#define NOW     (1000 * WEIR_SECOND)

static int passed, failed;
static int64_t flood_keys = 20000;
static const char *subject = "";

static void expect(bool ok, const char *what, int64_t got, int64_t wanted)
{
    passed += ok;
    failed += !ok;
    if (!ok && failed <= 10)
        fprintf(stderr, "exact: %s: %s: got %" PRId64 ", expected %" PRId64 "\n", subject, what,
                got, wanted);
}

static struct weir_key key_of(int64_t *number)
{
    return (struct weir_key){ number, sizeof(*number) };
}

static struct weir_table *make_table(bool narrow, const char *path, int64_t keys)
{
    struct weir_table *t = NULL;
    struct weir_error e;
    struct weir_table_options o = { .narrow = narrow, .path = path, .keys = keys };

    if (weir_table_create(&t, &o, &e) != WEIR_OK) {
        fprintf(stderr, "exact: %s\n", e.text);
        exit(1);
    }
    return t;
}

static struct weir_limiter *make_limiter(struct weir_table *t, const char *name, const char *text)
{
    struct weir_limiter *l = NULL;
    struct weir_limit limit;
    struct weir_error e;

    if (weir_limit_parse(&limit, text, &e) != WEIR_OK ||
        weir_limiter_create(&l, t, name, &limit, &e) != WEIR_OK) {
        fprintf(stderr, "exact: %s: %s\n", text, e.text);
        exit(1);
    }
    return l;
}

/* ------------------------------------------------------------ workers ---- */

/* What workers share, processes too: counts, and a gate so that all begin together. */
struct shared {
    int64_t granted[KEYS];
    int64_t all, single, bad;
    int ready;
};

struct job {
    void (*run)(struct job *);
    struct weir_table *table;
    struct weir_limiter *limiters[MANY];
    struct shared *shared;
    const char *text, *path;
    int asks, number;
};

static void at_the_gate(struct shared *s)
{
    __atomic_fetch_add(&s->ready, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&s->ready, __ATOMIC_ACQUIRE) < WORKERS)
        sched_yield();
}

static void add(int64_t *n, int64_t d)
{
    __atomic_fetch_add(n, d, __ATOMIC_RELAXED);
}

static void *thread_main(void *argument)
{
    struct job *job = argument;

    at_the_gate(job->shared);
    job->run(job);
    return NULL;
}

static void run_threads(const struct job *job)
{
    pthread_t threads[WORKERS];
    struct job jobs[WORKERS];

    for (int i = 0; i < WORKERS; i++) {
        jobs[i] = *job;
        jobs[i].number = i;
        pthread_create(&threads[i], NULL, thread_main, &jobs[i]);
    }
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
}

/* Each process attaches by itself: nothing of the parent's mapping is used. */
static void run_processes(const struct job *job)
{
    pid_t pids[WORKERS];

    for (int i = 0; i < WORKERS; i++) {
        pids[i] = fork();
        if (pids[i] != 0)
            continue;
        struct job mine = *job;
        struct weir_error e;
        if (weir_table_attach(&mine.table, job->path, &e) != WEIR_OK) {
            fprintf(stderr, "exact: %s\n", e.text);
            _exit(1);
        }
        mine.limiters[0] = make_limiter(mine.table, "a", job->text);
        mine.number = i;
        at_the_gate(job->shared);
        mine.run(&mine);
        weir_table_destroy(mine.table);
        _exit(0);
    }
    for (int i = 0; i < WORKERS; i++) {
        int status;
        waitpid(pids[i], &status, 0);
        expect(status == 0, "a worker's end", status, 0);
    }
}

static struct shared *new_shared(void)
{
    struct shared *s =
        mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return s;
}

/* -------------------------------------------------- one limit, many keys ---- */

static void take_all_keys(struct job *job)
{
    for (int i = 0; i < job->asks; i++)
        for (int64_t k = 0; k < KEYS; k++) {
            int64_t number = (k + job->number * 7) % KEYS;
            struct weir_ask a = { .key = key_of(&number), .cost = 1, .now = NOW };
            struct weir_decision d;
            if (weir_take(job->limiters[0], &a, &d))
                add(&job->shared->granted[number], 1);
        }
}

static void take_in_batches(struct job *job)
{
    struct weir_item items[KEYS];
    struct weir_decision d[KEYS];
    int64_t numbers[KEYS];

    for (int i = 0; i < job->asks; i++) {
        for (int64_t k = 0; k < KEYS; k++) {
            numbers[k] = k;
            items[k] = (struct weir_item){ job->limiters[0],
                                           { .key = key_of(&numbers[k]), .cost = 1, .now = NOW } };
        }
        weir_take_many(items, KEYS, d);
        for (int64_t k = 0; k < KEYS; k++)
            if (d[k].allowed)
                add(&job->shared->granted[k], 1);
    }
}

static void exact_counts(const char *text, int64_t wanted, bool narrow, bool processes,
                         void (*run)(struct job *))
{
    static char name[200];
    char path[] = "weir-exact-XXXXXX";

    if (processes && !PROCESSES_RACE)
        return;
    snprintf(name, sizeof(name), "%s, %s, %s", text, narrow ? "narrow" : "wide",
             processes ? "processes" : "threads");
    subject = name;
    if (processes)
        close(mkstemp(path));
    struct job job = { .run = run, .shared = new_shared(), .text = text, .path = path, .asks = 40 };
    job.table = make_table(narrow, processes ? path : NULL, 1000);
    job.limiters[0] = make_limiter(job.table, "a", text);
    if (processes)
        run_processes(&job);
    else
        run_threads(&job);
    for (int k = 0; k < KEYS; k++)
        expect(job.shared->granted[k] == wanted, "granted to a key", job.shared->granted[k],
               wanted);
    weir_table_destroy(job.table);
    munmap(job.shared, sizeof(*job.shared));
    if (processes)
        unlink(path);
}

/* ------------------------------------------------------- several at once ---- */

/* Limits a (300), b (100) and, in the slab, c (70), on one key: taken together until c is spent; a
 * and b alone until they are. */
static void take_together(struct job *job)
{
    int64_t number = 1;
    struct weir_ask a = { .key = key_of(&number), .cost = 1, .now = NOW };

    for (int i = 0; i < 200; i++) {
        struct weir_item items[] = { { job->limiters[0], a },
                                     { job->limiters[1], a },
                                     { job->limiters[2], a } };
        struct weir_decision d;
        if (weir_take_all(items, 3, &d))
            add(&job->shared->all, 1);
        if (weir_take(job->limiters[0], &a, &d))
            add(&job->shared->single, 1);
        struct weir_item two[] = { { job->limiters[1], a }, { job->limiters[0], a } };
        if (i % 3 == job->number % 3 && weir_take_all(two, 2, &d))
            add(&job->shared->bad, 1); /* counted apart: takes from a and b, not c */
    }
}

static void all_or_nothing(bool narrow)
{
    subject = narrow ? "all or nothing, narrow" : "all or nothing, wide";
    struct job job = { .run = take_together, .shared = new_shared() };
    int64_t number = 1;
    struct weir_ask look = { .key = key_of(&number), .now = NOW };
    struct weir_decision d[3];
    job.table = make_table(narrow, NULL, 1000);
    job.limiters[0] = make_limiter(job.table, "a", "gcra 300/300s");
    job.limiters[1] = make_limiter(job.table, "b", "token-bucket 100/100s");
    job.limiters[2] = make_limiter(job.table, "c", "sliding-log 70/100s");
    run_threads(&job);
    for (int i = 0; i < 3; i++)
        weir_peek(job.limiters[i], &look, &d[i]);
    struct shared *s = job.shared;
    expect(d[0].remaining == 0, "left of a", d[0].remaining, 0);
    expect(s->all + s->single + s->bad == 300, "taken from a", s->all + s->single + s->bad, 300);
    expect(s->all + s->bad == 100 - d[1].remaining, "taken from b", s->all + s->bad,
           100 - d[1].remaining);
    expect(s->all == 70 - d[2].remaining, "taken from c", s->all, 70 - d[2].remaining);
    weir_table_destroy(job.table);
    munmap(s, sizeof(*s));
}

/* So many states at once that their copies are made in blocks, while others read the blocks that
 * were there before: all of a kind, or logs behind windows. */
static void take_many_states(struct job *job)
{
    int64_t number = 1;
    struct weir_item items[MANY];
    struct weir_decision d;

    for (size_t i = 0; i < MANY; i++)
        items[i] = (struct weir_item){ job->limiters[i],
                                       { .key = key_of(&number), .cost = 1, .now = NOW } };
    for (int i = 0; i < job->asks; i++)
        if (weir_take_all(items, MANY, &d))
            add(&job->shared->all, 1);
}

static void many_states(const char *text, const char *other, int64_t wanted)
{
    subject = text;
    struct job job = { .run = take_many_states, .shared = new_shared(), .asks = 100 };
    job.table = make_table(false, NULL, 1000);
    for (int i = 0; i < MANY; i++)
        job.limiters[i] =
            make_limiter(job.table, (char[]){ (char)('a' + i), 0 }, i % 3 == 2 ? other : text);
    run_threads(&job);
    expect(job.shared->all == wanted, "granted by all", job.shared->all, wanted);
    weir_table_destroy(job.table);
    munmap(job.shared, sizeof(*job.shared));
}

/* Two keys taken together from both ends, and by themselves: pins meet in both orders. */
static void take_crosswise(struct job *job)
{
    int64_t one = 1, two = 2;

    for (int i = 0; i < 300; i++) {
        struct weir_ask a = { .key = key_of(job->number % 2 ? &one : &two), .cost = 1, .now = NOW };
        struct weir_ask b = { .key = key_of(job->number % 2 ? &two : &one), .cost = 1, .now = NOW };
        struct weir_item items[] = { { job->limiters[0], a },
                                     { job->limiters[0], b },
                                     { job->limiters[0], b } };
        struct weir_decision d;
        if (weir_take_all(items, 3, &d)) {
            add(&job->shared->granted[job->number % 2 ? 1 : 2], 1);
            add(&job->shared->granted[job->number % 2 ? 2 : 1], 2);
        }
        if (weir_take(job->limiters[0], &a, &d))
            add(&job->shared->granted[job->number % 2 ? 1 : 2], 1);
    }
}

static void crosswise(bool narrow)
{
    subject = narrow ? "crosswise, narrow" : "crosswise, wide";
    struct job job = { .run = take_crosswise, .shared = new_shared() };
    job.table = make_table(narrow, NULL, 1000);
    job.limiters[0] = make_limiter(job.table, "a", "gcra 500/500s");
    run_threads(&job);
    for (int k = 1; k <= 2; k++)
        expect(job.shared->granted[k] == 500, "granted to a key", job.shared->granted[k], 500);
    weir_table_destroy(job.table);
    munmap(job.shared, sizeof(*job.shared));
}

/* ------------------------------------------------------ give and change ---- */

static void take_and_give(struct job *job)
{
    int64_t number = 3;
    struct weir_ask a = { .key = key_of(&number), .cost = 2, .now = NOW };

    for (int i = 0; i < 500; i++) {
        struct weir_decision d;
        if (weir_take(job->limiters[0], &a, &d))
            weir_give(job->limiters[0], &a);
        else
            add(&job->shared->bad, 1);
    }
}

/* One by one, and back all at once: a long log grows and shrinks by whole nodes. */
static void take_and_give_much(struct job *job)
{
    int64_t number = 3;
    struct weir_ask a = { .key = key_of(&number), .cost = 1, .now = NOW };

    for (int i = 0; i < 12; i++) {
        struct weir_ask all = a;
        struct weir_decision d;
        for (all.cost = 0; all.cost < 60 + 7 * i; all.cost++)
            if (!weir_take(job->limiters[0], &a, &d))
                add(&job->shared->bad, 1);
        weir_give(job->limiters[0], &all);
    }
}

static void giving_back(const char *text, bool narrow, void (*run)(struct job *))
{
    subject = text;
    struct job job = { .run = run, .shared = new_shared() };
    int64_t number = 3;
    struct weir_ask look = { .key = key_of(&number), .now = NOW };
    struct weir_decision d;
    job.table = make_table(narrow, NULL, 1000);
    job.limiters[0] = make_limiter(job.table, "a", text);
    run_threads(&job);
    weir_peek(job.limiters[0], &look, &d);
    expect(job.shared->bad == 0, "refusals although all fit", job.shared->bad, 0);
    expect(d.remaining == d.limit, "left after everything was given back", d.remaining, d.limit);
    int64_t used = (int64_t)weir__slab_stats(&job.table->keys.slab).bytes, most = 16 << 10;
    expect(used <= most, "bytes of the slab in use", used, most); /* hands keep some */
    weir_table_destroy(job.table);
    munmap(job.shared, sizeof(*job.shared));
}

/* The limit grows from 50 to 90 while four take: in the end just 90 were granted. */
static void take_while_changing(struct job *job)
{
    for (int i = 0; i < 200; i++) {
        if (job->number == 0 && i == 20) {
            struct weir_limit limit;
            struct weir_error e;
            weir_limit_parse(&limit, job->text, &e);
            limit.count = 90;
            limit.period = 90 * WEIR_SECOND;
            if (weir_limiter_change(job->limiters[0], &limit, NOW, &e) != WEIR_OK)
                add(&job->shared->bad, 1);
        }
        for (int64_t k = 0; k < KEYS; k++) {
            struct weir_ask a = { .key = key_of(&k), .cost = 1, .now = NOW };
            struct weir_decision d;
            if (weir_take(job->limiters[0], &a, &d))
                add(&job->shared->granted[k], 1);
        }
    }
}

static void changing(const char *text)
{
    subject = text;
    struct job job = { .run = take_while_changing, .shared = new_shared(), .text = text };
    job.table = make_table(false, NULL, 1000);
    job.limiters[0] = make_limiter(job.table, "a", text);
    run_threads(&job);
    expect(job.shared->bad == 0, "the change", job.shared->bad, 0);
    for (int k = 0; k < KEYS; k++)
        expect(job.shared->granted[k] == 90, "granted to a key across a change",
               job.shared->granted[k], 90);
    weir_table_destroy(job.table);
    munmap(job.shared, sizeof(*job.shared));
}

/* ------------------------------------------------------------ full table ---- */

/* Ever new keys in a table that has no room: each is granted as fresh or, if it was remembered, by
 * the rules; nothing wedges, and every key has at most one slot. */
static void flood(struct job *job)
{
    for (int64_t i = 0; i < flood_keys; i++) {
        int64_t number = 1000 + i * WORKERS + job->number;
        struct weir_ask a = { .key = key_of(&number), .cost = 1, .now = NOW + i };
        struct weir_decision d;
        if (!weir_take(job->limiters[0], &a, &d))
            add(&job->shared->bad, 1);
        int64_t common = i % KEYS;
        a.key = key_of(&common);
        weir_take(job->limiters[0], &a, &d);
    }
}

static int by_tag(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static int64_t doubles(const struct weir_table *t)
{
    size_t n = (size_t)t->keys.groups * WEIR__GROUP_SLOTS,
           stride = t->header->slot_size / sizeof(uint64_t);
    uint64_t *tags = malloc(n * sizeof(*tags));
    int64_t found = 0;

    for (size_t i = 0; i < n; i++)
        tags[i] = ((uint64_t *)(void *)t->keys.slots)[i * stride];
    qsort(tags, n, sizeof(*tags), by_tag);
    for (size_t i = 1; i < n; i++)
        found += tags[i] != 0 && tags[i] == tags[i - 1];
    free(tags);
    return found;
}

static void flooded(bool narrow)
{
    subject = narrow ? "flooded, narrow" : "flooded, wide";
    struct job job = { .run = flood, .shared = new_shared() };
    struct weir_table_stats stats;
    job.table = make_table(narrow, NULL, 1000);
    job.limiters[0] = make_limiter(job.table, "a", "gcra 1/1h burst 3");
    run_threads(&job);
    weir_table_stats(job.table, NOW, &stats);
    expect(job.shared->bad == 0, "new keys refused", job.shared->bad, 0);
    expect(stats.evicted_early > 0, "evictions", stats.evicted_early, 1);
    expect(stats.keys <= stats.slots, "slots in use", stats.keys, stats.slots);
    expect(doubles(job.table) == 0, "keys with two slots", doubles(job.table), 0);
    weir_table_destroy(job.table);
    munmap(job.shared, sizeof(*job.shared));
}

/* ------------------------------------------ several at once, in a crowd ---- */

/* Limits a and b that nobody spends, on keys that everybody wants: taken singly, two or three at
 * once in either order, and looked at; while ever new keys of c drive each other out around them,
 * and one worker changes b's limit there and back.  What a key has used is what was granted to it.
 * a and b stay longer than c, so no key of theirs is driven out once it was charged. */
static void change_crowd(struct job *job, int i)
{
    struct weir_limit limit;
    struct weir_error e;

    weir_limit_parse(&limit, job->text, &e);
    limit.count += i % 2 ? 0 : 1000;
    if (weir_limiter_change(job->limiters[1], &limit, NOW, &e) != WEIR_OK)
        add(&job->shared->bad, 1);
}

static void take_in_a_crowd(struct job *job)
{
    for (int i = 0; i < job->asks; i++) {
        int64_t one = (i * 7 + job->number) % CROWD, two = (i * 5 + 3 * job->number) % CROWD,
                stranger = 1000 + i * WORKERS + job->number;
        struct weir_ask a = { .key = key_of(&one), .cost = 1, .now = NOW },
                        b = { .key = key_of(&two), .cost = 2, .now = NOW };
        struct weir_ask c = { .key = key_of(&stranger), .cost = 1, .now = NOW };
        struct weir_item three[] = { { job->limiters[0], a },
                                     { job->limiters[1], b },
                                     { job->limiters[2], c } };
        struct weir_item back[] = { { job->limiters[1], b },
                                    { job->limiters[0], a },
                                    { job->limiters[0], a } };
        struct weir_decision d;
        if (job->number == 0 && i % 100 == 0 && job->text != NULL)
            change_crowd(job, i / 100);
        if (weir_take(job->limiters[0], &a, &d))
            add(&job->shared->granted[one], 1);
        if (weir_take_all(three, i % 3 ? 2 : 3, &d)) {
            add(&job->shared->granted[one], 1);
            add(&job->shared->granted[CROWD + two], 2);
        }
        if (weir_take_all(back, 3, &d)) {
            add(&job->shared->granted[one], 2);
            add(&job->shared->granted[CROWD + two], 2);
        }
    }
}

static void crowded(bool narrow, bool changing_too)
{
    subject = narrow ? "in a crowd, narrow" : changing_too ? "in a crowd, changing" : "in a crowd";
    struct job job = { .run = take_in_a_crowd, .shared = new_shared(), .asks = 3000 };
    struct weir_table_stats stats;
    job.text = changing_too ? "fixed-window 1000000/10000s" : NULL;
    job.table = make_table(narrow, NULL, 300);
    job.limiters[0] = make_limiter(job.table, "a",
                                   narrow ? "gcra 1000000/100000s" : "fixed-window 1000000/10000s");
    job.limiters[1] = make_limiter(
        job.table, "b", narrow ? "token-bucket 1000000/100000s" : "fixed-window 1000000/10000s");
    job.limiters[2] = make_limiter(job.table, "c", "gcra 1000/1s");
    run_threads(&job);
    for (int64_t k = 0; k < 2 * CROWD; k++) {
        int64_t number = k % CROWD;
        struct weir_ask look = { .key = key_of(&number), .now = NOW };
        struct weir_decision d;
        weir_peek(job.limiters[k / CROWD], &look, &d);
        expect(d.limit - d.remaining == job.shared->granted[k], "used by a key in a crowd",
               d.limit - d.remaining, job.shared->granted[k]);
    }
    weir_table_stats(job.table, NOW, &stats);
    expect(job.shared->bad == 0, "changes", job.shared->bad, 0);
    expect(stats.evicted_early > 0, "evictions", stats.evicted_early, 1);
    expect(doubles(job.table) == 0, "keys with two slots", doubles(job.table), 0);
    weir_table_destroy(job.table);
    munmap(job.shared, sizeof(*job.shared));
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;

    flood_keys = argc > 2 ? atoll(argv[2]) : flood_keys;
    static const struct {
        const char *text;
        int64_t wanted;
        bool packs;
    } cases[] = {
        { "gcra 100/100s", 100, true },
        { "token-bucket 70/60s burst 120", 120, false },
        { "token-bucket 10/1s burst 33", 33, true },
        { "leaky-bucket 1/1s burst 50", 50, true },
        { "fixed-window 90/7s", 90, false },
        { "fixed-window 90/7s align=first", 90, false },
        { "sliding-window 100/10s", 100, false },
        { "sliding-window 60/10s buckets=1200", 60, false }, /* changed in a block */
        { "sliding-log 30/3s", 30, false },
        { "sliding-log 150/10000s", 150, false }, /* a chain of nodes */
        { "smooth 30/30s burst 40", 41, false },
        { "warm-up 10/1s", 1, false },
    };
    for (int round = 0; round < rounds; round++) {
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
            exact_counts(cases[i].text, cases[i].wanted, false, false, take_all_keys);
            exact_counts(cases[i].text, cases[i].wanted, false, true, take_all_keys);
            exact_counts(cases[i].text, cases[i].wanted, false, false, take_in_batches);
            if (cases[i].packs) {
                exact_counts(cases[i].text, cases[i].wanted, true, false, take_all_keys);
                exact_counts(cases[i].text, cases[i].wanted, true, true, take_in_batches);
            }
        }
        for (int narrow = 0; narrow < 2; narrow++) {
            all_or_nothing(narrow);
            crosswise(narrow);
            flooded(narrow);
            crowded(narrow, false);
            crowded(narrow, !narrow);
            giving_back("gcra 10/10s", narrow, take_and_give);
            giving_back("sliding-log 10/10s", narrow, take_and_give);
            giving_back("sliding-log 600/10000s", narrow, take_and_give_much);
        }
        giving_back("token-bucket 10/7s", false, take_and_give);
        giving_back("sliding-window 10/10s", false, take_and_give);
        giving_back("fixed-window 10/10s", false, take_and_give);
        many_states("sliding-window 90/10s buckets=400", "sliding-log 100/10000s", 90);
        many_states("sliding-log 50/10s", "sliding-log 90/10000s", 50);
        changing("gcra 50/50s");
        changing("fixed-window 50/90s");
        changing("sliding-window 50/90s");
        changing("sliding-window 50/90s buckets=1200");
        changing("sliding-log 50/90s");
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
