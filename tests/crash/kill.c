/* kill.c -- processes are killed (SIGKILL) at random moments inside decisions, thousands of times, while others go on.
 *
 *     kill SEED KILLS
 *
 * Victims take, give, take several at once and drive keys out of a table that is too small, all on one file; each books every grant it got in
 * memory of its own, after the decision.  A witness works on keys of its own limiter meanwhile and must get exactly what the limit allows, and
 * never be held up.  In the end:
 *
 *     no stuck key       every key can still be asked, and after its rest it has its whole burst again
 *     never too much     no key of the frozen limiter was granted more than its limit
 *     nothing lost       what a key has used and what was booked differ by at most the decisions that were cut off
 *     attach works       before, during and after
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

#define VICTIMS 3
#define KEYS    32
#define LIMIT   1000000000
#define NOW     (1000 * WEIR_SECOND)

/* The limiters: `frozen` ones, whose time stands still so that use can be compared with what was booked; `churn`, whose keys come and go. */
enum { SMALL, OTHER, LARGE, CHURN, WITNESS, LIMITERS };

static const char *const limits[2][LIMITERS] = {
    { "fixed-window 1000000000/10000s", "gcra 1000000000/1s", "sliding-window 1000000000/10000s", "token-bucket 3/60s",
      "fixed-window 40/1s" },
    { "gcra 1000000000/1s", "token-bucket 1000000000/1s", "sliding-window 1000000000/10000s", "gcra 3/60s", "gcra 40/1s" },
};

struct book {
    int64_t granted[3][KEYS];
    int64_t witnessed, witness_wrong;
    int stop;
};

static uint64_t random_state;

static uint64_t random64(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "kill: %s: %s\n", what, why);
    _exit(1);
}

static struct weir_table *attach(const char *path, bool narrow, struct weir_limiter *l[LIMITERS])
{
    struct weir_table *t = NULL;
    struct weir_error e;
    struct weir_table_options o = { .path = path, .keys = 400, .narrow = narrow };
    if (weir_table_create(&t, &o, &e) != WEIR_OK)
        die("attach", e.text);
    for (int i = 0; i < LIMITERS; i++) {
        struct weir_limit limit;
        char name[] = "limiter-0";
        name[sizeof name - 2] = (char)('0' + i);
        if (weir_limit_parse(&limit, limits[narrow][i], &e) != WEIR_OK || weir_limiter_create(&l[i], t, name, &limit, 64, &e) != WEIR_OK)
            die("limiter", e.text);
    }
    return t;
}

static struct weir_ask ask_for(int64_t *key, weir_time now)
{
    return (struct weir_ask){ .key = { key, sizeof *key }, .cost = 1, .now = now };
}

/* ------------------------------------------------------------- victims ---- */

static void victim(const char *path, bool narrow, uint64_t seed, struct book *book)
{
    struct weir_limiter *l[LIMITERS];
    attach(path, narrow, l);
    random_state = seed;
    for (;;) {
        struct weir_decision d;
        int64_t key = (int64_t)(random64() % KEYS), other = (int64_t)(random64() % KEYS), fresh = (int64_t)(random64() % 100000);
        struct weir_ask a = ask_for(&key, NOW), b = ask_for(&other, NOW), c = ask_for(&fresh, NOW);
        struct weir_item items[] = { { l[SMALL], a }, { l[LARGE], b }, { l[OTHER], a } };
        switch (random64() % 6) {
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

/* Takes the whole limit of one key, second after second of its own time: 40 pass, the 41st does not. */
static void witness(const char *path, bool narrow, struct book *book)
{
    struct weir_limiter *l[LIMITERS];
    struct weir_table *t = attach(path, narrow, l);
    int64_t key = 7;
    for (int64_t round = 0; !__atomic_load_n(&book->stop, __ATOMIC_RELAXED); round++) {
        int got = 0;
        for (int i = 0; i < 45; i++) {
            struct weir_ask a = ask_for(&key, NOW + round * WEIR_SECOND);
            struct weir_decision d;
            got += weir_take(l[WITNESS], &a, &d);
        }
        book->witnessed++;
        /* In a table this small the witness's own key may be driven out and start afresh: more than 40 is then within the rules. */
        book->witness_wrong += got < 40;
    }
    weir_table_destroy(t);
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

static void judge(const char *path, bool narrow, const struct book *book, int64_t kills)
{
    struct weir_limiter *l[LIMITERS];
    struct weir_table *t = attach(path, narrow, l);
    struct weir_table_stats stats;
    int64_t lost = 0;
    alarm(60); /* a stuck key would hang here */
    weir_table_stats(t, NOW, &stats);
    for (int limiter = LARGE; limiter <= LARGE; limiter++) /* large slots have room for all keys: none was driven out */
        for (int64_t key = 0; key < KEYS; key++) {
            struct weir_ask a = ask_for(&key, NOW);
            struct weir_decision d;
            a.cost = 0;
            weir_peek(l[limiter], &a, &d);
            int64_t used = d.limit - d.remaining;
            lost += used - book->granted[limiter][key];
            expect(used >= book->granted[limiter][key], "a grant was forgotten", used, book->granted[limiter][key]);
        }
    expect(lost >= 0 && lost <= kills, "units charged without a grant, at most one a kill", lost, kills);
    for (int limiter = 0; limiter < LIMITERS; limiter++)
        for (int64_t key = 0; key < KEYS; key++) {
            struct weir_ask a = ask_for(&key, NOW + 1000000000 * WEIR_SECOND);
            struct weir_decision d;
            a.cost = 0;
            weir_peek(l[limiter], &a, &d);
            expect(d.allowed && d.remaining == d.limit, "left to a key that has rested", d.remaining, d.limit);
            a.cost = 1;
            expect(weir_take(l[limiter], &a, &d), "a rested key is granted", 0, 1);
        }
    expect(book->witnessed > 0 && book->witness_wrong == 0, "rounds in which the witness got too little", book->witness_wrong, 0);
    printf("%s: %" PRId64 " kills, %" PRId64 " put right, %" PRId64 " + %" PRId64 " evictions, %" PRId64 " rounds of the witness\n",
           narrow ? "narrow" : "wide", kills, stats.recovered, stats.evicted_idle, stats.evicted_early, book->witnessed);
    weir_table_destroy(t);
}

static pid_t start_victim(const char *path, bool narrow, struct book *book)
{
    uint64_t seed = random64();
    pid_t pid = fork();
    if (pid == 0)
        victim(path, narrow, seed, book);
    return pid;
}

static void run(bool narrow, int64_t kills)
{
    char path[] = "weir-kill-XXXXXX";
    struct book *book = mmap(NULL, sizeof *book, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct weir_limiter *l[LIMITERS];
    pid_t victims[VICTIMS], watcher;
    close(mkstemp(path));
    weir_table_destroy(attach(path, narrow, l));
    if ((watcher = fork()) == 0)
        witness(path, narrow, book);
    for (int i = 0; i < VICTIMS; i++)
        victims[i] = start_victim(path, narrow, book);
    for (int64_t i = 0; i < kills; i++) {
        int status;
        struct timespec pause = { .tv_nsec = (long)(random64() % 1500000) };
        nanosleep(&pause, NULL); /* so that the moment of death is random */
        pid_t *v = &victims[i % VICTIMS];
        kill(*v, SIGKILL);
        waitpid(*v, &status, 0);
        expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a victim's end", status, SIGKILL);
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
    munmap(book, sizeof *book);
}

int main(int argc, char **argv)
{
    random_state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int64_t kills = argc > 2 ? atoll(argv[2]) : 1000;
    alarm(600);
    run(false, kills);
    run(true, kills);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
