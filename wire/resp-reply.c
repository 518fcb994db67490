/* resp-reply.c -- RESP as a client reads it.
 *
 * One number says where the scanner is in any nesting: the values still to come.  A scalar takes
 * one off, an aggregate of n puts n - 1 on.  So a reply may be nested to any depth, and cut
 * anywhere, without a stack and without reading a value twice.
 *
 * Values of streamed length ("$?", "*?") are refused: no server in use sends them.
 */
#include "wire/resp-reply.h"

#define LINE_MAX_BYTES (64 * 1024)
#define SHORT_MAX      19                  /* ':' and digits that cannot overflow */
#define NESTED_MAX     ((uint64_t)1 << 32) /* values of one reply: the sum cannot overflow */

static ptrdiff_t wrong(const char **what, const char *why)
{
    *what = why;
    return -1;
}

static bool is_aggregate(char kind)
{
    return kind == '*' || kind == '%' || kind == '~' || kind == '>' || kind == '|';
}

static bool is_bulk(char kind)
{
    return kind == '$' || kind == '!' || kind == '=';
}

static bool is_kind(char kind)
{
    return kind != '\0' && strchr("+-:$*_%~>|,#(!=", kind) != NULL;
}

/* The length of the line at `at`, with its CRLF; 0: it is not whole yet. */
static ptrdiff_t measure_line(const char *at, size_t len, const char **what)
{
    const char *end = memchr(at, '\n', len < LINE_MAX_BYTES ? len : LINE_MAX_BYTES);

    if (!is_kind(*at))
        return wrong(what, "this is not an answer of a Redis server");
    if (end == NULL)
        return len < LINE_MAX_BYTES ? 0 : wrong(what, "a line is longer than 64 KiB");
    if (end == at || end[-1] != '\r')
        return wrong(what, "expected CR before LF");
    return end + 1 - at;
}

/* The number of a head.  Only version 2's nulls are below 0. */
static bool read_count(const char *line, size_t len, int64_t *out)
{
    struct weir__text digits = { line + 1, len - 3 };
    bool null = (*line == '$' || *line == '*') && digits.len == 2 && digits.bytes[0] == '-' &&
                digits.bytes[1] == '1';

    *out = -1;
    return null || weir__count_parse(digits.bytes, digits.len, out);
}

/* The length of a bulk value whose head has `line` bytes. */
static ptrdiff_t scan_bulk(const char *at, size_t len, size_t line, size_t max, const char **what)
{
    int64_t count;

    if (!read_count(at, line, &count))
        return wrong(what, "expected the length of a text");
    if (count < 0)
        return (ptrdiff_t)line;
    if ((uint64_t)count > max)
        return wrong(what, "a reply is longer than is allowed");
    size_t whole = line + (size_t)count + 2;
    if (len < whole)
        return 0;
    return memcmp(at + whole - 2, "\r\n", 2) == 0 ? (ptrdiff_t)whole
                                                  : wrong(what, "expected CRLF after a text");
}

/* What an aggregate adds to the values still to come, itself taken off. */
static bool count_nested(const char *at, size_t line, uint64_t *left, const char **what)
{
    int64_t count;

    if (!read_count(at, line, &count) || count > (int64_t)(NESTED_MAX / 4)) {
        *what = "expected the number of an aggregate's values";
        return false;
    }
    if (count > 0)
        *left += (uint64_t)count * (*at == '%' || *at == '|' ? 2 : 1);
    *left -= *at != '|'; /* an attribute stands before the value it belongs to */
    if (*left <= NESTED_MAX)
        return true;
    *what = "a reply has more values than are allowed";
    return false;
}

static bool is_scalar_line(const char *at, size_t line)
{
    struct weir__text text = { at + 1, line - 3 };
    int64_t n;

    return *at == ':'   ? weir__resp_int(text, &n)
           : *at == '_' ? text.len == 0
           : *at == '#' ? text.len == 1 && (text.bytes[0] == 't' || text.bytes[0] == 'f')
                        : memchr(text.bytes, '\r', text.len) == NULL;
}

/* Most lines are a kind and a short number: digits and their CRLF, in one pass.  The length; 0: it
 * is something else, or not whole. */
static size_t short_number(const char *at, size_t len, int64_t *out)
{
    size_t most = len < SHORT_MAX ? len : SHORT_MAX, i = 1;
    int64_t n = 0;

    for (; i < most && (unsigned char)(at[i] - '0') <= 9; i++)
        n = n * 10 + (at[i] - '0');
    *out = n;
    return i > 1 && i + 1 < len && at[i] == '\r' && at[i + 1] == '\n' ? i + 2 : 0;
}

/* One value, of an aggregate its head: its length. */
static ptrdiff_t scan_value(const char *at, size_t len, size_t max, uint64_t *left,
                            const char **what)
{
    int64_t number;
    size_t quick = *at == ':' ? short_number(at, len, &number) : 0;

    *left -= quick > 0;
    if (quick > 0)
        return (ptrdiff_t)quick;
    ptrdiff_t line = measure_line(at, len, what);
    if (line <= 0)
        return line;
    if (is_aggregate(*at))
        return count_nested(at, (size_t)line, left, what) ? line : -1;
    ptrdiff_t took = is_bulk(*at) ? scan_bulk(at, len, (size_t)line, max, what) : line;
    if (!is_bulk(*at) && !is_scalar_line(at, (size_t)line))
        return wrong(what, "a value is not of its type");
    *left -= took > 0;
    return took;
}

ptrdiff_t weir__resp_scan(struct weir__resp_scan *scan, const char *bytes, size_t len, size_t max,
                          const char **what)
{
    uint64_t left = scan->at == 0 ? 1 : scan->left;
    size_t at = scan->at;

    while (left > 0 && at < len) {
        ptrdiff_t took = scan_value(bytes + at, len - at, max, &left, what);
        if (took < 0)
            return -1;
        if (took == 0)
            break;
        at += (size_t)took;
    }
    if (at > max || (left > 0 && len > max))
        return wrong(what, "a reply is longer than is allowed");
    *scan = left > 0 ? (struct weir__resp_scan){ at, left } : (struct weir__resp_scan){ 0 };
    return left > 0 ? 0 : (ptrdiff_t)at;
}

/* ---------------------------------------------------------------- values ---- */

static const char *read_bulk(const char *at, const char *body, int64_t count,
                             struct weir__resp_value *out)
{
    if (count < 0) {
        out->kind = '_';
        return body;
    }
    out->kind = *at == '!' ? '-' : '$';
    out->text = (struct weir__text){ body, (size_t)count };
    if (*at == '=' && count >= 4) /* "txt:" before a verbatim text */
        out->text = (struct weir__text){ body + 4, (size_t)count - 4 };
    return body + count + 2;
}

/* The reply is whole, so the digits end. */
static const char *read_one(const char *at, struct weir__resp_value *out)
{
    int64_t number;
    size_t quick = *at == ':' || *at == '*' ? short_number(at, SHORT_MAX + 2, &number) : 0;

    if (quick > 0) {
        *out = *at == ':' ? (struct weir__resp_value){ .kind = ':', .integer = number }
                          : (struct weir__resp_value){ .kind = '*', .n = (size_t)number };
        return at + quick;
    }
    const char *end = (const char *)rawmemchr(at, '\n') + 1;
    struct weir__text line = { at + 1, (size_t)(end - at) - 3 };
    int64_t count = -1;

    *out = (struct weir__resp_value){ .kind = *at };
    if (is_bulk(*at) || is_aggregate(*at))
        read_count(at, (size_t)(end - at), &count);
    if (is_bulk(*at))
        return read_bulk(at, end, count, out);
    if (is_aggregate(*at)) {
        out->kind = count < 0 ? '_' : *at;
        out->n = count < 0 ? 0 : (size_t)count * (*at == '%' || *at == '|' ? 2 : 1);
    } else if (*at == ':') {
        weir__resp_int(line, &out->integer);
    } else if (*at == '#') {
        out->integer = line.bytes[0] == 't';
    } else {
        out->text = line;
    }
    return end;
}

const char *weir__resp_value(const char *at, struct weir__resp_value *out)
{
    for (at = read_one(at, out); out->kind == '|'; at = read_one(at, out)) {
        for (size_t i = 0, n = out->n; i < n; i++)
            at = weir__resp_skip(at);
    }
    return at;
}

const char *weir__resp_skip(const char *at)
{
    struct weir__resp_value value;

    for (size_t left = 1; left > 0; left--) {
        at = read_one(at, &value);
        left += value.n + (value.kind == '|');
    }
    return at;
}

bool weir__resp_is_error(const struct weir__resp_value *value, const char *word)
{
    size_t len = strlen(word);

    return value->kind == '-' && value->text.len >= len &&
           memcmp(value->text.bytes, word, len) == 0 &&
           (value->text.len == len || value->text.bytes[len] == ' ');
}
