/* tzif.c -- the files of the time zone database (TZif, RFC 8536) into lists of changes.
 *
 *     file     header, block; in versions 2 and up a second header and block with times of eight
 *              bytes, and a last line
 *     block    times of changes, then for each the index of its type; then the types: offset from
 *              UTC and more
 *     line     the rule from the last change on, as POSIX writes it: CET-1CEST,M3.5.0,M10.5.0/3
 *
 * The last line's changes are written out up to the year 2263, beyond which no weir_time reaches:
 * two a year, some nine kilobytes a zone. So there is one way to look up a time, and the rule is
 * read once.  No file is trusted: a zone that breaks the format, or is odder than any place on
 * earth, is refused.
 */
#include <stdlib.h>
#include <string.h>

#include "base/digit.h"
#include "base/zone.h"

#define FIRST_YEAR \
    1967 /* of what a rule is written out for: a while before 1970, because the first windows \
            begin there */
#define LAST_YEAR 2263
#define AT_MAX    ((int64_t)1 << 40) /* a change further off than this does not count */
#define DAY       WEIR__SECONDS_IN_A_DAY

/* -------------------------------------------------------- the last line ---- */

struct rule {
    char kind; /* 'M': the week-th weekday of a month; 'J': day of the year from 1, without leap
                  days; 'n': from 0, with */
    int64_t a, week, day; /* a: the month, or the day of the year */
    int64_t time;         /* after midnight by the clocks before the change */
};

struct tail {
    int64_t standard, summer; /* seconds east of UTC */
    bool changes;
    struct rule start, end; /* of summer */
};

static bool is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool accept(const char **at, char c)
{
    bool there = **at == c;

    *at += there;
    return there;
}

static bool read_number(const char **at, int64_t min, int64_t max, int64_t *out)
{
    int64_t n = 0;

    if (!weir__is_digit(**at))
        return false;
    for (; weir__is_digit(**at); ++*at) {
        n = n * 10 + (**at - '0');
        if (n > max)
            return false;
    }
    *out = n;
    return n >= min;
}

/* CET or <+03>: skipped. */
static bool skip_name(const char **at)
{
    bool quoted = accept(at, '<');
    size_t length = 0;

    while (is_alpha((*at)[length]) || (quoted && (weir__is_digit((*at)[length]) ||
                                                  (*at)[length] == '+' || (*at)[length] == '-')))
        length++;
    *at += length;
    return length >= 3 && (!quoted || accept(at, '>'));
}

/* [+-]hours[:minutes[:seconds]] */
static bool read_clock(const char **at, int64_t hours_max, int64_t *out)
{
    int64_t sign = accept(at, '-') ? -1 : 1, hours = 0, minutes = 0, seconds = 0;

    if (sign > 0)
        accept(at, '+');
    if (!read_number(at, 0, hours_max, &hours))
        return false;
    if (accept(at, ':') && (!read_number(at, 0, 59, &minutes) ||
                            (accept(at, ':') && !read_number(at, 0, 59, &seconds))))
        return false;
    *out = sign * (hours * 3600 + minutes * 60 + seconds);
    return true;
}

/* ,M3.5.0/2 */
static bool read_rule(const char **at, struct rule *r)
{
    bool good = accept(at, ',');

    r->kind = **at == 'M' || **at == 'J' ? *(*at)++ : 'n';
    r->time = 7200;
    if (r->kind == 'M')
        good = good && read_number(at, 1, 12, &r->a) && accept(at, '.') &&
               read_number(at, 1, 5, &r->week) && accept(at, '.') && read_number(at, 0, 6, &r->day);
    else
        good = good && read_number(at, r->kind == 'J', 365, &r->a);
    return good && (!accept(at, '/') || read_clock(at, 167, &r->time));
}

static bool read_tail(const char *at, struct tail *t)
{
    if (!skip_name(&at) || !read_clock(&at, 24, &t->standard))
        return false;
    t->standard = -t->standard; /* POSIX counts west of Greenwich */
    if (*at == '\0')
        return true;
    t->changes = true;
    t->summer = t->standard + 3600;
    if (!skip_name(&at))
        return false;
    if (*at != ',') {
        if (!read_clock(&at, 24, &t->summer))
            return false;
        t->summer = -t->summer;
    }
    return read_rule(&at, &t->start) && read_rule(&at, &t->end) && *at == '\0';
}

/* The moment of a rule in a year, by clocks that show UTC. */
static int64_t rule_time(const struct rule *r, int64_t year)
{
    int64_t january = (year - 1970) * 12, day = weir__month_start(january) + r->a;
    bool leap = weir__month_start(january + 12) - weir__month_start(january) == 366;

    if (r->kind == 'J')
        day += (leap && r->a >= 60) - 1;
    if (r->kind == 'M') {
        int64_t first = weir__month_start(january + r->a - 1),
                weekday = (first + 4) - weir__floor_divide(first + 4, 7) * 7;
        day = first + (r->day - weekday + 7) % 7 + (r->week - 1) * 7;
        if (day >= weir__month_start(january + r->a)) /* the fifth is the last */
            day -= 7;
    }
    return day * DAY + r->time;
}

/* Keeps the order; of two at one moment the one that came later counts, and comes after. */
static void insert_change(struct weir__zone *z, int64_t at, int64_t offset)
{
    size_t i = z->changes++;

    for (; i > 0 && z->change[i - 1].at > at; i--)
        z->change[i] = z->change[i - 1];
    z->change[i] = (struct weir__zone_change){ at, (int32_t)offset };
}

static void write_out(struct weir__zone *z, const struct tail *t)
{
    int64_t last = z->changes ? z->change[z->changes - 1].at : -AT_MAX;

    if (z->changes == 0)
        z->offset = (int32_t)t->standard;
    for (int64_t year = FIRST_YEAR; t->changes && year <= LAST_YEAR; year++) {
        int64_t start = rule_time(&t->start, year) - t->standard,
                end = rule_time(&t->end, year) - t->summer;
        if (start > last)
            insert_change(z, start, t->summer);
        if (end > last)
            insert_change(z, end, t->standard);
    }
}

/* ------------------------------------------------------------- the file ---- */

struct reader {
    const unsigned char *at;
    size_t left;
    struct weir_error *error;
};

struct head {
    unsigned char version;
    uint32_t isut, isstd, leap, times, types, chars;
};

static int bad(const struct reader *r, const char *what)
{
    return weir__fail(r->error, WEIR_INVALID, "the time zone's file %s", what);
}

static uint64_t big_endian(const unsigned char *p, size_t bytes)
{
    uint64_t n = 0;

    for (size_t i = 0; i < bytes; i++)
        n = n << 8 | p[i];
    return n;
}

static int64_t signed_number(const unsigned char *p, size_t bytes)
{
    uint64_t n = big_endian(p, bytes);

    return bytes == 4 ? (int32_t)(uint32_t)n : (int64_t)n;
}

static int read_head(struct reader *r, struct head *h)
{
    const unsigned char *p = r->at;

    if (r->left < 44 || memcmp(p, "TZif", 4) != 0)
        return bad(r, "is not one: it does not begin as TZif does, or is cut short");
    h->version = p[4];
    h->isut = (uint32_t)big_endian(p + 20, 4);
    h->isstd = (uint32_t)big_endian(p + 24, 4);
    h->leap = (uint32_t)big_endian(p + 28, 4);
    h->times = (uint32_t)big_endian(p + 32, 4);
    h->types = (uint32_t)big_endian(p + 36, 4);
    h->chars = (uint32_t)big_endian(p + 40, 4);
    r->at += 44;
    r->left -= 44;
    return WEIR_OK;
}

static uint64_t block_size(const struct head *h, uint64_t width)
{
    return (width + 1) * h->times + 6 * (uint64_t)h->types + h->chars + (width + 4) * h->leap +
           h->isstd + h->isut;
}

static int skip_block(struct reader *r, const struct head *h, uint64_t width)
{
    if (block_size(h, width) > r->left)
        return bad(r, "is cut short");
    r->at += block_size(h, width);
    r->left -= block_size(h, width);
    return WEIR_OK;
}

static int check_block(const struct reader *r, const struct head *h, uint64_t width)
{
    if (block_size(h, width) > r->left)
        return bad(r, "is cut short");
    if (h->types == 0)
        return bad(r, "has no types");
    if (h->leap != 0)
        return bad(r,
                   "counts leap seconds, which the clock does not; take the zone without 'right/'");
    const unsigned char *types = r->at + (width + 1) * h->times;
    for (uint32_t i = 0; i < h->types; i++) {
        int64_t offset = signed_number(types + 6 * i, 4);
        if (offset < -WEIR__ZONE_OFFSET_MAX || offset > WEIR__ZONE_OFFSET_MAX)
            return bad(r, "has an offset of a day and more");
    }
    return WEIR_OK;
}

/* Into a zone that has room for all of them. */
static int read_block(struct reader *r, const struct head *h, size_t width, struct weir__zone *z)
{
    const unsigned char *times = r->at, *indexes = times + width * h->times,
                        *types = indexes + h->times;

    z->offset = (int32_t)signed_number(types, 4);
    for (uint32_t i = 0; i < h->times; i++) {
        int64_t at = signed_number(times + width * i, width);
        if (i > 0 && at <= signed_number(times + width * (i - 1), width))
            return bad(r, "has changes out of order");
        if (indexes[i] >= h->types)
            return bad(r, "names a type that is not there");
        int64_t offset = signed_number(types + 6 * indexes[i], 4);
        if (at < -AT_MAX)
            z->offset = (int32_t)offset;
        else if (at <= AT_MAX)
            insert_change(z, at, offset);
    }
    return skip_block(r, h, width);
}

static int read_line(struct reader *r, struct weir__zone *z)
{
    char line[256];
    struct tail tail = { 0 };
    const unsigned char *end = r->left > 0 ? memchr(r->at + 1, '\n', r->left - 1) : NULL;
    size_t length = end ? (size_t)(end - r->at) - 1 : 0;

    if (end == NULL || *r->at != '\n')
        return bad(r, "has no last line");
    if (length == 0)
        return WEIR_OK;
    if (length >= sizeof(line) || memchr(r->at + 1, '\0', length) != NULL)
        return bad(r, "has a last line that makes no sense");
    memcpy(line, r->at + 1, length);
    line[length] = '\0';
    if (!read_tail(line, &tail))
        return bad(r, "has a last line that makes no sense");
    write_out(z, &tail);
    return WEIR_OK;
}

/* Drops changes that change nothing (another name for the same time), and those overtaken at the
 * same moment. */
static void compact(struct weir__zone *z)
{
    size_t kept = 0;

    for (size_t i = 0; i < z->changes; i++) {
        bool overtaken = i + 1 < z->changes && z->change[i + 1].at == z->change[i].at;
        if (!overtaken &&
            z->change[i].offset != (kept == 0 ? z->offset : z->change[kept - 1].offset))
            z->change[kept++] = z->change[i];
    }
    z->changes = kept;
}

/* Days that begin together with the next one: all but the last of those that begin with one
 * change. */
static int find_skipped(const struct reader *r, struct weir__zone *z)
{
    for (size_t i = 0; i < z->changes; i++) {
        int64_t at = z->change[i].at, last = weir__floor_divide(at + z->change[i].offset, DAY),
                day = last;
        while (weir__zone_day_start(z, day) == at && weir__zone_day_start(z, day - 1) == at)
            day--;
        for (; day < last; day++) {
            if (z->skips == WEIR__ZONE_SKIPPED_MAX)
                return bad(r, "leaves out more days than any place does");
            z->skipped[z->skips++] = day;
        }
    }
    return WEIR_OK;
}

static int read_zone(struct reader *r, struct head *h, struct weir__zone **out)
{
    size_t width = h->version == 0 ? 4 : 8;
    int code = check_block(r, h, width);

    if (code != WEIR_OK)
        return code;
    size_t room = (size_t)h->times + 2 * (LAST_YEAR - FIRST_YEAR + 1);
    struct weir__zone *z = calloc(1, sizeof(*z) + room * sizeof(z->change[0]));
    if (z == NULL)
        return weir__fail(r->error, WEIR_NO_MEMORY, "no memory for a time zone");
    code = read_block(r, h, width, z);
    if (code == WEIR_OK && width == 8)
        code = read_line(r, z);
    if (code == WEIR_OK) {
        compact(z);
        code = find_skipped(r, z);
    }
    if (code == WEIR_OK)
        *out = z;
    else
        free(z);
    return code;
}

int weir__zone_parse(struct weir__zone **out, const unsigned char *bytes, size_t size,
                     struct weir_error *error)
{
    struct reader r = { bytes, size, error };
    struct head h = { 0 };
    int code = size > WEIR__ZONE_BYTES_MAX ? bad(&r, "is larger than any") : read_head(&r, &h);

    if (code == WEIR_OK && h.version != 0) { /* the first block is for old readers */
        code = skip_block(&r, &h, 4);
        if (code == WEIR_OK)
            code = read_head(&r, &h);
        if (code == WEIR_OK && h.version == 0)
            code = bad(&r, "has two versions");
    }
    return code == WEIR_OK ? read_zone(&r, &h, out) : code;
}
