/* client.h -- a client of Redis, of Redis under Sentinels or of a Redis Cluster, without sockets
 * and without a clock.
 *
 * A driver (thread.c) connects it to the world, in turns:
 *
 *     weir__redis_client_ask(client, ask, now)       any number of asks
 *     weir__redis_client_turn(client, now)           everything that is due; says when to come back
 *     for each connection: connect or close as its phase says, write `out`, read
 *         weir__redis_client_opened, _wrote, _input, _lost
 *
 * Each ask is answered once, by its `done`: with Redis's reply, or at its deadline at the latest.
 * `done` may ask anew.
 *
 *   sent to      the node that has its slot, or the master; on the ready connection with the fewest
 *                replies due, behind the others of the turn: a pipeline
 *   MOVED, ASK   sent again, to the node named there
 *   TRYAGAIN, CLUSTERDOWN, LOADING, READONLY, MASTERDOWN, BUSY
 *                Redis has not carried it out: sent again after a rest; READONLY also on a new
 *                connection, because a host's name may mean another server after a failover
 *   NOSCRIPT     sent again with the script's text
 *   module       a node that has it is sent that form of an ask, if there is one: module.c
 *   lost         unknown; sent again only if the caller said that it is repeatable
 *
 * Rests, reconnections and looks at the map grow from try to try and are jittered, so that a
 * thousand clients that lose one server at the same moment do not come back at the same moment.
 */
#ifndef WEIR_CLUSTER_REDIS_CLIENT_H
#define WEIR_CLUSTER_REDIS_CLIENT_H

#include "cluster/redis/conn.h"

#define WEIR__REDIS_POOL_MAX 8

struct weir__redis_options {
    struct weir__redis_url url;
    uint64_t jitter;     /* a random number, different for each client */
    int pool;            /* connections to a node, at most; 0: 2 */
    weir_time greet_max; /* to connect and log in; 0: 1 s */
    weir_time stall_max; /* without an answer, until a connection is given up; 0: 1 s */
    size_t asks_max;     /* unanswered ones; 0: 65536 */
    size_t reply_max;    /* bytes; 0: 16 MiB */
    bool module_first;   /* asks wait until it is known whether a node has the module */
};

enum weir__redis_mode {
    WEIR__REDIS_MODE_UNKNOWN, /* no server has been reached yet */
    WEIR__REDIS_MODE_SINGLE,
    WEIR__REDIS_MODE_SENTINEL,
    WEIR__REDIS_MODE_CLUSTER,
};

struct weir__redis_client;

int weir__redis_client_create(struct weir__redis_client **out,
                              const struct weir__redis_options *options, struct weir_error *error);
/* Asks that are not answered yet get an answer, and all others at once. */
void weir__redis_client_end(struct weir__redis_client *client);
/* From now on each ask is undone at once, for this reason, which must stay. */
void weir__redis_client_refuse(struct weir__redis_client *client, const char *why);
void weir__redis_client_destroy(struct weir__redis_client *client); /* ended first */

void weir__redis_client_ask(struct weir__redis_client *client, struct weir__redis_ask *ask,
                            weir_time now);
/* The ask gets its answer now: undone or unknown. */
void weir__redis_client_cancel(struct weir__redis_client *client, struct weir__redis_ask *ask);
weir_time weir__redis_client_turn(struct weir__redis_client *client, weir_time now);

/* The i-th connection, open or not; NULL: there are no more.  They keep their places. */
struct weir__redis_conn *weir__redis_client_conn(struct weir__redis_client *client, size_t i);
void weir__redis_client_opened(struct weir__redis_client *client, struct weir__redis_conn *conn,
                               weir_time now);
void weir__redis_client_input(struct weir__redis_client *client, struct weir__redis_conn *conn,
                              const char *bytes, size_t len, weir_time now);
void weir__redis_client_wrote(struct weir__redis_client *client, struct weir__redis_conn *conn,
                              size_t n);
void weir__redis_client_lost(struct weir__redis_client *client, struct weir__redis_conn *conn,
                             const char *why, weir_time now);
const struct weir__redis_address *weir__redis_conn_address(const struct weir__redis_conn *conn);

/* ------------------------------------------------------------------ looking ---- */

struct weir__redis_node_info {
    struct weir__redis_node *node; /* for ask.only */
    struct weir__redis_address address;
    struct weir__redis_facts facts;
    bool sentinel, replica;
    int slots, ready; /* slots it owns; ready connections */
    char why[160];    /* the last connection was lost; "": none was */
};

enum weir__redis_mode weir__redis_client_mode(const struct weir__redis_client *client);
/* The next node, from a cursor of 0; false: there are no more. */
bool weir__redis_client_node_next(const struct weir__redis_client *client, size_t *cursor,
                                  struct weir__redis_node_info *out);

/* A number for the node that has the slot, from 1; 0: not known yet. */
unsigned weir__redis_client_shard(struct weir__redis_client *client, int slot);
/* False: its node is known not to have it. */
bool weir__redis_client_may_have_module(struct weir__redis_client *client, int slot);

struct weir__redis_counts {
    uint64_t answered, undone, unknown;
    uint64_t redirected, rested, scripts_sent; /* tries that were not the last */
    uint64_t maps_read, connected, lost;
};
struct weir__redis_counts weir__redis_client_counts(const struct weir__redis_client *client);
size_t weir__redis_client_waiting(const struct weir__redis_client *client);
weir_time weir__redis_client_now(const struct weir__redis_client *client); /* of the last call */

#endif
