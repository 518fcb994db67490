/* desk.c -- locks for what is rare: making room for a new key, large states, several limits at once, changes of limits.
 *
 * Process-shared robust mutexes: when a holder is killed the kernel hands the desk to the next in line, who carries on.  Nothing needs to be
 * undone, because whatever is done at a desk leaves the table in order at every store, and nothing wrong beyond the one key (docs/shm.md).
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

void weir__desk_lock(struct weir_table *table, uint64_t desk)
{
    pthread_mutex_t *mutex = &desk_at(table, desk)->mutex;
    int code = pthread_mutex_lock(mutex);
    if (code == EOWNERDEAD) {
        pthread_mutex_consistent(mutex);
        weir__count(&table->header->recovered, 1);
        code = 0;
    }
    assert(code == 0);
    (void)code;
}

void weir__desk_unlock(struct weir_table *table, uint64_t desk)
{
    pthread_mutex_unlock(&desk_at(table, desk)->mutex);
}
