/* peer.h -- the client behind an address: for IPv4 the host, for IPv6 its /64; all unix sockets are
 * one. */
#ifndef WEIR_SERVE_PEER_H
#define WEIR_SERVE_PEER_H

#include "base/hash.h"

/* `peer`: an address as connections have it, "" for a unix socket. */
struct weir__hash weir__peer_hash(const uint64_t secrets[WEIR__HASH_SECRETS], const char *peer);

#endif
