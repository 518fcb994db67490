/* loop.c -- a thread that serves: accepts, wakes those that wait for events, sweeps out the idle,
 * drains.
 *
 * The clock is read once per turn, when the first request of the turn asks for it: `turn` runs
 * before the loop goes to wait.
 */
#include "server/serve/net/loop.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base.h"
#include "base/thread.h"
#include "server/serve/net/conn.h"
#include "server/serve/net/mailbox.h"
#include "server/serve/net/pass-connections.h"
#include "wire/tls.h"
#include "server/serve/decide/adhoc.h"
#include "server/serve/decide/fair-use-per-client.h"
#include "server/serve/decide/units-wait.h"
#include "server/serve/decide/lock-wait.h"
#include "server/serve/decide/waiting.h"

#define BACKLOG  1024
#define SWEEP_MS 1000
#define PASS_MS  10 /* between two tries to pass connections to a successor */

weir_time weir__server_now(const struct weir__server *server)
{
    return server->test_clock ? __atomic_load_n(server->test_clock, __ATOMIC_ACQUIRE)
                              : weir_table_now(server->table);
}

void weir__server_set_clock(struct weir__server *server, weir_time now)
{
    __atomic_store_n(server->test_clock, now, __ATOMIC_RELEASE);
    if (server->tick)
        server->tick(server, now);
}

/* ------------------------------------------------------------ accepting ---- */

static void find_peer(struct weir__conn *conn)
{
    struct sockaddr_storage storage;
    struct sockaddr *address = (struct sockaddr *)&storage;
    int len = sizeof(storage);

    memset(&storage, 0, sizeof(storage));
    if (uv_tcp_getpeername(&conn->uv.tcp, address, &len) != 0)
        return;
    if (address->sa_family == AF_INET)
        uv_ip4_name((const struct sockaddr_in *)(const void *)address, conn->peer,
                    sizeof(conn->peer));
    else
        uv_ip6_name((const struct sockaddr_in6 *)(const void *)address, conn->peer,
                    sizeof(conn->peer));
}

static void on_turned_away(uv_handle_t *handle)
{
    free(handle->data);
}

/* There are too many: says so, as far as that can be said at once. */
static void turn_away(struct weir__conn *conn)
{
    static char resp[] = "-ERR max number of clients reached\r\n";
    static char http[] = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: "
                         "0\r\nRetry-After: 1\r\n\r\n";
    uv_buf_t buf = conn->protocol == &weir__resp ? uv_buf_init(resp, sizeof(resp) - 1)
                                                 : uv_buf_init(http, sizeof(http) - 1);

    weir__counter_add(&conn->loop->counters, WEIR__COUNT_CONNECTIONS_REFUSED, 1);
    if (!conn->loop->server->tls)
        uv_try_write(&conn->uv.stream, &buf, 1);
    conn->uv.handle.data = conn;
    uv_close(&conn->uv.handle, on_turned_away);
}

/* Nobody has all connections, or nobody else could ask, nor an operator see why. */
static bool has_room(const struct weir__conn *conn)
{
    struct weir__server *server = conn->loop->server;
    int64_t free =
        server->settings->connections_max - __atomic_load_n(&server->connections, __ATOMIC_RELAXED);

    return free > 0 &&
           weir__fair_use_may_connect(server->fair_use, conn, free, weir__loop_now(conn->loop));
}

static int init_stream(uv_loop_t *uv, union weir__stream *stream, bool unix_socket)
{
    return unix_socket ? uv_pipe_init(uv, &stream->pipe, 0) : uv_tcp_init(uv, &stream->tcp);
}

static void on_connection(uv_stream_t *stream, int status)
{
    struct weir__listener *listener = stream->data;
    struct weir__loop *loop = listener->loop;
    struct weir__server *server = loop->server;
    struct weir__conn *conn = status < 0 ? NULL : calloc(1, sizeof(*conn));

    if (!conn) {
        listener->missed = status == 0;
        return;
    }
    conn->loop = loop;
    conn->protocol = listener->protocol;
    conn->role = conn->first_role = listener->role;
    conn->id = __atomic_add_fetch(&server->connection_ids, 1, __ATOMIC_RELAXED);
    if (init_stream(&loop->uv, &conn->uv, listener->unix_socket) != 0) {
        free(conn);
        listener->missed = true;
        return;
    }
    if (uv_accept(stream, &conn->uv.stream) != 0) {
        conn->uv.handle.data = conn;
        uv_close(&conn->uv.handle, on_turned_away);
        return;
    }
    weir__counter_add(&loop->counters, WEIR__COUNT_CONNECTIONS, 1);
    if (!listener->unix_socket)
        find_peer(conn);
    if (!has_room(conn) || (!listener->unix_socket && server->tls &&
                            (conn->tls = weir__tls_accept(server->tls)) == NULL)) {
        turn_away(conn);
        return;
    }
    __atomic_fetch_add(&server->connections, 1, __ATOMIC_RELAXED);
    if (!listener->unix_socket) {
        uv_tcp_nodelay(&conn->uv.tcp, 1);
        uv_tcp_keepalive(&conn->uv.tcp, 1, 60);
    }
    weir__conn_begin(conn);
}

int weir__loop_listen(struct weir__loop *loop, struct weir__listener *listener,
                      struct weir_error *error)
{
    int code = init_stream(&loop->uv, &listener->uv, listener->unix_socket);

    listener->loop = loop;
    if (code == 0)
        code = listener->unix_socket ? uv_pipe_open(&listener->uv.pipe, listener->fd)
                                     : uv_tcp_open(&listener->uv.tcp, listener->fd);
    listener->uv.handle.data = listener;
    if (code == 0)
        code = uv_listen(&listener->uv.stream, BACKLOG, on_connection);
    return code == 0 ? WEIR_OK
                     : weir__fail(error, WEIR_SYSTEM, "cannot listen: %s", uv_strerror(code));
}

/* -------------------------------------------------------------- the loop ---- */

static void on_turn(uv_prepare_t *turn)
{
    struct weir__loop *loop = turn->data;

    loop->now_is_old = true;
    weir__loop_serve_due(loop);
    loop->now_is_old = true;
    weir__units_wait_hand_over(loop);
    weir__adhoc_turn(loop->server->adhoc, loop);
}

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void close_listeners(struct weir__loop *loop)
{
    for (size_t i = 0; i < loop->n_listeners; i++) {
        if (!loop->listeners[i].closed)
            close_handle(&loop->listeners[i].uv.handle);
        loop->listeners[i].closed = true;
    }
}

/* With the last connection the loop's own handles go too, and its thread ends. */
static void end_if_empty(struct weir__loop *loop)
{
    if (loop->conns || weir__mailbox_is_expecting(loop))
        return;
    weir__units_wait_hand_over(loop); /* of connections that are gone */
    weir__waiting_close(loop);
    weir__lock_waits_close(loop);
    weir__mailbox_close(loop);
    close_handle((uv_handle_t *)&loop->waker);
    close_handle((uv_handle_t *)&loop->sweeper);
    close_handle((uv_handle_t *)&loop->turn);
}

static void on_sweep(uv_timer_t *sweeper);

static void drain(struct weir__loop *loop, bool at_once)
{
    struct weir__conn *next;

    close_listeners(loop);
    for (struct weir__conn *conn = loop->conns; conn; conn = next) {
        next = conn->next;
        if (at_once)
            weir__conn_close(conn);
        else
            weir__conn_drain(conn);
    }
    if (loop->conns && loop->server->successor) /* some may be able to go soon */
        uv_timer_start(&loop->sweeper, on_sweep, PASS_MS, SWEEP_MS);
    end_if_empty(loop);
}

static void on_wake(uv_async_t *waker)
{
    struct weir__loop *loop = waker->data;
    struct weir__conn *next;

    weir__pass_adopt(loop);
    for (struct weir__conn *conn = loop->conns; conn; conn = next) {
        next = conn->next;
        if (conn->subscribed && !conn->closed && conn->protocol->wake)
            conn->protocol->wake(conn);
    }
    int draining = __atomic_load_n(&loop->server->draining, __ATOMIC_ACQUIRE);
    if (draining)
        drain(loop, draining > 1);
}

/* libuv waits for a connection to be accepted before it looks for others: one that there was no
 * memory for must be asked about again. */
static void retry_missed(struct weir__loop *loop)
{
    for (size_t i = 0; i < loop->n_listeners; i++) {
        struct weir__listener *listener = &loop->listeners[i];
        if (!listener->missed || listener->closed)
            continue;
        listener->missed = false;
        on_connection(&listener->uv.stream, 0);
    }
}

/* The loop was held up, or the process stopped: what clients have sent or read meanwhile is not
 * known yet.  The next sweep looks at them, late or not. */
static bool comes_late(struct weir__loop *loop, uint64_t now)
{
    bool late = now - loop->swept_ms > SWEEP_MS + SWEEP_MS / 4 && !loop->swept_late;

    loop->swept_ms = now;
    loop->swept_late = late;
    return late;
}

static void on_sweep(uv_timer_t *sweeper)
{
    struct weir__loop *loop = sweeper->data;
    struct weir__conn *next;
    uint64_t now = uv_now(&loop->uv);
    bool late = comes_late(loop, now);

    retry_missed(loop);
    for (struct weir__conn *conn = loop->conns; conn; conn = next) {
        next = conn->next;
        if (conn->subscribed && conn->protocol->wake)
            conn->protocol->wake(conn);
        if (!late)
            weir__conn_sweep(conn, now);
    }
    if (__atomic_load_n(&loop->server->draining, __ATOMIC_ACQUIRE))
        drain(loop, false);
}

int weir__loop_create(struct weir__loop *loop, struct weir__server *server, size_t index,
                      struct weir_error *error)
{
    loop->server = server;
    loop->index = index;
    loop->now_is_old = true;
    loop->in = malloc(WEIR__READ_SIZE);
    int code = loop->in ? uv_loop_init(&loop->uv) : UV_ENOMEM;
    if (code == 0)
        code = uv_async_init(&loop->uv, &loop->waker, on_wake);
    if (code == 0)
        code = uv_timer_init(&loop->uv, &loop->sweeper);
    if (code == 0)
        code = uv_prepare_init(&loop->uv, &loop->turn);
    if (code == 0)
        code = weir__mailbox_create(loop);
    if (code != 0)
        return weir__fail(error, WEIR_NO_MEMORY, "cannot make a loop: %s", uv_strerror(code));
    loop->waker.data = loop->sweeper.data = loop->turn.data = loop;
    uv_timer_start(&loop->sweeper, on_sweep, SWEEP_MS, SWEEP_MS);
    uv_prepare_start(&loop->turn, on_turn);
    return WEIR_OK;
}

static void *run(void *context)
{
    struct weir__loop *loop = context;

    uv_run(&loop->uv, UV_RUN_DEFAULT);
    return NULL;
}

int weir__loop_start(struct weir__loop *loop, struct weir_error *error)
{
    int code = weir__thread_start(&loop->thread, run, loop);

    loop->started = code == 0;
    return code == 0 ? WEIR_OK
                     : weir__fail(error, WEIR_SYSTEM, "cannot start a thread: %s", strerror(code));
}

void weir__loop_wake(struct weir__loop *loop)
{
    uv_async_send(&loop->waker);
}

void weir__loop_join(struct weir__loop *loop)
{
    if (loop->started)
        pthread_join(loop->thread, NULL);
    loop->started = false;
}

void weir__loop_destroy(struct weir__loop *loop)
{
    drain(loop, true);
    uv_run(&loop->uv, UV_RUN_DEFAULT); /* handles being closed */
    uv_loop_close(&loop->uv);
    weir__waiting_free(loop);
    weir__lock_waits_free(loop);
    weir__mailbox_free(loop);
    weir__buffer_free(&loop->out);
    weir__buffer_free(&loop->openapi);
    weir__resp_scratch_free(loop);
    free(loop->in);
    free(loop->listeners);
}
