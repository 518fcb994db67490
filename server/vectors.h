/* vectors.h -- reads .vec files: what an algorithm does, as examples that a program can check.
 *
 *     # a comment
 *     case NAME
 *     limit ALGORITHM COUNT/PERIOD [burst N] [queue N] [option=value ...]
 *     at TIME take COST [wait-max TIME|forever] -> ok|no [limit N] [remaining N] [wait T] [retry T|never] [reset T]
 *     at TIME peek COST ...                        as take, but nothing is consumed
 *     at TIME give COST
 *     at TIME change COUNT/PERIOD [burst N] [option=value ...]
 *
 * A case is one limit and one fresh key.  Times have a unit; ~T is checked to within 10 us.  Only what a line names is checked, and that
 * an `ok` that names no wait has none.  What a change does not name stays; a burst that was never named follows the count.
 *
 * Text in, structs out: nothing here opens a file or decides anything.  replay.h runs what was read.
 */
#ifndef WEIR_SERVER_VECTORS_H
#define WEIR_SERVER_VECTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir.h"

enum weir__vector_verb { WEIR__VECTOR_TAKE, WEIR__VECTOR_PEEK, WEIR__VECTOR_GIVE, WEIR__VECTOR_CHANGE };

/* The fields that a line can name, in the order in which they are written. */
enum weir__vector_field {
    WEIR__VECTOR_LIMIT,
    WEIR__VECTOR_REMAINING,
    WEIR__VECTOR_WAIT,
    WEIR__VECTOR_RETRY,
    WEIR__VECTOR_RESET,
    WEIR__VECTOR_FIELDS
};

struct weir__expectation {
    int64_t value; /* units or ns; WEIR_NEVER */
    bool named;
    bool about; /* written ~T: to within 10 us */
};

struct weir__vector_line {
    int line; /* in the file, from 1 */
    enum weir__vector_verb verb;
    weir_time at;
    int64_t cost;
    weir_time wait_max;
    bool allowed; /* expected: ok or no */
    struct weir__expectation fields[WEIR__VECTOR_FIELDS];
    struct weir_limit limit; /* change: the whole limit from here on, what the line does not name filled in */
};

struct weir__vector_case {
    const char *name; /* in the text that was read, not ended by a zero */
    int name_len;
    int line;
    struct weir_limit limit;
    size_t first, count; /* of its lines */
};

struct weir__vectors {
    struct weir__vector_case *cases;
    size_t case_count;
    struct weir__vector_line *lines;
    size_t line_count;
};

/* "limit", "remaining", ... */
const char *weir__vector_field_name(enum weir__vector_field field);

/* Reads a whole file's text, which must outlive *out (the names point into it).  Every limit is checked by making a plan of it.
 * On an error, *line and error->column (both from 1) say where, and *out is untouched. */
int weir__vectors_parse(struct weir__vectors *out, const char *text, size_t len, int *line, struct weir_error *error);
void weir__vectors_clear(struct weir__vectors *vectors);

#endif
