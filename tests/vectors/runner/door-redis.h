/* door-redis.h -- vector doors into a redis-server: redis-module, and redis for the scripts. */
#ifndef WEIR_TESTS_VECTORS_RUNNER_DOOR_REDIS_H
#define WEIR_TESTS_VECTORS_RUNNER_DOOR_REDIS_H

#include "replay.h"

/* Starts a redis-server with the module at this path, which weir__door_redis_close stops. */
int weir__door_redis_open(struct weir__door **out, const char *name, const char *module,
                          struct weir_error *error);
void weir__door_redis_close(struct weir__door *door);

bool weir__door_redis_is(const char *name);

#endif
