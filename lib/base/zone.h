/* zone.h -- time zones: when each day of a place begins.
 *
 * A zone is the list of moments at which its offset from UTC changes, as far as a weir_time
 * reaches.  It never changes.  Times are seconds since 1970 in UTC, days are numbered from
 * 1970-01-01.
 *
 * Days follow each other without gaps or overlaps, whatever the local clocks do:
 *
 *     a day begins at the first moment at which the clocks there show its date, or a later one, for
 *     the first time
 *
 * So a day with a change has 23 or 25 hours; one without a midnight begins at the first moment
 * after the gap; where clocks go back over midnight, the day that has begun goes on; and a day that
 * is left out (Apia's 2011-12-30) begins and ends at the moment the next day begins: it is skipped.
 */
#ifndef WEIR_BASE_ZONE_H
#define WEIR_BASE_ZONE_H

#include "base/base.h"

#define WEIR__ZONE_NAME_SIZE   40 /* with the NUL byte: weir_limit.zone */
#define WEIR__ZONE_SKIPPED_MAX 8
#define WEIR__ZONE_BYTES_MAX   65536 /* of a file; the largest known has a few thousand */
#define WEIR__SECONDS_IN_A_DAY ((int64_t)86400)
#define WEIR__ZONE_OFFSET_MAX \
    ((int64_t)93599) /* less than 26 hours either way, as RFC 8536 has it */

struct weir__zone {
    struct weir__zone *next; /* in the list of zones read */
    char name[WEIR__ZONE_NAME_SIZE];
    int64_t skipped[WEIR__ZONE_SKIPPED_MAX]; /* days, in order */
    size_t skips;
    int32_t offset; /* seconds east of UTC, before the first change */
    size_t changes;
    struct weir__zone_change {
        int64_t at;
        int32_t offset; /* from then on */
    } change[];
};

/* The zone of this name, from the time zone database in $TZDIR or /usr/share/zoneinfo; "" and "UTC"
 * need no file.  It is read once and stays for the life of the process: nobody frees it. */
int weir__zone_find(const struct weir__zone **out, const char *name, struct weir_error *error);

/* From the bytes of a file (TZif, RFC 8536), which may be anything; free() it. */
int weir__zone_parse(struct weir__zone **out, const unsigned char *bytes, size_t size,
                     struct weir_error *error);

int64_t weir__zone_day_start(const struct weir__zone *zone, int64_t day);
/* The day that began last; never a skipped one. */
int64_t weir__zone_day_at(const struct weir__zone *zone, int64_t time);

/* Days numbered without those that were skipped, and back. */
int64_t weir__zone_rank(const struct weir__zone *zone, int64_t day);
int64_t weir__zone_day_of_rank(const struct weir__zone *zone, int64_t rank);

/* The Gregorian calendar: the first day of a month, and the month of a day.  Months are numbered
 * from January 1970. */
int64_t weir__month_start(int64_t month);
int64_t weir__month_of(int64_t day);

static inline int64_t weir__floor_divide(int64_t a, int64_t b) /* b > 0 */
{
    return a / b - (a % b < 0);
}

#endif
