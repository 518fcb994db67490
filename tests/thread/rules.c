/* rules.c -- rules decided by many threads, and by two processes, at one frozen instant: exactly
 * what they allow is granted, whatever is put in force, edited or switched meanwhile.
 *
 *     thread-rules [ROUNDS]
 *
 *     all or nothing   a request that is granted is charged to every limit of every rule, one that
 *                      is refused to none; and while all have room for a request it is granted
 *     swap             rules put in force over and over under load: nothing is lost, doubled or
 *                      freed too early; tallies add up
 *     processes        two engines on one file share states, bans and modes
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/engine.h"
#include "engine/explain.h"
#include "thread/processes.h"

#define WORKERS 4
#define KEYS    6
#define SWAPS   10 /* at least */
#define NOW     (1000000 * WEIR_SECOND)

static int passed, failed;
static const char *subject = "";

static void expect(bool ok, const char *what, int64_t got, int64_t wanted)
{
    passed += ok;
    failed += !ok;
    if (!ok && failed <= 10)
        fprintf(stderr, "rules: %s: %s: got %" PRId64 ", expected %" PRId64 "\n", subject, what,
                got, wanted);
}

static void must(int code, const struct weir_error *e)
{
    if (code == WEIR_OK)
        return;
    fprintf(stderr, "rules: %s: %s\n", subject, e->text);
    exit(1);
}

static void use(struct weir *weir, const char *text)
{
    struct weir_rules *rules = NULL;
    struct weir_error e;

    must(weir_rules_parse(&rules, text, strlen(text), NULL, &e), &e);
    must(weir_use(weir, rules, NOW, &e), &e);
}

static void add(int64_t *n, int64_t d)
{
    __atomic_fetch_add(n, d, __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------- workers ---- */

/* What workers share, processes too. */
struct shared {
    int64_t by_ip[KEYS], by_account[KEYS], all, asked, bad;
    int ready, done;
};

struct job {
    void (*run)(struct job *);
    struct weir *weir;
    struct shared *shared;
    int number, asks;
};

static void at_the_gate(struct shared *s, int n)
{
    __atomic_fetch_add(&s->ready, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&s->ready, __ATOMIC_ACQUIRE) < n)
        sched_yield();
}

static void *thread_main(void *argument)
{
    struct job *job = argument;

    at_the_gate(job->shared, WORKERS);
    job->run(job);
    __atomic_fetch_add(&job->shared->done, 1, __ATOMIC_ACQ_REL);
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

static struct shared *new_shared(void)
{
    return mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                0);
}

/* ------------------------------------------------------------ requests ---- */

static const char *const ips[KEYS] = { "10.0.0.1",    "10.0.0.2",      "192.0.2.7",
                                       "2001:db8::1", "2001:db8:1::2", "::ffff:10.0.1.1" };
static const char *const accounts[KEYS] = {
    "alice", "bob", "carol", "dave", "erin", "a name of more than thirty-two bytes, so hashed"
};

static uint32_t ip_number; /* 0: by its name */

static bool ask(struct weir *weir, int ip, int account, int64_t cost, struct weir_ruling *ruling)
{
    struct weir_attr attrs[] = { { .name = "ip", .value = ips[ip], .id = ip_number },
                                 { .name = "account", .value = accounts[account] },
                                 { .name = "uri", .value = "//api/./x?y" } };

    return weir_check(weir, attrs, 3, &(struct weir_ask){ .cost = cost, .now = NOW }, ruling);
}

static bool ask_and_count(struct job *job, int ip, int account, int64_t cost)
{
    struct weir_ruling ruling;
    bool allowed = ask(job->weir, ip, account, cost, &ruling);

    add(&job->shared->asked, 1);
    if (!allowed)
        return false;
    add(&job->shared->by_ip[ip], cost);
    add(&job->shared->by_account[account], cost);
    add(&job->shared->all, cost);
    return true;
}

/* -------------------------------------------------------- all or nothing ---- */

static const char small_rules[] =
    "version: 1\n"
    "rules:\n"
    "  - { name: ip, key: \"{ip}\", limit: [\"gcra 300/300s\", \"fixed-window 340/1000s\"] }\n"
    "  - { name: account, match: { uri: \"/api/**\" }, key: \"{account}\", limit: [\"token-bucket "
    "250/500s\"] }\n"
    "  - { name: both, key: \"{ip/24}:{account}\", limit: [\"leaky-bucket 60/60s\"] }\n"
    "  - { name: everybody, limit: [\"fixed-window 1200/1000s\"] }\n";

static const char large_rules[] =
    "version: 1\n"
    "rules:\n"
    "  - { name: ip, key: \"{ip}\", limit: [\"sliding-window 300/300s\", \"fixed-window "
    "340/1000s\"], keys: 200 }\n"
    "  - { name: account, key: \"{account}\", limit: [\"sliding-log 250/500s\"], keys: 200 }\n"
    "  - { name: both, key: \"{ip/24}:{account}\", limit: [\"leaky-bucket 60/60s\"] }\n"
    "  - { name: everybody, limit: [\"fixed-window 1200/1000s\"] }\n";

static void ask_all_pairs(struct job *job)
{
    for (int i = 0; i < job->asks; i++)
        for (int k = 0; k < KEYS * KEYS; k++) {
            int pair = (k + job->number * 11) % (KEYS * KEYS);
            ask_and_count(job, pair / KEYS, pair % KEYS, 1 + (i + k) % 3);
        }
}

/* What the limits of a request's keys have left, by peeking. */
struct left {
    int64_t used_by_ip, used_by_account, used_by_all, least;
};

static void note_left(void *context, const struct weir__explained *rule)
{
    struct left *left = context;

    for (size_t i = 0; i < rule->n_limits; i++) {
        const struct weir_decision *d = &rule->limits[i].decision;
        int64_t used = d->limit - d->remaining;
        if (strcmp(rule->rule->name, "ip") == 0)
            left->used_by_ip = i > 0 && used != left->used_by_ip ? -1 : used;
        else if (strcmp(rule->rule->name, "account") == 0)
            left->used_by_account = used;
        else if (strcmp(rule->rule->name, "everybody") == 0)
            left->used_by_all = used;
        left->least = d->remaining < left->least ? d->remaining : left->least;
    }
}

static struct left look(struct weir *weir, int ip, int account)
{
    struct weir_attr attrs[] = { { .name = "ip", .value = ips[ip] },
                                 { .name = "account", .value = accounts[account] },
                                 { .name = "uri", .value = "/api/x" } };
    struct left left = { .least = INT64_MAX };
    struct weir__explanation unused;

    weir__engine_explain(weir, attrs, 3, &(struct weir_ask){ .now = NOW }, &unused, note_left,
                         &left);
    return left;
}

static void compare_books(struct weir *weir, const struct shared *s)
{
    for (int k = 0; k < KEYS; k++) {
        struct left left = look(weir, k, k);
        expect(left.used_by_ip == s->by_ip[k], "used by an address", left.used_by_ip, s->by_ip[k]);
        expect(left.used_by_account == s->by_account[k], "used by an account", left.used_by_account,
               s->by_account[k]);
        expect(left.used_by_all == s->all, "used by everybody", left.used_by_all, s->all);
    }
}

/* Everything that still fits is granted, one by one; then nothing is. */
static void no_phantom_refusals(struct job *job)
{
    for (int ip = 0; ip < KEYS; ip++)
        for (int account = 0; account < KEYS; account++) {
            int64_t fits = look(job->weir, ip, account).least, got = 0;
            while (ask_and_count(job, ip, account, 1))
                got++;
            expect(got == fits, "granted of what was left", got, fits);
        }
}

static void all_or_nothing(const char *text, int asks)
{
    subject = text == small_rules ? "all or nothing" : "all or nothing, large states";
    struct job job = { .run = ask_all_pairs, .shared = new_shared(), .asks = asks };
    struct weir_error e;
    must(weir_create(&job.weir, &(struct weir_options){ .keys = 1000 }, &e), &e);
    use(job.weir, text);
    run_threads(&job);
    compare_books(job.weir, job.shared);
    no_phantom_refusals(&job);
    compare_books(job.weir, job.shared);
    expect(asks > 1 ? job.shared->all == 1200 : job.shared->all <= 1200, "granted in all",
           job.shared->all, 1200);
    weir_destroy(job.weir);
    munmap(job.shared, sizeof(*job.shared));
}

/* ------------------------------------------------------ swap under load ---- */

/* Three ask; the fourth puts rules in force, edits lists, switches modes and explains until they
 * are done.  `steady` never changes; `other` changes its numbers, but never refuses; `toggled` is
 * switched, and changes its key and its algorithm; `passing` comes and goes. */
static const char *const swapped[] = {
    "version: 1\n"
    "rules:\n"
    "  - { name: steady, limit: [\"fixed-window 300000/1000s\", \"gcra 300000/300000s\"] }\n"
    "  - { name: other, key: \"{ip}\", limit: [\"fixed-window 1000000/1000s\"] }\n"
    "  - { name: toggled, key: \"{account}\", limit: [\"fixed-window 1000000/1000s\"] }\n"
    "lists: { friends: { account: [zoe] }, deny: { account: [mallory] }, allow: { account: [trent] "
    "} }\n",
    "version: 1\n"
    "rules:\n"
    "  - { name: passing, not: { account: { list: friends } }, key: \"{ip}\", limit: [\"gcra "
    "1000000/10s\"] }\n"
    "  - { name: other, key: \"{ip}\", limit: [\"fixed-window 2000000/1000s\"] }\n"
    "  - { name: steady, match: { ip: \"*\" }, limit: [\"fixed-window 300000/1000s\", \"gcra "
    "300000/300000s\"] }\n"
    "  - { name: toggled, key: \"{ip/24}:{account}\", limit: [\"gcra 1000000/1000s\"] }\n"
    "lists: { friends: { account: [zoe] }, deny: { account: [mallory] }, allow: { account: [trent] "
    "} }\n",
};

static void edit(struct weir *weir, int i)
{
    const char *name = i % 2 ? "nina" : "oscar";
    struct weir_error e;

    must(weir_list_edit(
             weir,
             &(struct weir_list_edit){ i % 3 ? "deny" : "friends", "account", &name, 1, NULL, 0 },
             &e),
         &e);
    must(weir_list_edit(weir, &(struct weir_list_edit){ "allow", "header.x", &name, 1, NULL, 0 },
                        &e),
         &e);
    must(weir_list_edit(weir, &(struct weir_list_edit){ "allow", "header.x", NULL, 0, &name, 1 },
                        &e),
         &e);
    must(weir_mode_set(weir, "toggled", (enum weir_mode)(i % 4), &e), &e);
}

static void note_other(void *context, const struct weir__explained *rule)
{
    const struct weir_decision *d = &rule->limits[0].decision;

    if (strcmp(rule->rule->name, "other") == 0)
        *(int64_t *)context = d->limit - d->remaining;
}

static int64_t used_of_other(struct weir *weir, int ip)
{
    struct weir_attr attrs[] = { { .name = "ip", .value = ips[ip] } };
    struct weir__explanation unused;
    int64_t used = -1;

    weir__engine_explain(weir, attrs, 1, &(struct weir_ask){ .now = NOW }, &unused, note_other,
                         &used);
    return used;
}

/* By hand it was switched, and so it stays, whatever the rule has become. */
static void find_toggled(struct job *job, int i)
{
    struct weir_rule_info info;

    for (int64_t at = 0; weir_rule_next(job->weir, &at, &info);)
        if (strcmp(info.name, "toggled") == 0 && info.switched == (enum weir_mode)(i % 4))
            return;
    add(&job->shared->bad, 1);
}

static void swap_and_edit(struct job *job, int i)
{
    char name[] = "header.A-z";

    use(job->weir, swapped[i % 3 == 2]);
    if (i > 0)
        find_toggled(job, i - 1);
    edit(job->weir, i);
    name[7] = (char)('A' + i % 8);
    if (used_of_other(job->weir, i % KEYS) < 0 || weir_attribute(job->weir, name) == 0)
        add(&job->shared->bad, 1);
    add(&job->shared->by_account[0], 1); /* rounds */
}

static void swap_or_ask(struct job *job)
{
    for (int i = 0;
         job->number == 0 && __atomic_load_n(&job->shared->done, __ATOMIC_ACQUIRE) < WORKERS - 1;
         i++)
        swap_and_edit(job, i);
    for (int i = 0;
         job->number != 0 &&
         (i < job->asks || __atomic_load_n(&job->shared->by_account[0], __ATOMIC_RELAXED) < SWAPS);
         i++) {
        struct weir_ruling ruling;
        bool allowed = ask(job->weir, i % KEYS, 1, 1, &ruling);
        if (i % 16 == 0)
            sched_yield(); /* let the fourth get a turn */
        add(&job->shared->asked, 1);
        add(&job->shared->all, allowed);
        add(&job->shared->by_ip[i % KEYS], allowed);
        if (ruling.list || ruling.applied < 2 || (!allowed && strcmp(ruling.rule, "steady") != 0))
            add(&job->shared->bad, 1);
    }
}

static void judge_swaps(struct job *job)
{
    struct shared *s = job->shared;
    struct weir_rule_info info;

    use(job->weir, swapped[0]);
    expect(s->bad == 0, "rulings that no rule set can give", s->bad, 0);
    expect(s->all == 300000, "granted across swaps", s->all, 300000);
    expect(weir_rule_next(job->weir, &(int64_t){ 0 }, &info), "the steady rule", 0, 1);
    expect(info.allowed + info.refused == s->asked, "asks that the steady rule counted",
           info.allowed + info.refused, s->asked);
    expect(info.allowed == s->all, "grants that the steady rule counted", info.allowed, s->all);
    expect(weir_rule_next(job->weir, &(int64_t){ 1 }, &info), "the other rule", 0, 1);
    expect(info.allowed == s->all, "grants that the other rule counted", info.allowed, s->all);
    for (int k = 0; k < KEYS; k++)
        expect(used_of_other(job->weir, k) == s->by_ip[k], "used across changes",
               used_of_other(job->weir, k), s->by_ip[k]);
}

static void swap_under_load(int asks)
{
    subject = "swap under load";
    struct job job = { .run = swap_or_ask, .shared = new_shared(), .asks = asks };
    struct weir_error e;
    must(weir_create(&job.weir, &(struct weir_options){ .keys = 1000 }, &e), &e);
    use(job.weir, swapped[0]);
    ip_number = weir_attribute(job.weir, "ip");
    run_threads(&job);
    ip_number = 0;
    judge_swaps(&job);
    weir_destroy(job.weir);
    munmap(job.shared, sizeof(*job.shared));
}

/* ----------------------------------------------------------- processes ---- */

static const char ban_rules[] =
    "version: 1\n"
    "rules:\n"
    "  - { name: login, match: { uri: /api/x }, key: \"{ip}\", limit: 2/1000s,\n"
    "      ban: { refusals: 3/60s, for: 10m } }\n"
    "  - { name: everybody, limit: 1000/1000s }\n";

static struct weir *open_engine(const char *path, const char *text)
{
    struct weir_table *table = NULL;
    struct weir *weir = NULL;
    struct weir_error e;

    must(weir_table_create(
             &table, &(struct weir_table_options){ .path = path, .keys = 1000, .slab = 1 << 22 },
             &e),
         &e);
    must(weir_create(&weir, &(struct weir_options){ .table = table }, &e), &e);
    use(weir, text);
    return weir;
}

static void close_engine(struct weir *weir)
{
    struct weir_table *table = weir_table_of(weir);

    weir_destroy(weir);
    weir_table_destroy(table);
}

/* A child with an engine of its own does something to the file. */
static pid_t in_child(const char *path, const char *text, struct shared *shared, int number,
                      void (*run)(struct job *))
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    failed = 0; /* from here on its own */
    struct job job = {
        .weir = open_engine(path, text), .shared = shared, .number = number, .asks = 20
    };
    run(&job);
    close_engine(job.weir);
    _exit(failed > 0);
}

static void wait_for(pid_t pid)
{
    int status;

    waitpid(pid, &status, 0);
    expect(status == 0, "a process's end", status, 0);
}

static void ask_when_both_are_here(struct job *job)
{
    at_the_gate(job->shared, 2);
    ask_all_pairs(job);
}

static void exact_across_processes(const char *path, const char *text)
{
    struct shared *s = new_shared();
    struct weir *weir = open_engine(path, text);
    pid_t one = in_child(path, text, s, 0, ask_when_both_are_here),
          two = in_child(path, text, s, 1, ask_when_both_are_here);

    wait_for(one);
    wait_for(two);
    compare_books(weir, s);
    expect(s->all == 1200, "granted in all, by two processes", s->all, 1200);
    close_engine(weir);
    munmap(s, sizeof(*s));
}

/* Two grants, then refusals; the third brings a ban. */
static void get_banned(struct job *job)
{
    struct weir_ruling r;

    for (int i = 0; i < 5; i++) {
        bool allowed = ask(job->weir, 0, 0, 1, &r);
        expect(allowed == (i < 2), "allowed before the ban", allowed, i < 2);
    }
    expect(r.banned_until == NOW + 600 * WEIR_SECOND, "banned until", r.banned_until,
           NOW + 600 * WEIR_SECOND);
}

static void lift_and_switch(struct job *job)
{
    struct weir_error e;

    expect(weir_ban_lift(job->weir, "login", "10.0.0.1", NOW), "the ban lifted", 0, 1);
    must(weir_mode_set(job->weir, "login", WEIR_SHADOW, &e), &e);
}

static void switch_all_off(struct job *job)
{
    struct weir_error e;

    must(weir_mode_set(job->weir, NULL, WEIR_OFF, &e), &e);
}

static void bans_and_modes_across_processes(const char *path)
{
    struct weir *weir = open_engine(path, ban_rules);
    struct weir_ruling r;

    wait_for(in_child(path, ban_rules, NULL, 0, get_banned));
    expect(!ask(weir, 0, 1, 1, &r) && r.decision.reason == WEIR_BANNED, "banned by another process",
           r.decision.reason, WEIR_BANNED);
    expect(ask(weir, 1, 1, 1, &r), "another key", r.decision.allowed, true);
    wait_for(in_child(path, ban_rules, NULL, 0, lift_and_switch));
    expect(ask(weir, 0, 1, 1, &r) && r.shadow != NULL, "in shadow by another process",
           r.decision.allowed, true);
    wait_for(in_child(path, ban_rules, NULL, 0, switch_all_off));
    expect(ask(weir, 0, 1, 1, &r) && r.mode == WEIR_OFF, "off by another process", r.mode,
           WEIR_OFF);
    close_engine(weir);
}

static void processes(void)
{
    static const char *const texts[] = { small_rules, large_rules };

    for (int i = 0; i < 3; i++) {
        char path[] = "weir-rules-XXXXXX";
        subject = i < 2 ? "two processes" : "bans and modes of two processes";
        close(mkstemp(path));
        if (i < 2)
            exact_across_processes(path, texts[i]);
        else
            bans_and_modes_across_processes(path);
        unlink(path);
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;

    alarm(500); /* a stuck key, or a swap that waits for ever, would hang */
    for (int round = 0; round < rounds; round++) {
        all_or_nothing(small_rules, 20);
        all_or_nothing(small_rules, 1);
        all_or_nothing(large_rules, 20);
        all_or_nothing(large_rules, 1);
        swap_under_load(110000);
        if (PROCESSES_RACE)
            processes();
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
