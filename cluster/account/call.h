/* call.h -- one ask on accounts in Redis, by scripts: the words to send, and what a reply means.
 *
 * Nothing here has a socket: the caller sends a script and its words, and brings the reply back,
 * until it is done.  Most asks are done with the first reply, one round trip:
 *
 *     meter.lua, window.lua, sliding-log.lua   take from one account at once, or refuse
 *     decide.lua   the same for several accounts, all or nothing, and for sliding windows; draws,
 *                  pays back; gives back; waits for meters
 *     read.lua     looks; and begins where a script cannot decide: under another limit than before,
 *                  after the clock stepped back, for waits in windows, for smooth and warm-up
 *     swap.lua     writes what was then decided here, by lib/algo, if nobody else was faster
 *
 * If an account changed meanwhile, it is read again, until the caller's time is over: whenever one
 * ask loses, another has won.
 *
 * Where Redis has the module, `command` and its words ask the same of it; its reply is understood
 * as well.  An ask with an id may be repeated as a whole: receipt.h.
 */
#ifndef WEIR_CLUSTER_ACCOUNT_CALL_H
#define WEIR_CLUSTER_ACCOUNT_CALL_H

#include "cluster/account/layout.h"
#include "cluster/account/receipt.h"
#include "wire/buffer.h"
#include "wire/text.h"

#define WEIR__ACCOUNT_ITEMS_MAX WEIR__RECEIPT_ITEMS_MAX

enum weir__account_verb {
    WEIR__ACCOUNT_TAKE,
    WEIR__ACCOUNT_PEEK,
    WEIR__ACCOUNT_GIVE,
    WEIR__ACCOUNT_DRAW,  /* units for a node to spend by itself: draw-size.h */
    WEIR__ACCOUNT_REPAY, /* units that were drawn and not spent; the ask's cost is their number */
    WEIR__ACCOUNT_RESET, /* makes them fresh: needs no plans */
};

struct weir__account_item {
    struct weir_key key; /* of Redis; those of one call in one slot */
    const struct weir_plan *plan;
    struct weir_ask ask; /* its time is Redis's */
    /* The answer */
    struct weir_decision decision;
    int64_t units; /* granted; of a payment, those that count again */
};

struct weir__account_script {
    const char *name, *text, *sha; /* sha: SHA-1 of the text, in hexadecimal digits */
    const size_t *len;
};

struct weir__account_call {
    enum weir__account_verb verb;
    struct weir__account_item *items;
    size_t n;
    weir_time near; /* about the present, by the caller's clock: which calendar windows to name */
    bool scripts_only;  /* the server is known not to have the module */
    struct weir_key id; /* a key of Redis, in their slot; no bytes: not to be repeated */
    int64_t keep;       /* ms that the id is remembered; 0: WEIR__RECEIPT_KEEP */

    /* A draw or its payment, of one account */
    struct weir_key demand; /* of all nodes: a key of Redis, in its slot */
    struct weir__draw draw; /* its need is the ask's cost */
    /* weir__draw_terms of its plan, if the caller has them; or NULL */
    const struct weir__draw_terms *terms;
    struct weir__drawn drawn; /* the answer */
    weir_time drawn_at;       /* of a payment: drawn.at of the draw */

    /* To be sent: the script, and its words NUMKEYS KEY ... ARG ... as bulk strings of RESP */
    const struct weir__account_script *script;
    struct weir__buffer words;
    size_t n_words;

    /* To be sent to a server that has the module, as bulk strings; none: only scripts will do */
    struct weir__buffer command;
    size_t n_command;

    int64_t found; /* the answer to a reset */
    bool repeated; /* the answer is that of an earlier ask with this id */
};

/* Fills in the words for the first script.  The items stay the caller's, and must stay. */
int weir__account_begin(struct weir__account_call *call, struct weir_error *error);

/* One whole reply, in RESP.  WEIR__ACCOUNT_AGAIN: there are other words to be sent.  WEIR_CORRUPT:
 * it makes no sense, and the ask may have been carried out. */
#define WEIR__ACCOUNT_AGAIN 1
int weir__account_reply(struct weir__account_call *call, struct weir__text reply,
                        struct weir_error *error);

/* The reply to the command: final. */
int weir__account_command_reply(struct weir__account_call *call, struct weir__text reply,
                                struct weir_error *error);

void weir__account_free(struct weir__account_call *call); /* its words */

/* By enum weir__script; ended by a row without a name. */
extern const struct weir__account_script weir__account_scripts[];

/* ------------------------------------------------ between the files of this room ---- */

enum weir__script {
    WEIR__SCRIPT_METER,
    WEIR__SCRIPT_WINDOW,
    WEIR__SCRIPT_SLIDING_LOG,
    WEIR__SCRIPT_DECIDE,
    WEIR__SCRIPT_READ,
    WEIR__SCRIPT_SWAP,
    WEIR__SCRIPT_RESET,
    WEIR__SCRIPTS
};

/* check-ask.c -- WEIR_INVALID: it is not to be sent. */
int weir__account_check(const struct weir__account_call *call, struct weir_error *error);

/* script-words.c -- the script to begin with, and its words. */
void weir__script_begin(struct weir__account_call *call);
/* How many keys it has: the accounts, the demand, the id. */
size_t weir__script_key_count(const struct weir__account_call *call);
/* It has a key of demand. */
static inline bool weir__account_has_demand(const struct weir__account_call *call)
{
    return call->verb == WEIR__ACCOUNT_DRAW || call->verb == WEIR__ACCOUNT_REPAY;
}
/* NUMKEYS and the keys of a script. */
void weir__script_keys(struct weir__account_call *call, enum weir__script script);
void weir__script_word(struct weir__account_call *call, const void *bytes, size_t len);
void weir__script_number(struct weir__account_call *call, int64_t n);

/* module-command.c -- the words for the module. */
void weir__command_begin(struct weir__account_call *call);

/* script-reply.c -- decisions from the replies of the scripts that decide.  False: it is not one of
 * theirs, or it does not fit together. */
bool weir__script_reply(struct weir__account_call *call, const char *reply);

/* decide-by-caller.c -- decides on the accounts that read.lua has answered.  WEIR__ACCOUNT_AGAIN:
 * swap.lua is to write them. */
int weir__account_decide(struct weir__account_call *call, const char *accounts,
                         struct weir_error *error);

#endif
