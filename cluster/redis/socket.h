/* socket.h -- the socket of one connection: finding the address, connecting, TLS, reading, writing.
 * It never waits. */
#ifndef WEIR_CLUSTER_REDIS_SOCKET_H
#define WEIR_CLUSTER_REDIS_SOCKET_H

#include "cluster/redis/client.h"
#include "wire/tls.h"

struct weir__redis_link;

/* What the links of a client share. */
struct weir__redis_links {
    struct weir__redis_client *client;
    struct weir__tls_context *tls; /* NULL: none */
    int epoll, wake;               /* wake: an eventfd, written when a name was found */
    char room[64 * 1024];          /* to read into */
};

/* Begins, and closes the link of the connection's life before; NULL: it failed, and the client was
 * told. */
struct weir__redis_link *weir__redis_link_open(struct weir__redis_links *links,
                                               struct weir__redis_conn *conn,
                                               struct weir__redis_link *before, weir_time now);
/* Does everything that is possible: the client may lose the connection meanwhile.  `readable`: the
 * network has something. */
void weir__redis_link_turn(struct weir__redis_link *link, bool readable, weir_time now);
/* Its connection is over, or has begun anew. */
bool weir__redis_link_is_over(const struct weir__redis_link *link);
/* Its life was shorter than the name server takes.  An answer within minutes is for a later life:
 * else nobody would ever be connected. */
bool weir__redis_link_is_late(struct weir__redis_link *link, weir_time now);
void weir__redis_link_close(struct weir__redis_link *link);

#endif
