/* limit-cache.h -- limits that came with an ask, compiled: most asks come under a few of them. */
#ifndef WEIR_REDIS_MODULE_LIMIT_CACHE_H
#define WEIR_REDIS_MODULE_LIMIT_CACHE_H

#include "cluster/account/layout.h"

/* Makes a limit of a text, which is ended by NUL. */
typedef int limit_compile(struct weir_limit *out, const char *text, struct weir_error *error);

struct limit {
    struct weir_plan plan;
    struct weir__account_head head;
    limit_compile *compile; /* what it was made by and of */
    size_t len;
    char text[];
};

/* The text and its compiler; NULL: what is wrong with it is in *error.  A limit stays until
 * limits_begin. */
const struct limit *limits_find(const char *text, size_t len, limit_compile *compile,
                                struct weir_error *error);
/* Only if it was compiled before. */
const struct limit *limits_look(const char *text, size_t len, limit_compile *compile);
/* A command begins: limits of earlier ones may go. */
void limits_begin(void);
void limits_end(void); /* the module is unloaded */

#endif
