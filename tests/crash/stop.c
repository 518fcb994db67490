/* stop.c -- processes are stopped at every instruction of an operation, others go on, and then the
 * stopped ones do.
 *
 *     stop SEED STOPS [NAME]   STOPS rounds for each operation with NAME in its name; 0: all
 *                              instructions, with every script
 *
 * A victim begins an operation and is left where it stands after some instructions (stepping.h).
 * Another process works on the same keys and limits meanwhile: a script.  Then the victim goes on
 * to its end; or some steps further, for another script; or it is killed.  Some rounds have three
 * victims.  All is at one frozen instant, and from the same bytes each time, so that a failure
 * comes back.
 *
 *     nobody waits      scripts end while the victims are stopped
 *     all is explained  all the answers, and what remains of every key, are those of some order of
 *                       the operations: nothing admitted twice, nothing lost, all or none
 *                       (history.h).  An operation that was killed was done, or was not
 *     nothing is left   no pin, no hand, no block that nobody has or that two have, no key twice
 *                       (leftovers.h)
 *     nothing is stuck  every key has its whole burst after a rest
 */
#include <inttypes.h>

#include "crash/leftovers.h"
#include "crash/operations.h"
#include "crash/stepping.h"

#define VICTIMS 3

/* ------------------------------------------------------------- processes ---- */

/* Shared with the victims and the others. */
struct book {
    struct story stories[1 + VICTIMS]; /* the others', the victims' */
    int done[VICTIMS];
    int first_end; /* of the first script */
    struct complaint complaint;
};

struct work {
    struct world *world;
    struct book *book;
    int victim;
    int end; /* of the others' deeds */
    bool killed;
};

static void be_victim(void *context)
{
    struct work *work = context;
    struct story *s = &work->book->stories[1 + work->victim];

    (void)weir__holder_me(work->world->table);
    stepping_begin();
    do_story(work->world, s, s->n);
    __atomic_store_n(&work->book->done[work->victim], 1, __ATOMIC_RELEASE);
}

static void be_other(const struct work *work)
{
    struct story *s = &work->book->stories[0];

    do_story(work->world, s, work->end);
    if (work->end < s->n)
        return;
    check_table(work->world, work->killed, &work->book->complaint);
    check_floods(work->world, s, work->killed ? VICTIMS : 0, &work->book->complaint);
    check_rest(work->world, &work->book->complaint);
}

/* NULL: it has ended. */
static const char *run_other(const struct work *work)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        be_other(work);
        _exit(0);
    }
    if (!stepping_wait(pid, &status)) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        return "waits for a stopped process";
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? NULL : "died";
}

/* ----------------------------------------------------------------- rounds ---- */

/* An operation on a table of one layout, another one for further victims, and all that stays the
 * same from round to round. */
struct ground {
    const struct operation *ops[2];
    const struct path *paths[2];
    struct world world;
    struct model model;
    unsigned char *image;
    struct book *book;
    int failed;
    int64_t rounds;
};

struct round {
    enum script scripts[2]; /* the second, if the victims are stopped again */
    size_t steps;           /* until then; 0: they are not */
    bool killed;
    int victims;
    int ops[VICTIMS]; /* of the ground's */
    size_t stops[VICTIMS];
};

static void restore(struct ground *g)
{
    unsigned char *bytes = (unsigned char *)g->world.table->header;

    for (uint64_t at = 0; at < g->world.table->bytes; at += WEIR__PAGE)
        if (memcmp(bytes + at, g->image + at, WEIR__PAGE) != 0)
            memcpy(bytes + at, g->image + at, WEIR__PAGE);
}

static void write_stories(struct ground *g, const struct round *round)
{
    struct story *others = &g->book->stories[0];

    memset(g->book, 0, sizeof(*g->book));
    write_script(others, round->scripts[0], g->ops[0]->scene);
    g->book->first_end = others->n;
    if (round->steps > 0)
        write_script(others, round->scripts[1], g->ops[0]->scene);
    write_last(others, &g->world, g->ops[0]);
    for (int i = 0; i < round->victims; i++) {
        struct story *s = &g->book->stories[1 + i];
        s->begun_last = DEEDS_MAX;
        s->killed = round->killed;
        add_deed(s, &g->ops[round->ops[i]]->deed);
        add_deed(s, &g->ops[round->ops[i]]->next);
    }
}

/* NULL: stopped, or through already. */
static const char *stop_victims(struct ground *g, const struct round *round,
                                struct stepped *victims)
{
    for (int i = 0; i < round->victims; i++) {
        struct work work = { &g->world, g->book, i, 0, false };
        if (!stepping_start(&victims[i], be_victim, &work, &g->book->done[i]))
            return "a victim did not begin";
        enum stepping now = stepping_run(&victims[i], g->paths[round->ops[i]], round->stops[i]);
        if (now == STEPPING_DIED || now == STEPPING_STUCK)
            return now == STEPPING_DIED ? "a victim died" : "a victim waits for a stopped process";
    }
    return NULL;
}

static const char *move_victims(struct ground *g, const struct round *round,
                                struct stepped *victims)
{
    for (int i = 0; i < round->victims; i++)
        for (size_t k = 0; k < round->steps && !g->book->done[i]; k++)
            if (stepping_go(&victims[i], PTRACE_SINGLESTEP) == STEPPING_DIED)
                return "a victim died when it went on";
    return NULL;
}

static const char *end_victims(const struct round *round, struct stepped *victims)
{
    const char *wrong = NULL;

    for (int i = 0; i < round->victims; i++) {
        enum stepping now = STEPPING_ENDED;
        if (round->killed)
            stepping_kill(&victims[i]);
        else
            now = stepping_finish(&victims[i]);
        if (now != STEPPING_ENDED)
            wrong = now == STEPPING_DIED ? "a victim died afterwards" : "a victim never ended";
    }
    return wrong;
}

/* While victims are stopped. */
static const char *play_scripts(struct ground *g, const struct round *round,
                                struct stepped *victims)
{
    struct work work = { &g->world, g->book, 0, g->book->first_end, false };
    const char *wrong = run_other(&work);

    if (wrong != NULL || round->steps == 0)
        return wrong;
    if ((wrong = move_victims(g, round, victims)) != NULL)
        return wrong;
    work.end = g->book->stories[0].begun_last;
    return run_other(&work);
}

static const char *play_last(struct ground *g, const struct round *round)
{
    struct work work = { &g->world, g->book, 0, g->book->stories[0].n, round->killed };
    int at[1 + VICTIMS] = { 0 };

    if (run_other(&work) != NULL)
        return "nobody can go on afterwards";
    if (g->book->complaint.text[0] != '\0')
        return g->book->complaint.text;
    return is_explained(&g->model, g->book->stories, 1 + round->victims, at)
               ? NULL
               : "no order of the operations explains the answers";
}

static const char *play(struct ground *g, const struct round *round)
{
    struct stepped victims[VICTIMS] = { { 0 } };
    const char *wrong;

    restore(g);
    write_stories(g, round);
    if ((wrong = stop_victims(g, round, victims)) == NULL &&
        (wrong = play_scripts(g, round, victims)) == NULL &&
        (wrong = end_victims(round, victims)) == NULL)
        wrong = play_last(g, round);
    for (int i = 0; i < round->victims; i++)
        stepping_kill(&victims[i]);
    return wrong;
}

extern const char __executable_start[];

static void report(const struct ground *g, const struct round *round, const char *wrong)
{
    static const char *const scripts[] = { "drain", "touch", "renew", "together", "vary", "swamp",
                                           "lower", "raise", "make",  "ban",      "clear" };

    fprintf(stderr, "stop: %s %s, %s", g->world.narrow ? "narrow" : "wide", g->ops[0]->name,
            scripts[round->scripts[0]]);
    if (round->steps > 0)
        fprintf(stderr, ", %s after %zu steps", scripts[round->scripts[1]], round->steps);
    fputs(", stopped at", stderr);
    for (int i = 0; i < round->victims; i++)
        fprintf(stderr, " %zu (+0x%" PRIx64 ")", round->stops[i],
                g->paths[round->ops[i]]->pc[round->stops[i]] -
                    (uint64_t)(uintptr_t)__executable_start);
    fprintf(stderr, ": %s\n", wrong);
    print_story("others", &g->book->stories[0]);
    for (int i = 1; i <= round->victims; i++)
        print_story("victim", &g->book->stories[i]);
}

#define FAILURES_MAX 5 /* of one operation: enough to see what it is */

static void play_round(struct ground *g, const struct round *round)
{
    if (g->failed >= FAILURES_MAX)
        return;
    const char *wrong = play(g, round);
    g->rounds++;
    g->failed += wrong != NULL;
    if (wrong != NULL)
        report(g, round, wrong);
}

/* ------------------------------------------------------------- operations ---- */

static enum script any_script(const struct operation *op)
{
    enum script script;

    do
        script = (enum script)(roll() % SCRIPTS);
    while (!has_script(op, script));
    return script;
}

static size_t any_stop(const struct path *path)
{
    size_t n;

    do
        n = (size_t)(roll() % path->length);
    while (!stepping_is_near(path, n));
    return n;
}

static bool changes_limits(enum script script)
{
    return script == LOWER || script == RAISE;
}

/* The model does not know how much of a key that has used more than its limit, since that was
 * lowered, can be given back; nor what is left of it when the limit is raised again, as the victims
 * of a change do after their takes. */
static void simplify(const struct ground *g, struct round *round)
{
    round->steps = 0;
    if (g->ops[1]->deed.verb == GIVE || g->ops[0]->deed.verb == CHANGE ||
        g->ops[1]->deed.verb == CHANGE)
        round->victims = 1;
}

/* The first victim is stopped at n; the rest is chosen at random. */
static struct round any_round(const struct ground *g, size_t n)
{
    int kind = int_between(0, 7);
    struct round round = { .scripts = { any_script(g->ops[0]), any_script(g->ops[0]) },
                           .steps = kind % 4 == 1 ? (size_t)between(1, 200) : 0,
                           .killed = kind == 0,
                           .victims = kind < 5 ? 1 : VICTIMS,
                           .stops = { n } };

    for (int i = 1; i < VICTIMS; i++) {
        round.ops[i] = g->ops[1] == g->ops[0] ? 0 : int_between(0, 1);
        round.stops[i] = any_stop(g->paths[round.ops[i]]);
    }
    if (changes_limits(round.scripts[0]) || changes_limits(round.scripts[1]))
        simplify(g, &round);
    return round;
}

static void play_some(struct ground *g, size_t stops)
{
    const struct path *path = g->paths[0];

    for (size_t i = 0; i < stops; i++) {
        size_t n = (i * path->length + roll() % path->length) / stops;
        struct round round = any_round(g, stepping_is_near(path, n) ? n : any_stop(path));
        play_round(g, &round);
    }
}

static void play_everything(struct ground *g)
{
    for (size_t n = 0; n < g->paths[0]->length; n++) {
        if (!stepping_is_near(g->paths[0], n))
            continue;
        for (int script = 0; script < SCRIPTS; script++) {
            struct round round = { .scripts = { (enum script)script },
                                   .victims = 1,
                                   .stops = { n } };
            if (has_script(g->ops[0], round.scripts[0]))
                play_round(g, &round);
        }
        for (int i = 0; i < 4; i++) {
            struct round round = any_round(g, n);
            play_round(g, &round);
        }
    }
}

/* Another operation that fits the scene; or the same, where they take long to step through. */
static const struct operation *companion_of(const struct operation *op)
{
    size_t i = (size_t)(op - operations);

    if (op->scene >= CROWDED)
        return op;
    do
        i = (i + 1) % OPERATIONS;
    while (operations[i].scene != op->scene || operations[i].before.verb != NONE ||
           (is_carried(&operations[i].deed) && !is_carried(&op->deed)));
    return &operations[i];
}

/* Of one layout. */
static struct path paths[OPERATIONS];

/* Steps through an operation without anybody else.  A companion's path is that of its own scene, if
 * it has been there. */
static void record(struct ground *g, int which)
{
    struct round round = { .scripts = { any_script(g->ops[0]) }, .victims = 1, .ops = { which } };
    struct work work = { &g->world, g->book, 0, 0, false };
    struct path *path = &paths[g->ops[which] - operations];

    g->paths[which] = path;
    if (which > 0 && path->pc != NULL)
        return;
    stepping_forget(path);
    restore(g);
    write_stories(g, &round);
    if (stepping_record(be_victim, &work, &g->book->done[0], path) != STEPPING_ENDED)
        die(g->ops[which]->name, "it did not end");
}

/* As many victims as there are hands at first, each with one: an operation that needs a hand must
 * not wait for them. */
static const char *stop_hands(struct ground *g, struct book *books, struct stepped *victims)
{
    struct round round = { .scripts = { TOUCH }, .victims = 1 };

    for (int i = 0; i < WEIR__HANDS_READY; i++) {
        struct work work = { &g->world, &books[i], 0, 0, false };
        g->book = &books[i];
        write_stories(g, &round);
        if (!stepping_start(&victims[i], be_victim, &work, &books[i].done[0]) ||
            stepping_run(&victims[i], g->paths[0], g->paths[0]->length / 2) != STEPPING_STOPPED)
            return "a victim did not stop";
    }
    g->book = &books[WEIR__HANDS_READY];
    write_stories(g, &round);
    struct work work = { &g->world, g->book, 0, g->book->first_end, false };
    return run_other(&work);
}

static void play_hands(struct ground *g)
{
    struct book *books = stepping_room((1 + WEIR__HANDS_READY) * sizeof(*books)), *own = g->book;
    struct stepped victims[WEIR__HANDS_READY] = { { 0 } };
    const char *wrong = stop_hands(g, books, victims);

    for (int i = 0; i < WEIR__HANDS_READY; i++)
        stepping_kill(&victims[i]);
    if (wrong != NULL)
        fprintf(stderr, "stop: %s: %s\n", g->ops[0]->name, wrong);
    munmap(books, (1 + WEIR__HANDS_READY) * sizeof(*books));
    g->book = own;
    g->failed += wrong != NULL;
    g->rounds++;
}

static int failed, passed;

static void play_ground(struct ground *g, size_t stops)
{
    if (g->ops[0]->all_hands)
        play_hands(g);
    else if (stops > 0)
        play_some(g, stops);
    else
        play_everything(g);
    printf("%s %s: %zu instructions, %" PRId64 " rounds, %d wrong\n",
           g->world.narrow ? "narrow" : "wide", g->ops[0]->name, g->paths[0]->length, g->rounds,
           g->failed);
    failed += g->failed > 0;
    passed += g->failed == 0;
}

static void play_operation(const struct operation *op, bool narrow, size_t stops)
{
    struct ground g = { .ops = { op, companion_of(op) }, .world = { .narrow = narrow } };

    g.book = stepping_room(sizeof(*g.book));
    make_scene(&g.world, &g.model, op);
    g.image = stepping_room(g.world.table->bytes);
    memcpy(g.image, g.world.table->header, g.world.table->bytes);
    record(&g, 0);
    if (g.ops[1] != op)
        record(&g, 1);
    play_ground(&g, stops);
    munmap(g.image, g.world.table->bytes);
    weir_table_destroy(g.world.table);
    munmap(g.book, sizeof(*g.book));
}

/* From the last on: companions come before those they accompany. */
static void play_layout(bool narrow, size_t stops, const char *only)
{
    for (size_t i = OPERATIONS; i-- > 0;) {
        const struct operation *op = &operations[i];
        if ((!narrow || !is_carried(&op->deed)) && strstr(op->name, only) != NULL)
            play_operation(op, narrow, stops);
    }
    for (size_t i = 0; i < OPERATIONS; i++)
        stepping_forget(&paths[i]);
}

/* So that no stop is wasted on finding a function when it is first called. */
static void bind_now(char **argv)
{
    if (getenv("LD_BIND_NOW") != NULL)
        return;
    setenv("LD_BIND_NOW", "1", 1);
    execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
    bind_now(argv);
    random_state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    size_t stops = argc > 2 ? (size_t)atoll(argv[2]) : 100;
    const char *only = argc > 3 ? argv[3] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!stepping_is_permitted()) {
        printf("skipped: this system does not permit ptrace\n");
        return STEPPING_FORBIDDEN;
    }
    for (int narrow = 0; narrow < 2; narrow++)
        play_layout(narrow, stops, only);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
