/* desk.c -- locks: desks for what is rare (making room for a new key, large states, changes of
 * limits), hands for several limits at once.
 *
 * Process-shared robust mutexes: when a holder is killed, the kernel hands the desk to the next in
 * line.  Nothing needs to be undone: every single store at a desk leaves the table in order, and at
 * worst one key wrong (docs/shm.md).
 *
 * A hand is a lock that guards nothing by itself: a thread that pins slots without their desks
 * holds any one hand meanwhile.  So the holder of all hands knows that a remaining pin is a dead
 * process's.  Desks are taken before hands, and the holder of a hand waits for nothing.
 */
#include <assert.h>
#include <errno.h>

#include "table/table.h"

static struct weir__desk *desk_at(struct weir_table *table, uint64_t desk)
{
    return (struct weir__desk *)((unsigned char *)table->header + WEIR__DESKS_AT) + desk;
}

void weir__desk_make(struct weir__desk *desk)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&desk->mutex, &attr);
    pthread_mutexattr_destroy(&attr);
}

/* A dead owner's lock is ours. */
static int settle(struct weir_table *table, pthread_mutex_t *mutex, int code)
{
    if (code != EOWNERDEAD)
        return code;
    pthread_mutex_consistent(mutex);
    weir__count(&table->header->recovered, 1);
    return 0;
}

void weir__desk_lock(struct weir_table *table, uint64_t desk)
{
    pthread_mutex_t *mutex = &desk_at(table, desk)->mutex;
    int code = settle(table, mutex, pthread_mutex_lock(mutex));

    assert(code == 0);
    (void)code;
}

void weir__desk_unlock(struct weir_table *table, uint64_t desk)
{
    pthread_mutex_unlock(&desk_at(table, desk)->mutex);
}

_Static_assert(WEIR__HANDS == 1 << 5, "the hint below chooses among 32");

uint64_t weir__hand_take(struct weir_table *table)
{
    uint64_t hand = weir__thread_hint(5);

    for (uint64_t i = 0; i < WEIR__HANDS; i++) {
        uint64_t desk = WEIR__DESKS + (hand + i) % WEIR__HANDS;
        pthread_mutex_t *mutex = &desk_at(table, desk)->mutex;
        if (settle(table, mutex, pthread_mutex_trylock(mutex)) == 0)
            return desk;
    }
    weir__desk_lock(table, WEIR__DESKS + hand);
    return WEIR__DESKS + hand;
}

void weir__hand_give(struct weir_table *table, uint64_t hand)
{
    weir__desk_unlock(table, hand);
}

void weir__hands_take_all(struct weir_table *table)
{
    for (uint64_t i = 0; i < WEIR__HANDS; i++)
        weir__desk_lock(table, WEIR__DESKS + i);
}

void weir__hands_give_all(struct weir_table *table)
{
    for (uint64_t i = WEIR__HANDS; i-- > 0;)
        weir__desk_unlock(table, WEIR__DESKS + i);
}
