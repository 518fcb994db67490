/* http-world.h -- a server without sockets: rules, a table, a clock that stands still, and one connection whose answers are gathered.
 *
 * What conn.c and loop.c do is played here: what is sent is kept, and work for other threads is done at once.
 */
#ifndef WEIR_TESTS_HTTP_WORLD_H
#define WEIR_TESTS_HTTP_WORLD_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "rules/address.h"
#include "serve/adhoc.h"
#include "serve/ask-ids.h"
#include "serve/http.h"
#include "serve/reservations.h"
#include "serve/sinks.h"
#include "serve/top.h"
#include "serve/watch.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define START           (1700000000 * WEIR_SECOND) /* Tue, 14 Nov 2023 22:13:20 GMT */

static const char world_rules[] = "version: 1\n"
                                  "rules:\n"
                                  "  - name: per-ip\n"
                                  "    key: \"{ip}\"\n"
                                  "    limit: 2/10\n"
                                  "  - name: app\n"
                                  "    match: { header.x-app: \"*\" }\n"
                                  "    key: \"{header.x-app}\"\n"
                                  "    limit: 1/60\n"
                                  "  - name: login\n"
                                  "    match: { uri: /login, method: POST }\n"
                                  "    key: \"{account}\"\n"
                                  "    limit: 1/60\n"
                                  "    ban: { refusals: 1/60s, for: 10m }\n"
                                  "lists:\n"
                                  "  allow: { ip: [203.0.113.0/24] }\n"
                                  "  deny: { account: [mallory] }\n";

struct world {
    struct weir__server server;
    struct weir__settings settings;
    struct weir__loop loop;
    struct weir__conn conn;
    struct weir__buffer sent;   /* outside of feed */
    struct weir__buffer answer; /* everything, with a NUL behind it */
    weir_time clock;
};

/* ------------------------------------------------ what other files would do ---- */

static inline struct world *world_of(struct weir__conn *conn)
{
    return (struct world *)((char *)conn - offsetof(struct world, conn));
}

void weir__conn_send(struct weir__conn *conn, const void *bytes, size_t len)
{
    weir__buffer_add(&world_of(conn)->sent, bytes, len);
}

void weir__conn_end(struct weir__conn *conn)
{
    conn->ending = true;
}

void weir__conn_end_early(struct weir__conn *conn)
{
    conn->ending = true;
}

int weir__conn_offload(struct weir__conn *conn, void (*work)(void *context), void (*done)(struct weir__conn *conn, void *context),
                       void *context)
{
    work(context);
    done(conn, context);
    return WEIR_OK;
}

weir_time weir__server_now(const struct weir__server *server)
{
    return *server->test_clock;
}

void weir__server_set_clock(struct weir__server *server, weir_time now)
{
    *server->test_clock = now;
}

/* There are none. */
void weir__sinks_counts(const struct weir__sinks *sinks, struct weir__sinks_counts *out)
{
    (void)sinks;
    (void)out;
}

/* ---------------------------------------------------------------- the world ---- */

static inline void must(int code, const struct weir_error *error)
{
    if (code != WEIR_OK)
        fail_msg("%s", error->text);
}

static inline struct world *make_world(void)
{
    struct world *w = calloc(1, sizeof *w);
    struct weir__server *s = &w->server;
    struct weir_error error = { 0 };
    struct weir_rules *rules = NULL;

    w->settings =
        (struct weir__settings){ .check_token = "", .admin_token = "", .request_max = 8192, .memory = true, .resp = "", .http = "" };
    w->clock = START;
    s->settings = &w->settings;
    s->test_clock = &w->clock;
    s->loops = &w->loop;
    s->n_loops = 1;
    must(weir_table_create(&s->table, &(struct weir_table_options){ .keys = 4096 }, &error), &error);
    must(weir_create(&s->engine, &(struct weir_options){ .table = s->table }, &error), &error);
    must(weir_rules_parse(&rules, world_rules, sizeof world_rules - 1, NULL, &error), &error);
    must(weir_use(s->engine, rules, START, &error), &error);
    s->events = weir__events_create();
    s->watch = weir__watch_create(s->events);
    s->ask_ids = weir__ask_ids_create(64, 60 * WEIR_SECOND);
    s->reservations = weir__reservations_create();
    must(weir__adhoc_create(&s->adhoc, s->table, 64, &error), &error);
    must(weir__top_create(&s->top, 1, 64, &error), &error);
    must(weir__proxies_parse(&s->proxies, "127.0.0.0/8, 10.0.0.0/8,::1", &error), &error);
    w->loop.server = s;
    w->loop.now_is_old = true;
    w->conn.loop = &w->loop;
    w->conn.protocol = &weir__http;
    w->conn.role = WEIR__ROLE_ADMIN;
    w->conn.from_loopback = true;
    snprintf(w->conn.peer, sizeof w->conn.peer, "127.0.0.1");
    uv_loop_init(&w->loop.uv);
    return w;
}

static inline void end_world(struct world *w)
{
    struct weir__server *s = &w->server;

    weir__http.close(&w->conn);
    uv_run(&w->loop.uv, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop.uv), 0);
    weir__cidr_set_destroy(s->proxies);
    weir__top_destroy(s->top);
    weir__adhoc_destroy(s->adhoc);
    weir__reservations_destroy(s->reservations);
    weir__ask_ids_destroy(s->ask_ids);
    weir__watch_destroy(s->watch);
    weir__events_destroy(s->events);
    weir_destroy(s->engine);
    weir_table_destroy(s->table);
    weir__buffer_free(&w->loop.out);
    weir__buffer_free(&w->sent);
    weir__buffer_free(&w->answer);
    free(w);
}

/* A connection as it was in the beginning. */
static inline void reconnect(struct world *w)
{
    weir__http.close(&w->conn);
    w->conn.ending = w->conn.subscribed = false;
    w->answer.len = 0;
}

/* Feeds bytes that lie in memory of exactly their size, as conn.c does, and gathers what comes.  Returns how many were used. */
static inline size_t feed_bytes(struct world *w, char *bytes, size_t len)
{
    size_t used = 0;

    while (used < len && !w->conn.ending) {
        size_t n = weir__http.feed(&w->conn, bytes + used, len - used);
        assert_true(n <= len - used);
        weir__buffer_add(&w->answer, w->loop.out.bytes, w->loop.out.len);
        w->loop.out.len = 0;
        weir__buffer_add(&w->answer, w->sent.bytes, w->sent.len);
        w->sent.len = 0;
        if (n == 0)
            break;
        used += n;
    }
    weir__buffer_add(&w->answer, "", 1);
    w->answer.len--;
    assert_false(w->answer.failed || w->loop.out.failed);
    return used;
}

/* The answers to these bytes, which come at once. */
static inline const char *ask(struct world *w, const char *text, size_t len)
{
    char *copy = malloc(len ? len : 1);

    memcpy(copy, text, len);
    w->answer.len = 0;
    feed_bytes(w, copy, len);
    free(copy);
    return w->answer.bytes;
}

/* "POST /v1/check", headers, each ended by CRLF, a body (NULL: none). */
static inline const char *request(struct world *w, const char *line, const char *headers, const char *body)
{
    char text[16384];
    int len = snprintf(text, sizeof text, "%s HTTP/1.1\r\n%s%s", line, strcasestr(headers, "host:") ? "" : "Host: localhost\r\n", headers);

    if (body)
        len += snprintf(text + len, sizeof text - (size_t)len, "Content-Length: %zu\r\n", strlen(body));
    len += snprintf(text + len, sizeof text - (size_t)len, "\r\n%s", body ? body : "");
    assert_true((size_t)len < sizeof text);
    return ask(w, text, (size_t)len);
}

static inline int status_of(const char *answer)
{
    int status = 0;

    assert_int_equal(sscanf(answer, "HTTP/1.1 %d ", &status), 1);
    return status;
}

static inline const char *body_of(const char *answer)
{
    const char *end = strstr(answer, "\r\n\r\n");

    assert_non_null(end);
    return end + 4;
}

/* The value of a header of the answer, in memory that the next call uses again; NULL: not there. */
static inline const char *header_of(const char *answer, const char *name)
{
    static char value[512];
    char line[64];
    const char *end = strstr(answer, "\r\n\r\n");

    snprintf(line, sizeof line, "\r\n%s: ", name);
    const char *at = strcasestr(answer, line);
    if (at == NULL || end == NULL || at > end)
        return NULL;
    at += strlen(line);
    snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "\r"), at);
    return value;
}

#define assert_has(text, piece)                                       \
    do {                                                              \
        const char *has_text = (text);                                \
        if (strstr(has_text, piece) == NULL)                          \
            fail_msg("%s\n--- is not in ---\n%s", (piece), has_text); \
    } while (0)
#define assert_answer(answer, status, piece)         \
    do {                                             \
        const char *whole = (answer);                \
        if (status_of(whole) != (status))            \
            fail_msg("not %d: %s", (status), whole); \
        assert_has(whole, piece);                    \
    } while (0)

#endif
