/* world.h -- a server without sockets: rules, a table, a clock that stands still, and one
 * connection whose answers are gathered.
 *
 * world.c plays conn.c, loop.c and serve.c: it keeps sent bytes, does work for other threads as
 * soon as the protocol lets go of the connection, and ticks when the clock is set.  For unit tests
 * and fuzzers: a broken law ends the program.
 */
#ifndef WEIR_TESTS_UNIT_WORLD_H
#define WEIR_TESTS_UNIT_WORLD_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "match/address.h"
#include "server/serve/decide/adhoc.h"
#include "server/serve/decide/bound-permits.h"
#include "server/serve/decide/ask-ids.h"
#include "server/serve/settings/trusted-proxies.h"
#include "server/serve/decide/reservations.h"
#include "server/serve/serve.h"
#include "server/serve/events/event-log.h"
#include "server/serve/events/top-keys.h"
#include "server/serve/decide/waiting.h"
#include "server/serve/net/mailbox.h"
#include "server/serve/events/events-from-counts.h"
#include "unit/no-settings.h"

#define START (1700000000 * WEIR_SECOND) /* Tue, 14 Nov 2023 22:13:20 GMT */

static const char world_rules[] =
    "version: 1\n"
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
    "guards:\n"
    "  - name: search\n"
    "    match: { uri: /search }\n"
    "    concurrency: { max: 1, queue: 1, wait: 1s, weights: { gold: 2, free: 1 } }\n"
    "    breaker: { errors: 50% }\n"
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
    void (*work)(void *context); /* for another thread; NULL: nothing is under way */
    void (*done)(struct weir__conn *conn, void *context);
    void *context;
};

static inline void world_must(bool law, const char *what)
{
    if (law)
        return;
    fprintf(stderr, "the world: %s\n", what);
    abort();
}

static inline struct world *world_of(struct weir__conn *conn)
{
    return (struct world *)((char *)conn - offsetof(struct world, conn));
}

static inline void world_tick(struct weir__server *server, weir_time now)
{
    weir__watch_tick(server->watch, server, now);
    weir__top_tick(server->top, now);
}

/* ---------------------------------------------------------------- the world ---- */

static inline void world_make_rules(struct weir__server *s)
{
    struct weir_error error = { 0 };
    const struct weir__in_force_options options = { .engine = s->engine, .events = s->events };

    world_must(weir__in_force_create(&s->in_force, &options, START, &error) == WEIR_OK, error.text);
    world_must(weir__in_force_set(s->in_force, world_rules, sizeof(world_rules) - 1, START, NULL,
                                  &error) == WEIR_OK,
               error.text);
}

/* An unused one, to be taken before another is made: it is by far the largest part. */
static struct weir__reservations *world_spare;

static inline struct weir__reservations *world_reservations(void)
{
    struct weir__reservations *r =
        world_spare ? world_spare : weir__reservations_create(3600 * WEIR_SECOND, NULL);

    world_spare = NULL;
    return r;
}

static inline void world_make_server(struct weir__server *s, int64_t keys)
{
    struct weir_error error = { 0 };

    world_must(weir_table_create(&s->table, &(struct weir_table_options){ .keys = keys }, &error) ==
                   WEIR_OK,
               error.text);
    world_must(weir_create(&s->engine, &(struct weir_options){ .table = s->table }, &error) ==
                   WEIR_OK,
               error.text);
    s->events = weir__events_create();
    s->watch = weir__watch_create(s->events);
    s->ask_ids = weir__ask_ids_create(64, 60 * WEIR_SECOND, NULL);
    s->reservations = world_reservations();
    s->guards = weir__guards_create(s->table);
    s->lines = weir__lines_create(s);
    world_must(s->guards && s->lines, "no memory");
    world_must(s->events && s->watch && s->ask_ids && s->reservations, "no memory");
    world_must(weir__adhoc_create(&s->adhoc, s->table, 64, NULL, &error) == WEIR_OK, error.text);
    world_must(weir__top_create(&s->top, 1, 64, &error) == WEIR_OK, error.text);
    world_must(weir__proxies_parse(&s->proxies, "127.0.0.0/8, 10.0.0.0/8,::1", &error) == WEIR_OK,
               error.text);
    s->tick = world_tick;
    world_make_rules(s);
}

/* Its connection is an admin's, from this host. */
static inline struct world *make_world_of(const struct weir__protocol *protocol, int64_t keys)
{
    struct world *w = calloc(1, sizeof(*w));

    world_must(w != NULL, "no memory");
    w->settings = no_settings;
    w->clock = START;
    w->server = (struct weir__server){ .settings = &w->settings,
                                       .test_clock = &w->clock,
                                       .loops = &w->loop,
                                       .n_loops = 1,
                                       .started = START,
                                       .connections = 1 };
    world_make_server(&w->server, keys);
    w->loop.server = &w->server;
    w->loop.now_is_old = true;
    w->conn.loop = &w->loop;
    w->conn.protocol = protocol;
    w->conn.role = w->conn.first_role = WEIR__ROLE_ADMIN;
    w->conn.proven = true;
    w->conn.resp = 2;
    snprintf(w->conn.peer, sizeof(w->conn.peer), "127.0.0.1");
    uv_loop_init(&w->loop.uv);
    world_must(weir__mailbox_create(&w->loop) == 0, "no memory");
    return w;
}

static inline void end_world(struct world *w)
{
    struct weir__server *s = &w->server;

    if (w->conn.wait)
        weir__wait_abandon(&w->conn);
    w->conn.protocol->close(&w->conn);
    weir__bound_release(&w->conn);
    weir__waiting_close(&w->loop);
    weir__mailbox_close(&w->loop);
    uv_run(&w->loop.uv, UV_RUN_DEFAULT);
    world_must(uv_loop_close(&w->loop.uv) == 0, "something is left in the loop");
    weir__waiting_free(&w->loop);
    weir__mailbox_free(&w->loop);
    weir__lines_destroy(s->lines);
    weir__guards_destroy(s->guards);
    weir__in_force_destroy(s->in_force);
    weir__cidr_set_destroy(s->proxies);
    weir__top_destroy(s->top);
    weir__adhoc_destroy(s->adhoc);
    weir__reservations_destroy(s->reservations);
    weir__ask_ids_destroy(s->ask_ids);
    weir__watch_destroy(s->watch);
    weir__events_destroy(s->events);
    weir_destroy(s->engine);
    weir_table_destroy(s->table);
    free(w->loop.scratch);
    weir__buffer_free(&w->loop.out);
    weir__buffer_free(&w->loop.openapi);
    weir__buffer_free(&w->sent);
    weir__buffer_free(&w->answer);
    free(w);
}

/* A connection as it was in the beginning. */
static inline void reconnect(struct world *w)
{
    w->conn.protocol->close(&w->conn);
    weir__bound_release(&w->conn);
    w->conn.ending = w->conn.lingers = w->conn.subscribed = false;
    w->answer.len = 0;
}

/* ----------------------------------------------------------------- feeding ---- */

static inline void world_gather(struct world *w)
{
    world_must(!w->loop.out.failed && !w->sent.failed, "no memory");
    weir__buffer_add(&w->answer, w->loop.out.bytes, w->loop.out.len);
    w->loop.out.len = 0;
    weir__buffer_add(&w->answer, w->sent.bytes, w->sent.len);
    w->sent.len = 0;
}

static inline void world_work(struct world *w)
{
    void (*work)(void *context) = w->work;

    if (work == NULL)
        return;
    w->work = NULL;
    work(w->context);
    w->done(&w->conn, w->context);
    w->conn.held = false;
    world_gather(w);
}

/* Waiting for a guard is in vain: time goes on until the refusal. */
static inline void world_wait(struct world *w)
{
    for (int i = 0; w->conn.wait && i < 100; i++) {
        w->clock += WEIR_SECOND << (i < 20 ? i : 20);
        w->loop.now_is_old = true;
        weir__waiting_poll(&w->loop);
    }
    world_must(w->conn.wait == NULL, "nobody waits for ever");
    world_gather(w);
}

/* Feeds bytes that lie in memory of exactly their size, as conn.c does, and gathers the answers.
 * Returns how many were used. */
static inline size_t feed_bytes(struct world *w, char *bytes, size_t len)
{
    size_t used = 0;

    while (used < len && !w->conn.ending) {
        size_t answered = w->answer.len,
               n = w->conn.protocol->feed(&w->conn, bytes + used, len - used);
        world_must(n <= len - used, "more was used than was there");
        world_gather(w);
        world_work(w);
        world_wait(w);
        if (n == 0 && w->answer.len == answered) /* EXEC answers a part in each turn */
            break;
        used += n;
    }
    weir__buffer_add(&w->answer, "", 1);
    w->answer.len--;
    world_must(!w->answer.failed, "no memory");
    return used;
}

#endif
