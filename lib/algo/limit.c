/* limit.c -- limits and times as people write them: "gcra 5/1m burst 3", "1.5s".
 *
 *     limit    [ALGORITHM] COUNT[r]/PERIOD [OPTION ...]       options in any order, each at most
 *                                                             once
 *     PERIOD   TIME, or a unit alone: 6r/m; or a calendar window: day, week, month
 *     TIME     digits[.digits][unit]                          no unit: seconds
 *     unit     ns us ms s m h d w
 *     OPTION   a row of `options` below; a new one is a new row, and it is parsed, printed and
 *              suggested
 *
 * Everything is exact.  Numbers are int64 with overflow checks; a decimal time is computed in
 * integers, and one that is not a whole number of nanoseconds is an error, not a rounding.  Not by
 * strtol and strtod: these skip signs and spaces, stop silently and ask the locale.
 *
 * A struct cannot remember a spelling, so there is one canonical form: the largest unit that
 * divides the time, the number always written ("10r/s" comes back as "10/1s"), the options in the
 * order of the table, defaults left out.  Parsing it gives the same struct.
 *
 * Whether a member fits the algorithm (buckets= on gcra) is the plan's to say.
 */
#include "algo/limit.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "algo/algo.h"
#include "base/zone.h"

#define WORD_MAX 24 /* longer words are cut in errors, and resemble nothing */

/* Largest first: the printer takes the first that divides. */
static const struct unit {
    const char *name;
    const char *long_name; /* never accepted, only recognised: "5sec; did you mean 's'?" */
    weir_time span;
} units[] = {
    { "w", "weeks", 604800 * WEIR_SECOND },
    { "d", "days", 86400 * WEIR_SECOND },
    { "h", "hours", 3600 * WEIR_SECOND },
    { "m", "minutes", 60 * WEIR_SECOND },
    { "s", "seconds", WEIR_SECOND },
    { "ms", "milliseconds", WEIR_MILLISECOND },
    { "us", "microseconds", WEIR_MICROSECOND },
    { "ns", "nanoseconds", 1 },
};

enum kind {
    COUNT64,
    COUNT32,
    QUEUE, /* a count64 whose written 0 is WEIR_NO_QUEUE, because 0 in the struct means "not a
              shaper" */
    TIME,
    CHOICE, /* a bool, by two words */
    ZONE,   /* the name of a time zone */
};

static const struct option {
    const char *name;
    enum weir__limit_named bit;
    enum kind kind;
    size_t offset;
    int64_t min;
    bool spaced;          /* "burst 5" as well as "burst=5", and printed so */
    const char *words[2]; /* CHOICE: for false and for true */
} options[] = {
    { "burst",
      WEIR__NAMED_BURST,
      COUNT64,
      offsetof(struct weir_limit, burst),
      1,
      true,
      { NULL, NULL } },
    { "queue",
      WEIR__NAMED_QUEUE,
      QUEUE,
      offsetof(struct weir_limit, queue),
      0,
      true,
      { NULL, NULL } },
    { "buckets",
      WEIR__NAMED_BUCKETS,
      COUNT32,
      offsetof(struct weir_limit, buckets),
      1,
      false,
      { NULL, NULL } },
    { "align",
      WEIR__NAMED_ALIGN,
      CHOICE,
      offsetof(struct weir_limit, align_first),
      0,
      false,
      { "clock", "first" } },
    { "edge",
      WEIR__NAMED_EDGE,
      CHOICE,
      offsetof(struct weir_limit, loose),
      0,
      false,
      { "strict", "loose" } },
    { "warmup",
      WEIR__NAMED_WARMUP,
      TIME,
      offsetof(struct weir_limit, warmup),
      1,
      false,
      { NULL, NULL } },
    { "cold",
      WEIR__NAMED_COLD,
      COUNT32,
      offsetof(struct weir_limit, cold),
      1,
      false,
      { NULL, NULL } },
    { "zone", WEIR__NAMED_ZONE, ZONE, offsetof(struct weir_limit, zone), 0, false, { NULL, NULL } },
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---------------------------------------------------------- characters ---- */

/* Not <ctype.h>: that asks the locale. */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Bytes of UTF-8 count as letters, so that a wrong unit is quoted whole. */
static bool is_letter(char c)
{
    return (lower(c) >= 'a' && lower(c) <= 'z') || (unsigned char)c >= 0x80;
}

static bool is_word_end(char c)
{
    return c == '\0' || c == ' ' || c == '\t';
}

static size_t word_length(const char *at)
{
    size_t n = 0;

    while (!is_word_end(at[n]))
        n++;
    return n;
}

static bool equals(const char *at, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(at, name, length) == 0;
}

/* -------------------------------------------------------------- errors ---- */

static int column(const struct weir__cursor *c, const char *at)
{
    ptrdiff_t offset = at - c->text;

    return offset < INT_MAX ? (int)offset + 1 : INT_MAX;
}

struct quoted {
    char text[4 * WORD_MAX + 8];
};

/* What stands there, in quotes, fit for one line of a log: control characters and bytes beyond
 * ASCII are written as \xNN. */
static struct quoted quote(const char *at, size_t length)
{
    struct quoted q = { "the end" };
    size_t n = 0;

    if (*at == '\0')
        return q;
    q.text[n++] = '\'';
    for (size_t i = 0; i < length && i < WORD_MAX; i++) {
        bool plain = at[i] >= ' ' && at[i] <= '~';
        n += (size_t)snprintf(q.text + n, sizeof(q.text) - n, plain ? "%c" : "\\x%02x",
                              plain ? at[i] : (unsigned char)at[i]);
    }
    snprintf(q.text + n, sizeof(q.text) - n, length > WORD_MAX ? "...'" : "'");
    return q;
}

/* The known names of one sort, by index; NULL after the last. */
typedef const char *names(size_t i);

static const char *unit_name(size_t i)
{
    return i < COUNT_OF(units) ? units[i].name : NULL;
}

static const char *unit_long_name(size_t i)
{
    return i < COUNT_OF(units) ? units[i].long_name : NULL;
}

static const char *option_name(size_t i)
{
    return i < COUNT_OF(options) ? options[i].name : NULL;
}

static const char *calendar_name(size_t i)
{
    return weir__calendar_word((int32_t)i + WEIR_DAY);
}

static const char *algorithm_name(size_t i)
{
    return weir_algorithms()[i];
}

/* The index of the name that the word was probably meant to be, or -1.  The beginning of a name
 * ("token") is as near as one slip. */
static int nearest(const char *word, size_t length, names *name)
{
    unsigned best = 2 + (unsigned)length / 4; /* one slip in a short word, a few in a long one */
    int found = -1;

    for (size_t i = 0; length <= WORD_MAX && name(i); i++) {
        size_t n = strlen(name(i));
        if (n > WORD_MAX)
            continue;
        unsigned d = length < n && weir__edits(word, length, name(i), length) == 0
                         ? 1
                         : weir__edits(word, length, name(i), n);

        if (d < best &&
            d < (length > n ? length
                            : n)) { /* the second: "x" is one edit from "s", yet nothing like it */
            best = d;
            found = (int)i;
        }
    }
    return found;
}

/* Says that the word is not one of the names, and which it may have been: the guess, or, if that is
 * -1, all of them. */
static int fail_unknown(struct weir__cursor *c, size_t length, const char *sort, names *name,
                        int guess)
{
    char list[160] = "";
    size_t n = 0;

    if (guess >= 0)
        return weir__fail_at(c->error, column(c, c->at), "unknown %s %s; did you mean '%s'?", sort,
                             quote(c->at, length).text, name((size_t)guess));
    for (size_t i = 0; name(i) && n < sizeof(list); i++)
        n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "", name(i));
    return weir__fail_at(c->error, column(c, c->at), "unknown %s %s; known are %s", sort,
                         quote(c->at, length).text, list);
}

/* --------------------------------------------------- numbers and times ---- */

static int expect_word_end(struct weir__cursor *c, const char *what)
{
    if (is_word_end(*c->at))
        return WEIR_OK;
    return weir__fail_at(c->error, column(c, c->at), "unexpected %s after %s", quote(c->at, 1).text,
                         what);
}

/* Digits, at least one; the cursor stays on a number that is too large or too small. */
static int read_digits(struct weir__cursor *c, const char *what, int64_t min, int64_t max,
                       int64_t *out)
{
    const char *at = c->at;
    int64_t value = 0;
    bool fits = true;

    if (!is_digit(*at))
        return weir__fail_at(c->error, column(c, at), "%s must be a number such as 60; found %s",
                             what, quote(at, 1).text);
    for (; is_digit(*at); at++)
        fits = fits && !__builtin_mul_overflow(value, 10, &value) &&
               !__builtin_add_overflow(value, *at - '0', &value);
    if (!fits || value > max)
        return weir__fail_at(c->error, column(c, c->at), "%s is too large; the most is %" PRId64,
                             what, max);
    if (value < min)
        return weir__fail_at(c->error, column(c, c->at), "%s must be at least %" PRId64, what, min);
    c->at = at;
    *out = value;
    return WEIR_OK;
}

static int read_count(struct weir__cursor *c, const char *what, int64_t min, int64_t max,
                      int64_t *out)
{
    int code = read_digits(c, what, min, max, out);

    if (code == WEIR_OK && *c->at == '.')
        return weir__fail_at(c->error, column(c, c->at), "%s must be a whole number", what);
    return code == WEIR_OK ? expect_word_end(c, what) : code;
}

/* Nanoseconds of one unit.  Leaves `*out` if there is none. */
static int read_unit(struct weir__cursor *c, weir_time *out)
{
    size_t length = 0;

    while (is_letter(c->at[length]))
        length++;
    if (length == 0)
        return WEIR_OK;
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (equals(c->at, length, units[i].name)) {
            *out = units[i].span;
            c->at += length;
            return WEIR_OK;
        }
    }
    if (lower(*c->at) == 'y' || (length > 1 && lower(*c->at) == 'm' &&
                                 lower(c->at[1]) == 'o')) /* months and years have no one length */
        return weir__fail_at(
            c->error, column(c, c->at),
            "unknown unit %s; write days, as in 365d; of limits day, week and month are calendar "
            "windows, written without a number, as in 10000/month",
            quote(c->at, length).text);
    int guess = nearest(c->at, length, unit_long_name);
    return fail_unknown(c, length, "unit", unit_name,
                        guess >= 0 ? guess : nearest(c->at, length, unit_name));
}

/* .digits: leaves where they begin and how many there are, none if there is no point. */
static int read_fraction(struct weir__cursor *c, const char **digits, size_t *count)
{
    *count = 0;
    if (*c->at != '.')
        return WEIR_OK;
    *digits = ++c->at;
    while (is_digit(*c->at))
        c->at++;
    *count = (size_t)(c->at - *digits);
    if (*count == 0)
        return weir__fail_at(c->error, column(c, c->at),
                             "expected a digit after the point; found %s", quote(c->at, 1).text);
    return WEIR_OK;
}

/* The fraction in nanoseconds.  From the last digit to the first: (rest + digit * unit) / 10 must
 * come out even at every step, or the whole does not; so 0.00000000005m is 3ns, and no number of
 * digits can overflow. */
static int scale_fraction(struct weir__cursor *c, const char *digits, size_t count, weir_time unit,
                          weir_time *out)
{
    weir_time rest = 0;

    while (count > 0 && digits[count - 1] == '0')
        count--; /* so that an error points at the finest digit that matters */
    for (size_t i = count; i-- > 0;) {
        rest += (digits[i] - '0') * unit;
        if (rest % 10 != 0)
            return weir__fail_at(c->error, column(c, digits + count - 1),
                                 "finer than a nanosecond; write fewer digits");
        rest /= 10;
    }
    *out = rest;
    return WEIR_OK;
}

/* digits[.digits][unit], up to the end of the word. */
static int read_time(struct weir__cursor *c, const char *what, weir_time *out)
{
    const char *start = c->at, *digits = c->at;
    weir_time whole = 0, part = 0, unit = WEIR_SECOND;
    size_t count = 0;
    int code = read_digits(c, what, 0, INT64_MAX, &whole);

    if (code == WEIR_OK)
        code = read_fraction(c, &digits, &count);
    if (code == WEIR_OK)
        code = read_unit(c, &unit);
    if (code == WEIR_OK)
        code = expect_word_end(c, "the time; write one number and one unit, such as 90s");
    if (code == WEIR_OK)
        code = scale_fraction(c, digits, count, unit, &part);
    if (code != WEIR_OK)
        return code;
    if (__builtin_mul_overflow(whole, unit, &whole) || __builtin_add_overflow(whole, part, &whole))
        return weir__fail_at(c->error, column(c, start),
                             "%s is too large; the most is %" PRId64 "ns, some 292 years", what,
                             INT64_MAX);
    *out = whole;
    return WEIR_OK;
}

/* A time that must not be 0: nothing can happen "per 0 s", and in the struct 0 stands for the
 * default. */
static int read_span(struct weir__cursor *c, const char *what, weir_time *out)
{
    const char *start = c->at;
    int code = read_time(c, what, out);

    if (code == WEIR_OK && *out == 0)
        return weir__fail_at(c->error, column(c, start), "%s must be at least 1ns", what);
    return code;
}

/* -------------------------------------------------------------- limits ---- */

/* A first word that begins with a letter and has no '/' is a name; "r/s" is a rate that lost its
 * count. */
static int read_algorithm(struct weir__cursor *c, struct weir_limit *limit, unsigned *named)
{
    const char *const *name = weir_algorithms();
    bool empty = weir__cursor_end(c);
    size_t length = word_length(c->at);

    if (empty || !is_letter(*c->at) || memchr(c->at, '/', length))
        return WEIR_OK;
    while (*name && !equals(c->at, length, *name))
        name++;
    if (!*name)
        return fail_unknown(c, length, "algorithm", algorithm_name,
                            nearest(c->at, length, algorithm_name));
    limit->algorithm = *name;
    *named |= WEIR__NAMED_ALGORITHM;
    c->at += length;
    weir__cursor_end(c);
    return WEIR_OK;
}

/* "day", "week" or "month" as a whole word: a calendar window, and so (unless another is named) the
 * algorithm of that name. */
static bool read_calendar(struct weir__cursor *c, struct weir_limit *limit)
{
    size_t length = word_length(c->at);

    for (int32_t calendar = WEIR_DAY; weir__calendar_word(calendar) != NULL; calendar++) {
        if (equals(c->at, length, weir__calendar_word(calendar))) {
            limit->calendar = calendar;
            limit->algorithm = limit->algorithm ? limit->algorithm
                                                : weir_algorithms()[weir__algo_index("calendar")];
            c->at += length;
            return true;
        }
    }
    return false;
}

static int read_period(struct weir__cursor *c, struct weir_limit *limit)
{
    limit->calendar = WEIR_NO_CALENDAR;
    limit->period = 0;
    if (read_calendar(c, limit))
        return WEIR_OK;
    if (is_digit(*c->at))
        return read_span(c, "the period", &limit->period);
    if (!is_letter(*c->at))
        return weir__fail_at(c->error, column(c, c->at),
                             "expected a period such as 60, 5s or m; found %s",
                             quote(c->at, 1).text);
    int code = read_unit(c, &limit->period),
        guess = nearest(c->at, word_length(c->at), calendar_name);

    if (code != WEIR_OK && guess >= 0) /* 5/days; but 5/1day goes to read_span, and is a span */
        return fail_unknown(c, word_length(c->at), "period", calendar_name, guess);
    return code == WEIR_OK ? expect_word_end(c, "the period") : code;
}

/* COUNT[r]/PERIOD; leaves where the period stands. */
static int read_rate(struct weir__cursor *c, struct weir_limit *limit, const char **period)
{
    if (!is_digit(*c->at))
        return weir__fail_at(c->error, column(c, c->at),
                             "expected a limit such as 300/60 or 10r/s; found %s",
                             quote(c->at, 1).text);
    int code = read_digits(c, "the count", 1, INT64_MAX, &limit->count);

    if (code != WEIR_OK)
        return code;
    if (*c->at == '.')
        return weir__fail_at(c->error, column(c, c->at),
                             "the count must be a whole number; for 1.5 in 1s write 3/2s");
    if (*c->at == 'r')
        c->at++;
    if (*c->at != '/')
        return weir__fail_at(c->error, column(c, c->at),
                             "expected '/' and a period, as in 300/60; found %s",
                             quote(c->at, 1).text);
    *period = ++c->at;
    return read_period(c, limit);
}

static int read_choice(struct weir__cursor *c, const struct option *o, int64_t *out)
{
    size_t length = word_length(c->at);

    for (*out = 0; *out < 2; ++*out) {
        if (equals(c->at, length, o->words[*out])) {
            c->at += length;
            return WEIR_OK;
        }
    }
    return weir__fail_at(c->error, column(c, c->at), "%s must be %s or %s; found %s", o->name,
                         o->words[1], o->words[0], quote(c->at, length ? length : 1).text);
}

/* An error of somebody who knows the words but not their place. */
static int place_error(struct weir__cursor *c, const char *at, int code)
{
    if (code != WEIR_OK && c->error)
        c->error->column = column(c, at);
    return code;
}

static int read_zone(struct weir__cursor *c, struct weir_limit *limit)
{
    const struct weir__zone *zone;
    size_t length = word_length(c->at);
    char name[sizeof(limit->zone)] = "";

    if (length == 0)
        return weir__fail_at(c->error, column(c, c->at),
                             "zone must be a time zone such as Europe/Berlin; found %s",
                             quote(c->at, 1).text);
    if (length >= sizeof(name))
        return weir__fail_at(c->error, column(c, c->at),
                             "unknown time zone %s: its name is too long",
                             quote(c->at, length).text);
    memcpy(name, c->at, length);
    int code = place_error(c, c->at, weir__zone_find(&zone, name, c->error));

    if (code == WEIR_OK)
        memcpy(limit->zone, name, sizeof(name));
    c->at += length;
    return code;
}

static int read_value(struct weir__cursor *c, const struct option *o, int64_t *out)
{
    int code;

    switch (o->kind) {
    case TIME:
        return read_span(c, o->name, out);
    case CHOICE:
        return read_choice(c, o, out);
    case COUNT32:
        return read_count(c, o->name, o->min, INT32_MAX, out);
    case QUEUE:
        code = read_count(c, o->name, o->min, INT64_MAX, out);
        if (code == WEIR_OK && *out == 0)
            *out = WEIR_NO_QUEUE;
        return code;
    case COUNT64:
    case ZONE:
        break;
    }
    return read_count(c, o->name, o->min, INT64_MAX, out);
}

static void store(struct weir_limit *limit, const struct option *o, int64_t value)
{
    void *member = (char *)limit + o->offset;

    if (o->kind == CHOICE)
        *(bool *)member = value != 0;
    else if (o->kind == COUNT32)
        *(int32_t *)member = (int32_t)value;
    else
        *(int64_t *)member = value;
}

static int64_t load(const struct weir_limit *limit, const struct option *o)
{
    const void *member = (const char *)limit + o->offset;

    if (o->kind == CHOICE)
        return *(const bool *)member;
    if (o->kind == ZONE) /* whether there is a name */
        return *(const char *)member != '\0';
    return o->kind == COUNT32 ? *(const int32_t *)member : *(const int64_t *)member;
}

/* Takes the option's name and what stands between it and the value. */
static int read_name(struct weir__cursor *c, const struct option **out, unsigned named)
{
    const struct option *o = options, *end = options + COUNT_OF(options);
    size_t length = 0;

    while (!is_word_end(c->at[length]) && c->at[length] != '=')
        length++;
    while (o < end && !equals(c->at, length, o->name))
        o++;
    if (o == end)
        return fail_unknown(c, length ? length : 1, "option", option_name,
                            length ? nearest(c->at, length, option_name) : -1);
    if (named & o->bit)
        return weir__fail_at(c->error, column(c, c->at), "%s is written twice; once is enough",
                             o->name);
    c->at += length;
    if (*c->at == '=')
        c->at++;
    else if (o->spaced)
        weir__cursor_end(c);
    else
        return weir__fail_at(c->error, column(c, c->at),
                             "expected '=' and a value after %s; found %s", o->name,
                             quote(c->at, 1).text);
    *out = o;
    return WEIR_OK;
}

static int read_option(struct weir__cursor *c, struct weir_limit *limit, unsigned *named)
{
    const struct option *o = NULL;
    int64_t value = 0;
    int code = read_name(c, &o, *named);

    if (code == WEIR_OK)
        code = o->kind == ZONE ? read_zone(c, limit) : read_value(c, o, &value);
    if (code != WEIR_OK)
        return code;
    if (o->kind != ZONE)
        store(limit, o, value);
    *named |= o->bit;
    return WEIR_OK;
}

/* ------------------------------------------------------------ printing ---- */

struct printer {
    char *out;
    size_t size;
    size_t length; /* what it would be if there were room, as snprintf counts */
};

__attribute__((format(printf, 2, 3))) static void append(struct printer *p, const char *format, ...)
{
    size_t used = p->length < p->size ? p->length : p->size;
    va_list args;

    va_start(args, format);
    int n = vsnprintf(p->size ? p->out + used : NULL, p->size - used, format, args);
    va_end(args);
    p->length += n > 0 ? (size_t)n : 0;
}

static void append_time(struct printer *p, weir_time time)
{
    const struct unit *u = units;

    while (time % u->span != 0) /* ends: ns divides everything */
        u++;
    append(p, "%" PRId64 "%s", time / u->span, time ? u->name : "s");
}

static void append_option(struct printer *p, const struct option *o, const struct weir_limit *limit)
{
    int64_t value = load(limit, o);

    if (value == 0)
        return;
    append(p, " %s%c", o->name, o->spaced ? ' ' : '=');
    if (o->kind == TIME)
        append_time(p, value);
    else if (o->kind == ZONE)
        append(p, "%.*s", (int)sizeof(limit->zone) - 1, limit->zone);
    else if (o->kind == CHOICE)
        append(p, "%s", o->words[1]);
    else
        append(p, "%" PRId64, o->kind == QUEUE && value == WEIR_NO_QUEUE ? 0 : value);
}

/* ------------------------------------------------ for the other readers ---- */

int weir__cursor_column(const struct weir__cursor *cursor)
{
    return column(cursor, cursor->at);
}

bool weir__cursor_end(struct weir__cursor *cursor)
{
    while (*cursor->at == ' ' || *cursor->at == '\t')
        cursor->at++;
    return *cursor->at == '\0';
}

bool weir__cursor_accept(struct weir__cursor *cursor, const char *word)
{
    size_t length = strlen(word);

    if (weir__cursor_end(cursor) || !equals(cursor->at, word_length(cursor->at), word))
        return false;
    cursor->at += length;
    return true;
}

int weir__cursor_count(struct weir__cursor *cursor, const char *what, int64_t min, int64_t *out)
{
    int64_t value = 0;

    weir__cursor_end(cursor);
    int code = read_count(cursor, what, min, INT64_MAX, &value);

    if (code == WEIR_OK)
        *out = value;
    return code;
}

int weir__cursor_time(struct weir__cursor *cursor, const char *what, weir_time *out)
{
    weir__cursor_end(cursor);
    return read_time(cursor, what, out);
}

int weir__limit_read(struct weir__cursor *cursor, struct weir_limit *limit, unsigned *named)
{
    struct weir_limit read = *limit;
    const char *period = NULL;
    unsigned seen = 0;
    int code = read_algorithm(cursor, &read, &seen);

    if (code == WEIR_OK)
        code = read_rate(cursor, &read, &period);
    while (code == WEIR_OK && !weir__cursor_end(cursor))
        code = read_option(cursor, &read, &seen);
    if (code == WEIR_OK)
        code =
            place_error(cursor, period, weir__calendar_check(&read, read.algorithm, cursor->error));
    if (code != WEIR_OK)
        return code;
    *limit = read;
    if (named)
        *named = seen;
    return WEIR_OK;
}

/* -------------------------------------------------------------- public ---- */

int weir_limit_parse(struct weir_limit *out, const char *text, struct weir_error *error)
{
    assert(out && text);
    struct weir__cursor cursor = { text, text, error };
    struct weir_limit limit = { 0 };
    int code = weir__limit_read(&cursor, &limit, NULL);

    if (code == WEIR_OK)
        *out = limit;
    return code;
}

int weir_limit_print(char *out, size_t size, const struct weir_limit *limit)
{
    assert(limit && (out || size == 0));
    struct printer p = { out, size, 0 };

    if (limit->algorithm)
        append(&p, "%s ", limit->algorithm);
    append(&p, "%" PRId64 "/", limit->count);
    if (weir__calendar_word(limit->calendar))
        append(&p, "%s", weir__calendar_word(limit->calendar));
    else
        append_time(&p, limit->period);
    for (size_t i = 0; i < COUNT_OF(options); i++)
        append_option(&p, &options[i], limit);
    return (int)p.length;
}

int weir_time_parse(weir_time *out, const char *text, struct weir_error *error)
{
    assert(out && text);
    struct weir__cursor cursor = { text, text, error };
    weir_time time = 0;
    int code = weir__cursor_time(&cursor, "the time", &time);

    if (code == WEIR_OK && !weir__cursor_end(&cursor))
        return weir__fail_at(error, column(&cursor, cursor.at), "unexpected %s after the time",
                             quote(cursor.at, 1).text);
    if (code == WEIR_OK)
        *out = time;
    return code;
}

/* A limit never prints "never": its period is a span, however long. */
int weir_time_print(char *out, size_t size, weir_time time)
{
    assert(out || size == 0);
    struct printer p = { out, size, 0 };

    if (time == WEIR_NEVER)
        append(&p, "never");
    else
        append_time(&p, time);
    return (int)p.length;
}
