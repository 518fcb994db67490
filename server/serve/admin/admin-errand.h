/* admin-errand.h -- a call of a row of admin.h on its way to another thread, with a copy of all
 * that it was given.
 *
 *     e = weir__admin_errand_create(row, server, now)
 *     weir__admin_errand_value(e, i, value)   of every parameter that was given
 *     weir__admin_errand_rest(e, value)       of each of the rest
 *     weir__admin_errand_run(e)               on any thread; then e->call and e->out are the answer
 *     weir__admin_errand_destroy(e)
 */
#ifndef WEIR_SERVE_ADMIN_ERRAND_H
#define WEIR_SERVE_ADMIN_ERRAND_H

#include "base/arena.h"
#include "server/serve/admin/admin.h"

struct weir__admin_errand {
    const struct weir__admin *row;
    struct weir__admin_call call;
    struct weir__buffer out;  /* where the call writes to */
    struct weir__arena bytes; /* what the call's values and the rest point to */
    struct weir__span *rest;
    size_t rest_room;
};

struct weir__admin_errand *weir__admin_errand_create(const struct weir__admin *row,
                                                     struct weir__server *server, weir_time now);
/* NULL: no memory.  Otherwise the copy, with a NUL behind it; it may be changed until the errand
 * runs. */
char *weir__admin_errand_value(struct weir__admin_errand *errand, size_t i,
                               struct weir__span value);
char *weir__admin_errand_rest(struct weir__admin_errand *errand, struct weir__span value);
void weir__admin_errand_run(struct weir__admin_errand *errand);
void weir__admin_errand_destroy(struct weir__admin_errand *errand); /* may be NULL */

#endif
