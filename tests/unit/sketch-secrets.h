/* sketch-secrets.h -- shared by the tests of sketches: numbers, hashed. */
#ifndef WEIR_TESTS_UNIT_SKETCH_SECRETS_H
#define WEIR_TESTS_UNIT_SKETCH_SECRETS_H

#include "server/base/count-distinct.h"

static struct weir__sketch_secrets secrets;

static int fill_secrets(void **state)
{
    weir__sketch_secrets_make(&secrets, "seven", 5);
    return 0;
}

static uint64_t hash_of(int64_t n)
{
    return weir__sketch_hash(&secrets, &n, sizeof(n));
}

#endif
