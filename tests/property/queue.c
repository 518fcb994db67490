/* queue.c -- random walks of all operations on a queue: it says what the plainest one says.
 *
 *     property-queue SEED ROUNDS    prints the seed, the step and both answers on a mismatch
 *
 * The plain one keeps an array of the waiters in the order they came, and looks at all of it for
 * everything.  Each round has other options, a few thousand operations on a virtual clock that now
 * and then stands still, jumps or steps back, and in the end asks that nobody was lost: who was put
 * in was served, left late, was cancelled or still waits.
 *
 * Weighted orders are also held to the law that defines them: while two classes wait without a
 * break, the turns they get, each divided by its weight, differ by at most a turn of each.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "rounds.h"
#include "queue/queue.h"

#define MS    WEIR_MILLISECOND
#define CROWD 96
#define STEPS 3000

static int step;

static void expect(bool ok, const char *what, int64_t got, int64_t wanted)
{
    if (ok)
        return;
    fprintf(stderr,
            "property-queue: seed %" PRIu64 ", step %d: %s: got %" PRId64 ", expected %" PRId64
            "\n",
            seed_of_round, step, what, got, wanted);
    exit(1);
}

static void same(const char *what, int64_t got, int64_t wanted)
{
    expect(got == wanted, what, got, wanted);
}

/* ------------------------------------------------------- the plain one ---- */

static struct weir_queue_options options; /* defaults are filled in */
static struct weir_waiter waiters[CROWD];

static struct {
    int waiting[CROWD], n; /* numbers of waiters, in the order they came */
    weir_time since[CROWD];
    bool aside[CROWD]; /* late, and not told yet */
    bool late;
    weir_time late_since;
    weir_time front_since;
    double pace;
    int paces;
    int64_t tags[WEIR_CLASSES], turn; /* virtual time, in 720720ths of a turn of weight 1 */
} plain;

static int rank(int who)
{
    return options.order == WEIR_PRIORITY   ? 7 - waiters[who].priority
           : options.order == WEIR_WEIGHTED ? waiters[who].user_class
                                            : 0;
}

static int64_t count_rank(int r)
{
    int64_t n = 0;

    for (int i = 0; i < plain.n; i++)
        n += rank(plain.waiting[i]) == r;
    return n;
}

static weir_time waited(int who, weir_time now)
{
    return now > plain.since[who] ? now - plain.since[who] : 0;
}

static bool overloaded(weir_time now)
{
    return plain.late && now >= plain.late_since && now - plain.late_since >= options.interval;
}

static void plain_remove(int who)
{
    int i = 0;

    while (plain.waiting[i] != who)
        i++;
    memmove(&plain.waiting[i], &plain.waiting[i + 1], (size_t)(plain.n - i - 1) * sizeof(int));
    if (--plain.n > 0)
        return;
    plain.late = false;
    for (int c = 0; c < WEIR_CLASSES; c++)
        plain.turn = plain.tags[c] > plain.turn ? plain.tags[c] : plain.turn;
}

/* Whose rank is next: the least, or, weighted, the one with the least tag. */
static int next_rank(void)
{
    int best = -1;

    for (int i = 0; i < plain.n; i++) {
        int r = rank(plain.waiting[i]);
        bool sooner =
            options.order == WEIR_WEIGHTED && best >= 0 && plain.tags[r] != plain.tags[best]
                ? plain.tags[r] < plain.tags[best]
                : r < best;
        if (best < 0 || sooner)
            best = r;
    }
    return best;
}

static int oldest_of(int r)
{
    for (int i = 0; i < plain.n; i++)
        if (rank(plain.waiting[i]) == r)
            return plain.waiting[i];
    return -1;
}

static int newest_of(int r)
{
    for (int i = plain.n; i-- > 0;)
        if (rank(plain.waiting[i]) == r)
            return plain.waiting[i];
    return -1;
}

static int64_t plain_before(int who, weir_time now)
{
    int own = rank(who);
    int64_t before = options.newest_first_when_late && overloaded(now) ? 0 : count_rank(own),
            mine = before + 1;

    for (int r = 0; r < 16; r++) {
        int64_t there = count_rank(r);
        if (r == own || there == 0)
            continue;
        if (options.order == WEIR_WEIGHTED) {
            int64_t turns =
                (mine * options.weights[r] + options.weights[own] - 1) / options.weights[own];
            before += turns < there ? turns : there;
        } else if (r < own) {
            before += there;
        }
    }
    return before;
}

static weir_time plain_estimate(int64_t turns)
{
    return plain.paces < 8 ? 0 : (weir_time)(plain.pace * (double)turns);
}

/* Those whose deadline is over take no place, whether they were told or not. */
static void plain_set_aside(weir_time now)
{
    for (int i = plain.n; i-- > 0;) {
        int who = plain.waiting[i];
        if (waiters[who].deadline == 0 || now <= waiters[who].deadline)
            continue;
        plain.aside[who] = true;
        plain_remove(who);
    }
}

static int64_t plain_length(void)
{
    int64_t n = plain.n;

    for (int who = 0; who < CROWD; who++)
        n += plain.aside[who];
    return n;
}

static enum weir_reason plain_put(int who, weir_time now, weir_time *wait)
{
    const struct weir_waiter *w = &waiters[who];

    plain_set_aside(now);
    *wait = plain_estimate(plain_before(who, now));
    if (w->deadline != 0 && now > w->deadline)
        return WEIR_LATE;
    if (plain.n == options.max)
        return WEIR_FULL;
    if (w->deadline != 0 && *wait > w->deadline - now)
        return WEIR_LATE;
    if (options.order == WEIR_WEIGHTED && count_rank(rank(who)) == 0 &&
        plain.tags[rank(who)] < plain.turn)
        plain.tags[rank(who)] = plain.turn;
    if (plain.n == 0)
        plain.front_since = now;
    plain.since[who] = now;
    plain.waiting[plain.n++] = who;
    return WEIR_GRANTED;
}

/* Marks those that are to be told that they are late; returns how many. */
static int plain_late(weir_time now, bool gone[CROWD])
{
    int n = 0;

    plain_set_aside(now);
    for (int who = 0; who < CROWD; who++) {
        n += plain.aside[who];
        gone[who] = gone[who] || plain.aside[who];
        plain.aside[who] = false;
    }
    return n;
}

static void plain_watch(weir_time wait, weir_time now)
{
    if (options.target == 0)
        return;
    if (wait <= options.target) {
        plain.late = false;
    } else if (!plain.late || now < plain.late_since) {
        plain.late = true;
        plain.late_since = now;
    }
}

static int plain_next(weir_time now, bool gone[CROWD], int *n)
{
    *n = plain_late(now, gone);
    bool over = overloaded(now);
    int r = next_rank();
    for (; over && plain.n > 1 && waited(oldest_of(r), now) > 2 * options.target; r = next_rank()) {
        int who = oldest_of(r);
        gone[who] = true;
        ++*n;
        plain_remove(who);
    }
    if (r < 0)
        return -1;
    int who = over && options.newest_first_when_late ? newest_of(r) : oldest_of(r);
    plain_watch(waited(oldest_of(r), now), now);
    plain.paces += plain.paces < 16;
    plain.pace += ((double)(now > plain.front_since ? now - plain.front_since : 0) - plain.pace) /
                  plain.paces;
    plain.front_since = now;
    if (options.order == WEIR_WEIGHTED) {
        plain.turn = plain.tags[r];
        plain.tags[r] += 720720 / options.weights[r];
    }
    plain_remove(who);
    return who;
}

/* ------------------------------------------------------ the fairness law ---- */

/* Turns that two classes got since both have been waiting without a break. */
static int64_t turns[WEIR_CLASSES][WEIR_CLASSES][2];

static void hold_to_weights(int served)
{
    for (int a = 0; a < WEIR_CLASSES; a++) {
        for (int b = 0; b < WEIR_CLASSES; b++) {
            int64_t *t = turns[a][b];
            t[0] += served == a;
            t[1] += served == b;
            int64_t wa = options.weights[a], wb = options.weights[b], apart = t[0] * wb - t[1] * wa;
            expect(a == b || (apart <= wa + wb && -apart <= wa + wb), "turns by weight", t[0],
                   t[1]);
        }
    }
}

/* A class that is empty breaks it. */
static void break_turns(void)
{
    for (int c = 0; c < WEIR_CLASSES; c++)
        for (int other = 0;
             options.order == WEIR_WEIGHTED && count_rank(c) == 0 && other < WEIR_CLASSES; other++)
            memset(turns[c][other], 0, sizeof(turns[c][other])),
                memset(turns[other][c], 0, sizeof(turns[other][c]));
}

/* ---------------------------------------------------------------- a walk ---- */

static struct weir_queue *queue;
static int64_t joined, served, late, cancelled;

static void check_gone(const struct weir_waiter *list, const bool wanted[CROWD], int n)
{
    int got = 0;

    for (const struct weir_waiter *w = list; w != NULL; w = w->next, got++) {
        expect(wanted[w - waiters], "who has left", w - waiters, -1);
        expect(weir__own(w)->queue == NULL && w->reason == WEIR_LATE, "why it has left", w->reason,
               WEIR_LATE);
    }
    same("how many have left", got, n);
    late += n;
}

static void do_put(weir_time now)
{
    int who = (int)between(0, CROWD - 1);
    struct weir_waiter *w = &waiters[who];
    struct weir_decision d;
    weir_time wait;

    if (weir__own(w)->queue != NULL)
        return;
    w->priority = (int8_t)between(-8, 7);
    w->user_class = (uint8_t)between(0, WEIR_CLASSES - 1);
    w->deadline = between(0, 2) == 0 ? 0 : now + between(-2, 400) * MS;
    plain_set_aside(now);
    same("estimate", weir_queue_estimate(queue, w->priority, w->user_class, now),
         plain_estimate(plain_before(who, now)));
    bool waits = weir_queue_put(queue, w, now, &d);
    enum weir_reason wanted = plain_put(who, now, &wait);
    same("put", d.reason, wanted);
    same("put: allowed", waits, wanted == WEIR_GRANTED);
    expect(waits ? d.wait == wait : d.retry > 0, "put: wait", d.wait, wait);
    joined += waits;
}

static void do_next(weir_time now)
{
    bool gone[CROWD] = { false };
    int n, wanted = plain_next(now, gone, &n);
    struct weir_waiter *left = NULL, *w = weir_queue_next(queue, now, &left);

    same("next", w == NULL ? -1 : w - waiters, wanted);
    check_gone(left, gone, n);
    served += w != NULL;
    break_turns();
    if (w != NULL && options.order == WEIR_WEIGHTED)
        hold_to_weights(rank(wanted));
    break_turns();
}

static void do_late(weir_time now)
{
    bool gone[CROWD] = { false };
    int n = plain_late(now, gone);

    check_gone(weir_queue_late(queue, now), gone, n);
}

static void do_cancel(void)
{
    int who = (int)between(0, CROWD - 1);
    bool waits = weir__own(&waiters[who])->queue != NULL;

    same("cancel", weir_queue_cancel(queue, &waiters[who]), waits);
    if (waits && !plain.aside[who])
        plain_remove(who);
    plain.aside[who] = false;
    cancelled += waits;
}

static weir_time move_clock(weir_time now)
{
    switch (between(0, 99)) {
    case 0:
        return now + between(0, 300) * MS;
    case 1:
        return now - between(0, 50) * MS;
    case 2:
        return between(0, 9) == 0 ? now - between(0, 5) * WEIR_SECOND : now;
    default:
        return now + (between(0, 1) == 0 ? 0
                      : seed_of_round % 2 == 0
                          ? between(0, 2) * MS
                          : between(0, 2 * MS)); /* even seeds: whole ms, so times meet */
    }
}

static void invent_options(void)
{
    options = (struct weir_queue_options){ .max = between(1, CROWD + 10),
                                           .order = (enum weir_order)between(0, 2),
                                           .interval = between(1, 100) * MS };
    options.target = between(0, 2) == 0 ? 0 : between(0, 20) * MS;
    options.newest_first_when_late = options.target > 0 && between(0, 1) == 0;
    for (int i = 0; i < WEIR_CLASSES; i++)
        options.weights[i] = (int32_t)between(1, 16); /* these are exact in virtual time */
}

static void walk(void)
{
    weir_time now = 100 * WEIR_SECOND;
    int64_t eager = between(30, 60); /* of 100 steps this many put */

    invent_options();
    memset(&plain, 0, sizeof(plain));
    memset(waiters, 0, sizeof(waiters));
    memset(turns, 0, sizeof(turns));
    joined = served = late = cancelled = 0;
    if (weir_queue_create(&queue, &options, NULL) != WEIR_OK)
        expect(false, "create", 0, 0);
    for (step = 0; step < STEPS; step++) {
        int64_t what = between(0, 99);
        now = move_clock(now);
        if (what < eager)
            do_put(now);
        else if (what < 92)
            do_next(now);
        else if (what < 96)
            do_cancel();
        else
            do_late(now);
        same("length", weir_queue_length(queue), plain_length());
        break_turns();
    }
    same("nobody is lost", served + late + cancelled + weir_queue_length(queue), joined);
    weir_queue_destroy(queue);
}

int main(int argc, char **argv)
{
    printf("property-queue: %" PRIu64 " walks of %d steps\n", play_rounds(argc, argv, 300, walk),
           STEPS);
    return 0;
}
