/* limit.c -- limits as people write them: "gcra 5/1m burst 3".
 *
 *     limit    [ALGORITHM] COUNT[r]/PERIOD [OPTION ...]       options in any order, each at most
 *                                                             once
 *     PERIOD   TIME, or a unit alone: 6r/m; or a calendar window: day, week, month
 *     TIME     see base/time.c
 *     OPTION   a row of `options` below; a new one is a new row, and it is parsed, printed and
 *              suggested
 *
 * A struct cannot remember a spelling, so there is one canonical form: the largest unit that
 * divides the time, the number always written ("10r/s" comes back as "10/1s"), the options in the
 * order of the table, defaults left out.  Parsing it gives the same struct.
 *
 * Whether a member fits the algorithm (buckets= on gcra) is checked when the plan is made.
 */
#include "algo/limit.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "algo/algo.h"
#include "base/zone.h"

enum kind {
    COUNT64,
    COUNT32,
    QUEUE, /* a count64 whose written 0 is WEIR_NO_QUEUE: in the struct 0 means "not a shaper" */
    TIME,
    CHOICE, /* a bool, by two words */
    ZONE,   /* the name of a time zone */
};

#define MEMBER(member) offsetof(struct weir_limit, member)

static const struct option {
    const char *name;
    enum weir__limit_named bit;
    enum kind kind;
    size_t offset;
    int64_t min;
    bool spaced;          /* "burst 5" as well as "burst=5"; printed as the first */
    const char *words[2]; /* CHOICE: for false and for true */
} options[] = {
    { "burst", WEIR__NAMED_BURST, COUNT64, MEMBER(burst), 1, true, { 0 } },
    { "queue", WEIR__NAMED_QUEUE, QUEUE, MEMBER(queue), 0, true, { 0 } },
    { "buckets", WEIR__NAMED_BUCKETS, COUNT32, MEMBER(buckets), 1, false, { 0 } },
    { "align", WEIR__NAMED_ALIGN, CHOICE, MEMBER(align_first), 0, false, { "clock", "first" } },
    { "edge", WEIR__NAMED_EDGE, CHOICE, MEMBER(loose), 0, false, { "strict", "loose" } },
    { "warmup", WEIR__NAMED_WARMUP, TIME, MEMBER(warmup), 1, false, { 0 } },
    { "cold", WEIR__NAMED_COLD, COUNT32, MEMBER(cold), 1, false, { 0 } },
    { "zone", WEIR__NAMED_ZONE, ZONE, MEMBER(zone), 0, false, { 0 } },
};

#define OPTIONS (sizeof(options) / sizeof((options)[0]))

/* ------------------------------------------------------------- reading ---- */

const char *weir__no_choice(void)
{
    return "'purse' is not an algorithm for a limit: it holds units that a node has drawn";
}

/* A first word that begins with a letter and has no '/' is a name; "r/s" is a rate that lost its
 * count. */
static int read_algorithm(struct weir__cursor *c, struct weir_limit *limit, unsigned *named)
{
    const char *const *name = weir_algorithms();
    bool empty = weir__cursor_end(c);
    size_t length = weir__cursor_word(c);

    if (empty || !weir__is_letter(*c->at) || memchr(c->at, '/', length))
        return WEIR_OK;
    while (*name && !weir__cursor_is(c, length, *name))
        name++;
    if (!*name && weir__cursor_is(c, length, weir__purse.name))
        return weir__cursor_fail(c, "%s", weir__no_choice());
    if (!*name)
        return weir__cursor_unknown(c, length, "algorithm", weir_algorithms(), WEIR__TO_NULL);
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
    size_t length = weir__cursor_word(c);

    for (int32_t calendar = WEIR_DAY; weir__calendar_word(calendar) != NULL; calendar++) {
        if (weir__cursor_is(c, length, weir__calendar_word(calendar))) {
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
    if (weir__is_digit(*c->at))
        return weir__cursor_span(c, "the period", &limit->period);
    if (!weir__is_letter(*c->at))
        return weir__cursor_fail(c, "expected a period such as 60, 5s or m; found %s",
                                 weir__cursor_quote(c, 1).text);
    static const char *const known[] = { WEIR__UNIT_NAMES, "day", "week", "month", NULL };
    const char *const *windows = known + WEIR__UNITS;
    size_t length = weir__cursor_word(c);
    bool near = weir__nearest(c->at, length, windows, WEIR__TO_NULL) != NULL;
    int code = weir__cursor_unit(c, known, &limit->period);

    if (code != WEIR_OK && near) /* 5/days; but 5/1day is a time */
        return weir__cursor_unknown(c, length, "period", windows, WEIR__TO_NULL);
    return code == WEIR_OK ? weir__cursor_expect_end(c, "the period") : code;
}

/* COUNT[r]/PERIOD; stops where the period begins. */
static int read_rate(struct weir__cursor *c, struct weir_limit *limit, const char **period)
{
    if (!weir__is_digit(*c->at))
        return weir__cursor_fail(c, "expected a limit such as 300/60 or 10r/s; found %s",
                                 weir__cursor_quote(c, 1).text);
    int code = weir__cursor_digits(c, "the count", 1, INT64_MAX, &limit->count);

    if (code != WEIR_OK)
        return code;
    if (*c->at == '.')
        return weir__cursor_fail(c, "the count must be a whole number; for 1.5 in 1s write 3/2s");
    if (*c->at == 'r')
        c->at++;
    if (*c->at != '/')
        return weir__cursor_fail(c, "expected '/' and a period, as in 300/60; found %s",
                                 weir__cursor_quote(c, 1).text);
    *period = ++c->at;
    return read_period(c, limit);
}

static int read_choice(struct weir__cursor *c, const struct option *o, int64_t *out)
{
    size_t length = weir__cursor_word(c);

    for (*out = 0; *out < 2; ++*out) {
        if (weir__cursor_is(c, length, o->words[*out])) {
            c->at += length;
            return WEIR_OK;
        }
    }
    return weir__cursor_fail(c, "%s must be %s or %s; found %s", o->name, o->words[1], o->words[0],
                             weir__cursor_quote(c, length ? length : 1).text);
}

static int read_zone(struct weir__cursor *c, struct weir_limit *limit)
{
    const struct weir__zone *zone;
    size_t length = weir__cursor_word(c);
    char name[sizeof(limit->zone)] = "";

    if (length == 0)
        return weir__cursor_fail(c, "zone must be a time zone such as Europe/Berlin; found %s",
                                 weir__cursor_quote(c, 1).text);
    if (length >= sizeof(name))
        return weir__cursor_fail(c, "unknown time zone %s: its name is too long",
                                 weir__cursor_quote(c, length).text);
    memcpy(name, c->at, length);
    int code = weir__cursor_place(c, c->at, weir__zone_find(&zone, name, c->error));

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
        return weir__cursor_span(c, o->name, out);
    case CHOICE:
        return read_choice(c, o, out);
    case COUNT32:
        return weir__cursor_number(c, o->name, o->min, INT32_MAX, out);
    case QUEUE:
        code = weir__cursor_number(c, o->name, o->min, INT64_MAX, out);
        if (code == WEIR_OK && *out == 0)
            *out = WEIR_NO_QUEUE;
        return code;
    case COUNT64:
    case ZONE:
        break;
    }
    return weir__cursor_number(c, o->name, o->min, INT64_MAX, out);
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

static int fail_option(struct weir__cursor *c, size_t length)
{
    const char *names[OPTIONS];

    if (weir__cursor_is(c, length, "nodelay"))
        return weir__cursor_fail(c, "'nodelay' is nginx's: leave it out, and add 1 to its burst, "
                                    "since burst=5 nodelay lets 6 pass at once: burst 6");
    for (size_t i = 0; i < OPTIONS; i++)
        names[i] = options[i].name;
    return weir__cursor_unknown(c, length ? length : 1, "option", names, OPTIONS);
}

/* Takes the option's name and the "=" or space after it. */
static int read_name(struct weir__cursor *c, const struct option **out, unsigned named)
{
    const struct option *o = options, *end = options + OPTIONS;
    size_t length = 0;

    while (!weir__is_word_end(c->at[length]) && c->at[length] != '=')
        length++;
    while (o < end && !weir__cursor_is(c, length, o->name))
        o++;
    if (o == end)
        return fail_option(c, length);
    if (named & o->bit)
        return weir__cursor_fail(c, "%s is written twice; once is enough", o->name);
    c->at += length;
    if (*c->at == '=')
        c->at++;
    else if (o->spaced)
        weir__cursor_end(c);
    else
        return weir__cursor_fail(c, "expected '=' and a value after %s; found %s", o->name,
                                 weir__cursor_quote(c, 1).text);
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
    size_t length; /* with enough room, as snprintf counts */
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

/* A period is never printed as "never", however long it is. */
static void append_time(struct printer *p, weir_time time)
{
    char text[32];

    weir_time_print(text, sizeof(text), time);
    if (time == WEIR_NEVER)
        append(p, "%" PRId64 "ns", time);
    else
        append(p, "%s", text);
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
        code = weir__cursor_place(cursor, period,
                                  weir__calendar_check(&read, read.algorithm, cursor->error));
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
    for (size_t i = 0; i < OPTIONS; i++)
        append_option(&p, &options[i], limit);
    return (int)p.length;
}

/* ------------------------------------------------------------- meaning ---- */

const char *weir__limit_algorithm(const struct weir_limit *limit)
{
    return limit->algorithm                      ? limit->algorithm
           : limit->calendar != WEIR_NO_CALENDAR ? weir__calendar.name
                                                 : weir__token_bucket.name;
}

bool weir__limit_equal(const struct weir_limit *a, const struct weir_limit *b)
{
    return strcmp(a->algorithm, b->algorithm) == 0 && a->count == b->count &&
           a->period == b->period && a->burst == b->burst && a->queue == b->queue &&
           a->buckets == b->buckets && a->align_first == b->align_first && a->loose == b->loose &&
           a->warmup == b->warmup && a->cold == b->cold && a->calendar == b->calendar &&
           strcmp(a->zone, b->zone) == 0;
}
