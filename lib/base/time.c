/* time.c -- times as people write them: "250ms", "1.5h", "90".
 *
 *     TIME     digits[.digits][unit]      no unit: seconds
 *     unit     ns us ms s m h d w
 *
 * Everything is exact: a decimal time is computed in integers, and one that is not a whole number
 * of nanoseconds is an error, not a rounding.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/cursor.h"

#define UNITS WEIR__UNITS

/* Largest first: the printer takes the first that divides. */
static const char *const names[] = { WEIR__UNIT_NAMES, NULL };
static const weir_time spans[UNITS] = { 604800 * WEIR_SECOND, 86400 * WEIR_SECOND,
                                        3600 * WEIR_SECOND,   60 * WEIR_SECOND,
                                        WEIR_SECOND,          WEIR_MILLISECOND,
                                        WEIR_MICROSECOND,     1 };

/* Not accepted, but recognised: "5sec; did you mean 's'?" */
static const char *const long_names[UNITS] = { "weeks",        "days",       "hours",
                                               "minutes",      "seconds",    "milliseconds",
                                               "microseconds", "nanoseconds" };

/* Months and years have no fixed length. */
static int fail_unit(struct weir__cursor *c, size_t length, const char *const *known)
{
    char first = (char)(*c->at | 0x20), second = (char)(c->at[1] | 0x20);

    if (first == 'y' || (length > 1 && first == 'm' && second == 'o'))
        return weir__cursor_fail(
            c,
            "unknown unit %s; write days, as in 365d; of limits day, week and month are calendar "
            "windows, written without a number, as in 10000/month",
            weir__cursor_quote(c, length).text);
    const char *meant = weir__nearest(c->at, length, long_names, UNITS);
    for (size_t i = 0; i < UNITS; i++)
        if (meant == long_names[i])
            return weir__cursor_fail(c, "unknown unit %s; did you mean '%s'?",
                                     weir__cursor_quote(c, length).text, names[i]);
    return weir__cursor_unknown(c, length, "unit", known, WEIR__TO_NULL);
}

int weir__cursor_unit(struct weir__cursor *c, const char *const *known, weir_time *out)
{
    size_t length = 0;

    while (weir__is_letter(c->at[length]))
        length++;
    if (length == 0)
        return WEIR_OK;
    for (size_t i = 0; i < UNITS; i++) {
        if (weir__cursor_is(c, length, names[i])) {
            *out = spans[i];
            c->at += length;
            return WEIR_OK;
        }
    }
    return fail_unit(c, length, known);
}

/* .digits: where they begin and how many there are; none without a point. */
static int read_fraction(struct weir__cursor *c, const char **digits, size_t *count)
{
    *count = 0;
    if (*c->at != '.')
        return WEIR_OK;
    *digits = ++c->at;
    while (weir__is_digit(*c->at))
        c->at++;
    *count = (size_t)(c->at - *digits);
    if (*count == 0)
        return weir__cursor_fail(c, "expected a digit after the point; found %s",
                                 weir__cursor_quote(c, 1).text);
    return WEIR_OK;
}

/* The fraction in nanoseconds.  From the last digit to the first: (rest + digit * unit) / 10 must
 * leave no remainder at any step, or the sum is no whole number; so 0.00000000005m is 3ns, and no
 * number of digits can overflow. */
static int scale_fraction(struct weir__cursor *c, const char *digits, size_t count, weir_time unit,
                          weir_time *out)
{
    weir_time rest = 0;

    while (count > 0 && digits[count - 1] == '0')
        count--; /* so that an error points at the finest digit that matters */
    for (size_t i = count; i-- > 0;) {
        rest += (digits[i] - '0') * unit;
        if (rest % 10 != 0) {
            c->at = digits + count - 1;
            return weir__cursor_fail(c, "finer than a nanosecond; write fewer digits");
        }
        rest /= 10;
    }
    *out = rest;
    return WEIR_OK;
}

static int read_time(struct weir__cursor *c, const char *what, weir_time *out)
{
    const char *start = c->at, *digits = c->at;
    weir_time whole = 0, part = 0, unit = WEIR_SECOND;
    size_t count = 0;
    int code = weir__cursor_digits(c, what, 0, INT64_MAX, &whole);

    if (code == WEIR_OK)
        code = read_fraction(c, &digits, &count);
    if (code == WEIR_OK)
        code = weir__cursor_unit(c, names, &unit);
    if (code == WEIR_OK)
        code = weir__cursor_expect_end(c, "the time; write one number and one unit, such as 90s");
    if (code == WEIR_OK)
        code = scale_fraction(c, digits, count, unit, &part);
    if (code != WEIR_OK)
        return code;
    if (__builtin_mul_overflow(whole, unit, &whole) ||
        __builtin_add_overflow(whole, part, &whole)) {
        c->at = start;
        return weir__cursor_fail(c, "%s is too large; the most is %" PRId64 "ns, some 292 years",
                                 what, INT64_MAX);
    }
    *out = whole;
    return WEIR_OK;
}

int weir__cursor_time(struct weir__cursor *cursor, const char *what, weir_time *out)
{
    weir__cursor_end(cursor);
    return read_time(cursor, what, out);
}

/* "Per 0 s" makes no sense, and in a struct 0 means the default. */
int weir__cursor_span(struct weir__cursor *cursor, const char *what, weir_time *out)
{
    const char *start = cursor->at;
    int code = read_time(cursor, what, out);

    if (code == WEIR_OK && *out == 0) {
        cursor->at = start;
        return weir__cursor_fail(cursor, "%s must be at least 1ns", what);
    }
    return code;
}

int weir_time_parse(weir_time *out, const char *text, struct weir_error *error)
{
    assert(out && text);
    struct weir__cursor cursor = { text, text, error };
    weir_time time = 0;
    int code = weir__cursor_time(&cursor, "the time", &time);

    if (code == WEIR_OK && !weir__cursor_end(&cursor))
        return weir__cursor_fail(&cursor,
                                 "unexpected %s after the time; a number and its unit (ns, us, ms, "
                                 "s, m, h, d, w) stand together, such as 90s or 1d",
                                 weir__cursor_quote(&cursor, 1).text);
    if (code == WEIR_OK)
        *out = time;
    return code;
}

int weir_time_print(char *out, size_t size, weir_time time)
{
    assert(out || size == 0);
    size_t unit = 0;

    if (time == WEIR_NEVER)
        return snprintf(out, size, "never");
    while (time % spans[unit] != 0) /* ends: ns divides everything */
        unit++;
    return snprintf(out, size, "%" PRId64 "%s", time / spans[unit], time ? names[unit] : "s");
}
