/* breaker.c -- many threads at one breaker: exactly the set number of probes passes, nothing that
 * was told is lost, and each change is made once.
 *
 *     thread-breaker [ROUNDS]
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guard/breaker.h"

#define WORKERS 8
#define NOW     (1000 * WEIR_SECOND)

static int passed, failed;

static void expect(const char *what, int64_t got, int64_t wanted)
{
    passed += got == wanted;
    failed += got != wanted;
    if (got != wanted && failed <= 10)
        fprintf(stderr, "breaker: %s: got %" PRId64 ", expected %" PRId64 "\n", what, got, wanted);
}

/* What a round is about; `work` is run by each worker. */
static struct {
    struct weir__breaker breaker;
    struct weir__breaker_plan plan;
    void (*work)(int worker, int round);
    pthread_barrier_t start, stop;
    int rounds, round;
    int64_t let, moves; /* asks that passed; changes of state that somebody was told of */
} it;

static void *worker_main(void *argument)
{
    int worker = *(int *)argument;

    for (;;) {
        pthread_barrier_wait(&it.start);
        if (!it.work)
            return NULL;
        it.work(worker, it.round);
        pthread_barrier_wait(&it.stop);
    }
}

static void run_round(int round)
{
    it.let = it.moves = 0;
    it.round = round;
    pthread_barrier_wait(&it.start);
    pthread_barrier_wait(&it.stop);
}

static void fresh(const struct weir_breaker_options *o)
{
    struct weir_error e;

    memset(&it.breaker, 0, sizeof(it.breaker));
    if (weir__breaker_plan_make(&it.plan, o, 7, &e) != WEIR_OK) {
        fprintf(stderr, "breaker: %s\n", e.text);
        exit(1);
    }
}

static struct weir__breaker_view look(weir_time now)
{
    struct weir__breaker_view v;

    weir__breaker_look(&it.plan, &it.breaker, now, &v);
    return v;
}

static void note(struct weir__breaker_move move)
{
    if (move.from != move.to)
        __atomic_fetch_add(&it.moves, 1, __ATOMIC_RELAXED);
}

static void tell(uint32_t probe, bool bad, weir_time now)
{
    note(weir__breaker_tell(&it.plan, &it.breaker, probe, bad, 0, now));
}

static uint32_t ask(weir_time now)
{
    struct weir__breaker_move move;
    uint32_t probe;
    weir_time retry;
    bool yes = weir__breaker_ask(&it.plan, &it.breaker, now, &probe, &retry, &move);

    note(move);
    __atomic_fetch_add(&it.let, yes, __ATOMIC_RELAXED);
    return yes ? probe : 0;
}

/* ----------------------------------------------------------------- half-open ---- */

static const struct weir_breaker_options probing = {
    .error_percent = 50, .min_calls = 1, .probes = 5, .open_for = WEIR_SECOND, .jitter_percent = -1
};

static void ask_often(int worker, int round)
{
    (void)worker, (void)round;
    for (int i = 0; i < 20; i++)
        ask(NOW + WEIR_SECOND);
}

static void probes_that_pass(void)
{
    it.work = ask_often;
    for (int i = 0; i < it.rounds; i++) {
        fresh(&probing);
        tell(0, true, NOW);
        run_round(i);
        expect("probes that pass at one instant", it.let, 5);
        expect("changes to half-open", it.moves, 1);
    }
}

static void ask_and_give(int worker, int round)
{
    (void)worker, (void)round;
    for (int i = 0; i < 50; i++) {
        uint32_t probe = ask(NOW + WEIR_SECOND);
        if (probe != 0)
            weir__breaker_give(&it.breaker, probe);
    }
}

static void probes_given_back(void)
{
    it.work = ask_and_give;
    for (int i = 0; i < it.rounds; i++) {
        fresh(&probing);
        tell(0, true, NOW);
        run_round(i);
        it.let = 0;
        for (int k = 0; k < 10; k++)
            ask(NOW + WEIR_SECOND);
        expect("room after all probes were given back", it.let, 5);
    }
}

static uint32_t probe_of_round;

static void tell_probes(int worker, int round)
{
    (void)round;
    tell(probe_of_round, worker < 4, NOW + WEIR_SECOND);
}

/* Eight are back, some bad: it is decided once, and so that nothing of it was lost. */
static void probes_told(void)
{
    struct weir_breaker_options o = probing;

    it.work = tell_probes;
    o.probes = WORKERS;
    for (int i = 0; i < it.rounds; i++) {
        o.error_percent = i % 2 ? 50 : 51;
        fresh(&o);
        tell(0, true, NOW);
        for (int k = 0; k < WORKERS; k++)
            probe_of_round = ask(NOW + WEIR_SECOND);
        run_round(i);
        expect("changes when all probes are told", it.moves, 1);
        expect("what half of them bad makes", look(NOW + WEIR_SECOND).state,
               i % 2 ? WEIR_BREAKER_OPEN : WEIR_BREAKER_CLOSED);
    }
}

/* -------------------------------------------------------------------- counts ---- */

enum { TELLS = 120 };

/* Every worker goes through the sixteen parts of the window in an order of its own, so that parts
 * are begun by one and added to by another. */
static void tell_through_parts(int worker, int round)
{
    for (int i = 0; i < TELLS; i++) {
        int part = round % 2 ? 0 : i / 8 + (worker + i) % 2;
        tell(0, i % 3 == 0, NOW + part * it.plan.part);
    }
}

static void counts_of_time(void)
{
    it.work = tell_through_parts;
    for (int i = 0; i < it.rounds / 4; i++) {
        fresh(&(struct weir_breaker_options){ .errors = 100000, .window = 16 * WEIR_SECOND });
        run_round(i);
        struct weir__breaker_view v = look(NOW + 15 * it.plan.part);
        expect("calls in the window", v.calls, WORKERS * TELLS);
        expect("errors in the window", v.errors, WORKERS * TELLS / 3);
    }
}

static void tell_count(int worker, int round)
{
    (void)worker;
    for (int i = 0; i < TELLS * (round % 2 ? 1 : 20); i++)
        tell(0, i % 3 == 0, NOW);
}

/* What fits is there to the last; after many laps nothing has drifted: a lap of successes leaves no
 * error. */
static void counts_of_calls(void)
{
    it.work = tell_count;
    for (int i = 0; i < it.rounds / 16; i++) {
        fresh(
            &(struct weir_breaker_options){ .errors = 100000, .calls = 1000, .slow = WEIR_SECOND });
        run_round(i);
        expect("calls in the ring", look(NOW).calls, i % 2 ? WORKERS * TELLS : 1000);
        if (i % 2)
            expect("errors in the ring", look(NOW).errors, WORKERS * TELLS / 3);
        for (int k = 0; k < 1000; k++)
            tell(0, false, NOW);
        expect("errors after a lap of successes", look(NOW).errors, 0);
        expect("calls after it", look(NOW).calls, 1000);
    }
}

/* ------------------------------------------------------------------- opening ---- */

/* The last of these makes min_calls full, whoever it is; a success must see to it as well as an
 * error. */
static void tell_to_the_brim(int worker, int round)
{
    weir_time now = NOW + (round & 4 ? (worker & 1) * it.plan.part : 0);

    tell(0, worker < 4, now);
    tell(0, worker >= 4, now);
}

static void opens_once(void)
{
    struct weir_breaker_options o = { .error_percent = 50, .min_calls = 2 * WORKERS };

    it.work = tell_to_the_brim;
    for (int i = 0; i < it.rounds * 4; i++) {
        o.calls = i % 2 ? 2 * WORKERS : 0;
        fresh(&o);
        run_round(i);
        expect("times that it opened", it.moves, 1);
        expect("the state", look(NOW).state, WEIR_BREAKER_OPEN);
    }
}

/* Everything at once, to let a sanitizer see it; afterwards it must still work. */
static void do_anything(int worker, int round)
{
    for (int i = 0; i < 200; i++) {
        weir_time now = NOW + (round * 200 + i) * WEIR_MILLISECOND;
        uint32_t probe = ask(now);
        if (worker == 0 && i == 100)
            weir__breaker_force(&it.breaker, (enum weir_force)(round % 3), now);
        if (i % 7 == worker)
            weir__breaker_give(&it.breaker, probe);
        else
            tell(probe, (i / 20 + round) % 2, now);
        look(now);
    }
}

static void still_works(void)
{
    struct weir_breaker_options o = { .error_percent = 50,
                                      .min_calls = 4,
                                      .open_for = 5 * WEIR_MILLISECOND,
                                      .open_max = 5 * WEIR_MILLISECOND };
    weir_time later = NOW + 10000 * WEIR_SECOND;

    it.work = do_anything;
    for (int kind = 0; kind < 2; kind++) {
        o.calls = kind ? 32 : 0;
        fresh(&o);
        for (int i = 0; i < it.rounds / 8; i++)
            run_round(i);
        weir__breaker_force(&it.breaker, WEIR_UNFORCED, later);
        for (int i = 0; i < 4; i++)
            tell(0, true, later);
        expect("it opens in the end", look(later).state, WEIR_BREAKER_OPEN);
    }
}

int main(int argc, char **argv)
{
    pthread_t threads[WORKERS];
    int numbers[WORKERS];

    it.rounds = (argc > 1 ? atoi(argv[1]) : 1) * 500;
    pthread_barrier_init(&it.start, NULL, WORKERS + 1);
    pthread_barrier_init(&it.stop, NULL, WORKERS + 1);
    for (int i = 0; i < WORKERS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, worker_main, &numbers[i]);
    }
    probes_that_pass();
    probes_given_back();
    probes_told();
    counts_of_time();
    counts_of_calls();
    opens_once();
    still_works();
    it.work = NULL;
    pthread_barrier_wait(&it.start);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
