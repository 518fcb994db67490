/* lock-wait.h -- asks for a lock of the fleet, in line while the loop goes on.
 *
 * The step of cluster/fleet/lock.h, driven by a loop: its connection is held, and the ask goes to
 * Redis again and again until it has the lock or its time is over.  A client that has hung up
 * leaves the line; if it was granted the lock just then, that goes back at once.
 */
#ifndef WEIR_SERVER_SERVE_DECIDE_LOCK_WAIT_H
#define WEIR_SERVER_SERVE_DECIDE_LOCK_WAIT_H

#include "server/serve/verbs/verbs.h"

#define WEIR__LOCK_WAITS 256 /* at once, in the whole server */

/* Of WEIR.LOCK: name, lifetime, wait, id.  WEIR_OK: `done` is called on the loop's thread, with
 * conn NULL if it is gone; otherwise the call has failed. */
int weir__lock_begin(struct weir__conn *conn, struct weir__verb_call *call, weir__call_done *done,
                     void *context);
/* The connection is gone: nobody is to be answered. */
void weir__lock_abandon(struct weir__conn *conn);
/* The client has closed its side: soon it leaves the line, and is told so in case it still
 * listens. */
void weir__lock_cancel(struct weir__conn *conn);

struct weir__lock_seen {
    const char *owner; /* NULL: it is not held by the caller */
    int64_t token, waiting;
    weir_time left;
};
void weir__lock_answer(struct weir__buffer *out, const struct weir__lock_seen *seen);

/* For a loop, on its thread. */
void weir__lock_waits_close(struct weir__loop *loop); /* its handle; no client waits */
void weir__lock_waits_free(struct weir__loop *loop);  /* after that */

#endif
