/* resolve.c -- the addresses of a host, found in a thread of their own.
 *
 * The thread and the asker both let go of the look-up, in any order: the second one frees it.  The
 * thread has its own copy of the eventfd, because the asker may close its own.
 */
#include "cluster/redis/resolve.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>

#include "base/thread.h"

struct weir__redis_lookup {
    char host[256], port[8];
    struct addrinfo *found;
    int problem;      /* of getaddrinfo */
    int wake;         /* the thread's */
    atomic_bool done; /* by the thread */
    atomic_int users;
};

static void let_go(struct weir__redis_lookup *l)
{
    if (atomic_fetch_sub(&l->users, 1) > 1)
        return;
    if (l->found)
        freeaddrinfo(l->found);
    free(l);
}

static void find(struct weir__redis_lookup *l, int flags)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = flags };

    l->problem = getaddrinfo(l->host, l->port, &hints, &l->found);
}

static void *run(void *context)
{
    struct weir__redis_lookup *l = context;
    int wake = l->wake;

    find(l, AI_ADDRCONFIG);
    atomic_store(&l->done, true);
    let_go(l);
    ssize_t n = write(wake, &(uint64_t){ 1 }, sizeof(uint64_t));
    (void)n; /* full: it is awake */
    close(wake);
    return NULL;
}

static bool start(struct weir__redis_lookup *l, int wake)
{
    pthread_t thread;

    l->wake = fcntl(wake, F_DUPFD_CLOEXEC, 0);
    if (l->wake < 0)
        return false;
    atomic_store(&l->users, 2);
    if (weir__thread_start(&thread, run, l) == 0) {
        pthread_detach(thread);
        return true;
    }
    atomic_store(&l->users, 1);
    close(l->wake);
    return false;
}

struct weir__redis_lookup *weir__redis_lookup_begin(const struct weir__redis_address *address,
                                                    int wake)
{
    struct weir__redis_lookup *l = calloc(1, sizeof(*l));

    if (!l)
        return NULL;
    atomic_init(&l->users, 1);
    memcpy(l->host, address->host, sizeof(l->host));
    snprintf(l->port, sizeof(l->port), "%u", (unsigned)address->port);
    find(l, AI_NUMERICHOST);
    if (l->problem == 0) {
        atomic_store(&l->done, true);
    } else if (!start(l, wake)) {
        let_go(l);
        l = NULL;
    }
    return l;
}

bool weir__redis_lookup_ready(struct weir__redis_lookup *l, const struct addrinfo **out,
                              const char **why)
{
    if (!atomic_load(&l->done))
        return false;
    *out = l->problem == 0 ? l->found : NULL;
    *why = l->problem == 0 ? NULL : gai_strerror(l->problem);
    return true;
}

void weir__redis_lookup_end(struct weir__redis_lookup *l)
{
    if (l)
        let_go(l);
}
