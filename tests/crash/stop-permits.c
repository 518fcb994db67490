/* stop-permits.c -- processes are stopped at any instruction of an enter, an exit or a renewal, by
 * key and without one, others go on, and then the stopped ones do, or they are killed.
 *
 *     stop-permits SEED STOPS   STOPS rounds for each deed and script
 *
 * One or two victims begin a deed and are left where they stand after some instructions
 * (stepping.h).  This process does a script meanwhile, on the same key.  Then the victims go on to
 * their end, or are killed, and the sums must be right:
 *
 *     nobody waits     the script ends while the victims are stopped
 *     never too many   and never too few: what everybody has is what the key may have, once it was
 *                      asked until it refused.  One that is stopped between gate and seat when
 *                      somebody dies is taken for dead, and there may be one too many when it goes
 *                      on; a few seconds later the counts are right again
 *     nothing lost     once all is given back, and what the dead had is swept, the key's count and
 *                      the guard's are 0, no seat names a key, and all permits can be had again
 */
#include <inttypes.h>
#include <stdio.h>

#include "crash/stepping.h"
#include "guard/guard.h"
#include "random.h"

#define NOW     (1000 * WEIR_SECOND)
#define BY_KEY  3
#define VICTIMS 2
#define LEASE   (3600 * WEIR_SECOND)

enum deed {
    ENTER_NEW,  /* a key that has no slot */
    ENTER_MORE, /* one that has a permit out */
    ENTER_LAST, /* one that has all but one */
    ENTER_FULL,
    EXIT_ONLY,  /* the key's only permit */
    EXIT_ONE,   /* of two */
    ENTER_EXIT, /* both */
    RENEW,      /* one of two */
    RENEW_EXIT, /* both */
    DEEDS
};
enum script { FILL, CHURN, SWAMP, SWEEP, RETURN, MOURN, SCRIPTS };

static const char *const deeds[] = { "enter, new key", "enter",          "enter, last permit",
                                     "enter, refused", "exit, the only", "exit",
                                     "enter and exit", "renew",          "renew and exit" };
static const char *const scripts[] = { "fill", "churn", "swamp", "sweep", "return", "mourn" };
static const int held_before[] = { 0, 1, 2, 3, 1, 2, 1, 2, 2 };
/* Kinds of tables and guards. */
enum { WIDE, NARROW, KEYLESS, KINDS };
static const char *const kinds[] = { "", "narrow ", "without a key " };

/* Shared with the victims. */
struct book {
    int done[VICTIMS];
    int entered[VICTIMS], exited[VICTIMS]; /* answers: 1 yes, 2 no; 0: none */
    struct weir_permit permits[VICTIMS];
};

struct ground {
    struct weir_table *table;
    struct weir_guard *guard;
    unsigned char *image;
    struct book *book;
    enum deed deed;
    int kind;
    bool leased; /* what victims have outlives them, as a server's clients' permits do */
    struct path path;
    struct weir_permit held[BY_KEY + 1]; /* before the deed */
    weir_time clock;
    struct weir_permit mine[BY_KEY + 1 + VICTIMS];
    int n; /* of mine */
};

struct work {
    struct ground *ground;
    int victim;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "stop-permits: %s: %s\n", what, why);
    exit(1);
}

static bool enter(struct ground *g, const char *key, struct weir_permit *permit)
{
    struct weir_ask ask = { .key = { key, strlen(key) }, .cost = 1, .now = g->clock };
    struct weir_decision d;

    return weir_enter(g->guard, &ask, permit, &d);
}

/* As the server does: it may have been renewed, and the answer lost. */
static bool give_back(struct ground *g, const struct weir_permit *permit)
{
    struct weir_permit mine = *permit, renewed = *permit;

    return weir_exit(g->guard, &mine, WEIR_SUCCEEDED, g->clock) ||
           (weir__permit_follow(g->guard, &renewed) &&
            weir_exit(g->guard, &renewed, WEIR_SUCCEEDED, g->clock));
}

static bool renew(struct ground *g, struct weir_permit *permit)
{
    return weir_permit_renew(g->guard, permit, g->clock) ||
           weir__permit_repeat(g->guard, permit, g->clock);
}

/* ---------------------------------------------------------------- victims ---- */

static void do_deed(struct ground *g, int me)
{
    struct book *b = g->book;

    if (g->deed <= ENTER_FULL || g->deed == ENTER_EXIT)
        b->entered[me] = enter(g, "k", &b->permits[me]) ? 1 : 2;
    if (g->deed == ENTER_EXIT && b->entered[me] == 1)
        b->exited[me] = weir_exit(g->guard, &b->permits[me], WEIR_SUCCEEDED, g->clock) ? 1 : 2;
    if (g->deed == EXIT_ONLY || g->deed == EXIT_ONE) {
        struct weir_permit p = g->held[0];
        b->exited[me] = weir_exit(g->guard, &p, WEIR_SUCCEEDED, g->clock) ? 1 : 2;
    }
    if (g->deed == RENEW || g->deed == RENEW_EXIT) {
        struct weir_permit p = g->held[0];
        bool renewed = renew(g, &p);
        if (g->deed == RENEW_EXIT && renewed)
            b->exited[me] = give_back(g, &p) ? 1 : 2;
    }
}

static void be_victim(void *context)
{
    struct work *work = context;

    if (work->ground->leased)
        work->ground->table->me = NULL;
    (void)weir__holder_me(work->ground->table);
    stepping_begin();
    do_deed(work->ground, work->victim);
    __atomic_store_n(&work->ground->book->done[work->victim], 1, __ATOMIC_RELEASE);
}

/* ---------------------------------------------------------------- scripts ---- */

static void fill(struct ground *g)
{
    while (g->n <= BY_KEY && enter(g, "k", &g->mine[g->n]))
        g->n++;
}

static void give_mine(struct ground *g)
{
    while (g->n > 0)
        if (!weir_exit(g->guard, &g->mine[--g->n], WEIR_SUCCEEDED, g->clock))
            die("give", "a permit of mine is gone");
}

static void sweep(struct ground *g, int seconds)
{
    struct weir_guard_info info;

    for (int i = 0; i < 4 * seconds; i++)
        weir_guard_get(g->guard, g->clock += WEIR_SECOND / 4, &info);
}

/* Keys that come and go: an idle one makes room. */
static void swamp(struct ground *g)
{
    char name[16];
    struct weir_permit p;

    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        if (enter(g, name, &p) && !weir_exit(g->guard, &p, WEIR_SUCCEEDED, g->clock))
            die("swamp", "a permit is gone");
    }
}

/* Another process dies, and sweeps take whoever is between gate and seat for it. */
static void mourn(struct ground *g)
{
    pid_t pid = fork();

    if (pid == 0) {
        (void)weir__holder_me(g->table);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, NULL, 0) != pid)
        die("mourn", "no process");
    sweep(g, 8);
}

static void play_script(struct ground *g, enum script script, int *returned)
{
    if (script == MOURN)
        mourn(g);
    if (script == SWAMP)
        swamp(g);
    if (script == SWEEP)
        sweep(g, 1);
    if (script == RETURN && held_before[g->deed] > 0)
        *returned = give_back(g, &g->held[0]) ? 1 : 2;
    fill(g);
    if (script == CHURN) {
        give_mine(g);
        fill(g);
    }
}

/* ------------------------------------------------------------------ checks ---- */

static int64_t gate_of(const struct ground *g)
{
    return __atomic_load_n(&g->guard->record->in_flight, __ATOMIC_RELAXED);
}

static int64_t count_of(const struct ground *g)
{
    return g->kind == KEYLESS ? gate_of(g)
                              : weir_guard_key_in_flight(g->guard, (struct weir_key){ "k", 1 });
}

/* What was out before, without what has been given back. */
static int still_held(const struct ground *g, int victims, int returned)
{
    int given = returned == 1;

    for (int i = 0; i < victims; i++)
        given += g->deed != ENTER_EXIT && g->book->exited[i] == 1;
    return given > 1 ? -1 : held_before[g->deed] - given;
}

static int victims_hold(const struct ground *g, int victims)
{
    int n = 0;

    for (int i = 0; i < victims; i++)
        n += g->book->entered[i] == 1 && g->book->exited[i] != 1;
    return n;
}

/* Seconds, without what the end of the victims brings about: others go on for hours. */
static void let_pass(struct ground *g)
{
    sweep(g, 1);
    g->guard->record->learnt.watching = 0;
    sweep(g, 8);
}

static const char *check_alive(struct ground *g, enum script script, int victims, int returned)
{
    int before = still_held(g, victims, returned), theirs = victims_hold(g, victims);
    bool keyless = g->kind == KEYLESS;
    int more = keyless && script == MOURN ? victims : 0; /* taken for dead, and yet alive */

    if (before < 0)
        return "a permit was given back twice";
    if (before + theirs + g->n > BY_KEY + more)
        return "too many";
    if (script == MOURN)
        let_pass(g);
    if (count_of(g) != before + theirs + g->n)
        return "the count is wrong";
    if (gate_of(g) != before + theirs + g->n)
        return "the gate is wrong";
    fill(g);
    if (before + theirs + g->n < BY_KEY || before + theirs + g->n > BY_KEY + more)
        return "too few";
    for (int i = 0; i < victims; i++)
        if (g->book->entered[i] == 1 && g->book->exited[i] == 0 &&
            !weir_exit(g->guard, &g->book->permits[i], WEIR_SUCCEEDED, g->clock))
            return "a victim's permit is gone";
    return NULL;
}

/* The dead hold nothing, but a permit of this process may have been given back or not. */
static const char *check_dead(struct ground *g)
{
    sweep(g, g->kind == KEYLESS ? 8 : 2);
    if (count_of(g) > BY_KEY)
        return "too many";
    fill(g);
    return count_of(g) == BY_KEY ? NULL : "too few";
}

static const char *check_end(struct ground *g)
{
    struct weir_guard_info info;
    int again = 0;

    for (int i = 0; i < held_before[g->deed]; i++)
        (void)give_back(g, &g->held[i]);
    give_mine(g);
    sweep(g, 8);
    weir_guard_get(g->guard, g->clock, &info);
    if (count_of(g) != 0)
        return "the key's count is not 0 in the end";
    if (info.in_flight != 0)
        return "the guard's count is not 0 in the end";
    for (uint32_t i = 0; i < WEIR__GUARD_SEATS; i++)
        if (g->guard->held.seats[i].ref != 0 ||
            weir__permit_weight(g->guard->held.seats[i].word) != 0)
            return "a seat is not free in the end";
    fill(g);
    again = g->n;
    give_mine(g);
    return again == BY_KEY ? NULL : "not all permits can be had again";
}

/* ------------------------------------------------------------------ rounds ---- */

static void restore(struct ground *g)
{
    unsigned char *bytes = (unsigned char *)g->table->header;

    for (uint64_t at = 0; at < g->table->bytes; at += WEIR__PAGE)
        if (memcmp(bytes + at, g->image + at, WEIR__PAGE) != 0)
            memcpy(bytes + at, g->image + at, WEIR__PAGE);
    memset(g->book, 0, sizeof(*g->book));
    g->clock = NOW;
    g->n = 0;
}

static const char *play(struct ground *g, enum script script, int victims, bool killed,
                        const size_t *stops)
{
    struct stepped stopped[VICTIMS] = { { 0 } };
    struct weir_permit kept[BY_KEY + 1];
    const char *wrong = NULL;
    int returned = 0;

    restore(g);
    g->leased = script == MOURN && !killed;
    memcpy(kept, g->held, sizeof(kept));
    for (int i = 0; i < victims; i++) {
        struct work work = { g, i };
        if (!stepping_start(&stopped[i], be_victim, &work, &g->book->done[i]))
            return "a victim did not begin";
        enum stepping now = stepping_run(&stopped[i], &g->path, stops[i]);
        if (now == STEPPING_DIED || now == STEPPING_STUCK)
            wrong = "a victim died, or waits for a stopped one";
    }
    alarm(STEPPING_PATIENCE);
    play_script(g, script, &returned);
    for (int i = 0; i < victims; i++) {
        if (killed)
            stepping_kill(&stopped[i]);
        else if (stepping_finish(&stopped[i]) != STEPPING_ENDED)
            wrong = "a victim did not end";
    }
    if (wrong == NULL)
        wrong = killed ? check_dead(g) : check_alive(g, script, victims, returned);
    if (wrong == NULL)
        wrong = check_end(g);
    for (int i = 0; i < victims; i++)
        stepping_kill(&stopped[i]);
    memcpy(g->held, kept, sizeof(kept));
    return wrong;
}

static void record(struct ground *g)
{
    struct work work = { g, 0 };

    restore(g);
    if (stepping_record(be_victim, &work, &g->book->done[0], &g->path) != STEPPING_ENDED)
        die(deeds[g->deed], "it did not end");
}

static void make_ground(struct ground *g, enum deed deed, int kind)
{
    char path[] = "weir-stop-XXXXXX";
    struct weir_table_options o = {
        .path = path, .keys = 200, .narrow = kind == NARROW, .guards = 1
    };
    struct weir_guard_options guard = { .max = kind == KEYLESS ? BY_KEY : 100,
                                        .max_per_key = kind == KEYLESS ? 0 : BY_KEY,
                                        .lease = LEASE };
    struct weir_error e;

    *g = (struct ground){
        .deed = deed, .kind = kind, .clock = NOW, .book = stepping_room(sizeof(*g->book))
    };
    close(mkstemp(path));
    if (weir_table_create(&g->table, &o, &e) != WEIR_OK ||
        weir_guard_create(&g->guard, g->table, "g", &guard, &e))
        die("table", e.text);
    unlink(path); /* the victims inherit it */
    (void)weir__holder_me(g->table);
    if (deed != ENTER_NEW)
        swamp(g); /* no slot is empty */
    for (int i = 0; i < held_before[deed]; i++)
        if (!enter(g, "k", &g->held[i]))
            die("scene", "no permit");
    sweep(g, 1);
    g->image = stepping_room(g->table->bytes);
    memcpy(g->image, g->table->header, g->table->bytes);
}

static void free_ground(struct ground *g)
{
    munmap(g->image, g->table->bytes);
    munmap(g->book, sizeof(*g->book));
    stepping_forget(&g->path);
    weir_table_destroy(g->table);
}

static size_t any_stop(const struct path *path)
{
    size_t n;

    do
        n = (size_t)(roll() % path->length);
    while (!stepping_is_near(path, n));
    return n;
}

static int play_ground(struct ground *g, int rounds)
{
    int failed = 0;

    for (int i = 0; i < rounds * SCRIPTS && failed < 5; i++) {
        enum script script = (enum script)(i % SCRIPTS);
        int victims = roll() % 3 == 0 ? 2 : 1;
        bool killed = roll() % 2 == 0;
        size_t stops[VICTIMS] = { any_stop(&g->path), any_stop(&g->path) };
        const char *wrong = play(g, script, victims, killed, stops);
        failed += wrong != NULL;
        if (wrong != NULL)
            fprintf(stderr, "stop-permits: %s%s, %s, %s at %zu and %zu of %zu: %s\n",
                    kinds[g->kind], deeds[g->deed], scripts[script], killed ? "killed" : "stopped",
                    stops[0], victims > 1 ? stops[1] : 0, g->path.length, wrong);
    }
    return failed;
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : 10, failed = 0;

    random_state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    if (!stepping_is_permitted()) {
        printf("skipped: this system does not permit ptrace\n");
        return STEPPING_FORBIDDEN;
    }
    for (int i = 0; i < KINDS * DEEDS; i++) {
        static struct ground g;
        make_ground(&g, (enum deed)(i / KINDS), i % KINDS);
        record(&g);
        failed += play_ground(&g, rounds);
        free_ground(&g);
    }
    printf("%d failed\n", failed);
    return failed != 0;
}
