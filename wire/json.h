/* json.h -- JSON, read in place: no malloc, no tree, no recursion.
 *
 * weir__json_walk goes through a text and calls back for every scalar with the path to it
 * ("request.headers.host"), and for every empty object and array within another.  Strict: RFC 8259
 * and UTF-8, at most WEIR__JSON_DEPTH levels.  A duplicate key calls back twice.
 */
#ifndef WEIR_WIRE_JSON_H
#define WEIR_WIRE_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/text.h"

#define WEIR__JSON_DEPTH 32
#define WEIR__JSON_PATH  256 /* bytes; a value with a longer path is checked, but not called back */

enum weir__json_kind {
    WEIR__JSON_STRING,
    WEIR__JSON_NUMBER,
    WEIR__JSON_TRUE,
    WEIR__JSON_FALSE,
    WEIR__JSON_NULL,
    WEIR__JSON_EMPTY /* {} or [] */
};

struct weir__json_value {
    enum weir__json_kind kind;
    const char *path; /* members joined by dots, array elements by their index; "" at the top.  Good
                         during the call, no NUL behind it */
    size_t path_len;
    size_t name_len;  /* of the last part of the path: a name may itself have dots in it */
    size_t depth;     /* how many objects and arrays it is in */
    bool element;     /* of an array */
    const char *text; /* string: decoded; number and the rest: as written.  In the text or in
                         scratch, no NUL behind it */
    size_t len;
};

/* Strings with escapes are decoded into `scratch`, one after another, and stay there; the length of
 * the text is enough.  With NULL they are checked too, but come as written.  Returns -1, or the
 * place (from 0) of the wrong byte; *what says what was expected there.  `each` may stop it by
 * returning false: that is no error, and the rest is not read. */
long weir__json_walk(const char *text, size_t len, char *scratch,
                     bool (*each)(void *context, const struct weir__json_value *value),
                     void *context, const char **what);

/* A number's length without a fraction of zeros: 3.0 is the whole number 3. */
size_t weir__json_whole(const struct weir__json_value *number);

/* The element of an array that begins at *at: up to the comma or bracket behind it, where *at is
 * then.  Whether it is a value shows when it is read. */
struct weir__text weir__json_element(const char **at, const char *end);

#endif
