/* limit.h -- what the other readers of the project (the vector files' first of all) share with the
 * parser of limits.
 *
 * A cursor walks over one line.  Each reader skips spaces and tabs, takes what it knows and leaves
 * the cursor behind it; when it fails it has said why in the cursor's error, with a column that
 * counts from the start of the whole line.
 */
#ifndef WEIR_ALGO_LIMIT_H
#define WEIR_ALGO_LIMIT_H

#include "weir.h"

struct weir__cursor {
    const char *text;         /* the whole line, ended by NUL: columns count from here */
    const char *at;           /* the next character; set it to text to begin */
    struct weir_error *error; /* may be NULL */
};

/* The column of the next character, for an error of the caller's own. */
int weir__cursor_column(const struct weir__cursor *cursor);

/* True when only spaces and tabs are left; skips them. */
bool weir__cursor_end(struct weir__cursor *cursor);

/* Takes `word` if it is the next whole word; else false, and nothing but spaces is skipped. */
bool weir__cursor_accept(struct weir__cursor *cursor, const char *word);

/* A whole number of at least `min`, and a time; both must fill their word.  `what` names the thing
 * in an error: "the cost". */
int weir__cursor_count(struct weir__cursor *cursor, const char *what, int64_t min, int64_t *out);
int weir__cursor_time(struct weir__cursor *cursor, const char *what, weir_time *out);

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

/* Reads a limit up to the end of the line over `*limit`: what the text does not name stays as it
 * was, so begin with zeros for a new limit and with the old one for a change (a burst that was
 * never named is 0 there, and so follows the new count).  `named` may be NULL. On an error both are
 * untouched. */
int weir__limit_read(struct weir__cursor *cursor, struct weir_limit *limit, unsigned *named);

#endif
