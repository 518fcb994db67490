/* limits.h -- limits that came with an ask, compiled: most asks come under a few of them. */
#ifndef WEIR_REDIS_LIMITS_H
#define WEIR_REDIS_LIMITS_H

#include "cluster/account/layout.h"

struct limit {
    struct weir_plan plan;
    struct weir__account_head head;
    size_t len; /* of the text that it was compiled from */
    char text[];
};

/* Makes a limit of a text, which is ended by NUL. */
typedef int limit_compile(struct weir_limit *out, const char *text, struct weir_error *error);

/* The text and its compiler; NULL: what is wrong with it is in *error.  A limit stays until
 * limits_begin. */
const struct limit *limits_find(const char *text, size_t len, limit_compile *compile,
                                struct weir_error *error);
/* A command begins: limits of earlier ones may go. */
void limits_begin(void);
void limits_end(void); /* the module is unloaded */

#endif
