/* hash.c -- a keyed hash of 128 bits: 64 to know a key by, 64 to find its line.
 *
 * Whoever chooses the keys (a client chooses its API key, its URI, in IPv6 its address) must not be able to choose two that collide, so
 * the hash is a universal family: for any two different keys of up to 128 bytes, chosen by somebody who does not know the secrets, the
 * tags are equal with a chance of about 2^-64, and so, independently, are the places.
 *
 *     NH (Black, Halevi, Krawczyk, Krovetz, Rogaway: UMAC, 1999)
 *     sum over pairs of 64-bit words (a, b) of   (a + secret) * (b + secret')   in 128 bits
 *
 * run twice, the second time with the secrets moved on by one pair (the paper's Toeplitz trick: the two sums are as good as independent).
 * A short key is one pair, so a hash is two multiplications and two more to finish.  Keys of more than 128 bytes are chained in blocks of 112, each
 * block beginning with the sums of the one before.
 *
 * The length is mixed in, so a key and the same key with zero bytes behind it differ.  The salt (a limiter's own) keeps one user's states
 * under two limits apart.
 *
 * Why not SipHash: three times slower on short keys, and its greater strength (nobody can predict an output even after seeing others) buys
 * nothing here, because outputs are never shown.  Why not XXH3: fast too, but collisions for it can be computed.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/base.h"

#define BLOCK_PAIRS 9 /* one pair for the chain, eight of the key; see WEIR__HASH_SECRETS */

_Static_assert(WEIR__HASH_SECRETS == 2 * (BLOCK_PAIRS + 1), "one pair of secrets more than pairs in a block, for the second sum");

struct sums {
    weir__u128 tag, place;
};

static inline void add_pair(struct sums *s, const uint64_t *secret, uint64_t a, uint64_t b)
{
    s->tag += (weir__u128)(a + secret[0]) * (b + secret[1]);
    s->place += (weir__u128)(a + secret[2]) * (b + secret[3]);
}

static inline uint64_t word_at(const unsigned char *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

/* Up to 16 bytes as two words.  Overlapping loads cover every length; the length itself is mixed in by finish(). */
static inline void read_tail(const unsigned char *p, size_t len, uint64_t *a, uint64_t *b)
{
    if (len >= 8) {
        *a = word_at(p);
        *b = word_at(p + len - 8);
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

/* 128 bits to 64, so that every bit of the sum moves half of the result. */
static inline uint64_t finish(weir__u128 sum, uint64_t length, uint64_t salt)
{
    uint64_t lo = (uint64_t)sum ^ salt, hi = (uint64_t)(sum >> 64) + length * 0x9e3779b97f4a7c15u;
    weir__u128 m = (weir__u128)(lo ^ 0xa0761d6478bd642fu) * (hi ^ 0xe7037ed1a0b428dbu);
    uint64_t folded = (uint64_t)m ^ (uint64_t)(m >> 64) ^ lo;
    return folded ^ folded >> 32;
}

static struct sums long_key(const uint64_t *secrets, const unsigned char **p, size_t *len)
{
    struct sums s = { 0, 0 };
    while (*len > 16) {
        struct sums chain = s;
        s = (struct sums){ 0, 0 };
        add_pair(&s, secrets, (uint64_t)chain.tag ^ (uint64_t)(chain.place >> 64), (uint64_t)(chain.tag >> 64) ^ (uint64_t)chain.place);
        for (size_t pair = 1; pair < BLOCK_PAIRS - 1 && *len > 16; pair++, *p += 16, *len -= 16)
            add_pair(&s, secrets + 2 * pair, word_at(*p), word_at(*p + 8));
    }
    return s;
}

struct weir__hash weir__hash_key(const uint64_t secrets[WEIR__HASH_SECRETS], uint64_t salt, struct weir_key key)
{
    const unsigned char *p = key.bytes;
    size_t left = key.len;
    uint64_t a, b;
    struct sums s = { 0, 0 };
    if (left > 16)
        s = long_key(secrets, &p, &left);
    read_tail(p, left, &a, &b);
    add_pair(&s, secrets + 2 * (BLOCK_PAIRS - 1), a, b);
    return (struct weir__hash){ .tag = finish(s.tag, key.len, salt), .place = finish(s.place, key.len, salt) };
}

int weir__random_fill(void *out, size_t size)
{
    unsigned char *p = out;
    while (size > 0) {
        ssize_t got = getrandom(p, size, 0);
        if (got < 0 && errno != EINTR)
            return -1;
        if (got > 0) {
            p += got;
            size -= (size_t)got;
        }
    }
    return 0;
}
