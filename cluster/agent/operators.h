/* operators.h -- what operators ask a fleet's Redis through a node of it. */
#ifndef WEIR_CLUSTER_AGENT_OPERATORS_H
#define WEIR_CLUSTER_AGENT_OPERATORS_H

#include "weir-fleet.h"
#include "wire/buffer.h"
#include "wire/text.h"

/* Asks centre.lua about the fleet's rules, from any thread but the agent's; waits for a second at
 * most, and not at all while Redis is known to be away.  WEIR_OK: `reply` has one whole value of
 * RESP.  WEIR_SYSTEM: *error says why not, and if it may have been carried out all the same. */
int weir__agent_centre(struct weir_fleet *fleet, const struct weir__text *words, size_t n,
                       struct weir__buffer *reply, struct weir_error *error);

/* The client that the agent asks with, for calls that wait; NULL: Redis is known to be away. */
struct weir_redis *weir__agent_redis(struct weir_fleet *fleet, struct weir_error *error);

#endif
