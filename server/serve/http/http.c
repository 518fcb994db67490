/* http.c -- HTTP/1.1: bytes to requests, and which function answers.
 *
 * A request that comes in one piece, as nearly all do, is read once, answered, and forgotten.  One
 * that does not stays where it is, at the beginning of the connection's input, until it is whole;
 * the session keeps how far it was looked at, so that a client that sends it byte by byte costs a
 * look at each byte and not at all of them again.  Chunks are put together in place.
 */
#include "server/serve/http/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "server/serve/fleet.h"

/* ---------------------------------------------------------------- pages ---- */

static void body_of(struct weir__http_call *call, const char *type, const char *bytes, size_t len)
{
    weir__http_answer(&call->manner, 200, type, (struct weir__text){ 0 },
                      (struct weir__text){ bytes, len });
}

void weir__http_root(struct weir__http_call *call)
{
    static const char text[] =
        "Weir " WEIR_VERSION ": traffic control for services.\n\n"
        "  POST /v1/check      {\"attributes\":{\"ip\":\"192.0.2.7\",\"uri\":\"/login\"}}\n"
        "  GET  /v1/auth       for nginx auth_request, Traefik, Caddy\n"
        "  GET  /v1            everything there is\n"
        "  GET  /openapi.json  the same for programs\n"
        "  GET  /metrics       for Prometheus\n";

    body_of(call, "text/plain; charset=utf-8", text, sizeof(text) - 1);
}

static void send_json(struct weir__http_call *call, const struct weir__buffer *out)
{
    if (out->failed)
        weir__http_problem(&call->manner, 503, NULL, "no memory");
    else
        body_of(call, WEIR__HTTP_JSON, out->bytes, out->len);
}

void weir__http_index(struct weir__http_call *call)
{
    struct weir__buffer out = { 0 };

    weir__buffer_open(&out, NULL, '{');
    weir__buffer_member(&out, "name", "weir");
    weir__buffer_member(&out, "version", WEIR_VERSION);
    weir__buffer_open(&out, "routes", '[');
    for (const struct weir__verb *v = weir__verbs; v->summary; v++) {
        if (v->path == NULL)
            continue;
        weir__buffer_open(&out, NULL, '{');
        weir__buffer_member(&out, "method", v->method ? v->method : "*");
        weir__buffer_member(&out, "path", v->path);
        weir__buffer_member(&out, "summary", v->summary);
        weir__buffer_close(&out, "}");
    }
    weir__buffer_close(&out, "]}");
    send_json(call, &out);
    weir__buffer_free(&out);
}

void weir__http_healthz(struct weir__http_call *call)
{
    body_of(call, "text/plain; charset=utf-8", "ok\n", 3);
}

void weir__http_readyz(struct weir__http_call *call)
{
    if (__atomic_load_n(&call->conn->loop->server->draining, __ATOMIC_RELAXED))
        weir__http_problem(&call->manner, 503, NULL, "the server is draining: ask another one");
    else if (weir__node_lacks_rules(call->conn->loop->server))
        weir__http_problem(&call->manner, 503, NULL,
                           "the fleet's rules are not here yet: everything would pass");
    else
        body_of(call, "text/plain; charset=utf-8", "ready\n", 6);
}

void weir__http_openapi(struct weir__http_call *call)
{
    struct weir__buffer *text = &call->conn->loop->openapi;

    if (text->len == 0 && !text->failed) /* a stranger may ask for it over and over */
        weir__openapi_print(text);
    send_json(call, text);
}

/* -------------------------------------------------------------- routing ---- */

static bool is_get(struct weir__text method)
{
    return weir__http_is(method, "GET", 3) || weir__http_is(method, "HEAD", 4);
}

static void add_method(char allow[64], const char *method)
{
    size_t len = strlen(allow);

    snprintf(allow + len, 64 - len, "%s%s%s", len ? ", " : "", method,
             strcmp(method, "GET") == 0 ? ", HEAD" : "");
}

/* The path is known, but not with this method. */
static void wrong_method(struct weir__http_call *call)
{
    struct weir__text path = call->request->path;
    char allow[64] = "", header[96];

    for (const struct weir__verb *v = weir__verbs; v->summary; v++)
        if (v->path && weir__http_is(path, v->path, strlen(v->path)))
            add_method(allow, v->method);
    snprintf(header, sizeof(header), "Allow: %s\r\n", allow);
    weir__http_problem(&call->manner, 405, header, "%s wants %s, not %s", WEIR__SHOWN(path), allow,
                       WEIR__SHOWN(call->request->method));
}

static void dispatch(struct weir__http_call *call)
{
    struct weir__text method = call->request->method, path = call->request->path;
    bool known = false;

    if (is_get(method))
        method = (struct weir__text){ "GET", 3 };
    const struct weir__verb *verb = call->verb = weir__verb_by_path(method, path, &known);
    if (verb && verb->testing && !call->conn->loop->server->test_clock)
        verb = NULL, known = false;
    if (verb == NULL && known)
        wrong_method(call);
    else if (verb == NULL)
        weir__http_problem(&call->manner, 404, NULL,
                           "there is nothing at %s; GET /v1 lists every route", WEIR__SHOWN(path));
    else if (weir__http_admit(call, verb->role, verb->foreign))
        (verb->http ? verb->http : weir__http_verb)(call);
}

/* -------------------------------------------------------------- framing ---- */

struct weir__http_session *weir__http_session(struct weir__conn *conn)
{
    if (conn->session == NULL)
        conn->session = calloc(1, sizeof(struct weir__http_session));
    return conn->session;
}

static void forget_progress(struct weir__http_session *s)
{
    if (s) {
        s->seen = s->need = s->head = s->raw = s->data = 0;
        s->chunks = (struct weir__http_chunks){ 0 };
        s->chunked = s->continued = false;
    }
}

/* The bytes behind it make no sense either, so the connection ends. */
static size_t give_up(struct weir__conn *conn, int status, const char *detail, size_t len)
{
    struct weir__http_manner manner = { .loop = conn->loop,
                                        .out = &conn->loop->out,
                                        .close = true };

    weir__counter_add(&conn->loop->counters, WEIR__COUNT_BAD_INPUT, 1);
    weir__http_problem(&manner, status, NULL, "%s", detail);
    weir__conn_end_early(conn);
    return len;
}

#define STRANGERS_MAX \
    ((size_t)40 * 1024) /* bytes of a request of somebody who has shown no token where one is \
                           needed: a head, and little more */

static size_t most_of(const struct weir__conn *conn)
{
    size_t max = (size_t)conn->loop->server->settings->request_max;

    return conn->proven || max < STRANGERS_MAX ? max : STRANGERS_MAX;
}

static size_t too_large(struct weir__conn *conn, size_t len)
{
    char detail[96];

    snprintf(detail, sizeof(detail), "a request%s has at most %zu bytes, head and body together%s",
             conn->proven ? "" : " without a token", most_of(conn),
             conn->proven ? " (request-max)" : "");
    return give_up(conn, 413, detail, len);
}

static bool is_over(const struct weir__conn *conn, size_t len)
{
    return len > most_of(conn);
}

/* The request is not whole: returns 0, or all of it if that is too much already. */
static size_t wait_for_more(struct weir__conn *conn, size_t seen, size_t need, size_t len)
{
    struct weir__http_session *s = weir__http_session(conn);

    if (is_over(conn, seen > need ? seen : need))
        return too_large(conn, len);
    if (s == NULL)
        return give_up(conn, 503, "no memory", len);
    s->seen = seen;
    s->need = need;
    return 0;
}

/* A head can have become whole, or wrong, only if a line has ended. */
static bool is_worth_a_look(const struct weir__http_session *s, const char *bytes, size_t len)
{
    if (s == NULL)
        return true;
    if (s->need)
        return len >= s->need;
    return s->seen == 0 || (len > s->seen && memchr(bytes + s->seen, '\n', len - s->seen));
}

static void tell_to_go_on(struct weir__conn *conn, const struct weir__http_request *request)
{
    struct weir__http_session *s = weir__http_session(conn);

    if (s == NULL || s->continued || !request->expects_continue || request->minor == 0)
        return;
    s->continued = true;
    weir__buffer_text(&conn->loop->out, "HTTP/1.1 100 Continue\r\n\r\n");
}

static void answer(struct weir__conn *conn, const struct weir__http_request *request,
                   struct weir__text body)
{
    bool draining = __atomic_load_n(&conn->loop->server->draining, __ATOMIC_RELAXED) != 0;
    struct weir__http_call call = { .conn = conn, .request = request, .body = body };

    call.manner =
        (struct weir__http_manner){ .loop = conn->loop,
                                    .out = &conn->loop->out,
                                    .head_only = weir__http_is(request->method, "HEAD", 4),
                                    .close = draining || conn->ending || !request->keep_alive,
                                    .old = request->minor == 0 };
    forget_progress(conn->session);
    weir__counter_add(&conn->loop->counters, WEIR__COUNT_HTTP_REQUESTS, 1);
    dispatch(&call);
    conn->shown.judged = false;
    if (draining) /* more may have been said, and a reset would take back what is answered */
        weir__conn_end_early(conn);
    else if (call.manner.close)
        weir__conn_end(conn);
}

/* A body of known length. */
static size_t with_length(struct weir__conn *conn, const struct weir__http_request *request,
                          const char *bytes, size_t head, size_t len)
{
    size_t max = most_of(conn);
    uint64_t body = request->content_length > 0 ? (uint64_t)request->content_length : 0;

    if (head > max || body > max - head)
        return too_large(conn, len);
    if (head + body > len) {
        tell_to_go_on(conn, request);
        return wait_for_more(conn, 0, head + body, len);
    }
    answer(conn, request, (struct weir__text){ bytes + head, body });
    return head + body;
}

/* Reads the chunks that have come.  Their data come to lie behind each other, right behind the
 * head.  False: it was given up. */
static bool read_chunks(struct weir__conn *conn, struct weir__http_session *s, char *bytes,
                        size_t len)
{
    char *rest = bytes + s->head + s->raw;
    const char *what = "";
    size_t data = 0;
    ptrdiff_t n = weir__http_chunked(&s->chunks, rest, len - s->head - s->raw, &data, &what);

    if (n < 0) {
        give_up(conn, 400, what, len);
        return false;
    }
    memmove(bytes + s->head + s->data, rest, data);
    s->raw += (size_t)n;
    s->data += data;
    if (is_over(conn, s->chunks.ended ? s->head + s->raw : len)) {
        too_large(conn, len);
        return false;
    }
    return true;
}

static size_t begin_chunks(struct weir__conn *conn, const struct weir__http_request *request,
                           size_t head, size_t len)
{
    struct weir__http_session *s = weir__http_session(conn);

    if (s == NULL)
        return give_up(conn, 503, "no memory", len);
    s->chunked = true;
    s->head = head;
    if (len == head)
        tell_to_go_on(conn, request);
    return 0;
}

/* One request at the beginning of the bytes, whose body is not in chunks or has not been looked at
 * yet. */
static size_t feed_head(struct weir__conn *conn, char *bytes, size_t len,
                        struct weir__http_request *request)
{
    struct weir__http_session *s = conn->session;
    const char *what = "";
    int status = 400;

    if (!is_worth_a_look(s, bytes, len))
        return wait_for_more(conn, s->need ? 0 : len, s->need, len);
    ptrdiff_t head = weir__http_request(bytes, len, request, &status, &what);
    if (head < 0)
        return give_up(conn, status, what, len);
    if (head == 0)
        return wait_for_more(conn, len, 0, len);
    weir__http_judge_token(conn, request);
    if (conn->ending && (request->chunked || request->content_length > (int64_t)len - head)) {
        answer(conn, request, (struct weir__text){ 0 }); /* one wrong token too many */
        return len;
    }
    if (request->chunked)
        return begin_chunks(conn, request, (size_t)head, len);
    return with_length(conn, request, bytes, (size_t)head, len);
}

static size_t feed_chunks(struct weir__conn *conn, char *bytes, size_t len,
                          struct weir__http_request *request)
{
    struct weir__http_session *s = conn->session;
    const char *what;
    int status;

    if (!read_chunks(conn, s, bytes, len))
        return len;
    if (!s->chunks.ended)
        return 0;
    size_t whole = s->head + s->raw;
    struct weir__text body = { bytes + s->head, s->data };
    if (weir__http_request(bytes, s->head, request, &status, &what) > 0) /* as it has been before */
        answer(conn, request, body);
    return whole;
}

/* One request at the beginning of the bytes.  Returns how many it has, or 0 if it is not whole. */
static size_t feed_one(struct weir__conn *conn, char *bytes, size_t len)
{
    const struct weir__http_session *s = conn->session;
    struct weir__http_request request;
    size_t n = 0;

    if (s == NULL || !s->chunked) {
        n = feed_head(conn, bytes, len, &request);
        s = conn->session;
    }
    if (n == 0 && s && s->chunked)
        n = feed_chunks(conn, bytes, len, &request);
    return n;
}

/* Chunks are put together where they lie. */
static size_t feed(struct weir__conn *conn, char *bytes, size_t len)
{
    size_t used = 0;

    if (conn->subscribed) /* nothing that it may say now means anything */
        return len;
    while (used < len && !conn->held && !conn->ending && !conn->subscribed &&
           !weir__turn_is_over(conn)) {
        if (len - used >= 2 && bytes[used] == '\r' &&
            bytes[used + 1] == '\n') { /* RFC 9112, 2.2: empty lines before a request */
            used += 2;
            continue;
        }
        size_t n = feed_one(conn, bytes + used, len - used);
        weir__conn_took(conn, WEIR__TURN_ASKS);
        if (n == 0)
            break;
        used += n;
    }
    return used;
}

static void close_session(struct weir__conn *conn)
{
    weir__http_events_close(conn->session);
    conn->session = NULL;
}

/* A request that has begun stays here: it was looked at, and perhaps told to go on. */
static bool pack_session(const struct weir__conn *conn, struct weir__passed *out)
{
    (void)out;
    return conn->in.len == 0;
}

static void unpack_session(struct weir__conn *conn, const struct weir__passed *passed)
{
    (void)conn;
    (void)passed;
}

const struct weir__protocol weir__http = {
    .name = "http",
    .feed = feed,
    .wake = weir__http_events_wake,
    .close = close_session,
    .pack = pack_session,
    .unpack = unpack_session,
};
