/* permit-token.h -- a permit as a client has it: a text that says all that is needed to give it
 * back, and that nobody can make up.
 *
 *     byte 0          version: 1
 *     byte 1          n: how many guards were entered, 1 to WEIR_ENTRY_MAX
 *     n times 22      the guard's place in the table (2 bytes), then the permit: word (8), slot
 *                     (4), since (8); little-endian
 *     16 bytes        keyed hash (SipHash) of all that is before it
 *
 * written in base64 as URLs have it (RFC 4648, 5), without padding: 54 characters for one guard.
 * The key comes from the table's secrets: so a token is good for the next server on the same table
 * file, and for none on another.  The server keeps nothing of it.
 */
#ifndef WEIR_SERVER_SERVE_DECIDE_PERMIT_TOKEN_H
#define WEIR_SERVER_SERVE_DECIDE_PERMIT_TOKEN_H

#include "base/hash.h"
#include "weir.h"

struct weir__permits {
    uint32_t n; /* 0: none */
    struct {
        uint32_t guard; /* its place in the table, below 65536 */
        struct weir_permit permit;
    } each[WEIR_ENTRY_MAX];
};

struct weir__permit_key {
    uint64_t words[2];
};

/* 2 + 8 * 22 + 16 bytes are 259 characters, and a NUL. */
#define WEIR__PERMIT_TOKEN_MAX 260

void weir__permit_key_make(struct weir__permit_key *out,
                           const uint64_t secrets[WEIR__HASH_SECRETS]);

/* Writes the token with a NUL behind it; returns its length. */
size_t weir__permits_print(char out[WEIR__PERMIT_TOKEN_MAX], const struct weir__permit_key *key,
                           const struct weir__permits *permits);
/* NULL, or what is wrong with the text: then *out is untouched. */
const char *weir__permits_parse(struct weir__permits *out, const struct weir__permit_key *key,
                                const char *text, size_t len);

#endif
