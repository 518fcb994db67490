/* cluster-map.c -- which node has which slots.
 *
 * CLUSTER SLOTS tells a Redis Cluster from a Redis alone, and is the map of the former; Sentinels
 * are asked for the master.  A map is read again when it is in doubt: after MOVED, CLUSTERDOWN,
 * READONLY, a lost connection.  That is never urgent, because MOVED itself says where to go, so
 * each client waits a moment of chance first, and longer if it has read often: one server's death
 * costs the others a few reads a second from each client, whatever happens.
 *
 * Without CLUSTER SLOTS there may be CLUSTER SHARDS.  A user that may call neither learns the map
 * from MOVED alone.
 */
#include <stdio.h>
#include <string.h>

#include "cluster/redis/client-private.h"

#define READ_MAX    (500 * WEIR_MILLISECOND) /* for one answer */
#define SPREAD_BASE (50 * WEIR_MILLISECOND)
#define SPREAD_MAX  (2 * WEIR_SECOND)
#define CALM        (5 * WEIR_SECOND) /* without a read: the next may come soon */
#define RETRY_BASE  (20 * WEIR_MILLISECOND)
#define REFRESH     (30 * WEIR_SECOND)

static bool needs_map(const struct weir__redis_client *c)
{
    return c->mode != WEIR__REDIS_MODE_SINGLE || c->options.url.n_seeds > 1;
}

/* --------------------------------------------------------------- finding ---- */

static bool is_ready(const struct weir__redis_client *c, const struct weir__redis_node *node)
{
    for (int i = 0; i < c->options.pool; i++) {
        if (node->conns[i].phase == WEIR__REDIS_READY && !node->conns[i].leaving)
            return true;
    }
    return false;
}

/* How good a node is to ask about the others; 0: not at all. */
static int rank(const struct weir__redis_client *c, const struct weir__redis_node *node)
{
    bool named = node->seed || node->seen >= c->map.version;

    if (node->sentinel != c->options.url.sentinel || !named)
        return 0;
    return node == c->map.avoid ? 1 : is_ready(c, node) ? 4 : node->fails == 0 ? 3 : 2;
}

/* Seeds that may be a master and its replicas must be asked in turn. */
static bool is_in_turn(const struct weir__redis_client *c)
{
    return c->mode == WEIR__REDIS_MODE_UNKNOWN || c->mode == WEIR__REDIS_MODE_SINGLE;
}

/* Any node of a cluster knows the others: one of the best by chance. */
static struct weir__redis_node *pick_source(struct weir__redis_client *c)
{
    bool in_turn = is_in_turn(c);
    struct weir__redis_node *best = NULL;
    int64_t best_rank = INT64_MIN;
    uint64_t n = 0;

    for (size_t i = 0; i < c->n_nodes; i++) {
        int64_t r = rank(c, c->nodes[i]);
        if (r == 0 || (in_turn && !c->nodes[i]->seed))
            continue;
        r = in_turn ? -c->nodes[i]->asked : r;
        n = r > best_rank ? 0 : n;
        best_rank = r > best_rank ? r : best_rank;
        if (r == best_rank && weir__redis_roll(c, ++n) == 0)
            best = c->nodes[i];
    }
    return best;
}

struct weir__redis_node *weir__redis_map_find(struct weir__redis_client *c, int slot)
{
    if (c->mode == WEIR__REDIS_MODE_UNKNOWN)
        return NULL;
    if (c->mode != WEIR__REDIS_MODE_CLUSTER)
        return c->map.master;
    if (slot < 0)
        slot = (int)weir__redis_roll(c, WEIR__REDIS_SLOTS);
    unsigned owner = c->map.owner[slot];
    return owner ? c->nodes[owner - 1] : pick_source(c); /* which will say MOVED, or CLUSTERDOWN */
}

unsigned weir__redis_node_index(const struct weir__redis_client *c,
                                const struct weir__redis_node *node)
{
    size_t i = 0;

    while (c->nodes[i] != node)
        i++;
    return (unsigned)i + 1;
}

static void set_owner(struct weir__redis_client *c, int slot, unsigned owner)
{
    unsigned old = c->map.owner[slot];

    if (old)
        c->nodes[old - 1]->slots--;
    if (owner)
        c->nodes[owner - 1]->slots++;
    c->map.owner[slot] = (uint16_t)owner;
}

void weir__redis_map_moved(struct weir__redis_client *c, int slot, struct weir__redis_node *node)
{
    c->mode = WEIR__REDIS_MODE_CLUSTER;
    set_owner(c, slot, weir__redis_node_index(c, node));
}

/* --------------------------------------------------------------- reading ---- */

/* Asks that wait for a map, or in a queue, go where it says now. */
static void rehome(struct weir__redis_client *c, weir_time now)
{
    struct weir__redis_queue all = c->homeless;

    c->homeless = (struct weir__redis_queue){ 0 };
    for (size_t i = 0; i < c->n_nodes; i++) {
        for (struct weir__redis_ask *ask = c->nodes[i]->queue.first, *next; ask; ask = next) {
            next = ask->own.next;
            if (ask->only || ask->own.asking)
                continue;
            weir__redis_queue_remove(&c->nodes[i]->queue, ask);
            weir__redis_queue_add(&all, ask);
        }
    }
    for (struct weir__redis_ask *ask = all.first, *next; ask; ask = next) {
        next = ask->own.next;
        weir__redis_dispatch(c, ask, now);
    }
}

static void found(struct weir__redis_client *c, enum weir__redis_mode mode, weir_time now)
{
    c->mode = mode;
    c->counts.maps_read++;
    c->map.from->no_way = false;
    c->map.avoid = NULL;
    c->map.why[0] = '\0';
    c->map.read_at = needs_map(c) ? now + weir__redis_jitter(c, REFRESH) : WEIR_NEVER;
    rehome(c, now);
}

static void found_nothing(struct weir__redis_client *c, const char *why, weir_time now)
{
    int round = c->map.hurry / (int)c->options.url.n_seeds;

    c->map.from->no_way = false;
    c->map.avoid = c->map.from;
    c->map.read_at = now + weir__redis_back_off(c, RETRY_BASE, SPREAD_MAX, round);
    snprintf(c->map.why, sizeof(c->map.why), "%.*s", (int)sizeof(c->map.why) - 1, why);
}

static bool others_may_help(const struct weir__redis_client *c)
{
    for (size_t i = 0; i < c->n_nodes; i++) {
        const struct weir__redis_node *node = c->nodes[i];
        if (!node->no_way && rank(c, node) > 0 && (node->seed || !is_in_turn(c)))
            return true;
    }
    return false;
}

/* Waiting for this node would not help. */
static void found_no_way(struct weir__redis_client *c, const char *why, weir_time now)
{
    size_t n = 0;

    found_nothing(c, why, now);
    c->map.from->no_way = true;
    if (others_may_help(c))
        return;
    for (struct weir__redis_ask *ask = c->homeless.first; ask; ask = ask->own.next)
        n++;
    for (; n > 0 && c->homeless.first; n--) /* no more than these: `done` may ask anew */
        weir__redis_give_up(c, c->homeless.first, why);
}

static void answered(struct weir__redis_ask *ask, const struct weir__redis_answer *answer)
{
    struct weir__redis_client *c = ask->context;
    weir_time now = c->now;

    c->map.reading = false;
    if (c->ending)
        return;
    if (answer->outcome == WEIR__REDIS_ANSWERED)
        c->map.read(c, answer->reply, now);
    else if (c->map.from->refused)
        found_no_way(c, answer->why, now);
    else
        found_nothing(c, answer->why, now);
}

static void ask_source(struct weir__redis_client *c, const char *const *words,
                       weir__redis_map_reader *read, weir_time now)
{
    struct weir__redis_map *map = &c->map;

    weir__redis_ask_texts(&map->ask, words);
    map->ask.only = map->from;
    map->ask.slot = WEIR__REDIS_ANY_SLOT;
    map->ask.deadline = now + READ_MAX;
    map->ask.done = answered;
    map->ask.context = c;
    map->read = read;
    map->reading = true;
    weir__redis_client_ask(c, &map->ask, now);
}

/* A node of CLUSTER SLOTS: host (null or empty: the one asked), port, and more. */
static const char *read_node(struct weir__redis_client *c, const char *at,
                             struct weir__redis_node **out)
{
    struct weir__resp_value list, host, port;
    const char *end = weir__resp_skip(at);
    struct weir__redis_address address = { .port = 0 };

    *out = NULL;
    at = weir__resp_value(at, &list);
    if (list.kind != '*' || list.n < 2)
        return end;
    at = weir__resp_value(at, &host);
    if (host.n > 0)
        return end;
    weir__resp_value(at, &port);
    if (port.kind != ':' || port.integer < 1 || port.integer > UINT16_MAX ||
        host.text.len >= sizeof(address.host))
        return end;
    if (host.text.len == 0 || weir__resp_is(host.text, "?"))
        memcpy(address.host, c->map.from->address.host, sizeof(address.host));
    else
        memcpy(address.host, host.text.bytes, host.text.len);
    address.port = (uint16_t)port.integer;
    *out = weir__redis_node(c, &address, false);
    return end;
}

bool weir__redis_slots_read(const char **at, int64_t *from, int64_t *to)
{
    struct weir__resp_value first, last;

    *at = weir__resp_value(*at, &first);
    if (first.kind != ':')
        return false;
    *at = weir__resp_value(*at, &last);
    *from = first.integer;
    *to = last.integer;
    return last.kind == ':' && *from >= 0 && *from <= *to && *to < WEIR__REDIS_SLOTS;
}

/* One range: from, to, master, replicas. */
static bool read_range(struct weir__redis_client *c, const char *at, uint16_t *owner)
{
    struct weir__resp_value list;
    int64_t from, to;
    struct weir__redis_node *master, *replica;

    at = weir__resp_value(at, &list);
    if (list.kind != '*' || list.n < 3)
        return false;
    if (!weir__redis_slots_read(&at, &from, &to))
        return false;
    at = read_node(c, at, &master);
    if (!master)
        return false;
    master->seen = c->map.version + 1;
    master->replica = false;
    for (size_t i = 3; i < list.n; i++) {
        at = read_node(c, at, &replica);
        if (replica) {
            replica->seen = c->map.version + 1;
            replica->replica = true;
        }
    }
    unsigned number = weir__redis_node_index(c, master);
    for (int64_t slot = from; slot <= to; slot++)
        owner[slot] = (uint16_t)number;
    return true;
}

static void found_master(struct weir__redis_client *c, weir_time now)
{
    c->map.master = c->map.from;
    found(c, WEIR__REDIS_MODE_SINGLE, now);
}

/* Several servers that are no cluster: one master, and its replicas.  HELLO told the role as of
 * then. */
static void read_role(struct weir__redis_client *c, struct weir__text reply, weir_time now)
{
    struct weir__resp_value list, role = { 0 };
    const char *at = weir__resp_value(reply.bytes, &list);

    if (list.kind == '*' && list.n > 0)
        weir__resp_value(at, &role);
    c->map.from->replica = weir__resp_is(role.text, "slave");
    if (c->map.from->replica)
        found_nothing(c, "it is a replica", now);
    else
        found_master(c, now);
}

static void keep_owners(struct weir__redis_client *c, const uint16_t *owner, weir_time now)
{
    c->map.version++;
    for (int slot = 0; slot < WEIR__REDIS_SLOTS; slot++)
        set_owner(c, slot, owner[slot]);
    found(c, WEIR__REDIS_MODE_CLUSTER, now);
}

/* The map is not kept: of its nodes those with slots are as good as before. */
static void drop_owners(struct weir__redis_client *c)
{
    uint64_t version = c->map.version;

    for (size_t i = 0; i < c->n_nodes; i++) {
        struct weir__redis_node *node = c->nodes[i];
        if (node->seen > version)
            node->seen = node->slots > 0 || version == 0 ? version : version - 1;
    }
}

static void read_shards(struct weir__redis_client *c, struct weir__text reply, weir_time now)
{
    uint16_t owner[WEIR__REDIS_SLOTS] = { 0 };

    if (weir__redis_shards_read(c, reply, owner)) {
        keep_owners(c, owner, now);
        return;
    }
    drop_owners(c);
    found(c, WEIR__REDIS_MODE_CLUSTER, now); /* MOVED will tell */
}

/* The server has no CLUSTER SLOTS, or not for us. */
static void read_refusal(struct weir__redis_client *c, const struct weir__resp_value *error,
                         weir_time now)
{
    const struct weir__redis_facts *facts = &c->map.from->facts;
    char why[160];

    snprintf(why, sizeof(why), "%.*s", (int)error->text.len, error->text.bytes);
    if (weir__resp_is_error(error, "NOAUTH"))
        found_no_way(c, why, now);
    else if (weir__resp_is_error(error, "LOADING") || weir__resp_is_error(error, "BUSY") ||
             weir__resp_is_error(error, "MASTERDOWN") ||
             weir__resp_is_error(error, WEIR__REDIS_FULL))
        found_nothing(c, why, now);
    else if (strcmp(facts->mode, "sentinel") == 0)
        found_no_way(c, "this is a Sentinel: write redis-sentinel://HOST/MASTER", now);
    else if (strcmp(facts->mode, "cluster") == 0)
        ask_source(c, (const char *[]){ "CLUSTER", "SHARDS", NULL }, read_shards, now);
    else if (c->options.url.n_seeds > 1)
        ask_source(c, (const char *[]){ "ROLE", NULL }, read_role, now);
    else
        found_master(c, now);
}

static void read_slots(struct weir__redis_client *c, struct weir__text reply, weir_time now)
{
    uint16_t owner[WEIR__REDIS_SLOTS] = { 0 };
    struct weir__resp_value list;
    const char *at = weir__resp_value(reply.bytes, &list);
    bool good = list.kind == '*' && list.n > 0;

    if (list.kind == '-') {
        read_refusal(c, &list, now);
        return;
    }
    for (size_t i = 0; good && i < list.n; i++) {
        good = read_range(c, at, owner);
        at = weir__resp_skip(at);
    }
    if (!good) {
        drop_owners(c);
        found_nothing(c, "the cluster has no slots yet", now);
        return;
    }
    keep_owners(c, owner, now);
}

/* The right to ask, or a Sentinel, will not come by waiting. */
static void read_sentinel_refusal(struct weir__redis_client *c,
                                  const struct weir__resp_value *error, weir_time now)
{
    static const char unknown[] = "ERR unknown command";
    char why[160];

    snprintf(why, sizeof(why), "%.*s", (int)error->text.len, error->text.bytes);
    if (strncmp(why, unknown, sizeof(unknown) - 1) == 0)
        found_no_way(c, "this is no Sentinel: write redis://HOST", now);
    else if (weir__resp_is_error(error, "NOPERM") || weir__resp_is_error(error, "NOAUTH"))
        found_no_way(c, why, now);
    else
        found_nothing(c, why, now);
}

/* The master's host and port, as two texts. */
static void read_master(struct weir__redis_client *c, struct weir__text reply, weir_time now)
{
    struct weir__resp_value list, host = { 0 }, port = { 0 };
    struct weir__redis_address address = { .port = 0 };
    const char *at = weir__resp_value(reply.bytes, &list);
    int64_t number = 0;

    if (list.kind == '-') {
        read_sentinel_refusal(c, &list, now);
        return;
    }
    if (list.kind == '*' && list.n == 2) {
        at = weir__resp_value(at, &host);
        if (host.n == 0)
            weir__resp_value(at, &port);
    }
    if (list.kind == '_') {
        found_no_way(c, "the Sentinels know no master of this name", now);
        return;
    }
    if (host.text.len > 0 && host.text.len < sizeof(address.host) &&
        weir__count_parse(port.text.bytes, port.text.len, &number) && number >= 1 &&
        number <= UINT16_MAX) {
        memcpy(address.host, host.text.bytes, host.text.len);
        address.port = (uint16_t)number;
    }
    c->map.version++;
    struct weir__redis_node *master = number ? weir__redis_node(c, &address, false) : NULL;
    if (!master) {
        found_nothing(c, "the Sentinel's answer makes no sense", now);
        return;
    }
    c->map.master = master;
    found(c, WEIR__REDIS_MODE_SENTINEL, now);
}

/* ------------------------------------------------------------------ when ---- */

static void calm_down(struct weir__redis_map *map, weir_time now)
{
    if (now - map->last > CALM)
        map->hurry = 0;
}

void weir__redis_map_doubt(struct weir__redis_client *c, weir_time now)
{
    struct weir__redis_map *map = &c->map;

    if (map->reading || map->doubted || !needs_map(c) || c->ending)
        return;
    map->doubted = true;
    calm_down(map, now);
    weir_time spread = SPREAD_BASE << (map->hurry < 8 ? map->hurry : 8);
    if (c->mode == WEIR__REDIS_MODE_UNKNOWN && map->hurry == 0)
        spread = 1; /* nobody else is in doubt because of the same event */
    weir_time at =
        now + (weir_time)weir__redis_roll(c, (uint64_t)(spread < SPREAD_MAX ? spread : SPREAD_MAX));
    map->read_at = at < map->read_at ? at : map->read_at;
}

void weir__redis_map_turn(struct weir__redis_client *c, weir_time now)
{
    struct weir__redis_map *map = &c->map;

    if (map->reading || now < map->read_at)
        return;
    map->from = pick_source(c);
    map->from->asked = now;
    map->read_at = WEIR_NEVER;
    map->doubted = false;
    calm_down(map, now);
    map->last = now;
    map->hurry++;
    if (c->options.url.sentinel)
        ask_source(
            c,
            (const char *[]){ "SENTINEL", "GET-MASTER-ADDR-BY-NAME", c->options.url.master, NULL },
            read_master, now);
    else
        ask_source(c, (const char *[]){ "CLUSTER", "SLOTS", NULL }, read_slots, now);
}
