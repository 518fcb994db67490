/* wait.c -- many threads wait for few permits: never are more inside than there are permits, nobody
 * is forgotten, and nothing is left over.
 *
 *     thread-wait [ROUNDS]
 *
 * Some wait for ever, some for a moment, some not at all; some exit with weir_exit_next, some with
 * weir_exit, as another process would. Beside them an event loop has visits under way.  That the
 * program ends at all is the test that nobody sleeps for ever.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "weir-queue.h"

#define PERMITS 3
#define THREADS 8
#define TIMES   300

static struct weir_table *table;
static struct weir_guard *guard;
static struct weir_queue *queue;
static int inside, most;
static int64_t entered, left_late;
static int64_t passed, failed;

static void expect(bool ok, const char *what, int64_t got)
{
    __atomic_add_fetch(ok ? &passed : &failed, 1, __ATOMIC_RELAXED);
    if (!ok)
        fprintf(stderr, "thread-wait: %s: got %" PRId64 "\n", what, got);
}

static void come_in(void)
{
    int n = __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST),
        seen = __atomic_load_n(&most, __ATOMIC_SEQ_CST);

    while (n > seen &&
           !__atomic_compare_exchange_n(&most, &seen, n, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
    __atomic_add_fetch(&entered, 1, __ATOMIC_SEQ_CST);
}

static void go_out(struct weir_permit *permit, bool tell)
{
    __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    weir_time now = weir_table_now(table);
    bool was_in = tell ? weir_exit_next(guard, queue, permit, WEIR_SUCCEEDED, now)
                       : weir_exit(guard, permit, WEIR_SUCCEEDED, now);
    expect(was_in, "a permit was one", was_in);
}

static void *work(void *argument)
{
    int me = (int)(intptr_t)argument;

    for (int i = 0; i < TIMES; i++) {
        weir_time wait_max = i % 3 == 0   ? WEIR_FOREVER
                             : i % 3 == 1 ? WEIR_MILLISECOND
                                          : i % 2 * 20 * WEIR_MICROSECOND;
        struct weir_ask ask = { .cost = 1,
                                .wait_max = wait_max,
                                .priority = (int8_t)(me % 4),
                                .user_class = (uint8_t)(me % 4) };
        struct weir_permit permit;
        struct weir_decision d;
        if (weir_enter_wait(guard, queue, &ask, NULL, &permit, &d)) {
            come_in();
            sched_yield();
            go_out(&permit, (me + i) % 8 != 0);
        } else {
            expect(wait_max != WEIR_FOREVER, "a wait for ever ends inside; reason", d.reason);
            expect(d.reason == WEIR_LATE || d.reason == WEIR_BUSY, "why not", d.reason);
            __atomic_add_fetch(&left_late, 1, __ATOMIC_RELAXED);
        }
    }
    return NULL;
}

/* ------------------------------------------------------- an event loop ---- */

#define VISITORS 4

static struct visitor {
    struct weir_waiter waiter;
    struct weir_permit permit;
    int turn; /* atomic: 1 + the reason, when it was told; 0: not yet */
} visitors[VISITORS];

static void note_turn(struct weir_waiter *waiter, enum weir_reason reason)
{
    struct visitor *v = (struct visitor *)waiter;

    expect(__atomic_exchange_n(&v->turn, 1 + (int)reason, __ATOMIC_ACQ_REL) == 0,
           "a turn is told once", reason);
}

static void visit_once(void)
{
    bool waits[VISITORS] = { false };

    for (int i = 0; i < VISITORS; i++) {
        struct visitor *v = &visitors[i];
        struct weir_decision d;
        struct weir_ask ask = { .cost = 1,
                                .wait_max = WEIR_MILLISECOND,
                                .now = weir_table_now(table) };
        *v = (struct visitor){ .waiter.turn = note_turn };
        if (weir_enter_later(guard, queue, &ask, &v->waiter, &v->permit, &d) && d.allowed) {
            come_in();
            go_out(&v->permit, true);
        } else {
            waits[i] = d.reason == WEIR_BUSY;
        }
    }
    for (int i = 0; i < VISITORS; i++) {
        struct visitor *v = &visitors[i];
        if (i == 0 && waits[i] && weir_queue_cancel(queue, &v->waiter))
            continue;
        while (waits[i] && __atomic_load_n(&v->turn, __ATOMIC_ACQUIRE) == 0)
            weir_enter_poll(guard, queue, weir_table_now(table));
        if (waits[i] && v->turn == 1 + WEIR_GRANTED) {
            come_in();
            go_out(&v->permit, true);
        }
    }
}

static void play(enum weir_order order)
{
    pthread_t threads[THREADS];
    struct weir_guard_info info;
    struct weir_queue_options o = { .order = order, .weights = { 3, 2, 1, 1 } };

    if (weir_table_create(&table, &(struct weir_table_options){ .keys = 64 }, NULL) != WEIR_OK ||
        weir_guard_create(&guard, table, "few", &(struct weir_guard_options){ .max = PERMITS },
                          NULL) != WEIR_OK ||
        weir_queue_create(&queue, &o, NULL) != WEIR_OK)
        exit(1);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
    for (int i = 0; i < TIMES; i++)
        visit_once();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    weir_guard_get(guard, weir_table_now(table), &info);
    expect(info.in_flight == 0, "permits that are out in the end", info.in_flight);
    expect(weir_queue_length(queue) == 0, "waiting in the end", weir_queue_length(queue));
    expect(most <= PERMITS, "the most that were inside", most);
    weir_queue_destroy(queue);
    weir_table_destroy(table);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;

    for (int i = 0; i < 3 * rounds; i++)
        play((enum weir_order)(i % 3));
    printf("thread-wait: %" PRId64 " entered, %" PRId64 " left; %" PRId64 " passed, %" PRId64
           " failed\n",
           entered, left_late, passed, failed);
    return failed > 0;
}
