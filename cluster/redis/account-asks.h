/* account-asks.h -- an ask on accounts (account/call.h), carried to Redis and back by the client.
 *
 * The account says what to send next and what a reply means; the client says where, and when to
 * give up.  A server that has the module is asked by it, others by scripts.
 */
#ifndef WEIR_CLUSTER_REDIS_ACCOUNT_ASKS_H
#define WEIR_CLUSTER_REDIS_ACCOUNT_ASKS_H

#include "cluster/account/call.h"
#include "cluster/redis/client.h"

struct weir__carry {
    /* Set by the caller, who owns it and leaves it alone until `done` was called, once */
    struct weir__account_call call;
    weir_time deadline;
    /* Answered: the call's items have their decisions.  `why`: not answered, or Redis's error,
     * which means undone; good until `done` returns */
    void (*done)(struct weir__carry *carry, enum weir__redis_outcome outcome, const char *why);
    void *context;

    /* Its own */
    struct weir__redis_client *client;
    struct weir__redis_ask ask;
    struct weir__redis_script script;
    int slot;
    int losses;      /* others were faster so often */
    bool maybe_done; /* a try that was lost */
    bool denied;     /* there was a reply: an error, or nonsense; or it could not be sent */
};

void weir__carry_begin(struct weir__carry *carry, struct weir__redis_client *client, weir_time now);
/* The same for a caller that knows the slot of its items. */
void weir__carry_begin_in(struct weir__carry *carry, struct weir__redis_client *client, int slot,
                          weir_time now);
void weir__carry_free(struct weir__carry *carry); /* the words */

#endif
