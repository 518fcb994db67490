/* http-events.c -- events as they happen: server-sent events (WHATWG HTML, 9.2), for browsers and
 * for curl -N.
 *
 *     id: 17
 *     event: ban
 *     data: {"event":"ban",...}
 *
 * A client that comes back names the last event it saw (Last-Event-ID, or ?after=) and gets the
 * kept ones behind it; a new client gets events from then on.  Every 15 seconds a comment goes out,
 * so that no proxy takes the connection for dead.  The stream has no length: it ends with the
 * connection.
 */
#include "server/serve/http/http.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define BEAT_MS 15000

static void add_line(struct weir__buffer *out, const char *name, const char *text)
{
    weir__buffer_text(out, name);
    weir__buffer_text(out, ": ");
    weir__buffer_text(out, text);
    weir__buffer_text(out, "\n");
}

/* All that the connection has not heard yet. */
static void add_events(struct weir__conn *conn, struct weir__buffer *out)
{
    struct weir__buffer json = { 0 };
    enum weir__event_kind kind;
    uint64_t lost = 0;

    while (weir__events_next(conn->loop->server->events, &conn->heard, &kind, &json, &lost)) {
        if (lost > 0) {
            add_line(out, "event", weir__event_name(WEIR__EVENT_LOST));
            weir__buffer_format(out, "data: {\"event\":\"%s\",\"count\":%llu}\n\n",
                                weir__event_name(WEIR__EVENT_LOST), (unsigned long long)lost);
        }
        weir__buffer_format(out, "id: %llu\n", (unsigned long long)conn->heard);
        add_line(out, "event", weir__event_name(kind));
        weir__buffer_text(out, "data: ");
        weir__buffer_add(out, json.bytes, json.len);
        weir__buffer_text(out, "\n\n");
        json.len = 0;
    }
    if (json.failed)
        out->failed = true;
    weir__buffer_free(&json);
}

void weir__http_events_wake(struct weir__conn *conn)
{
    struct weir__buffer out = { 0 };

    if (!conn->subscribed || conn->closed)
        return;
    add_events(conn, &out);
    if (out.failed)
        weir__conn_end(conn);
    else if (out.len)
        weir__conn_send(conn, out.bytes, out.len);
    weir__buffer_free(&out);
}

static void on_beat(uv_timer_t *timer)
{
    struct weir__conn *conn = timer->data;

    if (!conn->closed && !conn->ending)
        weir__conn_send(conn, ":\n\n", 3);
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void weir__http_events_close(struct weir__http_session *session)
{
    if (session == NULL || !session->ticking) {
        free(session);
        return;
    }
    session->timer.data = session;
    uv_close((uv_handle_t *)&session->timer, on_timer_closed);
}

/* Where to begin.  A number that no event has had yet was another server's: then all kept events
 * are new. */
static bool read_start(struct weir__http_call *call, uint64_t *after)
{
    const struct weir__http_request *request = call->request;
    const struct weir__arg *arg = call->verb->args;
    struct weir__text seen = weir__http_header(request->headers, request->n_headers, arg->header);
    uint64_t latest = weir__events_latest(call->conn->loop->server->events);
    struct weir__verb_call c;

    weir__call_begin(&c, call->verb, call->conn->loop, true);
    bool good =
        seen.len /* a client that comes back to the same address has seen more by now */
            ? weir__call_member(&c, (struct weir__text){ arg->name, strlen(arg->name) }, seen)
            : weir__http_query(&c, request->query);
    if (!good)
        weir__http_bad(call, 400, c.message);
    *after = !weir__call_given(&c, 0) ? latest : (uint64_t)c.values[0].number;
    *after = *after > latest ? 0 : *after;
    weir__call_end(&c);
    return good;
}

static bool start_beat(struct weir__conn *conn)
{
    struct weir__http_session *session = weir__http_session(conn);

    if (session == NULL || uv_timer_init(&conn->loop->uv, &session->timer) != 0)
        return false;
    session->ticking = true;
    session->timer.data = conn;
    return uv_timer_start(&session->timer, on_beat, BEAT_MS, BEAT_MS) == 0;
}

void weir__http_events(struct weir__http_call *call)
{
    struct weir__conn *conn = call->conn;
    struct weir__buffer *out = call->manner.out;
    uint64_t after;

    if (!read_start(call, &after))
        return;
    if (!call->manner.head_only && !start_beat(conn)) {
        weir__http_problem(&call->manner, 503, NULL, "no memory");
        return;
    }
    weir__buffer_text(out, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: "
                           "no-store\r\nX-Accel-Buffering: no\r\n"
                           "Connection: close\r\n\r\n");
    if (call->manner.head_only) {
        call->manner.close = true;
        return;
    }
    call->manner.close = false; /* not by us, and not yet */
    conn->heard = after;
    conn->subscribed = true;
    weir__buffer_text(out, "retry: 2000\n\n");
    add_events(conn, out);
}
