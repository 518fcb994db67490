/* date.c -- the times of access logs, in whole nanoseconds and without libc's calendar: that
 * knows a time zone of this machine, and takes a lock to know it.
 *
 *     10/Oct/2000:13:55:36 -0700       nginx and Apache
 *     2000-10-10T13:55:36.123-07:00    ISO 8601; a space for the T; Z, +hh, +hhmm, +hh:mm or
 *                                      nothing behind
 *     971211336.123                    since 1970: seconds, and by their size milli-, micro- or
 *                                      nanoseconds
 *
 * A time must lie from 1970 on and before 2262, where weir_time ends.
 */
#include <string.h>

#include "server/base/date.h"

enum { SECONDS_PER_DAY = 86400, NUMBER_DIGITS = 40 };

#define SECONDS_END INT64_C(9214646400) /* 2262 */

/* Exactly `n` digits, or -1. */
static int digits(const char *text, int n)
{
    int value = 0;

    for (int i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        value = value * 10 + (text[i] - '0');
    }
    return value;
}

/* ---------------------------------------------------------------- calendar ---- */

struct moment {
    int year, month, day, hour, minute, second; /* -1: it was no number */
    int offset;                                 /* east of UTC, in minutes */
    int64_t fraction;                           /* ns */
};

static int days_in(int year, int month)
{
    static const signed char days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return days[month - 1] + (month == 2 && leap);
}

/* Since 1970.  Years are counted from March, so that the leap day is a year's last. */
static int64_t days_since(int year, int month, int day)
{
    int y = month > 2 ? year : year - 1, m = month > 2 ? month - 3 : month + 9;

    return 365 * (int64_t)y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

/* The second 60 of a leap second is the first of the next minute. */
static bool is_sound(const struct moment *t)
{
    return t->year >= 1969 && t->year <= 2262 && t->month >= 1 && t->month <= 12 && t->day >= 1 &&
           t->day <= days_in(t->year, t->month) && t->hour >= 0 && t->hour <= 23 &&
           t->minute >= 0 && t->minute <= 59 && t->second >= 0 && t->second <= 60;
}

static bool time_of(const struct moment *t, weir_time *out)
{
    if (!is_sound(t))
        return false;
    int64_t seconds = days_since(t->year, t->month, t->day) * SECONDS_PER_DAY + t->hour * 3600 +
                      (t->minute - t->offset) * 60 + t->second;
    if (seconds < 0 || seconds >= SECONDS_END)
        return false;
    *out = seconds * WEIR_SECOND + t->fraction;
    return true;
}

/* hhmm behind its sign. */
static bool read_offset(const char *sign, const char *hours, const char *minutes, int *out)
{
    int h = digits(hours, 2), m = digits(minutes, 2);

    if ((*sign != '+' && *sign != '-') || h < 0 || h > 23 || m < 0 || m > 59)
        return false;
    *out = *sign == '-' ? -(h * 60 + m) : h * 60 + m;
    return true;
}

const char weir__date_months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

static int month_of(const char *name)
{
    for (int i = 0; i < 12; i++)
        if (memcmp(weir__date_months + 3 * i, name, 3) == 0)
            return i + 1;
    return -1;
}

bool weir__date_combined(const char text[WEIR__DATE_COMBINED], weir_time *out)
{
    struct moment t = { .year = digits(text + 7, 4),
                        .month = month_of(text + 3),
                        .day = digits(text, 2) };

    t.hour = digits(text + 12, 2);
    t.minute = digits(text + 15, 2);
    t.second = digits(text + 18, 2);
    return text[2] == '/' && text[6] == '/' && text[11] == ':' && text[14] == ':' &&
           text[17] == ':' && text[20] == ' ' &&
           read_offset(text + 21, text + 22, text + 24, &t.offset) && time_of(&t, out);
}

/* ---------------------------------------------------------------- ISO 8601 ---- */

/* The digits behind a point, as nanoseconds; returns where they end. */
static const char *read_fraction(const char *at, const char *end, int64_t *ns)
{
    int64_t weight = WEIR_SECOND / 10;

    for (*ns = 0; at < end && weir__is_digit(*at); at++, weight /= 10)
        *ns += (*at - '0') * weight;
    return at;
}

static bool read_zone(const char *at, const char *end, int *offset)
{
    at += at < end && *at == ' ';
    switch (end - at) {
    case 0: /* UTC */
        return true;
    case 1:
        return *at == 'Z' || *at == 'z';
    case 3:
        return read_offset(at, at + 1, "00", offset);
    case 5:
        return read_offset(at, at + 1, at + 3, offset);
    case 6:
        return at[3] == ':' && read_offset(at, at + 1, at + 4, offset);
    default:
        return false;
    }
}

static bool read_iso(const char *text, size_t len, weir_time *out)
{
    struct moment t = { 0 };

    if (len < 19 || text[4] != '-' || text[7] != '-' ||
        (text[10] != ' ' && (text[10] | 0x20) != 't') || text[13] != ':' || text[16] != ':')
        return false;
    const char *at = text + 19, *end = text + len;
    t.year = digits(text, 4);
    t.month = digits(text + 5, 2);
    t.day = digits(text + 8, 2);
    t.hour = digits(text + 11, 2);
    t.minute = digits(text + 14, 2);
    t.second = digits(text + 17, 2);
    if (end - at >= 2 && (*at == '.' || *at == ',') && weir__is_digit(at[1]))
        at = read_fraction(at + 1, end, &t.fraction);
    return read_zone(at, end, &t.offset) && time_of(&t, out);
}

/* ----------------------------------------------------------------- numbers ---- */

/* A decimal number, digit by digit so that nothing is rounded: 1.7e9 is 17 with its point behind
 * ten digits. */
struct number {
    char digits[NUMBER_DIGITS];
    int n, point;
};

static bool read_exponent(const char *at, const char *end, int *out)
{
    bool minus = at < end && *at == '-';
    int value = 0;

    at += at < end && (*at == '-' || *at == '+');
    if (at == end || end - at > 3)
        return false;
    for (; at < end; at++) {
        if (!weir__is_digit(*at))
            return false;
        value = value * 10 + (*at - '0');
    }
    *out = minus ? -value : value;
    return true;
}

/* Without zeros in front; digits beyond the room are too small to matter, and more of them before
 * the point too large. */
static bool read_number(const char *text, size_t len, struct number *out)
{
    const char *at = text, *end = text + len;
    bool behind = false, any = false;
    int exponent = 0;

    for (out->n = out->point = 0; at < end && (weir__is_digit(*at) || (*at == '.' && !behind));
         at++) {
        if (*at == '.') {
            behind = true;
            continue;
        }
        any = true;
        if (out->n == NUMBER_DIGITS) {
            if (!behind)
                return false;
        } else if (*at != '0' || out->n > 0) {
            out->digits[out->n++] = *at;
            out->point += !behind;
        } else {
            out->point -= behind;
        }
    }
    if (at < end && ((*at != 'e' && *at != 'E') || !read_exponent(at + 1, end, &exponent)))
        return false;
    out->point += exponent;
    return any;
}

/* Its whole part after moving the point, without rounding; false if that has more than 19 digits or
 * does not fit. */
static bool whole_part(const struct number *number, int shift, int64_t *out)
{
    int64_t value = 0;

    if (number->n > 0 && number->point + shift > 19)
        return false;
    for (int i = 0; i < (number->n ? number->point + shift : 0); i++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, i < number->n ? number->digits[i] - '0' : 0, &value))
            return false;
    *out = value;
    return true;
}

/* Seconds have up to 11 digits before the point, milliseconds 14, microseconds 17, nanoseconds 19:
 * a moment from 1973 on cannot be mistaken for another unit. */
static bool read_epoch(const char *text, size_t len, weir_time *out)
{
    struct number number;
    int64_t ns;

    if (!read_number(text, len, &number))
        return false;
    int shift = number.point <= 11 ? 9 : number.point <= 14 ? 6 : number.point <= 17 ? 3 : 0;
    if (!whole_part(&number, shift, &ns) || ns / WEIR_SECOND >= SECONDS_END)
        return false;
    *out = ns;
    return true;
}

bool weir__date_parse(const char *text, size_t len, weir_time *out)
{
    if (len == WEIR__DATE_COMBINED && text[2] == '/')
        return weir__date_combined(text, out);
    if (len > 4 && text[4] == '-')
        return read_iso(text, len, out);
    return read_epoch(text, len, out);
}
