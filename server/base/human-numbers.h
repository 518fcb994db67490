/* human-numbers.h -- numbers, shares, times and sizes as people read them. */
#ifndef WEIR_SERVER_BASE_HUMAN_NUMBERS_H
#define WEIR_SERVER_BASE_HUMAN_NUMBERS_H

#include <stdio.h>

#include "server/base/count-distinct.h"

#define WEIR__HUMAN 48

/* 1,234,567 */
const char *weir__human_count(char out[WEIR__HUMAN], int64_t n);
/* 1 request; 2 requests */
const char *weir__human_counted(char out[WEIR__HUMAN], int64_t n, const char *noun);
/* 1.23 %; <0.01 % */
const char *weir__human_share(char out[WEIR__HUMAN], int64_t part, int64_t whole);
/* ~12,345 if it is not exact */
const char *weir__human_distinct(char out[WEIR__HUMAN], const struct weir__distinct *distinct);
/* 2025-11-15 08:00:00[.123], UTC */
const char *weir__human_time(char out[WEIR__HUMAN], weir_time at, bool fraction);
/* The part of it that tells apart marks `step` apart. */
const char *weir__human_clock(char out[WEIR__HUMAN], weir_time at, weir_time step);
/* 10 s */
const char *weir__human_width(char out[WEIR__HUMAN], weir_time width);

/* 5.2s, 498ms, 2h 5m: three digits at most, rounded up so that the wait is long enough.  Returns
 * the end, where a NUL is. */
#define WEIR__DURATION 16
char *weir__human_duration(char to[WEIR__DURATION], weir_time time);
/* 2.5 MiB */
void weir__human_bytes(char *out, size_t size, int64_t bytes);

/* In whole units, rounded up for the same reason; -1: never. */
static inline int64_t weir__in_unit(weir_time time, weir_time unit)
{
    return time == WEIR_NEVER ? -1 : time / unit + (time % unit > 0);
}

#endif
