/* hex.h -- hexadecimal digits. */
#ifndef WEIR_BASE_HEX_H
#define WEIR_BASE_HEX_H

/* The value of a hexadecimal digit; -1: it is not one. */
static inline int weir__hex(char c)
{
    int letter = (c | 0x20) - 'a';

    return c >= '0' && c <= '9' ? c - '0' : letter >= 0 && letter < 6 ? letter + 10 : -1;
}

#endif
