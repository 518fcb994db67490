/* kill.c -- processes are killed (SIGKILL) at random moments inside decisions, thousands of times,
 * while others go on.
 *
 *     kill SEED KILLS
 *
 * Two files.  In one, with room for all its keys, victims take singly and several at once, at one
 * frozen instant, and book every grant that they get, after the decision, in memory of their own.
 * In the other, far too small, they drive out each other's keys, and give back.  A witness works
 * on a key of its own in the first file meanwhile.  In the end:
 *
 *     nothing forgotten   no key has used less than was booked
 *     nothing lost        nor more than was booked and the decisions that were cut off
 *     no stuck key        every key of both files can be asked, and after its rest it has its whole
 *                         burst again
 *     others go on        the witness got exactly the limit, in every round
 *     attach works        before, during and after; and some interrupted work was put right
 *                         (recovered)
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "table/table.h"
#include "random.h"

#define VICTIMS 3
#define KEYS    32
#define NOW     (1000 * WEIR_SECOND)

/* SMALL, OTHER and LARGE stand still in time, so that what was used can be compared with what was
 * booked. */
enum { SMALL, OTHER, LARGE, WITNESS, CHURN, LIMITERS };

static const char *const limits[2][LIMITERS] = {
    { "fixed-window 1000000000/10000s", "gcra 1000000000/10000s",
      "sliding-window 1000000000/10000s", "fixed-window 40/1s", "token-bucket 3/60s" },
    { "gcra 1000000000/10000s", "token-bucket 1000000000/10000s",
      "sliding-window 1000000000/10000s", "gcra 40/1s", "gcra 3/60s" },
};

struct book {
    int64_t granted[3][KEYS];
    int64_t witnessed, witness_wrong;
    int stop;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "kill: %s: %s\n", what, why);
    _exit(1);
}

/* A file of its own for the keys that drive each other out. */
struct tables {
    struct weir_table *roomy, *tiny;
    struct weir_limiter *l[LIMITERS];
};

static struct weir_table *attach(const char *path, const char *suffix, bool narrow, int64_t keys)
{
    struct weir_table *t = NULL;
    struct weir_error e;
    char name[64];

    snprintf(name, sizeof(name), "%s%s", path, suffix);
    struct weir_table_options o = { .path = name, .keys = keys, .narrow = narrow };
    if (weir_table_create(&t, &o, &e) != WEIR_OK)
        die("attach", e.text);
    return t;
}

static struct tables open_tables(const char *path, bool narrow)
{
    struct tables t = { attach(path, "", narrow, 10000),
                        attach(path, ".tiny", narrow, 200),
                        { NULL } };

    for (int i = 0; i < LIMITERS; i++) {
        struct weir_limit limit;
        struct weir_error e;
        char name[] = "limiter-0";
        name[sizeof(name) - 2] = (char)('0' + i);
        if (weir_limit_parse(&limit, limits[narrow][i], &e) != WEIR_OK ||
            weir_limiter_create(&t.l[i], i == CHURN ? t.tiny : t.roomy, name, &limit, &e) !=
                WEIR_OK)
            die("limiter", e.text);
    }
    return t;
}

static void close_tables(struct tables *t)
{
    weir_table_destroy(t->roomy);
    weir_table_destroy(t->tiny);
}

static struct weir_ask ask_for(int64_t *key, weir_time now)
{
    return (struct weir_ask){ .key = { key, sizeof(*key) }, .cost = 1, .now = now };
}

/* ------------------------------------------------------------- victims ---- */

static void victim(const char *path, bool narrow, uint64_t seed, struct book *book)
{
    struct tables t = open_tables(path, narrow);
    struct weir_limiter **l = t.l;

    random_state = seed;
    for (;;) {
        struct weir_decision d;
        int64_t key = (int64_t)(roll() % KEYS), other = (int64_t)(roll() % KEYS),
                fresh = (int64_t)(roll() % 100000);
        struct weir_ask a = ask_for(&key, NOW), b = ask_for(&other, NOW), c = ask_for(&fresh, NOW);
        struct weir_item items[] = { { l[SMALL], a }, { l[LARGE], b }, { l[OTHER], a } };
        struct weir_item small[] = { { l[SMALL], a },
                                     { l[OTHER], b },
                                     { l[SMALL], a } }; /* take-all.c's quick way */
        struct weir_item churn[] = { { l[CHURN], c }, { l[CHURN], ask_for(&other, NOW) } };
        switch (roll() % 10) {
        case 0:
            if (weir_take(l[SMALL], &a, &d))
                __atomic_fetch_add(&book->granted[SMALL][key], 1, __ATOMIC_RELAXED);
            break;
        case 1:
            if (weir_take(l[LARGE], &b, &d))
                __atomic_fetch_add(&book->granted[LARGE][other], 1, __ATOMIC_RELAXED);
            break;
        case 2:
            weir_take(l[CHURN], &c, &d);
            break;
        case 3:
            weir_give(l[CHURN], &c);
            break;
        case 4:
            weir_take_all(churn, 2, &d);
            break;
        case 5:
        case 6:
        case 7:
            if (weir_take_all(small + roll() % 2, 2, &d)) {
                __atomic_fetch_add(&book->granted[SMALL][key], 1, __ATOMIC_RELAXED);
                __atomic_fetch_add(&book->granted[OTHER][other], 1, __ATOMIC_RELAXED);
            }
            break;
        default:
            if (weir_take_all(items, 3, &d)) {
                __atomic_fetch_add(&book->granted[SMALL][key], 1, __ATOMIC_RELAXED);
                __atomic_fetch_add(&book->granted[LARGE][other], 1, __ATOMIC_RELAXED);
                __atomic_fetch_add(&book->granted[OTHER][key], 1, __ATOMIC_RELAXED);
            }
        }
    }
}

/* ------------------------------------------------------------- witness ---- */

/* Takes the whole limit of one key, second after second of its own time: 40 pass, the 41st does
 * not. */
static void witness(const char *path, bool narrow, struct book *book)
{
    struct tables t = open_tables(path, narrow);
    int64_t key = 7;

    for (int64_t round = 0; !__atomic_load_n(&book->stop, __ATOMIC_RELAXED); round++) {
        int got = 0;
        for (int i = 0; i < 45; i++) {
            struct weir_ask a = ask_for(&key, NOW + round * WEIR_SECOND);
            struct weir_decision d;
            got += weir_take(t.l[WITNESS], &a, &d);
        }
        book->witnessed++;
        book->witness_wrong += got != 40;
    }
    close_tables(&t);
    _exit(0);
}

/* --------------------------------------------------------------- verdict ---- */

static int failed, passed;

static void expect(bool ok, const char *what, int64_t got, int64_t wanted)
{
    passed += ok;
    failed += !ok;
    if (!ok)
        fprintf(stderr, "kill: %s: got %" PRId64 ", expected %" PRId64 "\n", what, got, wanted);
}

/* Each key's use against the books. */
static void compare_books(struct tables *t, const struct book *book, int64_t kills)
{
    for (int limiter = SMALL; limiter <= LARGE; limiter++) {
        int64_t lost = 0, used_in_all = 0;
        for (int64_t key = 0; key < KEYS; key++) {
            struct weir_ask a = ask_for(&key, NOW);
            struct weir_decision d;
            a.cost = 0;
            weir_peek(t->l[limiter], &a, &d);
            int64_t used = d.limit - d.remaining;
            used_in_all += used;
            lost += used - book->granted[limiter][key];
            expect(used >= book->granted[limiter][key],
                   "used by a key, at least what it was granted", used,
                   book->granted[limiter][key]);
        }
        expect(lost <= kills, "charged without a grant, at most one a kill", lost, kills);
        expect(used_in_all > 0, "used at all", used_in_all, 1);
    }
}

static void every_key_rests(struct tables *t)
{
    for (int limiter = 0; limiter < LIMITERS; limiter++)
        for (int64_t key = 0; key < 1000; key++) {
            struct weir_ask a = ask_for(&key, NOW + 1000000000 * WEIR_SECOND);
            struct weir_decision d;
            a.cost = 0;
            weir_peek(t->l[limiter], &a, &d);
            expect(d.allowed && d.remaining == d.limit, "left to a key that has rested",
                   d.remaining, d.limit);
            a.cost = 1;
            expect(weir_take(t->l[limiter], &a, &d), "a rested key is granted", 0, 1);
        }
}

static void judge(const char *path, bool narrow, const struct book *book, int64_t kills)
{
    struct tables t = open_tables(path, narrow);
    struct weir_table_stats roomy, tiny;

    alarm(600); /* a stuck key would hang here */
    weir_table_stats(t.roomy, NOW, &roomy);
    weir_table_stats(t.tiny, NOW, &tiny);
    compare_books(&t, book, kills);
    every_key_rests(&t);
    expect(roomy.evicted_early == 0, "evictions where there is room", roomy.evicted_early, 0);
    expect(tiny.evicted_early > 0, "evictions where there is none", tiny.evicted_early, 1);
    expect(kills < 500 || roomy.recovered + tiny.recovered > 0, "decisions put right",
           roomy.recovered + tiny.recovered, 1);
    expect(book->witnessed > 0 && book->witness_wrong == 0,
           "rounds in which the witness did not get just its limit", book->witness_wrong, 0);
    printf("%s: %" PRId64 " kills, %" PRId64 " put right, %" PRId64 " + %" PRId64
           " evictions, %" PRId64 " rounds of the witness\n",
           narrow ? "narrow" : "wide", kills, roomy.recovered + tiny.recovered, tiny.evicted_idle,
           tiny.evicted_early, book->witnessed);
    close_tables(&t);
    alarm(0);
}

static pid_t start_victim(const char *path, bool narrow, struct book *book)
{
    uint64_t seed = roll();
    pid_t pid = fork();

    if (pid == 0)
        victim(path, narrow, seed, book);
    return pid;
}

static void run(bool narrow, int64_t kills)
{
    char path[] = "weir-kill-XXXXXX";
    struct book *book =
        mmap(NULL, sizeof(*book), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t victims[VICTIMS], watcher;
    char tiny[64];

    close(mkstemp(path));
    snprintf(tiny, sizeof(tiny), "%s.tiny", path);
    struct tables first = open_tables(path, narrow);
    close_tables(&first);
    if ((watcher = fork()) == 0)
        witness(path, narrow, book);
    for (int i = 0; i < VICTIMS; i++)
        victims[i] = start_victim(path, narrow, book);
    for (int64_t i = 0; i < kills; i++) {
        int status;
        struct timespec pause = { .tv_nsec = (long)(roll() % 1500000) };
        nanosleep(&pause, NULL); /* so that the moment of death is random */
        pid_t *v = &victims[i % VICTIMS];
        kill(*v, SIGKILL);
        waitpid(*v, &status, 0);
        expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a victim's end", status,
               SIGKILL);
        *v = start_victim(path, narrow, book);
    }
    for (int i = 0; i < VICTIMS; i++) {
        kill(victims[i], SIGKILL);
        waitpid(victims[i], NULL, 0);
    }
    int status;
    __atomic_store_n(&book->stop, 1, __ATOMIC_RELAXED);
    waitpid(watcher, &status, 0);
    expect(status == 0, "the witness's end", status, 0);
    judge(path, narrow, book, kills + VICTIMS);
    unlink(path);
    unlink(tiny);
    munmap(book, sizeof(*book));
}

int main(int argc, char **argv)
{
    random_state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int64_t kills = argc > 2 ? atoll(argv[2]) : 1000;
    run(false, kills);
    run(true, kills);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
