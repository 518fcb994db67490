/* sketch.h -- the most frequent texts, and the number of distinct ones, in fixed memory.
 *
 * Both know a thing by 64 bits of a keyed hash, so that the writer of a log cannot make two things
 * look like one.
 */
#ifndef WEIR_SERVER_BASE_SKETCH_H
#define WEIR_SERVER_BASE_SKETCH_H

#include "base/hash.h"

struct weir__sketch_secrets {
    uint64_t words[WEIR__HASH_SECRETS];
};

/* From a text: the same text gives the same secrets, and nobody can guess them without it. */
void weir__sketch_secrets_make(struct weir__sketch_secrets *out, const char *text, size_t len);
uint64_t weir__sketch_hash(const struct weir__sketch_secrets *secrets, const void *bytes,
                           size_t len);

/* ------------------------------------------------------- how many there are ---- */

#define WEIR__DISTINCT_EXACT 4096  /* up to this many the count is exact */
#define WEIR__DISTINCT_ERROR "0.8" /* per cent: the standard error beyond that */

struct weir__distinct;

struct weir__distinct *weir__distinct_create(void); /* NULL: no memory.  82 KiB */
void weir__distinct_destroy(struct weir__distinct *distinct);
void weir__distinct_add(struct weir__distinct *distinct, uint64_t hash);
int64_t weir__distinct_count(const struct weir__distinct *distinct);
bool weir__distinct_is_exact(const struct weir__distinct *distinct);

/* ------------------------------------------------------ the most frequent ---- */

#define WEIR__HITTER_TEXT 120

struct weir__hitter {
    uint64_t hash;
    int64_t count;                /* at most this often ... */
    int64_t error;                /* ... and at least this many fewer: 0 is exact */
    char text[WEIR__HITTER_TEXT]; /* longer ones end in "..." */
};

/* The most frequent first, for qsort. */
int weir__hitter_compare(const void *a, const void *b);

struct weir__hitters;

/* Whatever makes up more than 1/capacity of all is among them, and no count is wrong by more than
 * that. */
struct weir__hitters *weir__hitters_create(size_t capacity); /* NULL: no memory */
void weir__hitters_destroy(struct weir__hitters *hitters);
void weir__hitters_add(struct weir__hitters *hitters, uint64_t hash, const char *text, size_t len,
                       int64_t times);

/* Copies the up to `max` most frequent, most frequent first; returns how many.  Left out are those
 * of whose count more than half may be wrong: where all come about equally often, there is nobody
 * to name. */
size_t weir__hitters_top(const struct weir__hitters *hitters, struct weir__hitter *out, size_t max);

int64_t weir__hitters_total(const struct weir__hitters *hitters); /* of all that was added */
int64_t weir__hitters_error(const struct weir__hitters *hitters); /* no count is wrong by more than
                                                                     this; 0: all are exact */

#endif
