/* reconnect.c -- a node whose connection is lost is left alone for a pause, which doubles from one
 * failure to the next.
 */
#include <stdio.h>
#include <string.h>

#include "cluster/redis/client-private.h"

#define OPEN_BASE  (2 * WEIR_MILLISECOND)
#define LEAVE_BASE (50 * WEIR_MILLISECOND)
#define OPEN_MAX   WEIR_SECOND

/* An ask that waits in vain: the server does not let us in, or no other one will do. */
static struct weir__redis_ask *find_hopeless(const struct weir__redis_node *node)
{
    struct weir__redis_ask *ask = node->queue.first;

    while (ask && !node->refused && !ask->only)
        ask = ask->own.next;
    return ask;
}

void weir__redis_node_failed(struct weir__redis_client *c, struct weir__redis_node *node,
                             const struct weir__redis_conn *conn, weir_time now)
{
    struct weir__redis_ask *ask;
    char why[440];
    size_t n = 0;

    snprintf(why, sizeof(why), "%s: %s", weir__redis_place(&node->address).text, conn->why);
    node->open_at = now + weir__redis_back_off(c, OPEN_BASE, OPEN_MAX, node->fails);
    node->refused = conn->refused;
    memcpy(node->why, conn->why, sizeof(node->why));
    if (!conn->served)
        node->fails++;
    if (!node->sentinel)
        weir__redis_map_doubt(c, now);
    for (ask = node->queue.first; ask; ask = ask->own.next)
        n++;
    for (; n > 0 && (ask = find_hopeless(node)) != NULL; n--)
        weir__redis_give_up(c, ask, why);
}

void weir__redis_node_leave(struct weir__redis_client *c, struct weir__redis_conn *conn,
                            weir_time now)
{
    struct weir__redis_node *node = conn->node;

    if (conn->leaving)
        return;
    conn->leaving = true;
    snprintf(node->why, sizeof(node->why), "it is read-only");
    node->open_at = now + weir__redis_back_off(c, LEAVE_BASE, OPEN_MAX, node->fails++);
}
