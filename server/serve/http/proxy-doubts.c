/* proxy-doubts.c -- proxies at /v1/auth that seem to be set up wrongly: counted each time, told
 * once.
 *
 * The peers that were told about are never forgotten, so that the lines are bounded by their number
 * and nobody can fill a log by them.  Each kind has peers of its own: strangers can only be those
 * that are not trusted.
 */
#include "server/serve/http/proxy-doubts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/complain.h"

struct weir__proxy_doubts {
    pthread_mutex_t mutex;
    struct peers {
        size_t n;
        char peers[WEIR__PROXY_DOUBTS][sizeof(((struct weir__conn *)0)->peer)];
    } kinds[WEIR__PROXY_KINDS];
};

struct weir__proxy_doubts *weir__proxy_doubts_create(void)
{
    struct weir__proxy_doubts *d = calloc(1, sizeof(*d));

    if (d != NULL)
        pthread_mutex_init(&d->mutex, NULL);
    return d;
}

void weir__proxy_doubts_destroy(struct weir__proxy_doubts *d)
{
    if (d == NULL)
        return;
    pthread_mutex_destroy(&d->mutex);
    free(d);
}

/* Whether this is to be told now; *last: no more peers are, after this one.  With the mutex. */
static bool is_new(struct peers *told, const char *peer, bool *last)
{
    for (size_t i = 0; i < told->n; i++)
        if (strcmp(told->peers[i], peer) == 0)
            return false;
    if (told->n == WEIR__PROXY_DOUBTS)
        return false;
    snprintf(told->peers[told->n], sizeof(told->peers[0]), "%s", peer);
    *last = ++told->n == WEIR__PROXY_DOUBTS;
    return true;
}

static void tell(const char *peer, enum weir__proxy_doubt kind, const char *header, bool last)
{
    const char *more = last ? " (no other peers are told about: see weir_proxy_doubts_total)" : "";

    if (kind == WEIR__PROXY_NOT_TRUSTED)
        weir__complain("serve",
                       "%s sends %s and is not in trusted-proxies: it is not believed, and all its "
                       "clients count as one%s",
                       peer, header, more);
    else if (kind == WEIR__PROXY_NO_CLIENT)
        weir__complain("serve", "%s asks /v1/auth without %s: all its clients count as one%s", peer,
                       header, more);
    else
        weir__complain("serve", "%s asks /v1/auth without %s: rules about uri do nothing there%s",
                       peer, header, more);
}

void weir__proxy_doubt(struct weir__conn *conn, enum weir__proxy_doubt kind, const char *header)
{
    const char *peer = *conn->peer ? conn->peer : "a unix socket";
    struct weir__proxy_doubts *d = conn->loop->server->proxy_doubts;
    bool last = false;

    weir__counter_add(&conn->loop->counters,
                      (enum weir__counter)(WEIR__COUNT_PROXY_NOT_TRUSTED + (int)kind), 1);
    if (d == NULL)
        return;
    pthread_mutex_lock(&d->mutex);
    bool now = is_new(&d->kinds[kind], peer, &last);
    pthread_mutex_unlock(&d->mutex);
    if (now)
        tell(peer, kind, header, last);
}
