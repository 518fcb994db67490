/* siphash.h -- SipHash-2-4 with 128 bits of output: a keyed hash whose results may be shown. */
#ifndef WEIR_SERVER_BASE_SIPHASH_H
#define WEIR_SERVER_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define WEIR__SIPHASH_BYTES 16

void weir__siphash(const uint64_t key[2], const void *bytes, size_t len,
                   unsigned char out[WEIR__SIPHASH_BYTES]);

#endif
