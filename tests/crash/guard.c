/* guard.c -- processes are killed (SIGKILL) at random moments inside enter, exit and ticks, thousands of times, while a witness goes on.
 *
 *     guard SEED KILLS
 *
 *     never too many   what is held, as booked by those alive, never adds up to more than there are permits
 *     nothing lost     after the last kill, and the few seconds that are stated, nothing is out and all permits can be had again
 *     nothing stuck    the witness can ask all the time; a half-open breaker finds its probes again
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

#include "guard/guard.h"

#define VICTIMS 3
#define PERMITS 12
#define NOW     (1000 * WEIR_SECOND)

struct book {
    int64_t clock;
    int64_t asked, entered;
};

static uint64_t seed;

static uint64_t random64(void)
{
    uint64_t z = seed += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "guard: %s: %s\n", what, why);
    exit(1);
}

/* The breaker opens and closes again and again, so that probes are lost too. */
static const struct weir_guard_options options = {
    .max = PERMITS,
    .lease = 3600 * WEIR_SECOND,
    .adaptive = { .controller = "aimd", .initial = PERMITS, .min = PERMITS / 2, .max = PERMITS },
    .breaker = { .error_percent = 60, .min_calls = 10, .window = WEIR_SECOND, .open_for = WEIR_SECOND / 10, .open_max = WEIR_SECOND / 10, .probes = 2 },
    .shed = true,
};

static struct weir_guard *join(const char *path, struct weir_table **table)
{
    struct weir_guard *guard = NULL;
    struct weir_error e;
    if (weir_table_attach(table, path, &e) || weir_guard_create(&guard, *table, "g", &options, &e))
        die("attach", e.text);
    return guard;
}

/* Time goes on by what is done: about a tick for every hundred pieces of work. */
static void be_victim(const char *path, struct book *book)
{
    struct weir_table *table;
    struct weir_guard *guard = join(path, &table);
    for (;;) {
        struct weir_permit p[3];
        struct weir_decision d;
        weir_time now = __atomic_add_fetch(&book->clock, WEIR_MILLISECOND, __ATOMIC_RELAXED);
        for (size_t i = 0; i < 3; i++)
            weir_enter(guard, &(struct weir_ask){ .cost = 1 + (int64_t)(random64() % 2), .now = now }, &p[i], &d);
        for (size_t i = 0; i < 3; i++) {
            enum weir_outcome outcome = random64() % 100 < 45 ? WEIR_FAILED : WEIR_SUCCEEDED;
            weir_exit(guard, &p[i], outcome, now + (weir_time)(random64() % 1000000));
        }
    }
}

static pid_t start_victim(const char *path, struct book *book)
{
    pid_t pid = fork();
    if (pid == 0) {
        seed += (uint64_t)getpid() * 77;
        be_victim(path, book);
        _exit(0);
    }
    return pid;
}

static void pause_a_little(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = (long)(random64() % 700000) }, NULL);
}

/* Asks, and is answered, whatever became of the others. */
static void witness(struct weir_guard *guard, struct book *book)
{
    struct weir_permit p;
    struct weir_decision d;
    weir_time now = __atomic_add_fetch(&book->clock, WEIR_MILLISECOND, __ATOMIC_RELAXED);
    book->asked++;
    if (weir_enter(guard, &(struct weir_ask){ .cost = 1, .now = now }, &p, &d)) {
        book->entered++;
        if (!weir_exit(guard, &p, WEIR_SUCCEEDED, now))
            die("witness", "a permit of a living process was taken back");
    }
    int64_t in_flight = __atomic_load_n(&guard->record->in_flight, __ATOMIC_RELAXED);
    if (in_flight > PERMITS)
        die("witness", "more are in than there are permits");
}

static int check_end(struct weir_guard *guard, weir_time now)
{
    struct weir_guard_info info;
    struct weir_permit p[PERMITS];
    struct weir_decision d;
    int got = 0;
    weir_guard_force(guard, WEIR_FORCE_CLOSED, now);
    for (int i = 0; i < 40; i++)
        weir_guard_get(guard, now += WEIR_SECOND / 4 + WEIR_SECOND / 10, &info);
    for (int i = 0; i < 100 && guard->record->limit < PERMITS; i++) { /* what the controller has learnt from the errors */
        weir_time t = now += 2 * WEIR_SECOND;
        for (int k = 0; k < PERMITS; k++)
            weir_enter(guard, &(struct weir_ask){ .cost = 1, .now = t }, &p[k], &d);
        for (int k = 0; k < PERMITS; k++)
            weir_exit(guard, &p[k], WEIR_SUCCEEDED, t + WEIR_MILLISECOND);
    }
    for (int i = 0; i < PERMITS; i++)
        got += weir_enter(guard, &(struct weir_ask){ .cost = 1, .priority = 7, .now = now }, &p[i], &d);
    printf("in flight %" PRId64 ", reclaimed %" PRId64 ", permits %d of %d\n", info.in_flight, info.reclaimed, got, PERMITS);
    return info.in_flight != 0 || got != PERMITS || info.reclaimed == 0;
}

int main(int argc, char **argv)
{
    char path[64];
    struct weir_error e;
    struct weir_table *table = NULL;
    struct weir_guard *guard = NULL;
    pid_t victims[VICTIMS];
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int kills = argc > 2 ? atoi(argv[2]) : 300;
    snprintf(path, sizeof path, "/dev/shm/weir-crash-guard-%d", (int)getpid());
    struct book *book = mmap(NULL, sizeof *book, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    book->clock = NOW;
    if (weir_table_create(&table, &(struct weir_table_options){ .path = path, .keys = 16 }, &e) ||
        weir_guard_create(&guard, table, "g", &options, &e))
        die("create", e.text);
    for (int i = 0; i < VICTIMS; i++)
        victims[i] = start_victim(path, book);
    for (int i = 0; i < kills; i++) {
        pid_t *victim = &victims[i % VICTIMS];
        pause_a_little();
        witness(guard, book);
        kill(*victim, SIGKILL);
        waitpid(*victim, NULL, 0);
        *victim = start_victim(path, book);
    }
    for (int i = 0; i < VICTIMS; i++) {
        kill(victims[i], SIGKILL);
        waitpid(victims[i], NULL, 0);
    }
    int failed = check_end(guard, book->clock) || book->entered == 0;
    printf("%d kills, witness in %" PRId64 " of %" PRId64 ": %s\n", kills, book->entered, book->asked, failed ? "FAILED" : "ok");
    weir_table_destroy(table);
    unlink(path);
    return failed;
}
