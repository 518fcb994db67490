/* receipt.h -- what an ask with an id was granted, so that a repeat is answered and not charged.
 *
 * The id is a key of Redis, in the slot of the accounts; the receipt is written under it together
 * with the accounts, and goes by itself after a while.  A refusal leaves none, so there are no more
 * receipts than the limit has let pass in that time.  A string:
 *
 *     'I', 1 (of a give 2, of a payment 3), for each account units and the moment in us from which
 *     they may be used; of a draw also its share, or -1 - share if the account was spent
 *
 * So a give under the id of a take is told from its repeat.
 */
#ifndef WEIR_CLUSTER_ACCOUNT_RECEIPT_H
#define WEIR_CLUSTER_ACCOUNT_RECEIPT_H

#include "cluster/account/draw-size.h"

#define WEIR__RECEIPT_ITEMS_MAX 32
#define WEIR__RECEIPT_SIZE_MAX  (2 + 16 * WEIR__RECEIPT_ITEMS_MAX + 8)
#define WEIR__RECEIPT_KEEP      10000                           /* ms, unless the ask says so */
#define WEIR__RECEIPT_KEEP_MAX  ((int64_t)100 * 365 * 86400000) /* more is no time to Redis */

enum weir__receipt_verb {
    WEIR__RECEIPT_TAKE,
    WEIR__RECEIPT_GIVE,
    WEIR__RECEIPT_REPAY,
    WEIR__RECEIPT_DRAW
};

struct weir__receipt {
    enum weir__receipt_verb verb;
    size_t n;
    struct {
        int64_t units, ready;
    } items[WEIR__RECEIPT_ITEMS_MAX];
    struct weir__drawn drawn; /* of a draw; its units are those of the first item */
};

/* How long it is kept, in ms, if the ask says `keep`; 0: it says nothing. */
static inline int64_t weir__receipt_keep(int64_t keep)
{
    return keep <= 0                       ? WEIR__RECEIPT_KEEP
           : keep > WEIR__RECEIPT_KEEP_MAX ? WEIR__RECEIPT_KEEP_MAX
                                           : keep;
}

size_t weir__receipt_write(const struct weir__receipt *receipt,
                           unsigned char out[WEIR__RECEIPT_SIZE_MAX]);
/* False: these bytes are something else, or of an ask of another kind. */
bool weir__receipt_read(struct weir__receipt *out, size_t n, enum weir__receipt_verb verb,
                        const void *bytes, size_t len);

/* Whether an item asks for as much as then.  How much is drawn or paid back, Redis chooses. */
static inline bool weir__receipt_is_for(const struct weir__receipt *receipt, size_t i, int64_t cost)
{
    return receipt->verb == WEIR__RECEIPT_DRAW || receipt->verb == WEIR__RECEIPT_REPAY ||
           receipt->items[i].units == cost;
}

void weir__receipt_note(struct weir__receipt *receipt, int64_t units, const struct weir_decision *d,
                        weir_time now);
/* The decision on a repeat, from a look at the state: allowed as then, and the rest as of now. */
void weir__receipt_decide(const struct weir__receipt *receipt, size_t i,
                          const struct weir_plan *plan, void *state, weir_time now,
                          struct weir_decision *d);
/* What was drawn then; `d` is the decision on the repeat. */
struct weir__drawn weir__receipt_drawn(const struct weir__receipt *receipt,
                                       const struct weir_plan *plan, weir_time now,
                                       const struct weir_decision *d);

#endif
