/* registry.c -- the lock of what is rare: making limiters, guards and bans.
 *
 * A process-shared robust mutex: when its holder is killed, the kernel hands it to the next in
 * line.  Nothing needs to be undone: every single store under it leaves the table in order
 * (docs/shm.md).
 */
#include <assert.h>
#include <errno.h>

#include "table/table.h"

static pthread_mutex_t *mutex_of(struct weir__header *h)
{
    return &((struct weir__desk *)(void *)((unsigned char *)h + WEIR__DESK_AT))->mutex;
}

void weir__registry_make(struct weir__header *h)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(mutex_of(h), &attr);
    pthread_mutexattr_destroy(&attr);
}

void weir__registry_lock(struct weir_table *table)
{
    pthread_mutex_t *mutex = mutex_of(table->header);
    int code = pthread_mutex_lock(mutex);

    if (code == EOWNERDEAD) { /* a dead owner's lock is ours */
        pthread_mutex_consistent(mutex);
        weir__count(&table->header->recovered, 1);
        code = 0;
    }
    assert(code == 0);
    (void)code;
}

void weir__registry_unlock(struct weir_table *table)
{
    pthread_mutex_unlock(mutex_of(table->header));
}
