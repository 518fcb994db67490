/* fork.c -- a child goes on with its parent's tables.
 *
 * It must be known as a user of what its parent uses before the parent can go, so it gets its place
 * among the holders at once.  Mutexes are taken before a fork, so that the child finds them free.
 * A fork does not wait for a thread that tends or buries: the child sees by the pid that it is none
 * of its own.
 */
#include "table/holders.h"
#include "table/fork.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct weir_table *tables; /* of this process */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
    pthread_mutex_lock(&mutex);
    for (struct weir_table *t = tables; t != NULL; t = t->next)
        pthread_mutex_lock(&t->mutex);
}

static void after_fork(void)
{
    for (struct weir_table *t = tables; t != NULL; t = t->next)
        pthread_mutex_unlock(&t->mutex);
    pthread_mutex_unlock(&mutex);
}

static void in_child(void)
{
    after_fork();
    for (struct weir_table *t = tables; t != NULL; t = t->next) {
        weir__set(&t->looking, 0); /* those threads are not here */
        t->n_reserved = 0;         /* the parent's */
        if (!weir_table_is_cut(t)) /* else whoever touches it dies */
            (void)weir__holder_me(t);
    }
}

static void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork, in_child);
}

void weir__fork_watch(struct weir_table *table)
{
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&mutex);
    table->next = tables;
    tables = table;
    pthread_mutex_unlock(&mutex);
}

void weir__fork_forget(struct weir_table *table)
{
    struct weir_table **at = &tables;

    pthread_mutex_lock(&mutex);
    while (*at != NULL && *at != table)
        at = &(*at)->next;
    if (*at != NULL)
        *at = table->next;
    pthread_mutex_unlock(&mutex);
}
