/* vectors.h -- reads .vec files: what an algorithm does, as examples that a program can check.
 *
 *     # a comment
 *     case NAME
 *     limit ALGORITHM COUNT/PERIOD [burst N] [queue N] [option=value ...]
 *     at TIME take COST [wait-max TIME|forever] -> ok|no [limit N] [remaining N] [wait T]
 *                                                  [retry T|never] [reset T]
 *     at TIME peek COST ...       as take, but nothing is consumed
 *     at TIME give COST
 *     at TIME change COUNT/PERIOD [burst N] [option=value ...]
 *
 * A case is one limit and one fresh key.  Times have a unit; ~T is checked to within 10 us.  Only
 * what a line names is checked, and that an `ok` that names no wait has none.  What a change does
 * not name stays; a burst that was never named follows the count.
 *
 * A case whose second line begins with another word than `limit` is of another kind: `breaker`
 * (breaker.c), `controller` (controller.c), `permits` (permits.c).  A kind reads what is its own
 * and runs it; it has no doors.
 *
 * Text in, structs out: nothing here opens a file or decides anything.  replay.h runs what was
 * read.
 */
#ifndef WEIR_TESTS_VECTORS_RUNNER_VECTORS_H
#define WEIR_TESTS_VECTORS_RUNNER_VECTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "algo/limit.h"
#include "weir.h"

/* A kind of case that is not about a limit.  What its readers fill is zeroed before, and forgotten
 * without a word. */
struct weir__vector_kind {
    const char *name;               /* the first word of the case's second line */
    size_t subject_size, line_size; /* of what the two readers fill */
    int (*read_subject)(struct weir__cursor *cursor,
                        void *out); /* the rest of the line after the name, to its end */
    int (*read_line)(struct weir__cursor *cursor, const void *subject,
                     void *out);        /* the rest of the line after `at TIME`, to its end */
    void *(*open)(const void *subject); /* a fresh one; NULL: no memory */
    /* One line; false if it went otherwise than expected, and then `text` is "expected ... got
     * ...". */
    bool (*run)(void *run, weir_time at, const void *line, char *text, size_t size);
    void (*close)(void *run);
};

extern const struct weir__vector_kind weir__vector_breaker, weir__vector_controller,
    weir__vector_permits;

enum weir__vector_verb {
    WEIR__VECTOR_TAKE,
    WEIR__VECTOR_PEEK,
    WEIR__VECTOR_GIVE,
    WEIR__VECTOR_CHANGE
};

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
    struct weir_limit
        limit;  /* change: the whole limit from here on, what the line does not name filled in */
    void *body; /* of another kind of case: what its reader has filled */
};

struct weir__vector_case {
    const char *name; /* in the text that was read, not ended by a zero */
    int name_len;
    int line;
    struct weir_limit limit;
    const struct weir__vector_kind *kind; /* NULL: it is about a limit */
    void *subject;                        /* of another kind */
    size_t first, count;                  /* of its lines */
};

struct weir__vectors {
    struct weir__vector_case *cases;
    size_t case_count;
    struct weir__vector_line *lines;
    size_t line_count;
};

/* "limit", "remaining", ... */
const char *weir__vector_field_name(enum weir__vector_field field);

/* For readers of kinds: that something is wrong here; `name=`, taken if the next word begins so; a
 * time with its unit; and that the line ends here. */
#define weir__vector_fail(cursor, ...) \
    weir__fail_at((cursor)->error, weir__cursor_column(cursor), __VA_ARGS__)
/* Takes `word` if it is the next whole word; else false, and nothing but spaces is skipped. */
bool weir__vector_accept(struct weir__cursor *cursor, const char *word);
bool weir__vector_accept_key(struct weir__cursor *cursor, const char *name);
int weir__vector_time(struct weir__cursor *cursor, const char *what, weir_time *out);
int weir__vector_end(struct weir__cursor *cursor);

/* Reads a whole file's text, which must outlive *out (the names point into it).  Every limit is
 * checked by making a plan of it. On an error, *line and error->column (both from 1) say where, and
 * *out is untouched. */
int weir__vectors_parse(struct weir__vectors *out, const char *text, size_t len, int *line,
                        struct weir_error *error);
void weir__vectors_clear(struct weir__vectors *vectors);

#endif
