/* node-connections.c -- nodes, their connections and their queues.
 *
 * A node is connected to when it is first needed, with one connection more whenever all the others
 * have many replies due, up to the pool's size; after a loss, not before the pause of reconnect.c.
 * Nodes keep their place in memory; one that the map has not named for long is made into another.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/redis/client-private.h"

enum { CROWDED = 64 }; /* replies due on a connection, from which on another one helps */

/* ---------------------------------------------------------------- queues ---- */

void weir__redis_queue_add(struct weir__redis_queue *q, struct weir__redis_ask *ask)
{
    ask->own.next = NULL;
    ask->own.before = q->last;
    if (q->last)
        q->last->own.next = ask;
    else
        q->first = ask;
    q->last = ask;
}

void weir__redis_queue_remove(struct weir__redis_queue *q, struct weir__redis_ask *ask)
{
    struct weir__redis_ask *next = ask->own.next, *before = ask->own.before;

    if (before)
        before->own.next = next;
    else
        q->first = next;
    if (next)
        next->own.before = before;
    else
        q->last = before;
}

/* ----------------------------------------------------------------- nodes ---- */

static bool is_named(const struct weir__redis_client *c, const struct weir__redis_node *node)
{
    return node->seed || node->seen >= c->map.version;
}

/* Nothing is there that would be missed, whoever names it. */
static bool is_unused(const struct weir__redis_client *c, const struct weir__redis_node *node)
{
    if (node->seed || node->queue.first || node->slots > 0 || node == c->map.from ||
        node == c->map.master || node->probing)
        return false;
    for (int i = 0; i < WEIR__REDIS_POOL_MAX; i++) {
        if (node->conns[i].phase != WEIR__REDIS_CLOSED || node->conns[i].driver)
            return false;
    }
    return true;
}

static struct weir__redis_node *add_node(struct weir__redis_client *c)
{
    struct weir__redis_node **nodes, *node;

    if (c->n_nodes == WEIR__REDIS_NODES_MAX)
        return NULL;
    nodes = realloc(c->nodes, (c->n_nodes + 1) * sizeof(struct weir__redis_node *));
    if (!nodes)
        return NULL;
    c->nodes = nodes;
    node = calloc(1, sizeof(*node));
    if (node)
        c->nodes[c->n_nodes++] = node;
    return node;
}

/* One that was named by the map of `version` at the latest, and is not used. */
static struct weir__redis_node *find_unused(struct weir__redis_client *c, uint64_t version)
{
    for (size_t i = 0; i < c->n_nodes; i++) {
        if (c->nodes[i]->seen <= version && is_unused(c, c->nodes[i]))
            return c->nodes[i];
    }
    return NULL;
}

/* If there is no more room, a node of the present map that nobody needs will do; never one of the
 * map that is being read. */
static struct weir__redis_node *find_spare(struct weir__redis_client *c)
{
    uint64_t version = c->map.version;
    struct weir__redis_node *node = version > 0 ? find_unused(c, version - 1) : NULL;

    node = node ? node : add_node(c);
    return node ? node : find_unused(c, version);
}

struct weir__redis_node *weir__redis_node(struct weir__redis_client *c,
                                          const struct weir__redis_address *address, bool sentinel)
{
    struct weir__redis_node *node = NULL;

    for (size_t i = 0; i < c->n_nodes && !node; i++) {
        if (c->nodes[i]->sentinel == sentinel &&
            weir__redis_address_same(&c->nodes[i]->address, address))
            node = c->nodes[i];
    }
    if (!node) {
        node = find_spare(c);
        if (!node)
            return NULL;
        node->address = *address;
        node->sentinel = sentinel;
        node->replica = false;
        node->refused = node->no_way = false;
        node->fails = 0;
        node->open_at = 0;
        node->why[0] = '\0';
        node->facts = (struct weir__redis_facts){ 0 };
        node->module = MODULE_UNKNOWN;
        for (int i = 0; i < WEIR__REDIS_POOL_MAX; i++) {
            node->conns[i].node = node;
            node->conns[i].options = sentinel ? &c->sentinel_conn_options : &c->conn_options;
        }
    }
    if (node->seen < c->map.version)
        node->seen = c->map.version;
    return node;
}

const struct weir__redis_address *weir__redis_conn_address(const struct weir__redis_conn *conn)
{
    return &conn->node->address;
}

struct weir__redis_conn *weir__redis_client_conn(struct weir__redis_client *c, size_t i)
{
    size_t pool = (size_t)c->options.pool;

    return i / pool < c->n_nodes ? &c->nodes[i / pool]->conns[i % pool] : NULL;
}

bool weir__redis_client_node_next(const struct weir__redis_client *c, size_t *cursor,
                                  struct weir__redis_node_info *out)
{
    while (*cursor < c->n_nodes && !is_named(c, c->nodes[*cursor]))
        ++*cursor;
    if (*cursor >= c->n_nodes)
        return false;
    struct weir__redis_node *node = c->nodes[(*cursor)++];
    *out = (struct weir__redis_node_info){ .node = node,
                                           .address = node->address,
                                           .facts = node->facts,
                                           .sentinel = node->sentinel,
                                           .replica = node->replica,
                                           .slots = node->slots };
    memcpy(out->why, node->why, sizeof(out->why));
    for (int i = 0; i < c->options.pool; i++)
        out->ready += node->conns[i].phase == WEIR__REDIS_READY;
    return true;
}

/* ----------------------------------------------------------- connections ---- */

static void open_one(struct weir__redis_client *c, struct weir__redis_node *node, weir_time now)
{
    if (now < node->open_at || c->ending)
        return;
    for (int i = 0; i < c->options.pool; i++) {
        struct weir__redis_conn *conn = &node->conns[i];
        if (conn->phase == WEIR__REDIS_OPENING || conn->phase == WEIR__REDIS_GREETING)
            return; /* one at a time */
        if (conn->phase == WEIR__REDIS_CLOSED) {
            weir__redis_conn_begin(conn, now);
            return;
        }
    }
}

/* The ready connection with the fewest replies due; NULL: none is ready. */
static struct weir__redis_conn *pick(struct weir__redis_client *c, struct weir__redis_node *node)
{
    struct weir__redis_conn *best = NULL;

    for (int i = 0; i < c->options.pool; i++) {
        struct weir__redis_conn *conn = &node->conns[i];
        if (conn->phase == WEIR__REDIS_READY && !conn->leaving &&
            (!best || weir__redis_conn_due_replies(conn) < weir__redis_conn_due_replies(best)))
            best = conn;
    }
    return best;
}

static bool send_now(struct weir__redis_client *c, struct weir__redis_node *node,
                     struct weir__redis_ask *ask, weir_time now)
{
    struct weir__redis_conn *conn = pick(c, node);

    if (!conn || weir__redis_conn_due_replies(conn) >= CROWDED)
        open_one(c, node, now);
    if (conn && c->options.module_first)
        weir__redis_module_probe(c, node, ask, now);
    if (weir__redis_module_awaits(c, node, ask))
        return false;
    weir__redis_module_choose(node, ask);
    if (!conn || !weir__redis_conn_send(conn, ask, now))
        return false;
    ask->own.where = WEIR__ASK_SENT;
    ask->own.node = node;
    weir__redis_module_probe(c, node, ask, now);
    return true;
}

void weir__redis_node_send(struct weir__redis_client *c, struct weir__redis_node *node,
                           struct weir__redis_ask *ask, weir_time now)
{
    if ((!node->queue.first || ask == &node->probe) && send_now(c, node, ask, now))
        return; /* nobody overtakes, but the question that others wait for */
    ask->own.where = WEIR__ASK_QUEUED;
    ask->own.node = node;
    weir__redis_queue_add(&node->queue, ask);
    open_one(c, node, now);
}

void weir__redis_node_flush(struct weir__redis_client *c, struct weir__redis_node *node,
                            weir_time now)
{
    struct weir__redis_ask *ask;

    while ((ask = node->queue.first) != NULL) {
        weir__redis_queue_remove(&node->queue, ask);
        if (!send_now(c, node, ask, now)) {
            struct weir__redis_ask *rest = node->queue.first; /* back to the front */
            ask->own.before = NULL;
            ask->own.next = rest;
            if (rest)
                rest->own.before = ask;
            else
                node->queue.last = ask;
            node->queue.first = ask;
            return;
        }
    }
}

static bool is_idle(const struct weir__redis_conn *conn)
{
    return conn->phase == WEIR__REDIS_READY && weir__redis_conn_due_replies(conn) == 0;
}

weir_time weir__redis_node_turn(struct weir__redis_client *c, struct weir__redis_node *node,
                                weir_time now)
{
    weir_time next = WEIR_NEVER;

    for (int i = 0; i < c->options.pool; i++) {
        struct weir__redis_conn *conn = &node->conns[i];
        if (!weir__redis_conn_tick(conn, now))
            weir__redis_client_lost(c, conn, NULL, now);
        else if (is_idle(conn) && conn->leaving)
            weir__redis_conn_lost(conn, "it is read-only", &c->listener, now);
        else if (is_idle(conn) && !is_named(c, node) && !node->queue.first)
            weir__redis_conn_lost(conn, "it is no longer named", &c->listener, now);
        weir_time due = weir__redis_conn_due(conn);
        next = due < next ? due : next;
    }
    if (node->queue.first && pick(c, node)) {
        weir__redis_node_flush(c, node, now);
    } else if (node->queue.first) {
        open_one(c, node, now);
        next = node->open_at > now && node->open_at < next ? node->open_at : next;
    }
    return next;
}
