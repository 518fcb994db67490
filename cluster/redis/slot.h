/* slot.h -- which of the 16384 slots of a Redis Cluster a key belongs to. */
#ifndef WEIR_CLUSTER_REDIS_SLOT_H
#define WEIR_CLUSTER_REDIS_SLOT_H

#include <stddef.h>

#define WEIR__REDIS_SLOTS    16384
#define WEIR__REDIS_ANY_SLOT (-1) /* of a command without keys */

/* Only what stands between the first '{' and the next '}' counts, unless that is nothing: keys with
 * the same text there share a slot. */
int weir__redis_slot(const char *key, size_t len);

#endif
