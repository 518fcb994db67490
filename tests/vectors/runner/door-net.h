/* door-net.h -- vector doors into a server: resp and http. */
#ifndef WEIR_TESTS_VECTORS_RUNNER_DOOR_NET_H
#define WEIR_TESTS_VECTORS_RUNNER_DOOR_NET_H

#include "replay.h"

/* Opens the door of that name, "resp" or "http", of a server at that address, which must have been
 * started with --test-clock; NULL: of one that is started for this with the command `weir`, and
 * stopped by weir__door_net_close. */
int weir__door_net_open(struct weir__door **out, const char *name, const char *server,
                        const char *weir, struct weir_error *error);
void weir__door_net_close(struct weir__door *door);

bool weir__door_net_is(const char *name);

#endif
