/* client.c -- asks from their coming to their answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "cluster/redis/client-private.h"

#define PING_EVERY (10 * WEIR_SECOND)

enum { POOL = 2, ASKS_MAX = 65536, REPLY_MAX = 16 << 20, PIPELINE_MAX = 4096 };

/* ---------------------------------------------------------------- chance ---- */

uint64_t weir__redis_roll(struct weir__redis_client *c, uint64_t n)
{
    return weir__mix64(c->dice += WEIR__GOLDEN) % n;
}

weir_time weir__redis_jitter(struct weir__redis_client *c, weir_time span)
{
    return span - (weir_time)weir__redis_roll(c, (uint64_t)(span / 2 + 1));
}

weir_time weir__redis_back_off(struct weir__redis_client *c, weir_time base, weir_time max,
                               int step)
{
    weir_time span = base << (step < 20 ? step : 20);

    return weir__redis_jitter(c, span < max ? span : max);
}

/* --------------------------------------------------------------- answers ---- */

/* Takes it from the place it is in. */
static void detach(struct weir__redis_client *c, struct weir__redis_ask *ask)
{
    if (ask->own.where == WEIR__ASK_QUEUED)
        weir__redis_queue_remove(ask->own.node ? &ask->own.node->queue : &c->homeless, ask);
    if (ask->own.where == WEIR__ASK_SENT)
        weir__redis_conn_forget(ask->own.conn, ask);
    ask->own.where = WEIR__ASK_RESTING;
    ask->own.conn = NULL;
}

static void finish(struct weir__redis_client *c, struct weir__redis_ask *ask,
                   const struct weir__redis_answer *answer)
{
    uint64_t *counts[] = { &c->counts.answered, &c->counts.undone, &c->counts.unknown };

    detach(c, ask);
    weir__redis_dues_remove(&c->dues, ask);
    ask->own.where = WEIR__ASK_NEW;
    ++*counts[answer->outcome];
    ask->done(ask, answer);
}

void weir__redis_give_up(struct weir__redis_client *c, struct weir__redis_ask *ask, const char *why)
{
    bool unknown = ask->own.where == WEIR__ASK_SENT || ask->own.maybe_done;
    char text[sizeof(ask->own.why)];

    snprintf(text, sizeof(text), "%s", why);
    finish(
        c, ask,
        &(struct weir__redis_answer){ .outcome = unknown ? WEIR__REDIS_UNKNOWN : WEIR__REDIS_UNDONE,
                                      .why = text,
                                      .by_module = ask->own.by_module,
                                      .maybe_done = ask->own.maybe_done });
}

static void say_why(struct weir__redis_ask *ask, const char *text, size_t len)
{
    size_t most = sizeof(ask->own.why) - 1, n = len < most ? len : most;

    memcpy(ask->own.why, text, n);
    ask->own.why[n] = '\0';
}

/* Its deadline has come. */
static void expire(struct weir__redis_client *c, struct weir__redis_ask *ask)
{
    const struct weir__redis_node *node = ask->own.node;
    char why[440];

    if (ask->own.where == WEIR__ASK_SENT)
        snprintf(why, sizeof(why), "%s did not answer in time",
                 weir__redis_place(&node->address).text);
    else if (ask->own.where == WEIR__ASK_QUEUED && node && node->why[0])
        snprintf(why, sizeof(why), "%s: %s", weir__redis_place(&node->address).text, node->why);
    else if (ask->own.where == WEIR__ASK_QUEUED && node)
        snprintf(why, sizeof(why), "%s cannot be reached in time",
                 weir__redis_place(&node->address).text);
    else
        snprintf(why, sizeof(why), "%s",
                 ask->own.why[0] ? ask->own.why
                 : c->map.why[0] ? c->map.why
                                 : "no server was found in time");
    weir__redis_give_up(c, ask, why);
}

/* ------------------------------------------------------------------- way ---- */

void weir__redis_dispatch(struct weir__redis_client *c, struct weir__redis_ask *ask, weir_time now)
{
    struct weir__redis_node *node = ask->only ? ask->only : weir__redis_map_find(c, ask->slot);

    ask->own.asking = ask->own.whole_script = false;
    if (node) {
        weir__redis_node_send(c, node, ask, now);
        return;
    }
    ask->own.where = WEIR__ASK_QUEUED;
    ask->own.node = NULL;
    weir__redis_queue_add(&c->homeless, ask);
    weir__redis_map_doubt(c, now);
}

void weir__redis_client_ask(struct weir__redis_client *c, struct weir__redis_ask *ask,
                            weir_time now)
{
    struct weir__redis_answer refusal = { .outcome = WEIR__REDIS_UNDONE };

    c->now = now;
    memset(&ask->own, 0, sizeof(ask->own));
    ask->own.due = ask->deadline;
    if (c->ending)
        refusal.why = c->ending;
    else if (ask->words.failed)
        refusal.why = "there was no memory for it";
    else if (ask->deadline <= now)
        refusal.why = "its time was over before it began";
    else if (c->dues.n >= c->options.asks_max)
        refusal.why = "too many asks are waiting for Redis";
    else if (!weir__redis_dues_add(&c->dues, ask))
        refusal.why = "there was no memory for it";
    if (!refusal.why) {
        if (!weir__redis_rest_after_losses(c, ask, now))
            weir__redis_dispatch(c, ask, now);
        return;
    }
    c->counts.undone++;
    ask->done(ask, &refusal);
}

void weir__redis_client_cancel(struct weir__redis_client *c, struct weir__redis_ask *ask)
{
    weir__redis_give_up(c, ask, "it was cancelled");
}

/* --------------------------------------------------------------- replies ---- */

static void replied(void *context, struct weir__redis_conn *conn, struct weir__redis_ask *ask,
                    struct weir__text reply, weir_time now)
{
    struct weir__redis_client *c = context;
    struct weir__resp_value head;

    ask->own.where = WEIR__ASK_RESTING;
    ask->own.conn = NULL;
    weir__resp_value(reply.bytes, &head);
    if (head.kind == '-') {
        say_why(ask, head.text.bytes, head.text.len);
        if (weir__redis_retry(c, conn, ask, &head, now))
            return;
    }
    conn->node->fails = 0;
    finish(c, ask,
           &(struct weir__redis_answer){ WEIR__REDIS_ANSWERED, .reply = reply,
                                         .by_module = ask->own.by_module,
                                         .maybe_done = ask->own.maybe_done });
}

static void orphaned(void *context, struct weir__redis_conn *conn, struct weir__redis_ask *ask,
                     bool written, weir_time now)
{
    struct weir__redis_client *c = context;
    char why[440];

    ask->own.where = WEIR__ASK_RESTING;
    ask->own.conn = NULL;
    ask->own.maybe_done |= written;
    snprintf(why, sizeof(why), "%s: %s", weir__redis_place(&conn->node->address).text, conn->why);
    say_why(ask, why, strlen(why));
    if (ask->own.maybe_done && !ask->repeatable)
        weir__redis_give_up(c, ask, why);
    else
        weir__redis_dispatch(c, ask, now);
}

static void ready(void *context, struct weir__redis_conn *conn, weir_time now)
{
    struct weir__redis_client *c = context;

    c->counts.connected++;
    conn->node->refused = false;
    conn->node->facts = conn->facts;
    conn->node->replica = conn->facts.replica;
    conn->node->module = MODULE_UNKNOWN;
    weir__redis_node_flush(c, conn->node, now);
}

/* ---------------------------------------------------------------- driver ---- */

void weir__redis_client_opened(struct weir__redis_client *c, struct weir__redis_conn *conn,
                               weir_time now)
{
    uint32_t life = conn->life;

    c->now = now;
    if (conn->phase != WEIR__REDIS_OPENING)
        return;
    weir__redis_conn_opened(conn, now);
    if (conn->phase == WEIR__REDIS_READY && conn->life == life)
        ready(c, conn, now);
}

void weir__redis_client_lost(struct weir__redis_client *c, struct weir__redis_conn *conn,
                             const char *why, weir_time now)
{
    c->now = now;
    if (conn->phase == WEIR__REDIS_CLOSED)
        return;
    if (why)
        snprintf(conn->why, sizeof(conn->why), "%s", why);
    c->counts.lost++;
    weir__redis_node_failed(c, conn->node, conn, now);
    weir__redis_conn_lost(conn, NULL, &c->listener, now);
}

void weir__redis_client_input(struct weir__redis_client *c, struct weir__redis_conn *conn,
                              const char *bytes, size_t len, weir_time now)
{
    c->now = now;
    if (!weir__redis_conn_input(conn, bytes, len, &c->listener, now))
        weir__redis_client_lost(c, conn, NULL, now);
    else if (conn->phase == WEIR__REDIS_READY && conn->node->queue.first)
        weir__redis_node_flush(c, conn->node, now); /* replies have made room */
}

void weir__redis_client_wrote(struct weir__redis_client *c, struct weir__redis_conn *conn, size_t n)
{
    (void)c;
    weir__redis_conn_wrote(conn, n);
}

static weir_time turn_dues(struct weir__redis_client *c, weir_time now)
{
    while (c->dues.n > 0 && c->dues.heap[0]->own.due <= now) {
        struct weir__redis_ask *ask = c->dues.heap[0];
        if (ask->deadline <= now) {
            expire(c, ask);
        } else {
            weir__redis_dues_move(&c->dues, ask, ask->deadline);
            weir__redis_dispatch(c, ask, now);
        }
    }
    return c->dues.n > 0 ? c->dues.heap[0]->own.due : WEIR_NEVER;
}

weir_time weir__redis_client_turn(struct weir__redis_client *c, weir_time now)
{
    weir_time next = WEIR_NEVER;

    c->now = now;
    weir__redis_map_turn(c, now);
    for (size_t i = 0; i < c->n_nodes; i++) {
        weir_time due = weir__redis_node_turn(c, c->nodes[i], now);
        next = due < next ? due : next;
    }
    weir_time due = turn_dues(c, now);
    next = due < next ? due : next;
    return c->map.read_at < next && !c->map.reading ? c->map.read_at : next;
}

/* -------------------------------------------------------------- life cycle ---- */

static void fill_defaults(struct weir__redis_options *o)
{
    o->pool = o->pool < 1 ? POOL : o->pool > WEIR__REDIS_POOL_MAX ? WEIR__REDIS_POOL_MAX : o->pool;
    o->greet_max = o->greet_max > 0 ? o->greet_max : WEIR_SECOND;
    o->stall_max = o->stall_max > 0 ? o->stall_max : WEIR_SECOND;
    o->asks_max = o->asks_max ? o->asks_max : ASKS_MAX;
    o->reply_max = o->reply_max ? o->reply_max : REPLY_MAX;
}

static void set_conn_options(struct weir__redis_client *c)
{
    const struct weir__redis_options *o = &c->options;

    c->conn_options = (struct weir__redis_conn_options){
        .login = o->url.login,
        .db = o->url.db,
        .protocol = o->url.protocol,
        .greet_max = o->greet_max,
        .stall_max = o->stall_max,
        .ping_every = PING_EVERY,
        .reply_max = o->reply_max,
        .pipeline_max = PIPELINE_MAX,
    };
    c->sentinel_conn_options = c->conn_options;
    c->sentinel_conn_options.login = o->url.sentinel_login;
    c->sentinel_conn_options.db = 0;
}

int weir__redis_client_create(struct weir__redis_client **out,
                              const struct weir__redis_options *options, struct weir_error *error)
{
    struct weir__redis_client *c = calloc(1, sizeof(*c));
    bool made = c != NULL;

    if (made) {
        c->options = *options;
        fill_defaults(&c->options);
        set_conn_options(c);
        c->listener = (struct weir__redis_listener){ c, ready, replied, orphaned };
        c->dice = options->jitter;
        c->map.read_at = WEIR_NEVER;
    }
    for (size_t i = 0; made && i < options->url.n_seeds; i++) {
        struct weir__redis_node *node =
            weir__redis_node(c, &options->url.seeds[i], options->url.sentinel);
        made = node != NULL;
        if (made)
            node->seed = true;
    }
    if (made) {
        *out = c;
        return WEIR_OK;
    }
    weir__redis_client_destroy(c);
    return weir__fail(error, WEIR_NO_MEMORY, "no memory for a client of Redis");
}

void weir__redis_client_refuse(struct weir__redis_client *c, const char *why)
{
    c->ending = why;
}

void weir__redis_client_end(struct weir__redis_client *c)
{
    weir__redis_client_refuse(c, "the client is ending");
    while (c->dues.n > 0)
        weir__redis_give_up(c, c->dues.heap[0], c->ending);
}

void weir__redis_client_destroy(struct weir__redis_client *c)
{
    if (!c)
        return;
    weir__redis_client_end(c);
    for (size_t i = 0; i < c->n_nodes; i++) {
        for (int k = 0; k < WEIR__REDIS_POOL_MAX; k++)
            weir__redis_conn_free(&c->nodes[i]->conns[k]);
        weir__redis_ask_free(&c->nodes[i]->probe);
        free(c->nodes[i]);
    }
    free(c->nodes);
    free(c->dues.heap);
    weir__redis_ask_free(&c->map.ask);
    free(c);
}

unsigned weir__redis_client_shard(struct weir__redis_client *c, int slot)
{
    struct weir__redis_node *node = weir__redis_map_find(c, slot);

    return node ? weir__redis_node_index(c, node) : 0;
}

struct weir__redis_counts weir__redis_client_counts(const struct weir__redis_client *c)
{
    return c->counts;
}

size_t weir__redis_client_waiting(const struct weir__redis_client *c)
{
    return c->dues.n - c->map.reading - c->probes;
}

weir_time weir__redis_client_now(const struct weir__redis_client *c)
{
    return c->now;
}

enum weir__redis_mode weir__redis_client_mode(const struct weir__redis_client *c)
{
    return c->mode;
}
