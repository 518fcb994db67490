/* resp.h -- RESP, the protocol of Redis, versions 2 and 3: bytes to commands, replies to bytes.
 *
 * Nothing here allocates or copies: arguments point into the caller's bytes.
 */
#ifndef WEIR_WIRE_RESP_H
#define WEIR_WIRE_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/decimal.h"
#include "wire/text.h"

/* ------------------------------------------------------------- commands ---- */

struct weir__resp_limits {
    size_t args;  /* of one command */
    size_t bytes; /* of one command, its frame included */
};

/* Reads the command at the beginning of the bytes: an array of bulk strings, or a line of words
 * ("inline": quotes as in redis-cli, as long as nothing need be unescaped; 64 KiB at most).
 *     > 0 its length; *n arguments (0: an empty line or array, to be passed over)
 *     0     it is not whole yet
 *     < 0   it is no RESP, or beyond the limits: *what says why, and the rest is lost too.
 *           A count or length beyond its limit is refused as soon as it is announced
 * `args` has room for limits->args. */
ptrdiff_t weir__resp_command(const char *bytes, size_t len, const struct weir__resp_limits *limits,
                             struct weir__text *args, size_t *n, const char **what);

/* The whole argument as a decimal number with an optional sign.  False: it is not one, or does not
 * fit in an int64. */
bool weir__resp_int(struct weir__text arg, int64_t *out);
bool weir__resp_is(struct weir__text arg, const char *word); /* in any case */

/* -------------------------------------------------------------- replies ---- */

/* Each writes at `to`, which must have enough room, and returns the end.  Room for a text: its
 * length plus WEIR__RESP_NUMBER_MAX. */
#define WEIR__RESP_NUMBER_MAX 24 /* bytes that a header or number takes at most */

char *weir__resp_put_header(char *to, char kind, int64_t n); /* :n, *n, %n, ~n, >n, $n */

/* :n.  Most are -1, or have one digit or two. */
static inline char *weir__resp_put_integer(char *to, int64_t n)
{
    if (n == -1) {
        memcpy(to, ":-1\r\n", 5);
        return to + 5;
    }
    if ((uint64_t)n >= 100)
        return weir__resp_put_header(to, ':', n);
    *to++ = ':';
    if (n >= 10)
        *to++ = (char)('0' + n / 10);
    *to++ = (char)('0' + n % 10);
    memcpy(to, "\r\n", 2);
    return to + 2;
}

char *weir__resp_put_bulk(char *to, const char *bytes, size_t len);
/* +text; line ends in it become spaces. */
char *weir__resp_put_simple(char *to, const char *text, size_t len);
char *weir__resp_put_error(char *to, const char *text, size_t len); /* -text; likewise */
char *weir__resp_put_null(char *to, int version);                   /* $-1, or _ */

#endif
