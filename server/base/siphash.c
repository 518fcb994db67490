/* siphash.c -- SipHash-2-4 with 128 bits of output (Aumasson, Bernstein: SipHash, 2012; the longer
 * output as its authors have added it).
 *
 * Not the table's own hash: that one is fast because its results stay secret, and from results that
 * are shown its secrets could be computed.
 */
#include "server/base/siphash.h"

#include "server/base/little-endian.h"

static uint64_t rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static void rounds(uint64_t v[4], int n)
{
    while (n-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32) + v[3];
        v[2] += v[1];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[2] = rotate(v[2], 32);
    }
}

static void absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    rounds(v, 2);
    v[0] ^= word;
}

void weir__siphash(const uint64_t key[2], const void *bytes, size_t len,
                   unsigned char out[WEIR__SIPHASH_BYTES])
{
    const unsigned char *at = bytes;
    uint64_t v[4] = { key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du ^ 0xee,
                      key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u };
    size_t left = len;

    for (; left >= 8; at += 8, left -= 8)
        absorb(v, weir__little_get(at, 8));
    absorb(v, (uint64_t)len << 56 | weir__little_get(at, left));
    v[2] ^= 0xee;
    rounds(v, 4);
    weir__little_put(out, v[0] ^ v[1] ^ v[2] ^ v[3], 8);
    v[1] ^= 0xdd;
    rounds(v, 4);
    weir__little_put(out + 8, v[0] ^ v[1] ^ v[2] ^ v[3], 8);
}
