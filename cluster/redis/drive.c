/* drive.c -- a client of Redis with its sockets.
 *
 * All sockets are in one epoll set, whose descriptor can itself be watched.  A turn begins with the
 * sockets that have something, goes on with everything due, and ends with writing: so the asks of a
 * turn, and those that its replies led to, leave in one write for each connection.
 */
#include "cluster/redis/drive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/base.h"
#include "cluster/redis/socket.h"

enum { EVENTS_MAX = 64, ROUNDS_MAX = 4 };

struct weir__redis_drive {
    struct weir__redis_client *client;
    struct weir__redis_links links;
};

static int open_descriptors(struct weir__redis_drive *d, struct weir_error *error)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };

    d->links.epoll = epoll_create1(EPOLL_CLOEXEC);
    d->links.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (d->links.epoll >= 0 && d->links.wake >= 0 &&
        epoll_ctl(d->links.epoll, EPOLL_CTL_ADD, d->links.wake, &event) == 0)
        return WEIR_OK;
    return weir__fail(error, WEIR_SYSTEM, "no descriptor for a client of Redis: %s",
                      strerror(errno));
}

int weir__redis_drive_create(struct weir__redis_drive **out,
                             const struct weir__redis_options *options, struct weir_error *error)
{
    struct weir__redis_drive *d = calloc(1, sizeof(*d));
    const struct weir__redis_url *url = &options->url;

    if (!d)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for a client of Redis");
    d->links.epoll = d->links.wake = -1;
    int code = weir__redis_client_create(&d->client, options, error);
    d->links.client = d->client;
    if (code == WEIR_OK)
        code = open_descriptors(d, error);
    if (code == WEIR_OK && url->tls)
        code = weir__tls_client_create(&d->links.tls,
                                       &(struct weir__tls_options){ .certificate = url->certificate,
                                                                    .key = url->key,
                                                                    .authority = url->ca },
                                       error);
    if (code == WEIR_OK)
        *out = d;
    else
        weir__redis_drive_destroy(d);
    return code;
}

void weir__redis_drive_destroy(struct weir__redis_drive *d)
{
    struct weir__redis_conn *conn;

    if (!d)
        return;
    for (size_t i = 0; d->client && (conn = weir__redis_client_conn(d->client, i)) != NULL; i++) {
        if (conn->driver)
            weir__redis_link_close(conn->driver);
        conn->driver = NULL;
    }
    weir__redis_client_destroy(d->client);
    weir__tls_context_destroy(d->links.tls);
    if (d->links.epoll >= 0)
        close(d->links.epoll);
    if (d->links.wake >= 0)
        close(d->links.wake);
    free(d);
}

void weir__redis_drive_end(struct weir__redis_drive *d)
{
    weir__redis_client_end(d->client);
}

struct weir__redis_client *weir__redis_drive_client(struct weir__redis_drive *d)
{
    return d->client;
}

int weir__redis_drive_fd(const struct weir__redis_drive *d)
{
    return d->links.epoll;
}

void weir__redis_drive_wake(struct weir__redis_drive *d)
{
    ssize_t n = write(d->links.wake, &(uint64_t){ 1 }, sizeof(uint64_t));

    (void)n; /* full: it is awake */
}

static void calm(struct weir__redis_drive *d)
{
    uint64_t n;
    ssize_t got = read(d->links.wake, &n, sizeof(n));

    (void)got; /* nothing: somebody else has */
}

/* Reads and writes where the network is ready.  True: there may be more. */
static bool take_events(struct weir__redis_drive *d, weir_time now)
{
    struct epoll_event events[EVENTS_MAX];
    int n = epoll_wait(d->links.epoll, events, EVENTS_MAX, 0);

    for (int i = 0; i < n; i++) {
        struct weir__redis_link *link = events[i].data.ptr;
        if (!link)
            calm(d);
        else if (!weir__redis_link_is_over(link))
            weir__redis_link_turn(link, true, now);
    }
    return n == EVENTS_MAX;
}

/* Opens and closes as the client says, and writes. */
static void tend(struct weir__redis_drive *d, struct weir__redis_conn *conn, weir_time now)
{
    struct weir__redis_link *link = conn->driver;
    bool over = link && weir__redis_link_is_over(link);

    if ((!link || over) && conn->phase == WEIR__REDIS_OPENING) {
        conn->driver = link = weir__redis_link_open(&d->links, conn, link, now);
    } else if (over && !weir__redis_link_is_late(link, now)) {
        weir__redis_link_close(link);
        conn->driver = link = NULL;
    }
    if (link && !weir__redis_link_is_over(link) &&
        (conn->phase == WEIR__REDIS_OPENING || conn->out.len > 0))
        weir__redis_link_turn(link, false, now);
}

weir_time weir__redis_drive_turn(struct weir__redis_drive *d, weir_time now)
{
    struct weir__redis_conn *conn;

    for (int round = 0; round < ROUNDS_MAX && take_events(d, now); round++)
        ;
    weir__redis_client_turn(d->client, now);
    for (size_t i = 0; (conn = weir__redis_client_conn(d->client, i)) != NULL; i++)
        tend(d, conn, now);
    return weir__redis_client_turn(d->client, now); /* connecting may have failed at once */
}
