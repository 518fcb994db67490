/* http.c -- framing, routes, roles and events: what a client sends in whatever pieces, and what it
 * gets. */
#include "unit/test.h"

#include "unit/http-world.h"

#include "wire/json.h"

/* Sends the text in pieces of `step` bytes, as conn.c does: what is not used comes again, with more
 * behind it, perhaps elsewhere. */
static const char *trickle(struct world *w, const char *text, size_t len, size_t step)
{
    char *kept = NULL;
    size_t n = 0;

    w->answer.len = 0;
    for (size_t at = 0; at < len && !w->conn.ending; at += step) {
        size_t more = len - at < step ? len - at : step;
        FINALLY(memory_drop) char *bytes = malloc(n + more);
        memcpy(bytes, kept ? kept : "", n);
        memcpy(bytes + n, text + at, more);
        free(kept);
        n += more;
        size_t used = feed_bytes(w, bytes, n);
        n -= used;
        kept = malloc(n ? n : 1);
        memcpy(kept, bytes + used, n);
    }
    free(kept);
    return w->answer.bytes ? w->answer.bytes : "";
}

#define LINE(text) text "\r\n"
#define HOST       LINE("Host: localhost")

static const char *ask_text(struct world *w, const char *text)
{
    return ask(w, text, strlen(text));
}

/* ------------------------------------------------------------- framing ---- */

static const char several[] = "POST /v1/take HTTP/1.1\r\n" HOST LINE(
    "Content-Length: 28") "\r\n{\"key\":\"ann\",\"limit\":\"2/10\"}\r\n"
                          "POST /v1/take HTTP/1.1\r\n" HOST LINE(
                              "Transfer-Encoding: chunked") "\r\n"
                                                            "5;x=y\r\n{"
                                                            "\"key\r\n1\r\n\"\r\n16\r\n:"
                                                            "\"ann\",\"limit\":\"2/"
                                                            "10\"}\r\n0\r\nTrailer: x\r\n\r\n"
                                                            "\r\nGET /healthz HTTP/1.1\r\n" HOST
                                                            "\r\n"
                                                            "HEAD /v1 HTTP/1.1\r\n" HOST "\r\n"
                                                            "POST /v1/take HTTP/1.1\r\n" HOST LINE(
                                                                "Transfer-Encoding: "
                                                                "chunked") "\r\n0\r\n\r\n"
                                                                           "GET /readyz "
                                                                           "HTTP/"
                                                                           "1.1\r\n" HOST LINE(
                                                                               "Conne"
                                                                               "ction"
                                                                               ": "
                                                                               "clos"
                                                                               "e") "\r\n";

static void check_several(const char *answers)
{
    assert_int_equal(count_of(answers, "HTTP/1.1 "), 6);
    assert_has(answers, "\"remaining\":1,");
    assert_has(answers, "\"remaining\":0,");
    assert_has(answers, "\r\n\r\nok\nHTTP/1.1 200 OK\r\n");
    assert_has(answers, "\r\n\r\nHTTP/1.1 400 Bad Request\r\n"); /* HEAD has no body */
    assert_has(answers, "the body is empty");
    assert_has(answers, "Connection: close\r\n\r\nready\n");
    assert_true(strcmp(answers + strlen(answers) - 6, "ready\n") == 0);
}

TEST_WITH(test_S2_pipelined_requests_in_any_pieces, begin, end)
{
    struct world *w = *state;

    check_several(ask(w, several, sizeof(several) - 1));
    assert_true(w->conn.ending);
    for (size_t step = 1; step <= 64; step++) {
        reconnect(w);
        w->clock += 3600 * WEIR_SECOND;
        w->loop.now_is_old = true;
        check_several(trickle(w, several, sizeof(several) - 1, step));
        assert_true(w->conn.ending);
    }
}

TEST_WITH(test_S2_every_place_where_it_can_be_cut, begin, end)
{
    struct world *w = *state;

    for (size_t cut = 1; cut < sizeof(several) - 1; cut++) {
        reconnect(w);
        w->clock += 3600 * WEIR_SECOND;
        w->loop.now_is_old = true;
        check_several(trickle(w, several, sizeof(several) - 1, cut));
    }
}

TEST_WITH(test_S2_expect_continue, begin, end)
{
    struct world *w = *state;
    static const char head[] = "POST /v1/check HTTP/1.1\r\n" HOST LINE("Expect: 100-continue")
        LINE("Content-Length: 2") "\r\n";
    static const char chunked[] = "POST /v1/check HTTP/1.1\r\n" HOST LINE("Expect: 100-continue")
        LINE("Transfer-Encoding: chunked") "\r\n";
    char whole[256];

    snprintf(whole, sizeof(whole), "%s{}", head);
    assert_int_equal(count_of(trickle(w, whole, strlen(whole), sizeof(head) - 1),
                              "HTTP/1.1 100 Continue\r\n\r\n"),
                     1);
    assert_int_equal(count_of(trickle(w, whole, strlen(whole), 1),
                              "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK"),
                     1);
    assert_int_equal(count_of(ask(w, whole, strlen(whole)), "100 Continue"), 0);
    snprintf(whole, sizeof(whole), "%s2\r\n{}\r\n0\r\n\r\n", chunked);
    assert_int_equal(count_of(trickle(w, whole, strlen(whole), 1),
                              "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK"),
                     1);
}

TEST_WITH(test_S2_http_1_0, begin, end)
{
    struct world *w = *state;

    assert_has(ask_text(w, "GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
               "Connection: keep-alive\r\n\r\nok\n");
    assert_false(w->conn.ending);
    assert_has(ask_text(w, "GET /healthz HTTP/1.0\r\n\r\n"), "Connection: close\r\n\r\nok\n");
    assert_true(w->conn.ending);
}

TEST_WITH(test_S2_draining, begin, end)
{
    struct world *w = *state;

    w->server.draining = 1;
    assert_answer(request(w, "GET /readyz", "", NULL), 503, "\"code\":\"not-ready\"");
    assert_string_equal(header_of(w->answer.bytes, "Connection"), "close");
    assert_true(w->conn.ending);
    reconnect(w);
    assert_answer(request(w, "GET /healthz", "", NULL), 200, "Connection: close\r\n");
}

static void check_given_up(struct world *w, const char *text, int status)
{
    for (size_t step = 1; step <= strlen(text); step += strlen(text) - 1) {
        reconnect(w);
        const char *answer = trickle(w, text, strlen(text), step);
        if (strstr(answer, "HTTP/1.1 100") == answer)
            answer = body_of(answer);
        assert_answer(answer, status, "Content-Type: application/problem+json\r\n");
        assert_string_equal(header_of(answer, "Connection"), "close");
        assert_true(w->conn.ending);
    }
}

TEST_WITH(test_S2_what_cannot_be_read, begin, end)
{
    struct world *w = *state;

    check_given_up(w, "nonsense\r\n\r\n", 400);
    check_given_up(w, "*1\r\n$4\r\nPING\r\n", 400);
    check_given_up(w, "GET / HTTP/2.0\r\n\r\n", 505);
    check_given_up(w, "GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400);
    check_given_up(w,
                   "POST /v1/check HTTP/1.1\r\n" HOST
                   "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                   400);
    check_given_up(
        w, "POST /v1/check HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 400);
    check_given_up(w, "POST /v1/check HTTP/1.1\r\n" HOST "Content-Length: 8192\r\n\r\n", 413);
    check_given_up(
        w, "POST /v1/check HTTP/1.1\r\n" HOST "Content-Length: 9223372036854775807\r\n\r\n", 413);
    assert_int_equal(w->loop.counters.counts[WEIR__COUNT_BAD_INPUT], 16);
}

/* However the bytes are spent, no more than request_max of them are waited for. */
TEST_WITH(test_S2_requests_are_bounded, begin, end)
{
    struct world *w = *state;
    static const char *const heads[] = {
        "GET /",
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
        "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2000\r\n",
        "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
        "chunked\r\n\r\n1\r\nx\r\n1;",
    };

    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        char text[10000];
        size_t len = strlen(heads[i]);
        memset(text, 'x', sizeof(text));
        memcpy(text, heads[i], len);
        reconnect(w);
        const char *answer = trickle(w, text, sizeof(text), 100);
        assert_true(w->conn.ending);
        assert_true(status_of(answer) >= 400);
    }
}

/* As large as it may be, to the byte. */
TEST_WITH(test_S2_largest_request, begin, end)
{
    struct world *w = *state;
    char text[8300];

    for (int over = 0; over < 2; over++) {
        int len =
            snprintf(text, sizeof(text),
                     "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n",
                     8192 - 66 + over);
        assert_int_equal(len, 66);
        memset(text + len, ' ', sizeof(text) - (size_t)len);
        text[8192 + over - 2] = '{';
        text[8192 + over - 1] = '}';
        reconnect(w);
        assert_int_equal(status_of(ask(w, text, (size_t)(8192 + over))), over ? 413 : 200);
    }
}

/* -------------------------------------------------------------- routes ---- */

TEST_WITH(test_S2_unknown_path_and_method, begin, end)
{
    struct world *w = *state;

    assert_answer(request(w, "GET /nothing", "", NULL), 404,
                  "there is nothing at '/nothing'; GET /v1 lists every route");
    assert_answer(request(w, "GET /v1/check", "", NULL), 405, "'/v1/check' wants POST, not 'GET'");
    assert_string_equal(header_of(w->answer.bytes, "Allow"), "POST");
    assert_int_equal(status_of(request(w, "OPTIONS /v1/bans", "", NULL)), 405);
    assert_string_equal(header_of(w->answer.bytes, "Allow"), "GET, HEAD, POST, DELETE");
    assert_int_equal(status_of(request(w, "POST /healthz", "", NULL)), 405);
    assert_string_equal(header_of(w->answer.bytes, "Allow"), "GET, HEAD");
    assert_false(w->conn.ending);
    w->server.test_clock = NULL;
    w->loop.now_is_old = false;
    assert_int_equal(status_of(request(w, "POST /v1/clock", "", "{\"now_ns\":1}")), 404);
    w->server.test_clock = &w->clock;
}

TEST_WITH(test_S2_pages, begin, end)
{
    struct world *w = *state;

    assert_answer(request(w, "GET /", "", NULL), 200, "POST /v1/check");
    assert_answer(request(w, "GET /v1", "", NULL), 200,
                  "{\"method\":\"GET\",\"path\":\"/v1/bans\",\"summary\":");
    assert_answer(request(w, "GET /metrics", "", NULL), 200,
                  "Content-Type: text/plain; version=0.0.4");
    assert_answer(request(w, "GET /openapi.json", "", NULL), 200, "{\"openapi\":\"3.1.0\"");
    size_t len = strlen(body_of(w->answer.bytes));
    const char *head = request(w, "HEAD /openapi.json", "", NULL);
    assert_int_equal(strtoul(header_of(head, "Content-Length"), NULL, 10), len);
    assert_string_equal(body_of(head), "");
}

/* Made on another thread: what follows waits, and all is as it was asked for. */
TEST_WITH(test_S5_metrics, begin, end)
{
    struct world *w = *state;
    const char *page =
        ask_text(w, "GET /metrics HTTP/1.1\r\n" HOST "\r\nGET /healthz HTTP/1.1\r\n" HOST "\r\n");

    assert_answer(page, 200, "weir_requests_total{door=\"http\"} 1\n");
    size_t len = strtoul(header_of(page, "Content-Length"), NULL, 10);
    assert_answer(body_of(page) + len, 200, "\r\n\r\nok\n");
    const char *head = request(w, "HEAD /metrics", "", NULL);
    assert_true(strtoul(header_of(head, "Content-Length"), NULL, 10) > 1000);
    assert_string_equal(body_of(head), "");
    assert_null(header_of(head, "Connection"));
    page = ask_text(w, "GET /metrics HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_string_equal(header_of(page, "Connection"), "keep-alive");
    assert_false(w->conn.ending);
    assert_answer(request(w, "GET /metrics", "Connection: close\r\n", NULL), 200,
                  "Connection: close\r\n");
    assert_true(w->conn.ending);
}

TEST_WITH(test_S6_admin_of_nested_attributes, begin, end)
{
    struct world *w = *state;
    char body[3000] = "{\"rule\":\"*\",\"attributes\":{\"";

    memset(body + strlen(body), 'p', 200);
    strcat(body, "\":{");
    for (int i = 0; i < 100; i++)
        sprintf(body + strlen(body), "%s\"%02d\":1", i ? "," : "", i);
    strcat(body, "}}}");
    assert_answer(request(w, "POST /v1/reset", "", body), 400, "with no objects or arrays in it");
    assert_answer(
        request(w, "POST /v1/lists", "",
                "{\"list\":\"deny\",\"attribute\":\"ip\",\"entries\":{\"a\":\"192.0.2.7\"}}"),
        400, "'entries' must be an array, not '{...}'");
    assert_answer(request(w, "POST /v1/lists", "",
                          "{\"list\":\"deny\",\"attribute\":\"ip\",\"entries\":[[\"192.0.2.7\"]]}"),
                  400, "'entries' is an array of strings");
}

TEST_WITH(test_S6_admin, begin, end)
{
    struct world *w = *state;

    assert_answer(
        request(w, "POST /v1/bans", "", "{\"rule\":\"login\",\"key\":\"ann\",\"for\":\"10m\"}"),
        200, "{\"rule\":\"login\",\"key\":\"ann\",");
    assert_answer(request(w, "GET /v1/bans?rule=login", "", NULL), 200, "\"left_ms\":600000");
    assert_answer(request(w, "HEAD /v1/bans", "", NULL), 200, "\r\n\r\n");
    assert_answer(request(w, "DELETE /v1/bans?rule=login&key=%61nn", "", NULL), 200,
                  "\"banned\":false");
    assert_answer(request(w, "DELETE /v1/bans", "", "{\"rule\":\"login\",\"key\":\"ann\"}"), 404,
                  "\"code\":\"not-found\"");
    assert_answer(request(w, "POST /v1/bans", "", "{\"rule\":\"login\",\"key\":\"ann\"}"), 400,
                  "'for' is missing");
    assert_answer(request(w, "POST /v1/bans?rule=a", "", "{\"rule\":\"login\"}"), 400,
                  "'rule' is there twice");
    assert_answer(request(w, "POST /v1/bans", "", "{\"ruel\":\"login\"}"), 400,
                  "unknown member 'ruel'; did you mean 'rule'?");
    assert_answer(request(w, "GET /v1/bans?x=%", "", NULL), 400, "\"code\":\"bad-request\"");
    assert_answer(request(w, "GET /v1/top?n=x", "", NULL), 400,
                  "'n' must be a whole number from 1 to 1000, not 'x'");
    assert_answer(request(w, "PUT /v1/modes", "", "{\"mode\":\"shadow\",\"rule\":\"login\"}"), 200,
                  "\"in_force\":\"shadow\"");
    assert_answer(request(w, "POST /v1/explain", "",
                          "{\"attributes\":{\"ip\":\"192.0.2.7\",\"header.X-App\":\"a\",\"n\":5}}"),
                  200, "\"unused\":[\"n\"]");
    assert_answer(request(w, "GET /v1/bans", "Connection: close\r\n", NULL), 200,
                  "Connection: close\r\n");
    assert_true(w->conn.ending);
}

/* ---------------------------------------------------------------- roles ---- */

TEST_WITH(test_S2_roles, begin, end)
{
    struct world *w = *state;

    static const struct {
        const char *line, *headers;
        int status;
    } rows[] = {
        { "GET /healthz", "", 200 },
        { "GET /healthz", "Host: evil.example\r\n", 200 },
        { "GET /metrics", "", 401 },
        { "GET /metrics", "Authorization: Bearer asker\r\n", 200 },
        { "GET /metrics", "Authorization: bearer boss\r\n", 200 },
        { "GET /metrics", "Authorization: Bearer askes\r\n", 401 },
        { "GET /metrics", "Authorization: Bearer \r\n", 401 },
        { "GET /metrics", "Authorization: Basic dXNlcjphc2tlcg==\r\n", 200 },
        { "GET /metrics", "Authorization: Basic dXNlcjphc2tlcg\r\n", 200 },
        { "GET /metrics", "Authorization: Basic YXNrZXI=\r\n", 401 },
        { "GET /metrics", "Authorization: Basic *\r\n", 401 },
        { "GET /metrics", "Authorization: Digest asker\r\n", 401 },
        { "GET /metrics",
          "Authorization: Bearer asker\r\nHost: weir.example\r\nOrigin: https://x.example\r\n",
          200 },
        { "GET /v1/bans", "", 401 },
        { "GET /v1/bans", "Authorization: Bearer asker\r\n", 403 },
        { "GET /v1/bans", "Authorization: Bearer boss\r\n", 200 },
    };

    w->settings.check_token = "asker";
    w->settings.admin_token = "boss";
    w->conn.role = WEIR__ROLE_NONE;
    snprintf(w->conn.peer, sizeof(w->conn.peer), "198.51.100.7");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *answer = request(w, rows[i].line, rows[i].headers, NULL);
        if (status_of(answer) != rows[i].status)
            fail_msg("%s, %s: not %d: %s", rows[i].line, rows[i].headers, rows[i].status, answer);
        assert_int_equal(header_of(answer, "WWW-Authenticate") != NULL, rows[i].status == 401);
        w->conn.wrong_tokens = 0; /* a few end the connection */
    }
    assert_int_equal(w->loop.counters.counts[WEIR__COUNT_AUTH_FAILED], 5);
    assert_int_equal(w->conn.role, WEIR__ROLE_NONE);
    assert_null(
        strstr(request(w, "GET /metrics", "Authorization: Bearer sesame\r\n", NULL), "sesame"));
}

/* A page in a browser on this host can ask anything of the loopback; it cannot choose Host, nor
 * leave Origin out. */
TEST_WITH(test_S2_web_pages_may_not_ask, begin, end)
{
    struct world *w = *state;

    static const struct {
        const char *headers;
        int status;
    } rows[] = {
        { "Host: 127.0.0.1:7380\r\n", 200 },
        { "Host: [::1]:7380\r\n", 200 },
        { "Host: LocalHost\r\n", 200 },
        { "Host: weir.localhost:80\r\n", 200 },
        { "Host: 192.0.2.7\r\n", 200 },
        { "Host: evil.example\r\n", 403 },
        { "Host: localhost.evil.example\r\n", 403 },
        { "Host: 127.0.0.1.evil.example\r\n", 403 },
        { "Host: \r\n", 403 },
        { "Host: localhost:7380\r\nOrigin: http://localhost:7380\r\n", 200 },
        { "Host: localhost:7380\r\nOrigin: http://localhost:8080\r\n", 403 },
        { "Host: localhost:7380\r\nOrigin: https://evil.example\r\n", 403 },
        { "Host: localhost:7380\r\nOrigin: null\r\n", 403 },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *answer = request(w, "GET /v1/bans", rows[i].headers, NULL);
        if (status_of(answer) != rows[i].status)
            fail_msg("%s: not %d: %s", rows[i].headers, rows[i].status, answer);
        if (rows[i].status == 403)
            assert_has(answer, "\"code\":\"forbidden\",\"detail\":\"without a token, ");
    }
    w->conn.peer[0] = '\0'; /* a unix socket is beyond their reach */
    assert_int_equal(status_of(request(w, "GET /v1/bans", "Host: weir\r\n", NULL)), 200);
}

/* --------------------------------------------------------------- events ---- */

static void emit(struct world *w, const char *rule)
{
    weir__events_emit(w->server.events, WEIR__EVENT_BAN, w->clock,
                      &(struct weir__event_facts){ .rule = rule });
}

static const char *wake(struct world *w)
{
    weir__http.wake(&w->conn);
    weir__buffer_add(&w->sent, "", 1);
    w->sent.len = 0;
    return w->sent.bytes;
}

TEST_WITH(test_S4_events, begin, end)
{
    struct world *w = *state;

    emit(w, "before");
    const char *begin = request(w, "GET /v1/events", "", NULL);
    assert_answer(begin, 200, "Content-Type: text/event-stream\r\n");
    assert_null(header_of(begin, "Content-Length"));
    assert_null(strstr(begin, "before"));
    assert_fields(w->conn, (subscribed, true), (ending, false));
    emit(w, "one");
    emit(w, "two");
    const char *told = wake(w);
    assert_has(told, "id: 3\nevent: ban\ndata: {\"id\":3,");
    assert_has(told, "\"rule\":\"one\"}\n\nid: 4\nevent: ban\n");
    assert_string_equal(wake(w), "");
    assert_string_equal(ask_text(w, "GET /healthz HTTP/1.1\r\n"), "");
}

TEST_WITH(test_S4_events_from_the_last_that_was_seen, begin, end)
{
    struct world *w = *state;

    for (int i = 0; i < 3; i++)
        emit(w, "x");
    assert_int_equal(
        count_of(request(w, "GET /v1/events", "Last-Event-ID: 2\r\n", NULL), "event: ban"), 2);
    reconnect(w);
    assert_int_equal(count_of(request(w, "GET /v1/events?after=3", "", NULL), "event: ban"), 1);
    reconnect(w);
    assert_int_equal(
        count_of(request(w, "GET /v1/events?after=0", "Last-Event-ID: 3\r\n", NULL), "event: ban"),
        1);
    reconnect(w);
    assert_int_equal(
        count_of(request(w, "GET /v1/events", "Last-Event-ID: 99\r\n", NULL), "event: ban"), 3);
    reconnect(w);
    for (int i = 0; i < WEIR__EVENTS_KEPT; i++)
        emit(w, "x");
    const char *told = request(w, "GET /v1/events?after=2", "", NULL);
    assert_int_equal(count_of(told, "event: ban"), WEIR__EVENTS_KEPT);
    assert_has(told, "event: lost\ndata: {\"event\":\"lost\",\"count\":2}\n\n");
}

TEST_WITH(test_S4_events_that_are_asked_for_wrongly, begin, end)
{
    struct world *w = *state;

    assert_answer(request(w, "GET /v1/events?after=x", "", NULL), 400,
                  "'after' must be a whole number from 0 to 9223372036854775807, not 'x'");
    assert_answer(request(w, "GET /v1/events?before=1", "", NULL), 400,
                  "unknown member 'before'; only 'after' is known");
    assert_answer(request(w, "HEAD /v1/events", "", NULL), 200, "text/event-stream");
    assert_fields(w->conn, (subscribed, false), (ending, true));
}

/* -------------------------------------------------------------- OpenAPI ---- */

struct operations {
    char names[64][64]; /* "get /v1/bans" */
    size_t n;
};

static bool note(void *context, const struct weir__json_value *v)
{
    struct operations *all = context;
    static const char begin[] = "paths.", end[] = ".operationId";
    size_t front = sizeof(begin) - 1, back = sizeof(end) - 1;

    if (v->path_len < front + back || memcmp(v->path, begin, front) != 0 ||
        memcmp(v->path + v->path_len - back, end, back) != 0)
        return true;
    const char *path = v->path + front, *stop = v->path + v->path_len - back,
               *dot = memrchr(path, '.', (size_t)(stop - path));
    assert_true(all->n < COUNT_OF(all->names));
    snprintf(all->names[all->n++], 64, "%.*s %.*s", (int)(stop - dot - 1), dot + 1,
             (int)(dot - path), path);
    return true;
}

static void read_operations(struct operations *all)
{
    FINALLY(weir__buffer_free) struct weir__buffer text = { 0 };
    const char *what;

    all->n = 0;
    weir__openapi_print(&text);
    assert_int_equal(weir__json_walk(text.bytes, text.len, NULL, note, all, &what), -1);
}

static bool is_described(const struct operations *all, const char *method, const char *path)
{
    char name[128];

    snprintf(name, sizeof(name), "%s %s", method, path);
    for (size_t i = 0; i < all->n; i++)
        if (strcasecmp(all->names[i], name) == 0)
            return true;
    return false;
}

/* Everything that is there is described: GET /v1 lists it. */
TEST_WITH(test_S2_openapi_has_every_route, begin, end)
{
    struct world *w = *state;
    struct operations all;
    size_t n = 0;

    read_operations(&all);
    for (const char *at = request(w, "GET /v1", "", NULL);
         (at = strstr(at, "{\"method\":\"")) != NULL; at++, n++) {
        char method[16], path[64];
        assert_int_equal(sscanf(at, "{\"method\":\"%15[^\"]\",\"path\":\"%63[^\"]\"", method, path),
                         2);
        if (!is_described(&all, method[0] == '*' ? "GET" : method, path))
            fail_msg("%s %s is not in openapi.json", method, path);
    }
    assert_true(n > 30);
}

TEST(test_S2_openapi_tells_bounds_headers_and_null)
{
    FINALLY(weir__buffer_free) struct weir__buffer text = { 0 };

    weir__openapi_print(&text);
    weir__buffer_add(&text, "", 1);
    assert_has(text.bytes, "\"name\":\"Last-Event-ID\",\"in\":\"header\"");
    assert_has(text.bytes, "\"degradation\":{\"anyOf\":[{\"type\":\"integer\",\"format\":\"int64\","
                           "\"minimum\":0,\"maximum\":9},{\"const\":\"auto\"}]");
    assert_has(text.bytes, "\"id\":{\"type\":[\"string\",\"null\"],\"maxLength\":128");
}

/* And nothing is described that is not there; without a token nobody is let in far enough to do
 * anything. */
TEST_WITH(test_S2_openapi_has_nothing_else, begin, end)
{
    struct world *w = *state;
    struct operations all;

    w->conn.role = WEIR__ROLE_NONE;
    read_operations(&all);
    for (size_t i = 0; i < all.n; i++) {
        for (char *c = all.names[i]; *c != ' '; c++)
            *c = (char)(*c - 'a' + 'A');
        int status = status_of(request(w, all.names[i], "", NULL));
        if (status != 200 && status != 401)
            fail_msg("%s is in openapi.json, and answers %d", all.names[i], status);
    }
}
