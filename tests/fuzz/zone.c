/* zone.c -- any bytes as a file of the time zone database: refused, or a zone whose days are a
 * calendar. */
#include "fuzz/fuzz.h"

#include "algo/algo.h"
#include "base/zone.h"

/* A moment lies in its day, days follow each other, and the ranks have no gaps. */
static void check_day(const struct weir__zone *z, int64_t time)
{
    int64_t day = weir__zone_day_at(z, time), start = weir__zone_day_start(z, day),
            end = weir__zone_day_start(z, day + 1);

    check(start <= time && time < end);
    check(weir__zone_day_at(z, start) == day && weir__zone_day_at(z, end - 1) == day &&
          weir__zone_day_at(z, end) > day);
    int64_t rank = weir__zone_rank(z, day);
    check(weir__zone_day_of_rank(z, rank) == day);
    check(weir__zone_rank(z, weir__zone_day_at(z, end)) == rank + 1);
}

static void check_windows(const struct weir__zone *z, weir_time now)
{
    struct weir_plan plan = { .algo = &weir__calendar, .zone = z };

    for (int32_t kind = WEIR_DAY; kind <= WEIR_MONTH; kind++) {
        weir_time start, next, length;
        plan.limit.calendar = kind;
        length = weir__calendar_window(&plan, now, &start);
        check(start <= now && length > 0 && now - start < length);
        if (start + length < INT64_MAX) {
            weir__calendar_window(&plan, start + length, &next);
            check(next == start + length);
        }
    }
}

static void check_zone(const struct weir__zone *z)
{
    for (size_t i = 0; i < z->changes; i++)
        check((i == 0 || z->change[i - 1].at < z->change[i].at) && z->change[i].offset >= -93599 &&
              z->change[i].offset <= 93599);
    for (size_t i = 0; i < z->changes; i += 1 + z->changes / 50) {
        for (int64_t near = -90000; near <= 90000; near += 45000)
            check_day(z, z->change[i].at + near);
        if (z->change[i].at > 0 && z->change[i].at < INT64_MAX / WEIR_SECOND)
            check_windows(z, z->change[i].at * WEIR_SECOND);
    }
    for (weir_time now = 0; now < INT64_MAX / 8 * 7; now += INT64_MAX / 8)
        check_windows(z, now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir__zone *zone = NULL;
    struct weir_error error = { 0 };
    uint8_t *bytes =
        malloc(size ? size : 1); /* of exactly this size, so that a read beyond the end is seen */

    check(bytes != NULL);
    if (size > 0)
        memcpy(bytes, data, size);
    int code = weir__zone_parse(&zone, bytes, size, &error);
    free(bytes);
    if (code != WEIR_OK) {
        check(zone == NULL && error.text[0] != '\0' && strpbrk(error.text, "\r\n") == NULL);
        return 0;
    }
    check_zone(zone);
    free(zone);
    return 0;
}
