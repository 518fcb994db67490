/* units-wait.h -- checks that wait for units: they found too little in a purse of the fleet
 * (WEIR_DRY), and wait until units have come or the rule's `within` is over.
 *
 * Meanwhile their connection is held, so its other requests are answered in their order.
 */
#ifndef WEIR_SERVER_SERVE_DECIDE_UNITS_WAIT_H
#define WEIR_SERVER_SERVE_DECIDE_UNITS_WAIT_H

#include "server/serve/decide/enter.h"

/* On the loop's thread, with a copy of the protocol's context. */
struct weir__units_wait_answer {
    void (*answer)(struct weir__conn *conn, const struct weir_ruling *rulings, size_t n,
                   const void *context);
    const void *context;
    size_t size;
};

/* True: some are dry, conn is held, and all n are answered together when those are decided.  False:
 * they cannot wait (how NULL: nothing can here), and are decided by what is there. */
bool weir__units_wait(struct weir__conn *conn, const struct weir__check *checks,
                      struct weir_ruling *rulings, size_t n,
                      const struct weir__units_wait_answer *how);
/* Before the loop waits: those of all its connections go to the agent together. */
void weir__units_wait_hand_over(struct weir__loop *loop);
/* The client has ended its side, and is taken for gone: those that are not decided yet are refused
 * (WEIR_CANCELLED), and spend nothing. */
void weir__units_wait_cancel(struct weir__conn *conn);
/* The connection is gone: nobody is to be answered. */
void weir__units_wait_abandon(struct weir__conn *conn);

/* units-wait-enter.c -- the same for enter.  False: it cannot wait, and `out` has another
 * decision. */
bool weir__units_wait_enter(struct weir__conn *conn, const struct weir__enter *enter,
                            const struct weir__later *later, struct weir__entered *out);
void weir__units_wait_enter_cancel(struct weir__conn *conn);
void weir__units_wait_enter_abandon(struct weir__conn *conn);

/* One of the agent's places, to wait there: nobody takes all of them.  False: the client has its
 * share, or all are taken. */
bool weir__units_wait_take(struct weir__conn *conn);
void weir__units_wait_give(struct weir__server *server, struct weir__fair_user fair_user);
/* A client that has left keeps its places until the agent is done with them: of weir__agent_dry,
 * and for weir__agent_on_answered. */
uint32_t weir__units_wait_caller(struct weir__fair_user fair_user);
void weir__units_wait_freed(void *server, uint32_t caller);

#endif
