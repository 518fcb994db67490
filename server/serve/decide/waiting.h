/* waiting.h -- asks that wait in a guard's queue while the loop goes on.
 *
 *     a line      the queue of a guard, one for all loops (lib/engine/waiting-lines.h)
 *     a wait      one connection's: it is held, so its other requests are answered in their order
 *
 * A client that has hung up gets no turn: its socket is looked at before each offer, and once more
 * before the answer; a permit that it got in between goes back.
 *
 * Turns are offered by the call that gives a permit back, on its thread; by the listener, a thread
 * that sleeps until the table's bell rings (lib/guard/bell.c): a permit came free by time or in
 * another process; and every 5 ms by each loop that has somebody waiting: the process that should
 * ring may have been killed.  A waiter whose turn has come goes to its own loop, which answers.
 */
#ifndef WEIR_SERVER_SERVE_DECIDE_WAITING_H
#define WEIR_SERVER_SERVE_DECIDE_WAITING_H

#include "server/serve/decide/enter.h"

struct weir__lines;
struct weir__lines *weir__lines_create(struct weir__server *server); /* NULL: no memory */
void weir__lines_destroy(struct weir__lines *lines);                 /* nobody waits any more */

/* The ask was refused because the guard is busy.  True: it waits in the guard's line, and conn is
 * held.  False: it does not, since there is no line or it is full (then out->ruling says so). */
bool weir__wait(struct weir__conn *conn, const struct weir__enter *enter,
                const struct weir__later *later, struct weir__entered *out);
/* The connection is gone: nobody is to be answered. */
void weir__wait_abandon(struct weir__conn *conn);
/* The client has closed its side: it leaves the line without a permit, and is told so in case it
 * still listens. */
void weir__wait_cancel(struct weir__conn *conn);

/* A permit of the guard may have come free; any thread. */
void weir__lines_serve(struct weir__lines *lines, const struct weir_guard *guard, weir_time now);

/* How many wait; 0 if there are no lines. */
int64_t weir__lines_waiting(struct weir__lines *lines, const struct weir_guard *guard);
/* Somebody waits whom this ask must not overtake; cheap if nobody waits anywhere. */
bool weir__lines_occupied(struct weir__lines *lines, const struct weir_guard *guard,
                          const struct weir_ask *ask);
/* The server is about to end: waiters are refused (WEIR_CANCELLED), and nobody waits from now
 * on.  Any thread. */
void weir__lines_close(struct weir__lines *lines);

/* For a loop, on its thread. */
void weir__waiting_poll(struct weir__loop *loop);  /* offers turns, and answers */
void weir__waiting_close(struct weir__loop *loop); /* its handle; nobody waits */
void weir__waiting_free(struct weir__loop *loop);  /* after that */

#endif
