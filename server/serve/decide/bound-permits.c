/* bound-permits.c -- permits that end with their connection. */
#include "server/serve/decide/bound-permits.h"

#include <stdlib.h>

#define BOUND_MAX 256 /* of one connection */

struct weir__bound {
    size_t n;
    struct bound {
        struct weir__permits permits;
        weir_time until; /* then the lease is over anyway */
    } each[BOUND_MAX];
};

static void drop(struct weir__bound *bound, struct bound *b)
{
    *b = bound->each[--bound->n];
}

static struct bound *find(struct weir__bound *bound, const struct weir__permits *permits)
{
    for (size_t i = 0; bound && i < bound->n; i++)
        if (weir__permits_are_same(&bound->each[i].permits, permits))
            return &bound->each[i];
    return NULL;
}

/* Those that were given back elsewhere make room when their time is over. */
const char *weir__bound_make_room(struct weir__conn *conn)
{
    struct weir__bound *bound = conn->bound;
    weir_time now = weir__loop_now(conn->loop);

    if (!bound)
        bound = conn->bound = calloc(1, sizeof(*bound));
    if (!bound)
        return "no memory";
    for (size_t i = bound->n; bound->n == BOUND_MAX && i-- > 0;)
        if (bound->each[i].until <= now)
            drop(bound, &bound->each[i]);
    return bound->n < BOUND_MAX ? NULL
                                : "a connection has room for " WEIR__DIGITS(
                                      BOUND_MAX) " permits that are BOUND: exit "
                                                 "some, or use several connections";
}

/* A test's clock may be at the end of time. */
static weir_time end_of(struct weir__conn *conn, weir_time lease)
{
    weir_time now = weir__loop_now(conn->loop);

    return lease < INT64_MAX - now ? now + lease : INT64_MAX;
}

void weir__bound_keep(struct weir__conn *conn, const struct weir__entered *entered)
{
    struct weir__bound *bound = conn->bound;

    if (entered->permits.n)
        bound->each[bound->n++] = (struct bound){ entered->permits, end_of(conn, entered->lease) };
}

void weir__bound_drop(struct weir__conn *conn, const struct weir__permits *permits)
{
    struct bound *b = find(conn->bound, permits);

    if (b)
        drop(conn->bound, b);
}

void weir__bound_renew(struct weir__conn *conn, const struct weir__permits *old,
                       const struct weir__permits *renewed, weir_time lease)
{
    struct bound *b = find(conn->bound, old);

    if (b && renewed->n)
        *b = (struct bound){ *renewed, end_of(conn, lease) };
}

/* Not if it is this server that ends the connection: its client goes on, and renews at the next
 * one. */
void weir__bound_release(struct weir__conn *conn)
{
    struct weir__bound *bound = conn->bound;
    bool ends =
        !conn->heard_all && __atomic_load_n(&conn->loop->server->draining, __ATOMIC_RELAXED) != 0;

    for (size_t i = 0; bound && !ends && i < bound->n; i++)
        weir__ask_exit(conn->loop, &bound->each[i].permits, WEIR_IGNORED, -1);
    free(bound);
    conn->bound = NULL;
}
