/* count-distinct.h -- the number of distinct texts, in fixed memory.
 *
 * A thing is known by 64 bits of a keyed hash, so that the writer of a log cannot make two things
 * look like one.
 */
#ifndef WEIR_SERVER_BASE_COUNT_DISTINCT_H
#define WEIR_SERVER_BASE_COUNT_DISTINCT_H

#include "base/hash.h"

struct weir__sketch_secrets {
    uint64_t words[WEIR__HASH_SECRETS];
};

/* From a text: the same text gives the same secrets, and nobody can guess them without it. */
void weir__sketch_secrets_make(struct weir__sketch_secrets *out, const char *text, size_t len);
uint64_t weir__sketch_hash(const struct weir__sketch_secrets *secrets, const void *bytes,
                           size_t len);

#define WEIR__DISTINCT_EXACT 4096  /* up to this many the count is exact */
#define WEIR__DISTINCT_ERROR "0.8" /* per cent: the standard error beyond that */

struct weir__distinct;

struct weir__distinct *weir__distinct_create(void); /* NULL: no memory.  82 KiB */
void weir__distinct_destroy(struct weir__distinct *distinct);
void weir__distinct_add(struct weir__distinct *distinct, uint64_t hash);
int64_t weir__distinct_count(const struct weir__distinct *distinct);
bool weir__distinct_is_exact(const struct weir__distinct *distinct);

#endif
