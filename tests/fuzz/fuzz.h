/* fuzz.h -- the head of every fuzzer. */
#ifndef WEIR_TESTS_FUZZ_FUZZ_H
#define WEIR_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define check(law)                                                            \
    do {                                                                      \
        if (!(law)) {                                                         \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #law); \
            abort();                                                          \
        }                                                                     \
    } while (0)

/* In memory of exactly this size, so that a read beyond the end is seen. */
static inline char *copy_of(const void *bytes, size_t len)
{
    char *copy = calloc(1, len ? len : 1);

    check(copy != NULL);
    if (len > 0)
        memcpy(copy, bytes, len);
    return copy;
}

#endif
