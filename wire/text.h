/* text.h -- bytes in the caller's memory, without a NUL behind them. */
#ifndef WEIR_WIRE_TEXT_H
#define WEIR_WIRE_TEXT_H

#include <stddef.h>

struct weir__text {
    const char *bytes;
    size_t len;
};

#endif
