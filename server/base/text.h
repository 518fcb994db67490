/* text.h -- how `weir` speaks to people: complaints, and times and sizes in words. */
#ifndef WEIR_SERVER_TEXT_H
#define WEIR_SERVER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir.h"

/* One line to stderr: "weir COMMAND: ..."; a NULL command is the program itself.  Returns the exit
 * code of wrong use, 2. */
__attribute__((format(printf, 2, 3))) int weir__complain(const char *command, const char *format,
                                                         ...);

/* The same about a value that could not be read, with the value below it and a caret under the
 * column.  `place` is where it was given: "--limit". */
void weir__complain_at(const char *command, const char *place, const char *value,
                       const struct weir_error *error);

/* Whether stdout is a terminal with colours, and NO_COLOR is not set. */
bool weir__wants_colours(void);

/* "5.2s", "498ms", "2h 5m": three digits at most, rounded up, so that waiting this long is
 * enough.  Returns the end, where a NUL is. */
#define WEIR__TIME_TEXT 16
char *weir__text_time(char to[WEIR__TIME_TEXT], weir_time time);

/* In whole units, rounded up for the same reason; -1: never. */
static inline int64_t weir__in_unit(weir_time time, weir_time unit)
{
    return time == WEIR_NEVER ? -1 : time / unit + (time % unit > 0);
}

/* "2.5 MiB" */
void weir__text_bytes(char *out, size_t size, int64_t bytes);

#endif
