/* bytes.h -- text eight or sixteen bytes at a time.
 *
 * Eight bytes are a number whose lowest byte is the first of the text, on any machine.  Sixteen are
 * a vector, compared at once: v == '.' has a byte of ones or zeros for each, and weir__bytes_bits
 * makes that one bit each, the first the lowest.
 *
 * Nothing outside the text is read; bytes after its end are zeros.
 */
#ifndef WEIR_MATCH_BYTES_H
#define WEIR_MATCH_BYTES_H

#include <string.h>

#include "base/base.h"

typedef unsigned char weir__bytes __attribute__((vector_size(16)));

static inline uint32_t weir__bytes_four(const char *p)
{
    uint32_t w;

    memcpy(&w, p, sizeof(w));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap32(w);
#endif
    return w;
}

static inline uint64_t weir__bytes_eight(const char *p)
{
    uint64_t w;

    memcpy(&w, p, sizeof(w));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    return w;
}

/* The first eight, or as many as there are.  Overlapping loads put the same byte in the same
 * place. */
static inline uint64_t weir__bytes_first(const char *p, size_t len)
{
    if (len >= 8)
        return weir__bytes_eight(p);
    if (len >= 4)
        return weir__bytes_four(p) | (uint64_t)weir__bytes_four(p + len - 4) << 8 * (len - 4);
    if (len == 0)
        return 0;
    return (uint64_t)(unsigned char)p[0] | (uint64_t)(unsigned char)p[len / 2] << 8 * (len / 2) |
           (uint64_t)(unsigned char)p[len - 1] << 8 * (len - 1);
}

/* The ninth to the sixteenth. */
static inline uint64_t weir__bytes_second(const char *p, size_t len)
{
    if (len >= 16)
        return weir__bytes_eight(p + 8);
    return len > 8 ? weir__bytes_eight(p + len - 8) >> 8 * (16 - len) : 0;
}

static inline weir__bytes weir__bytes_join(uint64_t first, uint64_t second)
{
    typedef uint64_t halves __attribute__((vector_size(16)));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    first = __builtin_bswap64(first);
    second = __builtin_bswap64(second);
#endif
    return (weir__bytes)(halves){ first, second };
}

static inline weir__bytes weir__bytes_sixteen(const char *p)
{
    weir__bytes v;

    memcpy(&v, p, sizeof(v));
    return v;
}

/* Each byte moved by one or two places towards the end, zeros before. */
#if defined(__clang__) || __GNUC__ >= 12
#define WEIR__BYTES_PERMUTE(v, ...) __builtin_shufflevector((weir__bytes){ 0 }, v, __VA_ARGS__)
#else
#define WEIR__BYTES_PERMUTE(v, ...) \
    __builtin_shuffle((weir__bytes){ 0 }, v, (weir__bytes){ __VA_ARGS__ })
#endif

static inline weir__bytes weir__bytes_move_one(weir__bytes v)
{
    return WEIR__BYTES_PERMUTE(v, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30);
}

static inline weir__bytes weir__bytes_move_two(weir__bytes v)
{
    return WEIR__BYTES_PERMUTE(v, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29);
}

/* A comparison's result as sixteen bits. */
#if defined(__SSE2__)
#define weir__bytes_bits(comparison) \
    ((uint32_t)__builtin_ia32_pmovmskb128((weir__bytes_signed)(comparison)))
typedef char weir__bytes_signed __attribute__((vector_size(16)));
#else
#define weir__bytes_bits(comparison) weir__bytes_gather((weir__bytes)(comparison))
static inline uint32_t weir__bytes_gather(weir__bytes v)
{
    char b[16];

    memcpy(b, &v, sizeof(b));
    /* The multiplication moves bit 8i to bit 56 + i, and no two of its terms meet. */
    uint64_t low = (weir__bytes_eight(b) & 0x0101010101010101u) * 0x0102040810204080u;
    uint64_t high = (weir__bytes_eight(b + 8) & 0x0101010101010101u) * 0x0102040810204080u;
    return (uint32_t)(low >> 56 | high >> 56 << 8);
}
#endif

#endif
