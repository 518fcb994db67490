/* resp-reply.h -- RESP as a client reads it: replies of versions 2 and 3.
 *
 * Nothing here allocates or copies: texts point into the caller's bytes.  First the scanner says
 * where a reply ends, however it was cut on its way; then the values in it are read one by one:
 *
 *     const char *at = reply;
 *     struct weir__resp_value list, name;
 *     at = weir__resp_value(at, &list);          an array: list.n values follow
 *     at = weir__resp_value(at, &name);
 *     at = weir__resp_skip(at);                  a value that does not matter, with all in it
 */
#ifndef WEIR_WIRE_RESP_REPLY_H
#define WEIR_WIRE_RESP_REPLY_H

#include "weir.h"
#include "wire/resp.h"

/* Where the scanner is in a reply that has not come whole.  Zeroed: at its beginning. */
struct weir__resp_scan {
    size_t at;     /* bytes that need not be looked at again */
    uint64_t left; /* values still to come; 0: none has been seen yet */
};

/* Scans on in the bytes of a reply, which begin where they began before:
 *     > 0   it is whole: its length, and the scan is zeroed for the next
 *     0     more bytes are needed
 *     < 0   it is no RESP, or longer than `max`: *what says why */
ptrdiff_t weir__resp_scan(struct weir__resp_scan *scan, const char *bytes, size_t len, size_t max,
                          const char **what);

struct weir__resp_value {
    /* '+' simple, '-' error, ':' integer, '$' bulk, '*' array, '%' map, '~' set, '>' push, '_'
     * null, ',' double, '#' boolean, '(' big number.  Bulk errors ('!') come as '-', verbatim texts
     * ('=') as '$', the nulls of version 2 as '_', and attributes not at all. */
    char kind;
    int64_t integer;        /* of ':'; of '#': 0 or 1 */
    size_t n;               /* values that follow, of an aggregate; of a map twice its pairs */
    struct weir__text text; /* of + - $ , ( */
};

/* Reads a value, of an aggregate only its head, in a reply that the scanner found whole.  Returns
 * its end. */
const char *weir__resp_value(const char *at, struct weir__resp_value *out);
/* The end of the value at `at` and all in it. */
const char *weir__resp_skip(const char *at);

/* Microseconds that a reply has told, as a time: 0 to INT64_MAX. */
static inline weir_time weir__reply_time(int64_t us)
{
    return us < 0 ? 0 : us > INT64_MAX / WEIR_MICROSECOND ? INT64_MAX : us * WEIR_MICROSECOND;
}

/* Whether an error begins with this word: "MOVED". */
bool weir__resp_is_error(const struct weir__resp_value *value, const char *word);

#endif
