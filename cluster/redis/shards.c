/* shards.c -- CLUSTER SHARDS, where CLUSTER SLOTS is not to be had: not for this user, or not any
 * more.
 *
 * A list of shards; each has "slots", pairs of the first and the last, and "nodes", each with
 * "endpoint" or "ip", "port", "tls-port" and "role".  Maps in RESP3 are lists in RESP2.
 */
#include <string.h>

#include "cluster/redis/client-private.h"

/* The value of a name in a map; false: it has none. */
static bool find(const char *map, const char *name, const char **out)
{
    struct weir__resp_value head, key;
    const char *at = weir__resp_value(map, &head);

    if (head.kind != '%' && head.kind != '*')
        return false;
    for (size_t i = 0; i + 1 < head.n; i += 2) {
        const char *value = weir__resp_skip(at);
        weir__resp_value(at, &key);
        if (key.n == 0 && weir__resp_is(key.text, name)) {
            *out = value;
            return true;
        }
        at = weir__resp_skip(value);
    }
    return false;
}

static struct weir__text text_in(const char *map, const char *name)
{
    struct weir__resp_value value = { .kind = 0 };
    const char *at;

    if (find(map, name, &at))
        weir__resp_value(at, &value);
    return value.kind == '$' || value.kind == '+' ? value.text : (struct weir__text){ "", 0 };
}

static int64_t number_in(const char *map, const char *name)
{
    struct weir__resp_value value = { .kind = 0 };
    const char *at;

    if (find(map, name, &at))
        weir__resp_value(at, &value);
    return value.kind == ':' ? value.integer : 0;
}

static struct weir__redis_node *read_node(struct weir__redis_client *c, const char *map)
{
    struct weir__redis_address address = { .port = 0 };
    struct weir__text host = text_in(map, "endpoint");
    int64_t port = number_in(map, c->options.url.tls ? "tls-port" : "port");

    if (host.len == 0 || weir__resp_is(host, "?"))
        host = text_in(map, "ip");
    if (port < 1 || port > UINT16_MAX || host.len >= sizeof(address.host))
        return NULL;
    if (host.len == 0)
        memcpy(address.host, c->map.from->address.host, sizeof(address.host));
    else
        memcpy(address.host, host.bytes, host.len);
    address.port = (uint16_t)port;
    return weir__redis_node(c, &address, false);
}

/* The shard's master; NULL: it has none. */
static struct weir__redis_node *read_nodes(struct weir__redis_client *c, const char *shard)
{
    struct weir__redis_node *master = NULL;
    struct weir__resp_value list;
    const char *at;

    if (!find(shard, "nodes", &at))
        return NULL;
    at = weir__resp_value(at, &list);
    for (size_t i = 0; list.kind == '*' && i < list.n; i++, at = weir__resp_skip(at)) {
        struct weir__redis_node *node = read_node(c, at);
        if (!node)
            continue;
        node->seen = c->map.version + 1;
        node->replica = !weir__resp_is(text_in(at, "role"), "master");
        master = node->replica ? master : node;
    }
    return master;
}

static bool read_slots(const char *shard, uint16_t number, uint16_t *owner)
{
    struct weir__resp_value list;
    const char *at;
    int64_t from, to;

    if (!find(shard, "slots", &at))
        return false;
    at = weir__resp_value(at, &list);
    for (size_t i = 0; list.kind == '*' && i + 1 < list.n; i += 2) {
        if (!weir__redis_slots_read(&at, &from, &to))
            return false;
        for (int64_t slot = from; slot <= to; slot++)
            owner[slot] = number;
    }
    return true;
}

bool weir__redis_shards_read(struct weir__redis_client *c, struct weir__text reply, uint16_t *owner)
{
    struct weir__resp_value list;
    const char *at = weir__resp_value(reply.bytes, &list);
    bool good = list.kind == '*' && list.n > 0;

    for (size_t i = 0; good && i < list.n; i++, at = weir__resp_skip(at)) {
        struct weir__redis_node *master = read_nodes(c, at);
        if (master) /* else its slots have nobody for now */
            good = read_slots(at, (uint16_t)weir__redis_node_index(c, master), owner);
    }
    return good;
}
