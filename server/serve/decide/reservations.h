/* reservations.h -- estimates that clients have reserved and will settle: WEIR.RESERVE gives an id,
 * WEIR.SETTLE takes it.
 *
 * At most WEIR__RESERVATIONS_MAX at a time, in this process only: after a restart their ids are
 * unknown, and as with those that expire the estimate stands.
 */
#ifndef WEIR_SERVER_SERVE_DECIDE_RESERVATIONS_H
#define WEIR_SERVER_SERVE_DECIDE_RESERVATIONS_H

#include "server/serve/decide/fair-use-per-client.h"

#define WEIR__RESERVATIONS_MAX        131072
#define WEIR__RESERVATION_LIFETIME_MS 60000 /* unless the ask says another */
#define WEIR__RESERVATION_KEY_MAX     256   /* bytes of the key */
#define WEIR__RESERVATION_ID          33    /* 128 random bits in hex, and NUL */

struct weir__reservations;

/* No reservation lasts longer than lifetime_max.  `fair_use` may be NULL.  NULL: no memory. */
struct weir__reservations *weir__reservations_create(weir_time lifetime_max,
                                                     struct weir__fair_use *fair_use);
void weir__reservations_destroy(struct weir__reservations *reservations);

struct weir__reserve {
    struct weir_limiter *limiter;
    const struct weir_ask *ask;
    weir_time lifetime;
    const struct weir__conn *conn; /* NULL: nobody in particular */
};

/* Decides as weir_reserve does; `id` is "" unless granted.  An error if the key is too long or
 * there is no room: then nothing was taken. */
int weir__reservations_reserve(struct weir__reservations *reservations,
                               const struct weir__reserve *what, char id[WEIR__RESERVATION_ID],
                               struct weir_decision *decision, struct weir_error *error);

/* False, and nothing happens, if there is none of this id, or it was settled before, or has
 * expired. */
bool weir__reservations_settle(struct weir__reservations *reservations, const char *id, size_t len,
                               int64_t true_cost, weir_time now);

/* Now and then: those that have expired make room. */
void weir__reservations_tend(struct weir__reservations *reservations, weir_time now);

#endif
