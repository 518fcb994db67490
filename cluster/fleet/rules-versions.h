/* rules-versions.h -- asks to a fleet's Redis by a caller that waits. */
#ifndef WEIR_CLUSTER_FLEET_RULES_VERSIONS_H
#define WEIR_CLUSTER_FLEET_RULES_VERSIONS_H

#include "cluster/fleet/rules-versions-words.h"
#include "weir-fleet.h"

/* Asks in the client's thread, waits for the answer, and frees the ask's words.  The reply is added
 * to `reply`.  WEIR_SYSTEM: *error says why there is none, and if it may have been carried out all
 * the same. */
int weir__fleet_call(struct weir_redis *redis, struct weir__redis_ask *ask,
                     struct weir__buffer *reply, struct weir_error *error);
int weir__fleet_away(struct weir_error *error, const char *why);

/* Asks rules-versions.lua about the rules; a second at most.  WEIR_OK: *out is the list, in
 * `reply`. `fleet` NULL: "default". */
int weir__rules_call(struct weir_redis *redis, const char *fleet, const struct weir__text *words,
                     size_t n, struct weir__buffer *reply, struct weir__versions_list *out,
                     struct weir_error *error);

/* As weir_fleet_publish; "": there is nothing to warn of. */
int weir__rules_publish(struct weir_redis *redis, const char *fleet, int64_t version,
                        char warning[WEIR__RULES_WARNING], struct weir_error *error);

#endif
