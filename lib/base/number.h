/* number.h -- digits and counts as people and protocols write them. */
#ifndef WEIR_BASE_NUMBER_H
#define WEIR_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value of a hexadecimal digit; -1: it is none. */
static inline int weir__hex(char c)
{
    int letter = (c | 0x20) - 'a';

    return c >= '0' && c <= '9' ? c - '0' : letter >= 0 && letter < 6 ? letter + 10 : -1;
}

/* All of the text; false, and *out is untouched, if it is no number or does not fit. */
static inline bool weir__count_parse(const char *text, size_t len, int64_t *out)
{
    int64_t n = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned char digit = (unsigned char)(text[i] - '0');
        if (digit > 9 || __builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, digit, &n))
            return false;
    }
    if (len > 0)
        *out = n;
    return len > 0;
}

#endif
