/* slot.c -- CRC-16/XMODEM (polynomial 0x1021, from 0, most significant bit first) of the key,
 * modulo 16384: the Redis Cluster specification. */
#include "cluster/redis/slot.h"

#include <stdint.h>
#include <string.h>

/* A byte at a time.  The polynomial has the bits 0, 5 and 12, so the eight bits that leave come
 * back at these places.  At 12 the high four of them would leave once more: so they are added to
 * the low four first. */
static unsigned crc16(const char *bytes, size_t len)
{
    unsigned crc = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned leaves = crc >> 8 ^ (unsigned char)bytes[i];
        leaves ^= leaves >> 4;
        crc = (crc << 8 ^ leaves << 12 ^ leaves << 5 ^ leaves) & 0xFFFF;
    }
    return crc;
}

int weir__redis_slot(const char *key, size_t len)
{
    const char *end = key + len, *open = len ? memchr(key, '{', len) : NULL;
    const char *close = open ? memchr(open + 1, '}', (size_t)(end - open) - 1) : NULL;

    if (close && close > open + 1) {
        key = open + 1;
        len = (size_t)(close - key);
    }
    return (int)(crc16(key, len) % WEIR__REDIS_SLOTS);
}
