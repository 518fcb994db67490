/* decimal.h -- decimal numbers, written and read. */
#ifndef WEIR_WIRE_DECIMAL_H
#define WEIR_WIRE_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR__NUMBER_MAX 20 /* bytes that a number takes at most */

/* Writes at `to`, which must have the room, and returns the end. */
char *weir__put_number(char *to, int64_t n);

/* The whole text as a decimal count; false: it is no number or does not fit, and *out is
 * untouched. */
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
