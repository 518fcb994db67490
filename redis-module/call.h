/* call.h -- a command with its accounts: read, opened, answered.
 *
 *     WEIR.TAKE  key limit [COST n] [WAIT ms] [NS] [ID key [KEEP ms]]
 *                [AND key limit [COST n] [WAIT ms]] ...
 *     WEIR.PEEK  the same, and takes nothing
 *     WEIR.GIVE  the same; gives back
 *     WEIR.DRAW  key limit DEMAND key [NEED n] [WAITING n] [HAVE n] [ASKED n] [FAST n] [SLOW n]
 *                [NS] [ID key [KEEP ms]]   units for a node to spend by itself: draw-size.h
 *     WEIR.REPAY key limit DEMAND key DRAWN us [UNITS n] [ID key [KEEP ms]]
 *                units that were drawn then, and not spent
 *     WEIR.RESET key ...
 *     WEIR.INFO  key
 *
 * Take, peek and draw answer like a Weir server: allowed (draw: units), limit, remaining, retry
 * (-1: passed, or never), reset, wait; in ms, rounded up, or in ns.  A draw adds whether the
 * account is spent, the node's share, the time of the draw in us, and the life of its units,
 * rounded down.  Repay answers the number of units that count again.  With AND, a list of those for
 * each key; all pass, or none is charged.  An ask with an ID that was granted before is answered
 * again and not charged: receipt.h.
 */
#ifndef WEIR_REDIS_MODULE_CALL_H
#define WEIR_REDIS_MODULE_CALL_H

#include "cluster/account/receipt.h"
#include "redis-module/account.h"

#define ITEMS_MAX WEIR__RECEIPT_ITEMS_MAX

struct item {
    struct redis_string *name;
    const struct limit *limit;
    struct weir_ask ask;
    struct account account;
    struct weir_decision decision;
};

struct call {
    struct redis_context *context;
    struct redis_string **words;
    int n, at;
    enum weir__receipt_verb verb;
    bool ns;
    struct redis_string *id; /* or NULL */
    int64_t keep;
    bool repeated; /* and there is a receipt */
    struct weir__receipt receipt;
    struct redis_string *demand_name; /* of draws and payments */
    struct weir__demand demand;
    int64_t drawn_us;       /* of a payment; -1: not said */
    struct weir__draw draw; /* its need is the ask's cost */
    struct weir__drawn drawn;
    size_t items;
    struct item item[ITEMS_MAX];
};

/* There is one call at a time. */
struct call *call_begin(struct redis_context *context, struct redis_string **words, int n);
bool call_has_demand(const struct call *c);
/* Answers with an error.  Returns false. */
bool call_fail(const struct call *c, const char *what);

/* call-words.c.  Reads the ask.  False: that was answered. */
bool call_read(struct call *c);
/* Where the keys are. */
int call_say_keys(struct redis_context *context, struct redis_string **words, int n, int flags);

/* The accounts, and the receipt of an id.  False: that was answered. */
bool call_open(struct call *c, int mode);
void call_close(struct call *c);
bool call_find_receipt(struct call *c);
void call_keep_receipt(struct call *c);
void call_answer_again(struct call *c);

/* In ms, rounded up, or ns; -1: never. */
long long call_time(const struct call *c, weir_time t);
void call_reply(const struct call *c, const struct weir_decision *d, int64_t units);

#endif
