/* slot.c -- CRC-16/XMODEM (polynomial 0x1021, from 0, most significant bit first) of the key,
 * modulo 16384: the Redis Cluster specification. */
#include "cluster/redis/slot.h"

#include <stdint.h>
#include <string.h>

/* A nibble at a time: a table of 16 words is enough for keys of some tens of bytes. */
static const uint16_t steps[16] = {
    0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
    0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef,
};

static unsigned crc16(const char *bytes, size_t len)
{
    unsigned crc = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        crc = (crc << 4 ^ steps[(crc >> 12 ^ c >> 4) & 15]) & 0xFFFF;
        crc = (crc << 4 ^ steps[(crc >> 12 ^ c) & 15]) & 0xFFFF;
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
