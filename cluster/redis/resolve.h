/* resolve.h -- the addresses of a host, found in a thread of their own: a name server may take
 * seconds, and nobody is to wait for it. */
#ifndef WEIR_CLUSTER_REDIS_RESOLVE_H
#define WEIR_CLUSTER_REDIS_RESOLVE_H

#include <netdb.h>

#include "cluster/redis/url.h"

struct weir__redis_lookup;

/* An address needs no look-up, and is ready at once.  `wake` is an eventfd, which is written to
 * when a name was found.  NULL: no memory, or no thread. */
struct weir__redis_lookup *weir__redis_lookup_begin(const struct weir__redis_address *address,
                                                    int wake);
/* False: not yet.  *out is the lookup's; NULL: *why says why there is none. */
bool weir__redis_lookup_ready(struct weir__redis_lookup *lookup, const struct addrinfo **out,
                              const char **why);
/* It may still be going on; may be NULL. */
void weir__redis_lookup_end(struct weir__redis_lookup *lookup);

#endif
