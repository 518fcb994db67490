/* enter.h -- entering guards and leaving them, the same for every protocol.
 *
 * A permit that a client has is bound to time alone: the lease of its guard.  It is not the
 * server's, which may end before the client does.
 */
#ifndef WEIR_SERVER_SERVE_DECIDE_ENTER_H
#define WEIR_SERVER_SERVE_DECIDE_ENTER_H

#include "base/arena.h"
#include "engine/engine.h"
#include "server/serve/decide/decide.h"
#include "server/serve/decide/guard-lookup.h"

struct weir__enter {
    const struct weir_attr *attrs;
    size_t n;
    struct weir__text
        guard;              /* this one alone; len 0: those that the rules name, and their limits */
    struct weir__text user; /* shed consistently; len 0: nobody in particular */
    struct weir__text user_class; /* with a guard: one of its classes; len 0: the first */
    int64_t cost;
    int64_t priority; /* WEIR_PRIORITY_MIN to _MAX */
    weir_time wait_max;
};

struct weir__entered {
    struct weir_ruling ruling; /* .guard: the one that has refused, or was asked for by its name */
    struct weir__permits permits; /* n 0: nothing is to be given back */
    weir_time lease;              /* the shortest; 0: none */
    char key[WEIR_KEY_TEXT];      /* of the rule or guard that has refused; "": none has */
    struct weir_guard *guard;     /* the one asked last, which is the one that has refused ... */
    int8_t priority;              /* ... and the ask as it sees it */
    uint8_t user_class;
    struct weir_asked asked;
    uint64_t key_id; /* queued: see weir__guard_key_id */
    int64_t key_max;
    bool turned_away; /* by the queue */
    bool queued;      /* it has a queue, and was told that the ask waits: that it is busy it has not
                    counted */
    bool uncounted;   /* ... nor has the engine counted it: it was to wait */
};

/* How an ask that has to wait is answered when its turn has come, or will not come any more: on the
 * loop's thread, with a copy of the protocol's context.  conn is held until then. */
struct weir__later {
    void (*answer)(struct weir__conn *conn, const struct weir__entered *entered,
                   const void *context);
    const void *context;
    size_t size;
};

/* 200: it is decided; 202: it waits in a guard's queue (only if `later` is not NULL); 400: what is
 * wrong with the ask; 404: there is no such guard.  Statuses, as HTTP has them. */
int weir__ask_enter(struct weir__conn *conn, const struct weir__enter *enter,
                    const struct weir__later *later, struct weir__entered *out,
                    struct weir_error *error);

/* The token of permits; "" if there are none. */
void weir__ask_token(struct weir__loop *loop, const struct weir__permits *permits,
                     char out[WEIR__PERMIT_TOKEN_MAX]);
int weir__ask_permits(struct weir__loop *loop, struct weir__text token, struct weir__permits *out,
                      struct weir_error *error);

/* The same permits, renewed or not. */
bool weir__permits_are_same(const struct weir__permits *a, const struct weir__permits *b);

/* Gives all of them back; took < 0: from enter to now.  False: all of them were over. */
bool weir__ask_exit(struct weir__loop *loop, struct weir__permits *permits,
                    enum weir_outcome outcome, weir_time took);
/* Their leases begin anew; those that are over are left out.  Returns the shortest lease; 0: all
 * are over. */
weir_time weir__ask_renew(struct weir__loop *loop, struct weir__permits *permits);

/* For waiting.c and units-wait-enter.c, from any thread: one try. */
struct weir__try {
    weir_time now;
    bool again;                            /* it has waited ... */
    weir_time waited;                      /* ... this long: its limits have the rest */
    struct weir_asked asked;               /* before */
    const struct weir__alone_rules *alone; /* engine/fleet.h; NULL: none */
};
int weir__enter_once(struct weir__server *server, const struct weir__enter *enter,
                     const struct weir__try *how, struct weir__entered *out,
                     struct weir_error *error);
/* Whether it has to wait for a permit, or for units: then its connection is held. */
bool weir__enter_waits(struct weir__conn *conn, const struct weir__enter *enter,
                       const struct weir__later *later, struct weir__entered *out);
/* It has waited: on the loop's thread it is counted and answered.  If its client has hung up
 * meanwhile its permits go back, and it is told so. */
void weir__enter_answer(struct weir__conn *conn, const struct weir__enter *enter,
                        struct weir__entered *entered, const struct weir__later *later);
/* Nobody is there to be answered: its permits go back, and it is counted if the engine has. */
void weir__enter_forsake(struct weir__loop *loop, struct weir__entered *entered);
/* It has waited for this time, so another wait is shorter. */
static inline void weir__enter_spend(struct weir__enter *enter, weir_time waited)
{
    enter->wait_max = waited < enter->wait_max ? enter->wait_max - waited : 0;
}
/* With texts of their own. */
bool weir__enter_copy(struct weir__arena *arena, struct weir__enter *enter);
bool weir__later_copy(struct weir__arena *arena, struct weir__later *later);

#endif
