/* hash.h -- a keyed hash of 128 bits: 64 identify a key, 64 choose its line.
 *
 * Clients choose keys (an API key, a URI, in IPv6 an address) and must not be able to choose two
 * that collide, so the hash is a universal family: for any two different keys of up to 128 bytes,
 * chosen without knowing the secrets, the tags are equal with a chance of about 2^-64, and so,
 * independently, are the places.
 *
 *     NH (Black, Halevi, Krawczyk, Krovetz, Rogaway: UMAC, 1999)
 *     sum over pairs of 64-bit words (a, b) of   (a + secret) * (b + secret')   in 128 bits
 *
 * run twice, the second time with the secrets moved on by one pair (the paper's Toeplitz trick: the
 * two sums are as good as independent). A short key is one pair, so a hash is two multiplications
 * and two more to finish.  Keys of more than 128 bytes are chained in blocks of 112, each block
 * beginning with the sums of the one before.
 *
 * The length is mixed in, so a key and the same key followed by zero bytes differ.  The salt (a
 * limiter's own) keeps one user's states under two limits apart.
 *
 * Why not SipHash: three times slower on short keys, and its greater strength (outputs cannot be
 * predicted even from other outputs) buys nothing here, because outputs are never shown.  Why not
 * XXH3: fast too, but collisions for it can be computed.
 */
#ifndef WEIR_BASE_HASH_H
#define WEIR_BASE_HASH_H

#include <string.h>

#include "base/base.h"

#define WEIR__HASH_SECRETS 20

struct weir__hash {
    uint64_t tag;   /* tells keys apart */
    uint64_t place; /* chooses a line; independent of the tag */
};

#define WEIR__HASH_PAIRS 9 /* one pair for the chain, eight of the key; see WEIR__HASH_SECRETS */

_Static_assert(WEIR__HASH_SECRETS == 2 * (WEIR__HASH_PAIRS + 1),
               "one pair of secrets more than pairs in a block, for the second sum");

struct weir__sums {
    weir__u128 tag, place;
};

static inline struct weir__sums weir__hash_pair(const uint64_t *secret, uint64_t a, uint64_t b)
{
    return (struct weir__sums){ .tag = (weir__u128)(a + secret[0]) * (b + secret[1]),
                                .place = (weir__u128)(a + secret[2]) * (b + secret[3]) };
}

static inline uint64_t weir__hash_word(const unsigned char *p)
{
    uint64_t w;

    memcpy(&w, p, sizeof(w));
    return w;
}

/* Up to 16 bytes as two words.  Overlapping loads cover every length; the length itself is mixed in
 * by weir__hash_finish(). */
static inline void weir__hash_tail(const unsigned char *p, size_t len, uint64_t *a, uint64_t *b)
{
    if (len >= 8) {
        *a = weir__hash_word(p);
        *b = weir__hash_word(p + len - 8);
    } else if (len >= 4) {
        uint32_t lo, hi;
        memcpy(&lo, p, 4);
        memcpy(&hi, p + len - 4, 4);
        *a = lo;
        *b = hi;
    } else if (len > 0) {
        *a = (uint64_t)p[0] << 16 | (uint64_t)p[len / 2] << 8 | p[len - 1];
        *b = 0;
    } else {
        *a = *b = 0;
    }
}

/* Steps that spread: 2^64 divided by the golden ratio. */
#define WEIR__GOLDEN 0x9e3779b97f4a7c15u

/* Each bit of z changes every bit of the result (splitmix64's finish: Steele, Lea, Flood 2014).
 * The results for WEIR__GOLDEN times 1, 2, 3 ... are a sequence of random numbers.  Not keyed: z
 * gives the result away. */
static inline uint64_t weir__mix64(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* A number of `bits` bits that tends to differ between threads, because their stacks lie far apart:
 * where to look for a place first, so that threads do not meet.  Only speed depends on it. */
static inline __attribute__((always_inline)) uint64_t weir__thread_hint(unsigned bits)
{
    uint64_t stack = (uint64_t)(uintptr_t)__builtin_frame_address(0) >> 16;

    return stack * WEIR__GOLDEN >> (64 - bits);
}

/* memcmp(x, y, len) == 0, without a call if they are short. */
static inline bool weir__same_bytes(const void *x, const void *y, size_t len)
{
    uint64_t a, b, c, d;

    if (len > 16)
        return memcmp(x, y, len) == 0;
    weir__hash_tail(x, len, &a, &b);
    weir__hash_tail(y, len, &c, &d);
    return a == c && b == d;
}

/* 128 bits to 64: every bit of the sum changes about half of the result.  The length tells a key
 * from the same key followed by zeros. */
static inline uint64_t weir__hash_finish(weir__u128 sum, uint64_t length, uint64_t salt)
{
    weir__u128 m = (weir__u128)((uint64_t)sum ^ salt) * ((uint64_t)(sum >> 64) ^ length);

    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/* The last pair of a block. */
static inline struct weir__sums weir__hash_last(const uint64_t *secrets, const unsigned char *p,
                                                size_t len)
{
    uint64_t a, b;

    weir__hash_tail(p, len, &a, &b);
    return weir__hash_pair(secrets + 2 * (WEIR__HASH_PAIRS - 1), a, b);
}

/* hash.c -- the sums of a key of more than 16 bytes. */
struct weir__sums weir__hash_long(const uint64_t *secrets, struct weir_key key);

/* What a key's hashes have in common under all salts: a caller that has several salts makes it
 * once. */
static inline __attribute__((always_inline)) struct weir__sums
weir__hash_sums(const uint64_t secrets[WEIR__HASH_SECRETS], struct weir_key key)
{
    if (__builtin_expect(key.len > 16, 0))
        return weir__hash_long(secrets, key);
    return weir__hash_last(secrets, key.bytes, key.len);
}

/* `length`: the key's. */
static inline __attribute__((always_inline)) struct weir__hash
weir__hash_salted(const struct weir__sums *sums, size_t length, uint64_t salt)
{
    return (struct weir__hash){ .tag = weir__hash_finish(sums->tag, length, salt),
                                .place = weir__hash_finish(sums->place, length, salt) };
}

static inline __attribute__((always_inline)) struct weir__hash
weir__hash_key(const uint64_t secrets[WEIR__HASH_SECRETS], uint64_t salt, struct weir_key key)
{
    struct weir__sums sums = weir__hash_sums(secrets, key);

    return weir__hash_salted(&sums, key.len, salt);
}

#endif
