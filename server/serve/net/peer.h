/* peer.h -- the client behind an address: for IPv4 the host, for IPv6 its /64; all unix sockets are
 * one. */
#ifndef WEIR_SERVER_SERVE_NET_PEER_H
#define WEIR_SERVER_SERVE_NET_PEER_H

#include <stdbool.h>

#include "base/hash.h"
#include "server/serve/serve.h"

/* `peer`: an address as connections have it, "" for a unix socket. */
struct weir__hash weir__peer_hash(const uint64_t secrets[WEIR__HASH_SECRETS], const char *peer);

/* It has closed the connection, or its side of it, whether the loop has noticed or not.  Any
 * thread. */
bool weir__peer_has_hung_up(int fd);
/* The same of a connection, on its loop's thread. */
bool weir__peer_is_gone(const struct weir__conn *conn);

#endif
