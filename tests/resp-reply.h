/* resp-reply.h -- reads the replies that the server writes, for tests that speak RESP. */
#ifndef WEIR_TESTS_RESP_REPLY_H
#define WEIR_TESTS_RESP_REPLY_H

#include <string.h>

#include "wire/resp.h"

/* Of an aggregate only the header: `integer` values follow, of a map twice as many. */
struct resp_reply {
    char kind;       /* + - : $ * _ % ~ > */
    int64_t integer; /* of : and aggregates */
    const char *bytes;
    size_t len;
};

/* > 0: its length; 0: incomplete; < 0: no reply of this server. */
static inline ptrdiff_t resp_reply_read(const char *bytes, size_t len, struct resp_reply *out)
{
    const char *lf = len ? memchr(bytes, '\n', len) : NULL;
    struct weir__text line = { bytes + 1, lf ? (size_t)(lf - bytes) - 1 : 0 };
    struct resp_reply r = { .kind = len ? *bytes : '\0' };

    if (lf == NULL)
        return len && !strchr("+-:$*_%~>", *bytes) ? -1 : 0;
    if (line.len-- == 0 || lf[-1] != '\r' || !strchr("+-:$*_%~>", r.kind))
        return -1;
    if (strchr(":$*%~>", r.kind) && !weir__resp_int(line, &r.integer))
        return -1;
    if (r.kind == '+' || r.kind == '-') {
        r.bytes = line.bytes;
        r.len = line.len;
    } else if (r.kind == '$' && r.integer >= 0) {
        r.bytes = lf + 1;
        r.len = (size_t)r.integer;
        if ((size_t)(bytes + len - r.bytes) < r.len + 2)
            return 0;
        if (memcmp(r.bytes + r.len, "\r\n", 2) != 0)
            return -1;
        lf = r.bytes + r.len + 1;
    }
    *out = r;
    return lf + 1 - bytes;
}

#endif
