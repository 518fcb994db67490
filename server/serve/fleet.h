/* fleet.h -- this server as a node of a fleet (--fleet): its agent, the fleet's rules, and what is
 * told about them. */
#ifndef WEIR_SERVER_SERVE_FLEET_H
#define WEIR_SERVER_SERVE_FLEET_H

#include "server/serve/serve.h"

#define WEIR__NO_FLEET "this server is in no fleet: it was not started with --fleet"

/* As the settings say; after the rules are in force.  Without --rules the fleet's rules are
 * followed. */
int weir__node_join(struct weir__server *server, struct weir_error *error);
/* When all loops have ended. */
void weir__node_leave(struct weir__server *server);

/* Tells what has changed since the last one: on the terminal, and as an event. */
void weir__node_tick(struct weir__server *server, weir_time now);

/* Members of an object. */
void weir__node_json(const struct weir__server *server, struct weir__buffer *out);
/* The rules are the fleet's, and set there alone. */
bool weir__node_follows(const struct weir__server *server);
/* ... and there are none yet, not even a copy: everything passes. */
bool weir__node_lacks_rules(const struct weir__server *server);

#endif
