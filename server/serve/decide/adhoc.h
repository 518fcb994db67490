/* adhoc.h -- the limits of WEIR.TAKE and its like: a limiter of the table is made of each.
 *
 * So any algorithm will do, and a key has a state of its own under each limit.  Their number is
 * bounded, with those of earlier runs.  One that nobody has asked for in a minute is not used any
 * more, and leaves the table once all its keys are idle.  (CL.THROTTLE's limits leave no limiter
 * behind: table/cl-throttle-limits.h.)
 *
 * A limit with a name is known by it: another limit under the same name changes it, and every key
 * keeps what it has used.  A limit without one is known by its text: "300/60" and "token-bucket
 * 300/1m" are one.  Each change leaves a few hundred bytes, so there are at most
 * WEIR__ADHOC_CHANGES at once and one a second after that, and no client may have all of them: it
 * has a share (fair-use-per-client.h).  Beyond that a limit is not changed, and asks are decided by
 * the one that its name has, until changes are allowed again.
 */
#ifndef WEIR_SERVER_SERVE_DECIDE_ADHOC_H
#define WEIR_SERVER_SERVE_DECIDE_ADHOC_H

#include "server/serve/decide/fair-use-per-client.h"

#define WEIR__ADHOC_CHANGES 1000 /* of all names together */

struct weir__adhoc;

/* `fair_use` may be NULL. */
int weir__adhoc_create(struct weir__adhoc **out, struct weir_table *table, int64_t limits_max,
                       struct weir__fair_use *fair_use, struct weir_error *error);
void weir__adhoc_destroy(struct weir__adhoc *adhoc);

struct weir__adhoc_wanted {
    struct weir__text limit, name;
    weir_time now;
    const struct weir__conn *conn; /* NULL: nobody in particular */
};

/* The limiter, made or changed if need be; good until the loop's next turn.  Name, limit, or both:
 * a name alone is that of a limit which is there already; a limit that names no algorithm leaves
 * the one its name has.  A text that was seen lately takes no lock. */
int weir__adhoc_find(struct weir__adhoc *adhoc, const struct weir__adhoc_wanted *wanted,
                     struct weir_limiter **out, struct weir_error *error);
/* The same for reading: makes and changes nothing.  *out is the limiter as it is; NULL: there is
 * none, and *plan is what it would have. */
int weir__adhoc_look(struct weir__adhoc *adhoc, const struct weir__adhoc_wanted *wanted,
                     struct weir_limiter **out, struct weir_plan *plan, struct weir_error *error);

/* The loop is between two asks. */
void weir__adhoc_turn(const struct weir__adhoc *adhoc, struct weir__loop *loop);
/* Now and then: what nobody has asked for lately is not used any more. */
void weir__adhoc_tend(struct weir__adhoc *adhoc, const struct weir__server *server, weir_time now);

#endif
