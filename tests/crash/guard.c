/* guard.c -- processes are killed (SIGKILL) at random moments inside enter, exit and ticks,
 * thousands of times, while a witness goes on.
 *
 *     guard SEED KILLS
 *
 *     never too many   the living never hold more than there are permits.  Each books a permit when
 *                      it has it, and crosses it out before it gives it back.
 *                      A victim is stopped first, so that its booking can go before its permits
 *                      may be taken back: whatever is booked is out
 *     nothing lost     after the last kill, and the few seconds that are stated, nothing is out and
 *                      all permits can be had again
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
#include "random.h"

#define VICTIMS 3
#define PERMITS 12
#define NOW     (1000 * WEIR_SECOND)
/* By each piece of work.  So slow that nobody who lives is kept from running for two seconds of it:
 * between the gate and its seat it would be taken for dead, as it may. */
#define STEP (20 * WEIR_MICROSECOND)

struct book {
    int64_t clock;
    int64_t asked, entered;
    uint64_t held; /* permits, 16 bits for each victim and the witness: one word, so that the sum is
                      that of one moment */
    int64_t most;  /* that the sum ever was */
};

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
    .breaker = { .error_percent = 60,
                 .min_calls = 10,
                 .window = WEIR_SECOND,
                 .open_for = WEIR_SECOND / 10,
                 .open_max = WEIR_SECOND / 10,
                 .probes = 2 },
    .shed = true,
};

static void note_most(struct book *book, uint64_t held)
{
    int64_t sum = 0, most = __atomic_load_n(&book->most, __ATOMIC_RELAXED);

    for (; held; held >>= 16)
        sum += (int64_t)(held & 0xffff);
    while (sum > most && !__atomic_compare_exchange_n(&book->most, &most, sum, true,
                                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static bool enter(struct weir_guard *guard, struct book *book, int me, int64_t cost, weir_time now,
                  struct weir_permit *permit)
{
    struct weir_decision d;

    if (!weir_enter(guard, &(struct weir_ask){ .cost = cost, .now = now }, permit, &d))
        return false;
    note_most(book, __atomic_add_fetch(&book->held, (uint64_t)cost << 16 * me, __ATOMIC_SEQ_CST));
    return true;
}

static void cross_out(struct book *book, int me, int64_t cost)
{
    __atomic_sub_fetch(&book->held, (uint64_t)cost << 16 * me, __ATOMIC_SEQ_CST);
}

static struct weir_guard *join(const char *path, struct weir_table **table)
{
    struct weir_guard *guard = NULL;
    struct weir_error e;

    if (weir_table_attach(table, path, &e) || weir_guard_create(&guard, *table, "g", &options, &e))
        die("attach", e.text);
    return guard;
}

/* Time goes on with the work. */
static void be_victim(const char *path, struct book *book, int me)
{
    struct weir_table *table;
    struct weir_guard *guard = join(path, &table);

    for (;;) {
        struct weir_permit p[3];
        int64_t costs[3];
        weir_time now = __atomic_add_fetch(&book->clock, STEP, __ATOMIC_RELAXED);
        for (size_t i = 0; i < 3; i++) {
            costs[i] = between(1, 2);
            costs[i] = enter(guard, book, me, costs[i], now, &p[i]) ? costs[i] : 0;
        }
        for (size_t i = 0; i < 3; i++) {
            enum weir_outcome outcome = between(1, 100) <= 45 ? WEIR_FAILED : WEIR_SUCCEEDED;
            cross_out(book, me, costs[i]);
            weir_exit(guard, &p[i], outcome, now + between(0, 999999));
        }
    }
}

static pid_t start_victim(const char *path, struct book *book, int me)
{
    pid_t pid = fork();

    if (pid == 0) {
        random_state += (uint64_t)getpid() * 77;
        be_victim(path, book, me);
        _exit(0);
    }
    return pid;
}

/* Where it stops is where it dies. */
static void kill_victim(pid_t pid, struct book *book, int me)
{
    kill(pid, SIGSTOP);
    waitpid(pid, NULL, WUNTRACED);
    __atomic_and_fetch(&book->held, ~((uint64_t)0xffff << 16 * me), __ATOMIC_SEQ_CST);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void pause_a_little(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = (long)between(0, 699999) }, NULL);
}

/* Asks, and is answered, whatever became of the others. */
static void witness(struct weir_guard *guard, struct book *book)
{
    struct weir_permit p;
    weir_time now = __atomic_add_fetch(&book->clock, STEP, __ATOMIC_RELAXED);

    book->asked++;
    if (enter(guard, book, VICTIMS, 1, now, &p)) {
        book->entered++;
        cross_out(book, VICTIMS, 1);
        if (!weir_exit(guard, &p, WEIR_SUCCEEDED, now))
            die("witness", "a permit of a living process was taken back");
    }
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
    for (int i = 0; i < 100 && guard->record->limit < PERMITS;
         i++) { /* the controller has learnt from the errors */
        weir_time t = now += 2 * WEIR_SECOND;
        for (int k = 0; k < PERMITS; k++)
            weir_enter(guard, &(struct weir_ask){ .cost = 1, .now = t }, &p[k], &d);
        for (int k = 0; k < PERMITS; k++)
            weir_exit(guard, &p[k], WEIR_SUCCEEDED, t + WEIR_MILLISECOND);
    }
    for (int i = 0; i < PERMITS; i++)
        got += weir_enter(guard, &(struct weir_ask){ .cost = 1, .priority = 7, .now = now }, &p[i],
                          &d);
    printf("in flight %" PRId64 ", reclaimed %" PRId64 ", permits %d of %d\n", info.in_flight,
           info.reclaimed, got, PERMITS);
    return info.in_flight != 0 || got != PERMITS || info.reclaimed == 0;
}

int main(int argc, char **argv)
{
    char path[64];
    struct weir_error e;
    struct weir_table *table = NULL;
    struct weir_guard *guard = NULL;
    pid_t victims[VICTIMS];

    random_state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int kills = argc > 2 ? atoi(argv[2]) : 300;
    snprintf(path, sizeof(path), "/dev/shm/weir-crash-guard-%d", (int)getpid());
    struct book *book =
        mmap(NULL, sizeof(*book), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    book->clock = NOW;
    if (weir_table_create(&table, &(struct weir_table_options){ .path = path, .keys = 16 }, &e) ||
        weir_guard_create(&guard, table, "g", &options, &e))
        die("create", e.text);
    for (int i = 0; i < VICTIMS; i++)
        victims[i] = start_victim(path, book, i);
    for (int i = 0; i < kills; i++) {
        int who = i % VICTIMS;
        pause_a_little();
        witness(guard, book);
        kill_victim(victims[who], book, who);
        victims[who] = start_victim(path, book, who);
    }
    for (int i = 0; i < VICTIMS; i++)
        kill_victim(victims[i], book, i);
    int failed = check_end(guard, book->clock) || book->entered == 0 || book->most > PERMITS ||
                 book->most < PERMITS / 2;
    printf("%d kills, witness in %" PRId64 " of %" PRId64 ", at most %" PRId64 " held: %s\n", kills,
           book->entered, book->asked, book->most, failed ? "FAILED" : "ok");
    weir_table_destroy(table);
    unlink(path);
    return failed;
}
