/* socket.c -- the socket of one connection. */
#include "cluster/redis/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cluster/redis/resolve.h"

#define LATE_MAX (300 * WEIR_SECOND)

enum { READS_MAX = 16 }; /* of one turn: others want to be read too */

struct weir__redis_link {
    struct weir__redis_links *links;
    struct weir__redis_conn *conn;
    uint32_t life;
    int fd; /* -1: none yet */
    bool connected;
    uint32_t events; /* that epoll looks for */
    struct weir__redis_lookup *lookup;
    /* It, or a life before, was over before the name was found, which is waited for until then. */
    weir_time late;
    size_t tried; /* addresses */
    struct weir__tls *tls;
    struct weir__buffer sealed, plain; /* TLS: for the network, and from it */
};

bool weir__redis_link_is_over(const struct weir__redis_link *l)
{
    return l->conn->life != l->life || l->conn->phase == WEIR__REDIS_CLOSED;
}

static void fail(struct weir__redis_link *l, const char *why, weir_time now)
{
    weir__redis_client_lost(l->links->client, l->conn, why, now);
}

static void fail_errno(struct weir__redis_link *l, int number, weir_time now)
{
    char why[96];

    fail(l, strerror_r(number, why, sizeof(why)), now);
}

/* ------------------------------------------------------------- connecting ---- */

static void watch(struct weir__redis_link *l, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = l };

    if (events == l->events)
        return;
    epoll_ctl(l->links->epoll, l->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, l->fd, &event);
    l->events = events;
}

/* A child of fork may have the socket too: then closing it does not take it out of the set, and its
 * events would be those of a link that is gone. */
static void drop_socket(struct weir__redis_link *l)
{
    if (l->fd >= 0 && l->events)
        epoll_ctl(l->links->epoll, EPOLL_CTL_DEL, l->fd, NULL);
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    l->events = 0;
}

/* 0: connected or on its way; otherwise the error. */
static int connect_to(struct weir__redis_link *l, const struct sockaddr *address, socklen_t len)
{
    int on = 1;

    l->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (l->fd < 0)
        return errno;
    if (address->sa_family != AF_UNIX)
        setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(l->fd, address, len) == 0 || errno == EINPROGRESS) {
        watch(l, EPOLLOUT);
        return 0;
    }
    int number = errno;
    drop_socket(l);
    return number;
}

static void connect_unix(struct weir__redis_link *l, weir_time now)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    snprintf(address.sun_path, sizeof(address.sun_path), "%.*s", (int)sizeof(address.sun_path) - 1,
             weir__redis_conn_address(l->conn)->host);
    int number = connect_to(l, (const struct sockaddr *)&address, sizeof(address));
    if (number != 0)
        fail_errno(l, number, now);
}

/* The next address of the host, each once.  Every life begins at another: one that swallows
 * everything costs one life. */
static void connect_next(struct weir__redis_link *l, const struct addrinfo *all, int number,
                         weir_time now)
{
    size_t n = 0;

    for (const struct addrinfo *a = all; a; a = a->ai_next)
        n++;
    while (l->tried < n) {
        size_t place = (l->life - 1 + l->tried++) % n;
        const struct addrinfo *a = all;
        while (place-- > 0)
            a = a->ai_next;
        number = connect_to(l, a->ai_addr, a->ai_addrlen);
        if (number == 0)
            return;
    }
    fail_errno(l, number, now);
}

static void try_connecting(struct weir__redis_link *l, int number, weir_time now)
{
    const struct addrinfo *found;
    const char *why;

    if (!l->lookup) {
        fail_errno(l, number, now);
        return;
    }
    if (!weir__redis_lookup_ready(l->lookup, &found, &why))
        return;
    l->late = 0;
    if (!found)
        fail(l, why, now);
    else
        connect_next(l, found, number, now);
}

static bool begin_tls(struct weir__redis_link *l, weir_time now)
{
    l->tls = weir__tls_connect(l->links->tls, weir__redis_conn_address(l->conn)->host);
    l->conn->shaking = true;
    if (l->tls && weir__tls_input(l->tls, "", 0, &l->plain, &l->sealed) >= 0)
        return true;
    fail(l, "there was no memory for TLS", now);
    return false;
}

static void finish_connecting(struct weir__redis_link *l, weir_time now)
{
    int number = 0;
    socklen_t len = sizeof(number);
    struct sockaddr_storage peer;
    socklen_t peer_len = sizeof(peer);

    getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &number, &len);
    if (number != 0) {
        drop_socket(l);
        try_connecting(l, number, now);
        return;
    }
    if (getpeername(l->fd, (struct sockaddr *)&peer, &peer_len) != 0)
        return; /* not yet */
    l->connected = true;
    watch(l, EPOLLIN);
    if (!l->links->tls)
        weir__redis_client_opened(l->links->client, l->conn, now);
    else
        begin_tls(l, now);
}

/* ------------------------------------------------------ reading and writing ---- */

static void take_plain(struct weir__redis_link *l, const char *bytes, size_t len, weir_time now)
{
    if (len > 0)
        weir__redis_client_input(l->links->client, l->conn, bytes, len, now);
}

static void take_sealed(struct weir__redis_link *l, const char *bytes, size_t len, weir_time now)
{
    bool was_ready = weir__tls_is_ready(l->tls);
    int code = weir__tls_input(l->tls, bytes, len, &l->plain, &l->sealed);

    if (code >= 0 && !was_ready && weir__tls_is_ready(l->tls))
        weir__redis_client_opened(l->links->client, l->conn, now);
    take_plain(l, l->plain.bytes, l->plain.len, now);
    l->plain.len = 0;
    if (code != 0 && !weir__redis_link_is_over(l))
        fail(l, code > 0 ? "it ended the connection" : weir__tls_problem(l->tls), now);
}

static void read_all(struct weir__redis_link *l, weir_time now)
{
    char *bytes = l->links->room;
    const size_t room = sizeof(l->links->room);

    for (int i = 0; i < READS_MAX && !weir__redis_link_is_over(l); i++) {
        ssize_t n = recv(l->fd, bytes, room, 0);
        if (n > 0)
            (l->tls ? take_sealed : take_plain)(l, bytes, (size_t)n, now);
        else if (n == 0)
            fail(l, "it ended the connection", now);
        else if (errno == EAGAIN)
            return;
        else if (errno != EINTR)
            fail_errno(l, errno, now);
        if (n > 0 && (size_t)n < room)
            return;
    }
}

/* How much of it the network took; SIZE_MAX: it failed. */
static size_t write_some(struct weir__redis_link *l, const struct weir__buffer *b, weir_time now)
{
    ssize_t n = b->len ? send(l->fd, b->bytes, b->len, MSG_NOSIGNAL) : 0;

    if (n >= 0)
        return (size_t)n;
    if (errno == EAGAIN || errno == EINTR)
        return 0;
    fail_errno(l, errno, now);
    return SIZE_MAX;
}

static void write_all(struct weir__redis_link *l, weir_time now)
{
    struct weir__buffer *out = &l->conn->out;

    if (out->failed)
        return; /* the client will see it */
    if (l->tls && weir__tls_is_ready(l->tls) && out->len > 0) {
        if (weir__tls_output(l->tls, out->bytes, out->len, &l->sealed) != 0) {
            fail(l, weir__tls_problem(l->tls), now);
            return;
        }
        weir__redis_client_wrote(l->links->client, l->conn, out->len);
    }
    size_t n = write_some(l, l->tls ? &l->sealed : out, now);
    if (n == SIZE_MAX)
        return;
    if (l->tls)
        weir__buffer_drop(&l->sealed, n);
    else
        weir__redis_client_wrote(l->links->client, l->conn, n);
    bool more = (l->tls ? l->sealed.len : out->len) > 0;
    watch(l, more ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* ------------------------------------------------------------- life cycle ---- */

bool weir__redis_link_is_late(struct weir__redis_link *l, weir_time now)
{
    const struct addrinfo *found;
    const char *why;

    if (l->late == 0 && l->lookup && !weir__redis_lookup_ready(l->lookup, &found, &why))
        l->late = now + LATE_MAX;
    return now < l->late;
}

static struct weir__redis_lookup *take_lookup(struct weir__redis_link *before, weir_time *late,
                                              weir_time now)
{
    struct weir__redis_lookup *lookup = NULL;

    if (before && weir__redis_link_is_late(before, now)) {
        lookup = before->lookup;
        *late = before->late;
        before->lookup = NULL;
    }
    if (before)
        weir__redis_link_close(before);
    return lookup;
}

struct weir__redis_link *weir__redis_link_open(struct weir__redis_links *links,
                                               struct weir__redis_conn *conn,
                                               struct weir__redis_link *before, weir_time now)
{
    weir_time late = 0;
    struct weir__redis_lookup *lookup = take_lookup(before, &late, now);
    struct weir__redis_link *l = calloc(1, sizeof(*l));
    bool is_path = weir__redis_conn_address(conn)->port == 0;

    if (l && !is_path && !lookup)
        lookup = weir__redis_lookup_begin(weir__redis_conn_address(conn), links->wake);
    if (l) {
        l->lookup = lookup;
        l->late = late;
    }
    if (!l || (!is_path && !lookup)) {
        weir__redis_lookup_end(lookup);
        free(l);
        weir__redis_client_lost(links->client, conn, "there was no memory to connect", now);
        return NULL;
    }
    l->links = links;
    l->conn = conn;
    l->life = conn->life;
    l->fd = -1;
    if (is_path)
        connect_unix(l, now);
    return l;
}

void weir__redis_link_turn(struct weir__redis_link *l, bool readable, weir_time now)
{
    if (l->fd < 0)
        try_connecting(l, EADDRNOTAVAIL, now);
    if (!weir__redis_link_is_over(l) && l->fd >= 0 && !l->connected)
        finish_connecting(l, now);
    if (!l->connected || weir__redis_link_is_over(l))
        return;
    if (readable)
        read_all(l, now);
    if (!weir__redis_link_is_over(l))
        write_all(l, now);
}

void weir__redis_link_close(struct weir__redis_link *l)
{
    drop_socket(l);
    weir__redis_lookup_end(l->lookup);
    weir__tls_destroy(l->tls);
    weir__buffer_free(&l->sealed);
    weir__buffer_free(&l->plain);
    free(l);
}
