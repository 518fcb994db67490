/* bound-permits.h -- permits that end with their connection, at every door.
 *
 * A permit is good on any connection, since clients have pools of them.  Those that were taken with
 * BOUND are also remembered here, and given back (ignored: nothing is learnt from it) when their
 * connection closes: for clients that hold one connection for as long as they work.
 */
#ifndef WEIR_SERVER_SERVE_DECIDE_BOUND_PERMITS_H
#define WEIR_SERVER_SERVE_DECIDE_BOUND_PERMITS_H

#include "server/serve/decide/enter.h"

/* Before entering.  NULL, or why no more can be kept. */
const char *weir__bound_make_room(struct weir__conn *conn);
/* After entering, or waiting for it; keeps nothing if there are no permits. */
void weir__bound_keep(struct weir__conn *conn, const struct weir__entered *entered);
/* They were given back, or renewed: if they are bound here, that is noted. */
void weir__bound_drop(struct weir__conn *conn, const struct weir__permits *permits);
void weir__bound_renew(struct weir__conn *conn, const struct weir__permits *old,
                       const struct weir__permits *renewed, weir_time lease);
/* The connection closes: gives all of them back. */
void weir__bound_release(struct weir__conn *conn);

#endif
