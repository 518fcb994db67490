/* sha1.c -- SHA-1 (FIPS 180-4).  It names scripts, and protects nothing. */
#include "cluster/redis/sha1.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BLOCK 64

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

/* The words of the message schedule. */
static void spread(uint32_t w[80], const unsigned char block[BLOCK])
{
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 80; i++)
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
}

static void add_block(uint32_t h[5], const unsigned char block[BLOCK])
{
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

    spread(w, block);
    for (int i = 0; i < 80; i++) {
        uint32_t f = i < 20              ? (b & c) | (~b & d)
                     : i < 40 || i >= 60 ? b ^ c ^ d
                                         : (b & c) | (b & d) | (c & d);
        uint32_t k = i < 20   ? 0x5A827999u
                     : i < 40 ? 0x6ED9EBA1u
                     : i < 60 ? 0x8F1BBCDCu
                              : 0xCA62C1D6u;
        uint32_t next = rotate(a, 5) + f + e + k + w[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

void weir__sha1_hex(char out[WEIR__SHA1_HEX + 1], const void *bytes, size_t len)
{
    uint32_t h[5] = { 0x67452301u, 0xEFCDAB89u, 0x98BADCFEu, 0x10325476u, 0xC3D2E1F0u };
    unsigned char tail[2 * BLOCK] = { 0 };
    const unsigned char *at = bytes;
    size_t rest = len % BLOCK, tail_len = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;

    for (size_t i = 0; i + BLOCK <= len; i += BLOCK)
        add_block(h, at + i);
    if (rest > 0)
        memcpy(tail, at + len - rest, rest);
    tail[rest] = 0x80;
    for (unsigned i = 0; i < 8; i++)
        tail[tail_len - 1 - i] = (unsigned char)((uint64_t)len * 8 >> 8 * i);
    for (size_t i = 0; i < tail_len; i += BLOCK)
        add_block(h, tail + i);
    for (int i = 0; i < 5; i++)
        snprintf(out + 8 * i, 9, "%08x", (unsigned)h[i]);
}
