/* digest.h -- a number that stands for a text: FNV-1a of 64 bits, the same on every machine and for
 * ever.
 *
 * Tells apart texts that differ by chance or damage. Collisions are easy to make: trust nothing
 * because of it.
 */
#ifndef WEIR_SERVER_BASE_DIGEST_H
#define WEIR_SERVER_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define WEIR__DIGEST_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t weir__digest(uint64_t h, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h;
}

#endif
