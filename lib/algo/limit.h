/* limit.h -- reading a limit as part of a longer line: vector files, rules. */
#ifndef WEIR_ALGO_LIMIT_H
#define WEIR_ALGO_LIMIT_H

#include "base/cursor.h"

/* Which members a text named; it always names count and period (or calendar). */
enum weir__limit_named {
    WEIR__NAMED_ALGORITHM = 1 << 0,
    WEIR__NAMED_BURST = 1 << 1,
    WEIR__NAMED_QUEUE = 1 << 2,
    WEIR__NAMED_BUCKETS = 1 << 3,
    WEIR__NAMED_ALIGN = 1 << 4,
    WEIR__NAMED_EDGE = 1 << 5,
    WEIR__NAMED_WARMUP = 1 << 6,
    WEIR__NAMED_COLD = 1 << 7,
    WEIR__NAMED_ZONE = 1 << 8,
};

/* Reads a limit up to the end of the line into `*limit`.  Members that the text does not name stay:
 * begin with zeros for a new limit, with the old one for a change (a burst that was never named is
 * 0 there, and so follows the new count).  `named` may be NULL.  On an error both are untouched. */
int weir__limit_read(struct weir__cursor *cursor, struct weir_limit *limit, unsigned *named);

#endif
