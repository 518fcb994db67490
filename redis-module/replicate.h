/* replicate.h -- what replicas and watchers are told of a key that the module has written. */
#ifndef WEIR_REDIS_MODULE_REPLICATE_H
#define WEIR_REDIS_MODULE_REPLICATE_H

#include "redis-module/redis-api.h"

/* When the module is loaded, and unloaded. */
void tell_begin(struct redis_context *context);
void tell_end(void);

/* Before the first of a command's keys is written. */
void tell_command_begins(void);
/* An open key has these bytes now; it shall expire then, in ms. */
void tell_written(struct redis_context *context, struct redis_key *key, struct redis_string *name,
                  const unsigned char *bytes, size_t len, long long expiry);
/* A key is gone. */
void tell_deleted(struct redis_context *context, struct redis_string *name);

#endif
