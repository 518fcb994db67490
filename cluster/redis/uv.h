/* uv.h -- a client of Redis on a loop of libuv.
 *
 * What is asked during one turn of the loop is sent when the loop is about to wait: one write for
 * each connection.  Everything belongs to the loop's thread.
 */
#ifndef WEIR_CLUSTER_REDIS_UV_H
#define WEIR_CLUSTER_REDIS_UV_H

#include <uv.h>

#include "cluster/redis/client.h"

struct weir__redis_uv;

int weir__redis_uv_create(struct weir__redis_uv **out, uv_loop_t *loop,
                          const struct weir__redis_options *options, struct weir_error *error);
/* Asks are answered first.  The loop must run on until `closed` (may be NULL) was called. */
void weir__redis_uv_close(struct weir__redis_uv *redis, void (*closed)(void *context),
                          void *context);

/* The ask's deadline is a moment of weir__clock_monotonic. */
void weir__redis_uv_ask(struct weir__redis_uv *redis, struct weir__redis_ask *ask);

#endif
