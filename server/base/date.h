/* date.h -- moments as logs and people write them, in whole nanoseconds since 1970. */
#ifndef WEIR_SERVER_BASE_DATE_H
#define WEIR_SERVER_BASE_DATE_H

#include "base/digit.h"
#include "weir.h"

/* Three letters each, as in logs and in HTTP. */
extern const char weir__date_months[];

/* 10/Oct/2000:13:55:36 -0700 */
#define WEIR__DATE_COMBINED 26
bool weir__date_combined(const char text[WEIR__DATE_COMBINED], weir_time *out);

/* The same; ISO 8601 (2000-10-10T13:55:36.123-07:00, without an offset UTC); or a decimal number
 * since 1970, of seconds, or by its size of milli-, micro- or nanoseconds.  Fractions of a
 * nanosecond are dropped. */
bool weir__date_parse(const char *text, size_t len, weir_time *out);

#endif
