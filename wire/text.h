/* text.h -- bytes in the caller's memory, not ended by NUL. */
#ifndef WEIR_WIRE_TEXT_H
#define WEIR_WIRE_TEXT_H

#include <stddef.h>

struct weir__text {
    const char *bytes;
    size_t len;
};

/* A macro that is a number, as a literal text. */
#define WEIR__DIGITS(macro)       WEIR__DIGITS_TEXT(macro)
#define WEIR__DIGITS_TEXT(number) #number

#endif
