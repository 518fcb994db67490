/* text.h -- bytes in the caller's memory, without a NUL behind them; numbers in decimal. */
#ifndef WEIR_WIRE_TEXT_H
#define WEIR_WIRE_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct weir__text {
    const char *bytes;
    size_t len;
};

#define WEIR__NUMBER_MAX 20 /* bytes that a number takes at most */

/* Writes at `to`, which must have the room, and returns the end. */
char *weir__put_number(char *to, int64_t n);

#endif
