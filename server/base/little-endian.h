/* little-endian.h -- numbers as bytes, the same on every host. */
#ifndef WEIR_SERVER_BASE_LITTLE_ENDIAN_H
#define WEIR_SERVER_BASE_LITTLE_ENDIAN_H

#include <stddef.h>
#include <stdint.h>

static inline void weir__little_put(unsigned char *out, uint64_t number, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (unsigned char)(number >> 8 * i);
}

static inline uint64_t weir__little_get(const unsigned char *bytes, size_t n)
{
    uint64_t number = 0;

    for (size_t i = 0; i < n; i++)
        number |= (uint64_t)bytes[i] << 8 * i;
    return number;
}

#endif
