/* pass-connections.c -- open connections go to the successor, as they are. */
#include "server/serve/net/pass-connections.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "server/serve/net/conn.h"

#define IN_MAX \
    ((size_t)96 * 1024) /* bytes of a request that go along: a message has room for them */

/* A connection on its way to its loop. */
struct weir__arrival {
    struct weir__arrival *next;
    int fd;
    struct weir__passed passed;
    char in[];
};

struct weir__pass {
    struct weir__server *server;
    uv_poll_t poll;
    int channel;
    size_t turn; /* the loop that gets the next one */
    struct {
        struct weir__passed passed;
        char in[IN_MAX];
    } message;
};

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

/* -------------------------------------------------------------- passing ---- */

bool weir__pass_is_heard(int channel)
{
    uint32_t form = 0;

    return recv(channel, &form, sizeof(form), MSG_DONTWAIT) == sizeof(form) &&
           form == WEIR__PASS_FORM;
}

static bool send_message(int channel, const struct weir__passed *passed, const char *in, int fd)
{
    union control control = { .bytes = { 0 } };
    struct iovec parts[2] = { { (void *)(uintptr_t)passed, sizeof(*passed) },
                              { (void *)(uintptr_t)in, passed->in_len } };
    struct msghdr message = { .msg_iov = parts,
                              .msg_iovlen = 2,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof(control.bytes) };
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);

    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &fd, sizeof(fd));
    return sendmsg(channel, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

/* All that it has is known here. */
static bool can_go(const struct weir__conn *conn)
{
    return !conn->tls && !conn->ending && !conn->lingering && !conn->heard_all &&
           !conn->subscribed && !conn->bound && !conn->closed;
}

static bool is_between_requests(const struct weir__conn *conn)
{
    return !conn->held && !conn->writing && conn->pending.len == 0 && conn->in.len <= IN_MAX;
}

/* The channel takes some hundred messages, and the kernel some number of sockets that nobody has
 * received yet. */
static bool is_full(int number)
{
    return number == EAGAIN || number == EINTR || number == ENOBUFS || number == ENOMEM ||
           number == ETOOMANYREFS;
}

enum weir__pass_result weir__pass_on(struct weir__conn *conn)
{
    int channel = conn->loop->server->successor;
    uv_os_fd_t fd;
    struct weir__passed passed = { .form = WEIR__PASS_FORM,
                                   .in_len = (uint32_t)conn->in.len,
                                   .role = (int32_t)conn->role,
                                   .first_role = (int32_t)conn->first_role,
                                   .known = (int32_t)conn->known,
                                   .wrong_tokens = conn->wrong_tokens,
                                   .http = conn->protocol == &weir__http,
                                   .unix_socket = conn->uv.handle.type == UV_NAMED_PIPE,
                                   .proven = conn->proven,
                                   .resp = conn->resp };

    if (channel == 0 || !can_go(conn) || uv_fileno(&conn->uv.handle, &fd) != 0)
        return WEIR__PASS_NEVER;
    if (!is_between_requests(conn) || !conn->protocol->pack(conn, &passed))
        return WEIR__PASS_LATER;
    memcpy(passed.peer, conn->peer, sizeof(passed.peer));
    if (!send_message(channel, &passed, conn->in.bytes, fd))
        return is_full(errno) ? WEIR__PASS_LATER : WEIR__PASS_NEVER; /* the successor is gone */
    weir__conn_close(conn);
    return WEIR__PASS_GONE;
}

/* ------------------------------------------------------------ arriving ---- */

/* NULL: there is none now; *over: there will be none any more. */
static struct weir__arrival *receive(struct weir__pass *pass, bool *over)
{
    union control control = { .bytes = { 0 } };
    struct iovec part = { &pass->message, sizeof(pass->message) };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof(control.bytes) };
    ssize_t n = recvmsg(pass->channel, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *head = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    const struct weir__passed *passed = &pass->message.passed;
    int fd = -1;

    *over = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    if (head && head->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(head), sizeof(fd));
    bool whole = fd >= 0 && (size_t)n == sizeof(*passed) + passed->in_len;
    struct weir__arrival *arrival = whole ? malloc(sizeof(*arrival) + passed->in_len) : NULL;
    if (arrival) {
        arrival->fd = fd;
        arrival->passed = *passed;
        memcpy(arrival->in, pass->message.in, passed->in_len);
    } else if (fd >= 0) {
        close(fd);
    }
    return arrival;
}

static void hand_to(struct weir__loop *loop, struct weir__arrival *arrival)
{
    arrival->next = __atomic_load_n(&loop->arrivals, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&loop->arrivals, &arrival->next, arrival, false,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    uv_async_send(&loop->waker);
}

static void on_closed(uv_handle_t *handle)
{
    struct weir__pass *pass = handle->data;

    close(pass->channel);
    free(pass);
}

void weir__pass_close(struct weir__server *server)
{
    if (server->pass)
        uv_close((uv_handle_t *)&server->pass->poll, on_closed);
    server->pass = NULL;
}

static void on_message(uv_poll_t *poll, int status, int events)
{
    struct weir__pass *pass = poll->data;
    struct weir__server *server = pass->server;
    struct weir__arrival *arrival;
    bool over = status < 0;

    (void)events;
    while (!over && (arrival = receive(pass, &over)) != NULL)
        hand_to(&server->loops[pass->turn++ % server->n_loops], arrival);
    if (over)
        weir__pass_close(server);
}

int weir__pass_receive(struct weir__server *server, uv_loop_t *uv, int channel)
{
    struct weir__pass *pass = calloc(1, sizeof(*pass));
    const uint32_t form = WEIR__PASS_FORM;

    if (!pass || uv_poll_init(uv, &pass->poll, channel) != 0) {
        free(pass);
        close(channel);
        return WEIR_NO_MEMORY;
    }
    pass->server = server;
    pass->poll.data = pass;
    pass->channel = channel;
    server->pass = pass;
    uv_poll_start(&pass->poll, UV_READABLE | UV_DISCONNECT, on_message);
    return send(channel, &form, sizeof(form), MSG_NOSIGNAL) == sizeof(form) ? WEIR_OK : WEIR_SYSTEM;
}

/* ------------------------------------------------------------- adopting ---- */

static void on_given_up(uv_handle_t *handle)
{
    free(handle->data);
}

/* NULL: no memory; the socket is closed. */
static struct weir__conn *open_conn(struct weir__loop *loop, const struct weir__arrival *a)
{
    struct weir__conn *conn = calloc(1, sizeof(*conn));
    bool is_unix = a->passed.unix_socket;

    if (!conn || (is_unix ? uv_pipe_init(&loop->uv, &conn->uv.pipe, 0)
                          : uv_tcp_init(&loop->uv, &conn->uv.tcp)) != 0) {
        free(conn);
        close(a->fd);
        return NULL;
    }
    if ((is_unix ? uv_pipe_open(&conn->uv.pipe, a->fd) : uv_tcp_open(&conn->uv.tcp, a->fd)) == 0)
        return conn;
    close(a->fd);
    conn->uv.handle.data = conn;
    uv_close(&conn->uv.handle, on_given_up);
    return NULL;
}

static void adopt(struct weir__loop *loop, const struct weir__arrival *a)
{
    const struct weir__passed *p = &a->passed;
    struct weir__conn *conn = open_conn(loop, a);

    if (!conn)
        return;
    conn->loop = loop;
    conn->protocol = p->http ? &weir__http : &weir__resp;
    conn->id = __atomic_add_fetch(&loop->server->connection_ids, 1, __ATOMIC_RELAXED);
    conn->role = (enum weir__role)p->role;
    conn->first_role = (enum weir__role)p->first_role;
    conn->known = (enum weir__role)p->known;
    conn->wrong_tokens = p->wrong_tokens;
    memcpy(conn->peer, p->peer, sizeof(conn->peer));
    weir__counter_add(&loop->counters, WEIR__COUNT_CONNECTIONS, 1);
    __atomic_fetch_add(&loop->server->connections, 1, __ATOMIC_RELAXED);
    weir__conn_continue(conn, p, a->in);
}

void weir__pass_adopt(struct weir__loop *loop)
{
    struct weir__arrival *next, *a = __atomic_exchange_n(&loop->arrivals, NULL, __ATOMIC_ACQUIRE);

    for (; a; a = next) {
        next = a->next;
        adopt(loop, a);
        free(a);
    }
}
