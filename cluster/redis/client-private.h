/* client-private.h -- what the files of the client share.
 *
 *   client.c            asks from their coming to their answer; replies; the turn
 *   retry.c             errors after which an ask is sent again
 *   node-connections.c  nodes, their connections and their queues
 *   reconnect.c         the pause before a node is connected to again
 *   cluster-map.c       which node has which slots: Cluster, Sentinel, several seeds
 *   ask-deadlines.c     the asks by the moment they are due
 *   module.c            which nodes have Weir's module
 *   shards.c            the other form of a cluster's map
 *
 * An ask is in one place: resting (only among the dues), queued (at a node, for a connection; or at
 * `homeless`, for a map), or sent (on a connection).  While it is unanswered it is among the dues.
 */
#ifndef WEIR_CLUSTER_REDIS_CLIENT_PRIVATE_H
#define WEIR_CLUSTER_REDIS_CLIENT_PRIVATE_H

#include "cluster/redis/client.h"

#define WEIR__REDIS_NODES_MAX 1024

struct weir__redis_queue {
    struct weir__redis_ask *first, *last;
};

struct weir__redis_node {
    struct weir__redis_address address;
    struct weir__redis_conn conns[WEIR__REDIS_POOL_MAX];
    struct weir__redis_queue queue;
    bool seed, sentinel;
    bool replica;      /* as far as is known */
    uint64_t seen;     /* the map that named it last */
    int fails;         /* connections in a row that were of no use */
    weir_time open_at; /* not to be connected to before this */
    weir_time asked;   /* for the map */
    int slots;
    bool refused;  /* the last connection: the server did not let us in */
    bool no_way;   /* asked for the map last: to ask it again would not help */
    char why[160]; /* it was lost; "": none was */
    struct weir__redis_facts facts;
    enum { MODULE_UNKNOWN, MODULE_NONE, MODULE_LOADED } module; /* as of the last connection */
    bool probing;
    struct weir__redis_ask probe; /* finds that out */
};

struct weir__redis_dues {
    struct weir__redis_ask **heap;
    size_t n, room;
};

typedef void weir__redis_map_reader(struct weir__redis_client *client, struct weir__text reply,
                                    weir_time now);

struct weir__redis_map {
    uint16_t owner[WEIR__REDIS_SLOTS]; /* place among the nodes + 1; 0: nobody */
    struct weir__redis_node *master;   /* not of a cluster */
    uint64_t version;
    struct weir__redis_ask ask;   /* reads it */
    weir__redis_map_reader *read; /* its answer */
    bool reading;
    bool doubted;                   /* read_at was set because of a doubt */
    struct weir__redis_node *from;  /* the node that is asked */
    struct weir__redis_node *avoid; /* it did not help */
    weir_time read_at;              /* WEIR_NEVER: no need */
    weir_time last;                 /* it was asked for */
    int hurry;                      /* reads in a short time */
    char why[120];                  /* the last read failed; "": it did not */
};

struct weir__redis_client {
    struct weir__redis_options options;
    struct weir__redis_conn_options conn_options, sentinel_conn_options;
    struct weir__redis_listener listener;
    uint64_t dice;
    enum weir__redis_mode mode;
    struct weir__redis_node **nodes;
    size_t n_nodes;
    struct weir__redis_queue homeless;
    struct weir__redis_dues dues;
    struct weir__redis_map map;
    struct weir__redis_counts counts;
    size_t probes;      /* under way */
    const char *ending; /* why new asks are undone; NULL: they are not */
    weir_time now;      /* of the last call */
};

/* client.c */
void weir__redis_dispatch(struct weir__redis_client *client, struct weir__redis_ask *ask,
                          weir_time now);
/* Not answered: undone, or unknown if an earlier answer was lost. */
void weir__redis_give_up(struct weir__redis_client *client, struct weir__redis_ask *ask,
                         const char *why);
/* A span between half of it and all. */
weir_time weir__redis_jitter(struct weir__redis_client *client, weir_time span);
/* base, doubled for each step up to `max`, jittered. */
weir_time weir__redis_back_off(struct weir__redis_client *client, weir_time base, weir_time max,
                               int step);
uint64_t weir__redis_roll(struct weir__redis_client *client, uint64_t n); /* below n */

/* retry.c -- an error.  True: the ask goes on, and the error is none of the asker's business. */
bool weir__redis_retry(struct weir__redis_client *client, struct weir__redis_conn *conn,
                       struct weir__redis_ask *ask, const struct weir__resp_value *error,
                       weir_time now);
/* True: others were faster than this ask, and may be many.  It is sent after a rest. */
bool weir__redis_rest_after_losses(struct weir__redis_client *client, struct weir__redis_ask *ask,
                                   weir_time now);

/* module.c -- which nodes have Weir's module. */
/* The form of an ask that is about to be sent there. */
void weir__redis_module_choose(const struct weir__redis_node *node, struct weir__redis_ask *ask);
/* Finds out, if it is not known and matters to the ask. */
void weir__redis_module_probe(struct weir__redis_client *client, struct weir__redis_node *node,
                              const struct weir__redis_ask *ask, weir_time now);
/* The ask has to wait for that. */
bool weir__redis_module_awaits(const struct weir__redis_client *client,
                               const struct weir__redis_node *node,
                               const struct weir__redis_ask *ask);
/* An error to the module's form.  True: the ask has to be sent again, as a script. */
bool weir__redis_module_refused(struct weir__redis_node *node, struct weir__redis_ask *ask,
                                const struct weir__resp_value *error);
/* An error to a script.  True: this user may have no right to scripts, and one to the module. */
bool weir__redis_module_may_help(const struct weir__redis_node *node,
                                 const struct weir__redis_ask *ask,
                                 const struct weir__resp_value *error);

/* node-connections.c */
struct weir__redis_node *weir__redis_node(struct weir__redis_client *client,
                                          const struct weir__redis_address *address, bool sentinel);
/* Sends it, or puts it into the node's queue. */
void weir__redis_node_send(struct weir__redis_client *client, struct weir__redis_node *node,
                           struct weir__redis_ask *ask, weir_time now);
void weir__redis_node_flush(struct weir__redis_client *client, struct weir__redis_node *node,
                            weir_time now);
/* Opens what is needed, gives up what is late.  The next moment to look. */
weir_time weir__redis_node_turn(struct weir__redis_client *client, struct weir__redis_node *node,
                                weir_time now);
void weir__redis_queue_add(struct weir__redis_queue *queue, struct weir__redis_ask *ask);
void weir__redis_queue_remove(struct weir__redis_queue *queue, struct weir__redis_ask *ask);

/* reconnect.c */
/* After the loss of a connection. */
void weir__redis_node_failed(struct weir__redis_client *client, struct weir__redis_node *node,
                             const struct weir__redis_conn *conn, weir_time now);
/* The server is read-only: the next connection may find another behind the same name. */
void weir__redis_node_leave(struct weir__redis_client *client, struct weir__redis_conn *conn,
                            weir_time now);

/* cluster-map.c */
/* The node for a slot; NULL: unknown. */
struct weir__redis_node *weir__redis_map_find(struct weir__redis_client *client, int slot);
void weir__redis_map_moved(struct weir__redis_client *client, int slot,
                           struct weir__redis_node *node);
/* It may be out of date. */
void weir__redis_map_doubt(struct weir__redis_client *client, weir_time now);
void weir__redis_map_turn(struct weir__redis_client *client, weir_time now);

/* cluster-map.c -- a range of slots, two numbers, and where the next value begins; false: no such
 * range. */
bool weir__redis_slots_read(const char **at, int64_t *from, int64_t *to);

/* shards.c -- fills in the owners; false: the reply makes no sense. */
bool weir__redis_shards_read(struct weir__redis_client *client, struct weir__text reply,
                             uint16_t *owner);
/* Its place among the nodes + 1. */
unsigned weir__redis_node_index(const struct weir__redis_client *client,
                                const struct weir__redis_node *node);

/* ask-deadlines.c */
bool weir__redis_dues_add(struct weir__redis_dues *dues, struct weir__redis_ask *ask);
void weir__redis_dues_remove(struct weir__redis_dues *dues, struct weir__redis_ask *ask);
void weir__redis_dues_move(struct weir__redis_dues *dues, struct weir__redis_ask *ask,
                           weir_time due);

#endif
