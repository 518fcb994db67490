/* side-string.h -- a small string beside an account, under its own key: a receipt, a demand. */
#ifndef WEIR_REDIS_MODULE_SIDE_STRING_H
#define WEIR_REDIS_MODULE_SIDE_STRING_H

#include "redis-module/redis-api.h"

#define SIDE_STRING_NONE    0
#define SIDE_STRING_FOREIGN (-1)

/* Its length; SIDE_STRING_NONE, or SIDE_STRING_FOREIGN: no string, or one that is longer. */
long side_string_read(struct redis_context *context, struct redis_string *name, unsigned char *out,
                      size_t size);
/* With its life in ms, and replicated. */
void side_string_write(struct redis_context *context, struct redis_string *name,
                       const unsigned char *bytes, size_t len, long long life);

#endif
