/* resp.c -- the RESP protocol: from bytes to commands, from answers to bytes.
 *
 * CL.THROTTLE and WEIR.CHECK, the commands that come by the million, are gathered as long as they
 * follow each other and decided together (resp-throttle-check.c); any other command first has those
 * answered, so that replies keep the order of the commands.
 */
#include "server/serve/resp/resp.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/serve/net/conn.h"
#include "server/serve/net/pass-connections.h"

/* -------------------------------------------------------------- replies ---- */

#define ROOM(conn, n)                                      \
    char *to = weir__buffer_room(&(conn)->loop->out, (n)); \
    if (!to)                                               \
    return
#define WRITTEN(conn, end) (conn)->loop->out.len += (size_t)((end)-to)

void weir__reply_simple(struct weir__conn *conn, const char *text)
{
    size_t len = strlen(text);

    ROOM(conn, len + 3);
    WRITTEN(conn, weir__resp_put_simple(to, text, len));
}

void weir__reply_error(struct weir__conn *conn, const char *format, ...)
{
    char text[1024];
    va_list list;

    va_start(list, format);
    int n = vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 127)
            text[i] = ' ';
    ROOM(conn, len + 3);
    WRITTEN(conn, weir__resp_put_error(to, text, len));
}

void weir__reply_integer(struct weir__conn *conn, int64_t n)
{
    ROOM(conn, WEIR__RESP_NUMBER_MAX);
    WRITTEN(conn, weir__resp_put_integer(to, n));
}

void weir__reply_bulk(struct weir__conn *conn, const char *bytes, size_t len)
{
    ROOM(conn, len + WEIR__RESP_NUMBER_MAX + 2);
    WRITTEN(conn, weir__resp_put_bulk(to, bytes, len));
}

void weir__reply_text(struct weir__conn *conn, const char *text)
{
    if (text) {
        weir__reply_bulk(conn, text, strlen(text));
        return;
    }
    ROOM(conn, WEIR__RESP_NUMBER_MAX);
    WRITTEN(conn, weir__resp_put_null(to, conn->resp));
}

void weir__reply_header(struct weir__conn *conn, char kind, int64_t n)
{
    ROOM(conn, WEIR__RESP_NUMBER_MAX);
    WRITTEN(conn, weir__resp_put_header(to, kind, n));
}

void weir__reply_map(struct weir__conn *conn, int64_t pairs)
{
    if (conn->resp == 3)
        weir__reply_header(conn, '%', pairs);
    else
        weir__reply_header(conn, '*', 2 * pairs);
}

void weir__reply_push(struct weir__conn *conn, int64_t n)
{
    weir__reply_header(conn, conn->resp == 3 ? '>' : '*', n);
}

/* -------------------------------------------------------------- sessions ---- */

struct weir__resp_session *weir__resp_session(struct weir__conn *conn)
{
    if (!conn->session)
        conn->session = calloc(1, sizeof(struct weir__resp_session));
    if (!conn->session)
        weir__conn_end(conn);
    return conn->session;
}

static void close_session(struct weir__conn *conn)
{
    struct weir__resp_session *s = conn->session;

    if (!s)
        return;
    for (size_t i = 0; i < s->n_channels; i++)
        free(s->channels[i].text);
    weir__buffer_free(&s->queue);
    free(s);
    conn->session = NULL;
}

/* -------------------------------------------------------------- commands ---- */

/* A browser that was talked into sending a form here: its words would be commands. */
static bool is_http(const struct weir__resp_call *call)
{
    size_t len = call->args[0].len;

    return (len == 4 && weir__resp_is(call->args[0], "POST")) ||
           (len == 5 && weir__resp_is(call->args[0], "Host:"));
}

/* The command that comes by the million is not searched for. */
static inline bool is_throttle(const struct weir__resp_call *call)
{
    return call->args[0].len == 11 && memcmp(call->args[0].bytes, "CL.THROTTLE", 11) == 0 &&
           call->conn->role >= WEIR__ROLE_CHECK && !call->conn->session;
}

/* EXEC goes on, whatever the connection may do since. */
static bool is_executing(const struct weir__conn *conn)
{
    const struct weir__resp_session *s = conn->session;

    return s && s->executing;
}

static void run_one(struct weir__resp_call *call, const char *bytes, size_t len)
{
    struct weir__conn *conn = call->conn;

    if (is_throttle(call)) {
        weir__resp_throttle(call);
    } else if (is_executing(conn)) {
        weir__resp_exec(call);
    } else if (is_http(call)) {
        if (!weir__resp_clear_way(call))
            return;
        weir__counter_add(&conn->loop->counters, WEIR__COUNT_BAD_INPUT, 1);
        weir__reply_error(conn, "ERR this port speaks RESP, not HTTP");
        weir__conn_end_early(conn);
    } else if (weir__resp_is_queueing(call)) {
        weir__resp_queue(call, weir__resp_find(call), bytes, len);
    } else {
        weir__resp_run(call);
    }
}

static void say_bad(struct weir__conn *conn, const char *what)
{
    weir__counter_add(&conn->loop->counters, WEIR__COUNT_BAD_INPUT, 1);
    weir__reply_error(conn, "ERR Protocol error: %s", what);
    weir__conn_end_early(conn);
}

/* A client without a token has little to say: AUTH, HELLO. */
static const struct weir__resp_limits strangers = { 16, 4096 };

static size_t feed(struct weir__conn *conn, char *bytes, size_t len)
{
    struct weir__loop *loop = conn->loop;
    struct weir__text args[WEIR__RESP_ARGS];
    const struct weir__resp_limits all = { WEIR__RESP_ARGS,
                                           (size_t)loop->server->settings->request_max };
    struct weir__resp_call call = { .conn = conn, .args = args };
    size_t at = 0;
    int64_t commands = 0;

    while (at < len && !conn->ending && !conn->held && !weir__turn_is_over(conn)) {
        const char *what;
        const struct weir__resp_limits *limits = conn->role == WEIR__ROLE_NONE ? &strangers : &all;
        ptrdiff_t n = weir__resp_command(bytes + at, len - at, limits, args, &call.n, &what);
        if (n == 0)
            break;
        if (n < 0) {
            if (!weir__resp_clear_way(&call))
                break;
            say_bad(conn, what);
            at = len;
            break;
        }
        if (call.n > 0) {
            run_one(&call, bytes + at, (size_t)n);
            if (call.put_off)
                break;
            commands++;
        }
        at += (size_t)n;
    }
    weir__resp_flush(conn);
    weir__counter_add(&loop->counters, WEIR__COUNT_RESP_COMMANDS, commands);
    return at;
}

static bool pack_session(const struct weir__conn *conn, struct weir__passed *out)
{
    const struct weir__resp_session *s = conn->session;

    if (s && (s->multi || s->n_channels))
        return false;
    if (s) {
        memcpy(out->name, s->name, sizeof(out->name));
        memcpy(out->library, s->library, sizeof(out->library));
    }
    return true;
}

static void unpack_session(struct weir__conn *conn, const struct weir__passed *passed)
{
    bool named = passed->name[0] || passed->library[0];
    struct weir__resp_session *s = named ? weir__resp_session(conn) : NULL;

    if (s) {
        memcpy(s->name, passed->name, sizeof(s->name));
        memcpy(s->library, passed->library, sizeof(s->library));
    }
}

const struct weir__protocol weir__resp = {
    .name = "resp",
    .feed = feed,
    .wake = weir__resp_wake,
    .close = close_session,
    .pack = pack_session,
    .unpack = unpack_session,
};
