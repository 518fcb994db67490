/* http1.h -- HTTP/1.1 and 1.0: bytes to a request or a response, and chunks to a body.
 *
 * Nothing here allocates or copies: everything points into the caller's bytes.  Strict where
 * leniency has been used for smuggling: no bare CR or LF, no space before the colon, no line
 * folding, no two lengths even if equal, no length beside chunked, no control characters.
 */
#ifndef WEIR_WIRE_HTTP1_H
#define WEIR_WIRE_HTTP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/text.h"

struct weir__http_header {
    struct weir__text name, value; /* as written; the value without surrounding space */
};

#define WEIR__HTTP_HEADERS 100 /* more are refused with 431 */

struct weir__http_request {
    struct weir__text method, target;
    struct weir__text path;  /* never empty; of http://host/path the part behind the host; "*"
                                     and CONNECT's: the target */
    struct weir__text query; /* after the ?, or empty */
    int minor;               /* HTTP/1.minor */
    bool keep_alive;         /* as version and Connection say */
    bool chunked;
    bool expects_continue;
    int64_t content_length; /* -1: none was named */
    struct weir__http_header headers[WEIR__HTTP_HEADERS];
    size_t n_headers;
};

/* Reads the head: request line, headers, empty line; 32 KiB at most.  Any method works.
 *     > 0 its length, 0 incomplete (and right so far), < 0 wrong: *status is the answer
 *     (400, 414, 417, 431, 501, 505), *what says why; the start of the next request is unknown.
 * *out is valid only if the head was whole. */
ptrdiff_t weir__http_request(const char *bytes, size_t len, struct weir__http_request *out,
                             int *status, const char **what);

struct weir__http_response {
    int status, minor;
    bool keep_alive, chunked;
    int64_t content_length; /* -1: none was named */
    struct weir__http_header headers[WEIR__HTTP_HEADERS];
    size_t n_headers;
};

/* As above.  A head says nothing about the body of an answer to HEAD, or of 1xx, 204 and 304: they
 * have none.  With neither length nor chunks, the body ends with the connection. */
ptrdiff_t weir__http_response(const char *bytes, size_t len, struct weir__http_response *out,
                              const char **what);

/* The value of a header, its name in any case; the first of several.  NULL bytes: there is none. */
struct weir__text weir__http_header(const struct weir__http_header *headers, size_t n,
                                    const char *name);

/* RFC 9110, 5.6.2: a character of names and methods. */
bool weir__http_is_token(char c);

/* A chunked body at the beginning of the bytes, as far as it has come.  Moves the data together at
 * `bytes` itself (so they must be writable), and is called again with later bytes:
 *     weir__http_chunks zeroed is the start.  Returns how many bytes were read, which are all
 *     unless the body has ended; *data_len of them are data now, at the front; < 0: wrong, *what
 *     says why (400).
 * Extensions and trailers are bounded, and passed over. */
struct weir__http_chunks {
    int state;
    uint64_t left;
    unsigned line; /* bytes of the present size or trailer line */
    bool ended;
};
ptrdiff_t weir__http_chunked(struct weir__http_chunks *chunks, char *bytes, size_t len,
                             size_t *data_len, const char **what);

/* The next name=value of a query, percent and + decoded into `scratch` (as long as the query is
 * enough for all).  A name alone has an empty value.  False: no more, or (*bad) a broken escape. */
bool weir__http_query_next(struct weir__text *query, char **scratch, struct weir__text *name,
                           struct weir__text *value, bool *bad);

/* The text of a status: "Too Many Requests"; "Unknown" if it is not known. */
const char *weir__http_status_text(int status);

#endif
