/* digit.h -- decimal and hexadecimal digits; not <ctype.h>, which asks the locale. */
#ifndef WEIR_BASE_DIGIT_H
#define WEIR_BASE_DIGIT_H

#include <stdbool.h>

static inline bool weir__is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The value of a hexadecimal digit; -1: it is not one. */
static inline int weir__hex(char c)
{
    int letter = (c | 0x20) - 'a';

    return c >= '0' && c <= '9' ? c - '0' : letter >= 0 && letter < 6 ? letter + 10 : -1;
}

#endif
