/* conn.c -- one connection: bytes in, to its protocol; answers out, in as few writes as can be.
 *
 * Input is fed from the loop's one buffer; only an incomplete request is copied. The answers of one
 * feeding leave in one write; the part that the kernel does not take at once waits in `pending`,
 * and until that is gone nothing more is read: a client that reads no answers gets no more of them.
 * An idle connection holds no buffer at all.
 *
 * One that always has more to say and to read gets a turn like all others: libuv would read on, and
 * write what the client takes, for as long as both go on.  So a turn ends after a full buffer of
 * input (on_room), a full one of output, or some time (had_turn).  libuv tells of up to nine writes
 * before it looks at the sockets of others again: so what is written then makes it due, once.
 */
#include "server/serve/net/conn.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/base.h"
#include "server/serve/net/pass-connections.h"
#include "wire/tls.h"
#include "server/serve/decide/bound-permits.h"
#include "server/serve/decide/units-wait.h"
#include "server/serve/decide/lock-wait.h"
#include "server/serve/decide/fair-use-per-client.h"
#include "server/serve/decide/waiting.h"

#define PENDING_HIGH (64 * 1024)   /* more output than this waits: stop reading */
#define KEPT_HIGH    (64 * 1024)   /* likewise more input, behind an ask that waits */
#define OUT_KEEP     (1024 * 1024) /* a larger buffer is not kept for the next connection */
#define FRESH_MS     1000          /* a new client will speak soon, a told one close */
#define TURN_MOST    (2 * WEIR_MILLISECOND)

static void serve_rest(struct weir__conn *conn);
static void write_pending(struct weir__conn *conn);

/* ---------------------------------------------------------------- turns ---- */

static void make_due(struct weir__conn *conn)
{
    struct weir__loop *loop = conn->loop;

    if (conn->due_link)
        return;
    conn->next_due = loop->due;
    if (conn->next_due)
        conn->next_due->due_link = &conn->next_due;
    conn->due_link = &loop->due;
    loop->due = conn;
}

static void make_not_due(struct weir__conn *conn)
{
    if (!conn->due_link)
        return;
    *conn->due_link = conn->next_due;
    if (conn->next_due)
        conn->next_due->due_link = conn->due_link;
    conn->due_link = NULL;
}

void weir__loop_serve_due(struct weir__loop *loop)
{
    while (loop->due) { /* a turn that is had now makes it due when libuv tells of a write */
        struct weir__conn *conn = loop->due;
        make_not_due(conn);
        conn->had_turn = false;
        if (!conn->held)
            serve_rest(conn);
    }
}

/* -------------------------------------------------------------- closing ---- */

static void on_closed(uv_handle_t *handle)
{
    struct weir__conn *conn = handle->data;
    struct weir__loop *loop = conn->loop;

    if (conn->protocol->close)
        conn->protocol->close(conn);
    weir__bound_release(conn);
    weir__tls_destroy(conn->tls);
    weir__buffer_free(&conn->in);
    weir__buffer_free(&conn->pending);
    weir__buffer_free(&conn->sending);
    *conn->link = conn->next;
    if (conn->next)
        conn->next->link = conn->link;
    weir__counter_add(&loop->counters, WEIR__COUNT_CONNECTIONS_CLOSED, 1);
    weir__fair_use_give(loop->server->fair_use, WEIR__POOL_CONNECTIONS, conn->fair_user);
    __atomic_fetch_sub(&loop->server->connections, 1, __ATOMIC_RELAXED);
    free(conn);
    if (!loop->conns && __atomic_load_n(&loop->server->draining, __ATOMIC_ACQUIRE) &&
        !uv_is_closing((uv_handle_t *)&loop->waker))
        uv_async_send(&loop->waker); /* that was the last one */
}

void weir__conn_close(struct weir__conn *conn)
{
    if (conn->closed)
        return;
    conn->closed = true;
    make_not_due(conn);
    if (conn->job)
        weir__job_abandon(conn->job);
    if (conn->wait)
        weir__wait_abandon(conn);
    if (conn->units_wait)
        weir__units_wait_abandon(conn);
    if (conn->units_wait_enter)
        weir__units_wait_enter_abandon(conn);
    if (conn->lock_wait)
        weir__lock_abandon(conn);
    uv_close(&conn->uv.handle, on_closed);
}

static void set_reading(struct weir__conn *conn);

static bool is_quiet(const struct weir__conn *conn)
{
    return !conn->writing && conn->pending.len == 0 && !conn->held;
}

void weir__conn_end(struct weir__conn *conn)
{
    conn->ending = true;
}

void weir__conn_end_early(struct weir__conn *conn)
{
    conn->ending = conn->lingers = true;
}

/* A socket that is closed with input unread resets the connection, and the client never sees why.
 * So only our side is closed, and further input is thrown away until the client has closed its own,
 * or patience is at its end. */
static void linger(struct weir__conn *conn)
{
    uv_os_fd_t fd;

    if (conn->heard_all || uv_fileno(&conn->uv.handle, &fd) != 0 || shutdown(fd, SHUT_WR) != 0) {
        weir__conn_close(conn);
        return;
    }
    weir__buffer_free(&conn->in);
    conn->lingering = true;
    conn->since_ms = uv_now(&conn->loop->uv);
    set_reading(conn);
}

static void close_if_ended(struct weir__conn *conn)
{
    if (!conn->ending || conn->lingering || !is_quiet(conn))
        return;
    if (conn->lingers)
        linger(conn);
    else
        weir__conn_close(conn);
}

/* -------------------------------------------------------------- writing ---- */

static void on_written(uv_write_t *write, int status)
{
    struct weir__conn *conn = write->data;

    conn->writing = false;
    conn->sending.len = 0;
    if (conn->closed)
        return;
    if (status < 0) {
        weir__conn_close(conn);
        return;
    }
    conn->last_ms = uv_now(&conn->loop->uv);
    if (conn->pending.len) {
        write_pending(conn);
        return;
    }
    weir__buffer_free(&conn->sending);
    weir__buffer_free(&conn->pending);
    close_if_ended(conn);
    if (conn->closed)
        return;
    if (conn->had_turn)
        make_due(conn);
    else if (!conn->held)
        serve_rest(conn);
}

/* Hands everything that waits to the kernel, in order. */
static void write_pending(struct weir__conn *conn)
{
    if (conn->writing || conn->closed || conn->pending.len == 0)
        return;
    struct weir__buffer empty = conn->sending;
    conn->sending = conn->pending;
    conn->pending = empty;
    conn->pending.len = 0;
    uv_buf_t buf = uv_buf_init(conn->sending.bytes, (unsigned)conn->sending.len);
    conn->write.data = conn;
    conn->writing = true;
    conn->queued = conn->sending.len;
    conn->moved_ms = uv_now(&conn->loop->uv);
    if (uv_write(&conn->write, &conn->uv.stream, &buf, 1, on_written) != 0) {
        conn->writing = false;
        weir__conn_close(conn);
    }
}

/* What uv_write has sent is told later, and nothing is fed before. */
static bool may_try(const struct weir__conn *conn)
{
    return !conn->writing && conn->pending.len == 0 && !conn->had_turn;
}

/* Sends bytes that are ready for the network. */
static void send_raw(struct weir__conn *conn, const char *bytes, size_t len)
{
    size_t sent = 0;

    weir__counter_add(&conn->loop->counters, WEIR__COUNT_BYTES_OUT, (int64_t)len);
    if (may_try(conn)) {
        uv_buf_t buf = uv_buf_init((char *)(uintptr_t)bytes, (unsigned)len);
        int n = uv_try_write(&conn->uv.stream, &buf, 1);
        if (n < 0 && n != UV_EAGAIN) {
            weir__conn_close(conn);
            return;
        }
        sent = n > 0 ? (size_t)n : 0;
    }
    if (sent == len)
        return;
    weir__buffer_add(&conn->pending, bytes + sent, len - sent);
    if (conn->pending.failed)
        weir__conn_close(conn);
    else
        write_pending(conn);
}

static void send_bytes(struct weir__conn *conn, const void *bytes, size_t len)
{
    if (conn->closed || len == 0)
        return;
    if (!conn->tls) {
        send_raw(conn, bytes, len);
        return;
    }
    struct weir__buffer network = { 0 };
    if (weir__tls_output(conn->tls, bytes, len, &network) < 0 || network.failed)
        weir__conn_close(conn);
    else
        send_raw(conn, network.bytes, network.len);
    weir__buffer_free(&network);
}

void weir__conn_send(struct weir__conn *conn, const void *bytes, size_t len)
{
    size_t waits =
        conn->pending.len + (conn->writing ? uv_stream_get_write_queue_size(&conn->uv.stream) : 0);

    if (conn->subscribed && waits + len > (size_t)conn->loop->server->settings->output_max) {
        weir__counter_add(&conn->loop->counters, WEIR__COUNT_NOT_READING, 1);
        weir__conn_close(conn);
        return;
    }
    send_bytes(conn, bytes, len);
}

/* Sends the answers in the loop's buffer.  Whatever becomes of it, the next connection finds the
 * buffer empty and sound. */
static void flush(struct weir__conn *conn,
                  void (*send)(struct weir__conn *conn, const void *bytes, size_t len))
{
    struct weir__buffer *out = &conn->loop->out;

    if (out->failed)
        weir__conn_close(conn);
    else
        send(conn, out->bytes, out->len);
    out->len = 0;
    if (out->failed || out->room > OUT_KEEP)
        weir__buffer_free(out);
}

void weir__conn_send_out(struct weir__conn *conn)
{
    flush(conn, weir__conn_send);
}

/* -------------------------------------------------------------- reading ---- */

static bool may_feed(const struct weir__conn *conn)
{
    return !conn->closed && !conn->ending && !conn->held && !conn->had_turn &&
           conn->pending.len + (conn->writing ? conn->sending.len : 0) <= PENDING_HIGH;
}

bool weir__loop_is_late(struct weir__loop *loop)
{
    weir_time now = weir__clock_monotonic();

    loop->asks = 0;
    if (loop->turn_since == 0)
        loop->turn_since = now;
    return loop->turn_over = now - loop->turn_since > TURN_MOST;
}

/* Feeds as long as whole requests come out; returns how many bytes are done with. */
static size_t feed(struct weir__conn *conn, char *bytes, size_t len)
{
    size_t used = 0;

    conn->loop->fed = conn;
    while (used < len && may_feed(conn)) {
        conn->loop->asks = WEIR__TURN_ASKS;
        conn->loop->turn_since = 0;
        conn->loop->turn_over = false;
        size_t n = conn->protocol->feed(conn, bytes + used, len - used);
        const struct weir__buffer *out = &conn->loop->out;
        conn->had_turn = out->len > 0 && (conn->loop->turn_over || weir__turn_is_over(conn));
        flush(conn, send_bytes);
        if (n == 0)
            break;
        used += n;
    }
    conn->loop->fed = NULL;
    return used;
}

static void note_rest(struct weir__conn *conn, size_t used, size_t rest)
{
    if (rest == 0)
        conn->since_ms = 0;
    else if (used > 0 || conn->since_ms == 0)
        conn->since_ms = uv_now(&conn->loop->uv);
}

/* Feeds the rest of earlier reads. */
static void feed_kept(struct weir__conn *conn)
{
    size_t used = feed(conn, conn->in.bytes, conn->in.len);

    weir__buffer_drop(&conn->in, used);
    if (conn->in.len == 0)
        weir__buffer_free(&conn->in);
    note_rest(conn, used, conn->in.len);
}

static void feed_fresh(struct weir__conn *conn, char *bytes, size_t len)
{
    conn->spoke = true;
    if (conn->in.len) {
        weir__buffer_add(&conn->in, bytes, len);
        feed_kept(conn);
    } else {
        size_t used = feed(conn, bytes, len);
        if (used < len && !conn->closed)
            weir__buffer_add(&conn->in, bytes + used, len - used);
        note_rest(conn, used, len - used);
    }
    if (conn->in.failed)
        weir__conn_close(conn);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct weir__conn *conn = handle->data;

    (void)suggested;
    *buf = uv_buf_init(conn->loop->in, conn->filled_in ? 0 : WEIR__READ_SIZE); /* 0: not now */
    conn->filled_in = false;
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf);

/* While its ask waits, a connection is read only to see whether the client is still there; the rest
 * is kept.  Waits for units are short: to stop reading for them, and to begin again, would cost two
 * calls of the kernel for each, so it is done only if the client goes on. */
static bool is_watched(const struct weir__conn *conn)
{
    if (conn->units_wait || conn->units_wait_enter)
        return conn->in.len == 0;
    return (conn->wait || conn->lock_wait) && conn->in.len < KEPT_HIGH;
}

/* Reads go on while input is dealt with at once. */
static void set_reading(struct weir__conn *conn)
{
    bool wanted = conn->lingering || ((may_feed(conn) || is_watched(conn)) && !conn->heard_all);

    if (conn->closed || wanted == conn->reading)
        return;
    conn->reading = wanted;
    if (!wanted)
        uv_read_stop(&conn->uv.stream);
    else if (uv_read_start(&conn->uv.stream, on_room, on_read) != 0)
        weir__conn_close(conn);
}

static void read_secret(struct weir__conn *conn, const char *bytes, size_t len)
{
    struct weir__buffer plain = { 0 }, network = { 0 };
    int code = weir__tls_input(conn->tls, bytes, len, &plain, &network);

    if (network.len)
        send_raw(conn, network.bytes, network.len);
    if (plain.len && !conn->closed)
        feed_fresh(conn, plain.bytes, plain.len);
    if (code < 0 || plain.failed || network.failed)
        weir__conn_close(conn);
    conn->heard_all |= code > 0;
    if (conn->in.len == 0) /* a record that is not whole is a request that is not */
        conn->since_ms = !weir__tls_is_within(conn->tls) ? 0
                         : conn->since_ms                ? conn->since_ms
                                                         : uv_now(&conn->loop->uv);
    weir__buffer_free(&plain);
    weir__buffer_free(&network);
}

/* After reading or writing: perhaps more can be fed, perhaps it is over. */
static void serve_rest(struct weir__conn *conn)
{
    if (conn->in.len && may_feed(conn))
        feed_kept(conn);
    if (conn->closed)
        return;
    if (conn->heard_all && conn->wait)
        weir__wait_cancel(conn);
    if (conn->heard_all && conn->lock_wait)
        weir__lock_cancel(conn);
    if (conn->heard_all && conn->units_wait)
        weir__units_wait_cancel(conn);
    if (conn->heard_all && conn->units_wait_enter)
        weir__units_wait_enter_cancel(conn);
    if (conn->heard_all && may_feed(conn)) /* the rest will never be whole */
        conn->ending = true;
    close_if_ended(conn);
    set_reading(conn);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct weir__conn *conn = stream->data;

    if (n == 0 || n == UV_ENOBUFS || conn->closed)
        return;
    conn->filled_in = n == WEIR__READ_SIZE;
    if (n < 0 && (n != UV_EOF || conn->lingering)) {
        weir__conn_close(conn);
        return;
    }
    if (conn->lingering)
        return;
    conn->last_ms = uv_now(&conn->loop->uv);
    if (n == UV_EOF) { /* it may be half closed only: answers are still sent */
        conn->heard_all = true;
    } else {
        weir__counter_add(&conn->loop->counters, WEIR__COUNT_BYTES_IN, n);
        if (conn->tls)
            read_secret(conn, buf->base, (size_t)n);
        else
            feed_fresh(conn, buf->base, (size_t)n);
    }
    if (!conn->closed)
        serve_rest(conn);
}

void weir__conn_resume(struct weir__conn *conn)
{
    conn->held = false;
    if (conn->since_ms) /* of input that was kept meanwhile: its time begins now */
        conn->since_ms = uv_now(&conn->loop->uv);
    if (!conn->closed)
        serve_rest(conn);
}

void weir__conn_watch(struct weir__conn *conn)
{
    set_reading(conn);
}

/* ------------------------------------------------------------ beginning ---- */

void weir__conn_begin(struct weir__conn *conn)
{
    struct weir__loop *loop = conn->loop;

    conn->uv.handle.data = conn;
    conn->fair_user = weir__fair_use_of(loop->server->fair_use, conn->peer, conn->id);
    weir__fair_use_hold(loop->server->fair_use, WEIR__POOL_CONNECTIONS, conn->fair_user);
    conn->last_ms = conn->came_ms = uv_now(&loop->uv);
    conn->proven = conn->role != WEIR__ROLE_NONE;
    conn->since_ms = conn->tls ? conn->last_ms : 0; /* the handshake must come */
    conn->resp = 2;
    conn->next = loop->conns;
    if (conn->next)
        conn->next->link = &conn->next;
    conn->link = &loop->conns;
    loop->conns = conn;
    set_reading(conn);
}

void weir__conn_continue(struct weir__conn *conn, const struct weir__passed *passed, const char *in)
{
    weir__conn_begin(conn);
    conn->proven = passed->proven;
    conn->resp = passed->resp;
    conn->spoke = true;
    conn->protocol->unpack(conn, passed);
    weir__buffer_add(&conn->in, in, passed->in_len);
    note_rest(conn, 0, conn->in.len);
    if (conn->in.failed)
        weir__conn_close(conn);
    else
        serve_rest(conn);
}

/* Once a second: closes a connection that is silent for long, has begun a request and does not go
 * on, or does not read. */
void weir__conn_sweep(struct weir__conn *conn, uint64_t now)
{
    const struct weir__settings *s = conn->loop->server->settings;
    uint64_t idle = (uint64_t)(s->idle / WEIR_MILLISECOND),
             patience = (uint64_t)(s->patience / WEIR_MILLISECOND);

    bool stranger = !conn->proven && now - conn->came_ms > patience;
    if (conn->closed)
        return;
    if (conn->writing && !stranger) {
        size_t left = uv_stream_get_write_queue_size(&conn->uv.stream);
        if (left != conn->queued) {
            conn->queued = left;
            conn->moved_ms = now;
        } else if (now - conn->moved_ms > patience) {
            weir__counter_add(&conn->loop->counters, WEIR__COUNT_NOT_READING, 1);
            weir__conn_close(conn);
        }
        return;
    }
    bool slow = conn->since_ms != 0 && !conn->held && now - conn->since_ms > patience;
    bool quiet = idle != 0 && !conn->subscribed && !conn->held && now - conn->last_ms > idle;
    if (slow || quiet || stranger) {
        if (!conn->lingering) /* that was counted as something else */
            weir__counter_add(&conn->loop->counters, WEIR__COUNT_TIMED_OUT, 1);
        weir__conn_close(conn);
    }
}

/* Something is about to come, as far as can be known: it lies in the kernel already, or the
 * connection has just been made and has not said anything yet.  The next sweep looks again. */
static bool is_expected(struct weir__conn *conn)
{
    uv_os_fd_t fd;
    int waiting = 0;
    bool fresh = !conn->spoke && uv_now(&conn->loop->uv) - conn->last_ms < FRESH_MS;

    return fresh || (uv_fileno(&conn->uv.handle, &fd) == 0 && ioctl(fd, FIONREAD, &waiting) == 0 &&
                     waiting > 0);
}

/* The server drains: a connection between two requests is done; one within has its time. */
void weir__conn_drain(struct weir__conn *conn)
{
    if (conn->lingering && uv_now(&conn->loop->uv) - conn->since_ms > FRESH_MS)
        weir__conn_close(conn);
    if (conn->lingering || conn->closed)
        return;
    if (weir__pass_on(conn) != WEIR__PASS_NEVER)
        return;
    conn->ending |= conn->subscribed || (conn->in.len == 0 && !is_expected(conn));
    conn->lingers |= conn->held; /* what it says until it is answered may stay unread */
    close_if_ended(conn);
}
