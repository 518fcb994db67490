/* operators.h -- what operators ask a fleet's Redis through a node of it. */
#ifndef WEIR_CLUSTER_AGENT_OPERATORS_H
#define WEIR_CLUSTER_AGENT_OPERATORS_H

#include "weir-fleet.h"

/* The client that the agent asks with, for calls that wait; NULL: Redis is known to be away. */
struct weir_redis *weir__agent_redis(struct weir_fleet *fleet, struct weir_error *error);

#endif
