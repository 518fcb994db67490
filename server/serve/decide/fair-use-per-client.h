/* fair-use-per-client.h -- how much of a pool each client holds, so that nobody takes all of it.
 *
 * An address may take from a pool as long as it holds less than is free, a connection as long as it
 * holds less than half of that.  So an address alone gets half of a pool at the most and a
 * connection a third; n addresses that want all get 1/(n+1) each; something is always left for the
 * next, and there is nothing to set.
 *
 * All clients of a host may come from one address, by a proxy or the loopback.  So of connections
 * it gets nearly all: it may take one as long as it holds less than 31 times what is free.
 *
 * Clients are counted in buckets by a keyed hash: two that fall into one count as one, which only
 * matters if one of them hoards.
 */
#ifndef WEIR_SERVER_SERVE_DECIDE_FAIR_USE_PER_CLIENT_H
#define WEIR_SERVER_SERVE_DECIDE_FAIR_USE_PER_CLIENT_H

#include "server/serve/serve.h"

enum weir__pool {
    WEIR__POOL_LIMITS,        /* that clients bring along */
    WEIR__POOL_LIMIT_CHANGES, /* of those */
    WEIR__POOL_RESERVATIONS,
    WEIR__POOL_ASK_IDS,
    WEIR__POOL_UNITS_WAITS, /* checks and enters that wait for units of the fleet */
    WEIR__POOL_LOCKS,       /* asks for locks of the fleet */
    WEIR__POOL_JOBS,        /* on other threads, of verbs that are not the operator's alone */
    WEIR__POOL_CONNECTIONS,
    WEIR__POOLS
};

struct weir__fair_use;
struct weir__fair_use *weir__fair_use_create(struct weir__events *events); /* NULL: no memory */
void weir__fair_use_destroy(struct weir__fair_use *fair_use);

/* For a new connection. */
struct weir__fair_user weir__fair_use_of(const struct weir__fair_use *fair_use, const char *peer,
                                         uint64_t id);

/* One more of a pool that has `free` left, for a connection; NULL: for nobody in particular, as if
 * everybody were free to take all.  False: it has its share; that is counted, and told now and
 * then. */
bool weir__fair_use_take(struct weir__fair_use *fair_use, enum weir__pool pool,
                         const struct weir__conn *conn, int64_t free, weir_time now);
void weir__fair_use_give(struct weir__fair_use *fair_use, enum weir__pool pool,
                         struct weir__fair_user fair_user);

/* The same for a pool of `most` places that counts those taken itself. */
bool weir__fair_use_take_place(struct weir__fair_use *fair_use, enum weir__pool pool,
                               const struct weir__conn *conn, int64_t most, weir_time now);
void weir__fair_use_give_place(struct weir__fair_use *fair_use, enum weir__pool pool,
                               struct weir__fair_user fair_user);

/* Whether an address may have one more connection, of `free`; false: as weir__fair_use_take.  Each
 * connection that is there is held. */
bool weir__fair_use_may_connect(struct weir__fair_use *fair_use, const struct weir__conn *conn,
                                int64_t free, weir_time now);
void weir__fair_use_hold(struct weir__fair_use *fair_use, enum weir__pool pool,
                         struct weir__fair_user fair_user);

int64_t weir__fair_use_refused(const struct weir__fair_use *fair_use, enum weir__pool pool);

#endif
