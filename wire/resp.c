/* resp.c -- RESP, the protocol of Redis.
 *
 * Nearly every command has at most nine arguments of less than a hundred bytes, and has arrived
 * whole: read_plain knows only those, and needs a few comparisons for each argument.  All others
 * (longer, cut off, beyond a limit, wrong) are read again by read_array, byte by byte.
 *
 * More bytes never change an earlier answer: a mistake stays one, and a whole command stays whole.
 * A length beyond its limit is refused when it is announced, not when it is reached.  Numbers are
 * read as Redis writes them: no leading zeros.
 */
#include "wire/resp.h"

#include <string.h>

#include "base/digit.h"

#define LINE_MAX_BYTES (64 * 1024) /* of an inline command */

#define RARE \
    __attribute__((noinline)) /* kept out of the way of the usual, which then saves no registers \
                               */

static ptrdiff_t wrong(const char **what, const char *why)
{
    *what = why;
    return -1;
}

static inline bool is_line_end(const char *at)
{
    return memcmp(at, "\r\n", 2) == 0;
}

/* CRLF at `at`: 2, 0 if it is not whole yet. */
static ptrdiff_t read_line_end(const char *at, const char *end, const char **what)
{
    if (at < end && *at != '\r')
        return wrong(what, "expected CRLF");
    if (end - at > 1 && at[1] != '\n')
        return wrong(what, "expected LF after CR");
    return end - at > 1 ? 2 : 0;
}

/* -------------------------------------------------------------- commands ---- */

/* Digits and CRLF. */
static ptrdiff_t read_count(const char *from, const char *end, size_t max, size_t *out,
                            const char **what, const char *too_much)
{
    const char *at = from;
    size_t count = 0;

    for (; at < end && weir__is_digit(*at); at++) {
        size_t digit = (size_t)(*at - '0');
        if (at > from && count == 0)
            return wrong(what, "expected a number without zeros before it");
        if (count > max / 10 || digit > max - count * 10)
            return wrong(what, too_much);
        count = count * 10 + digit;
    }
    if (at == from)
        return at == end ? 0 : wrong(what, "expected a number");
    ptrdiff_t took = read_line_end(at, end, what);
    if (took <= 0)
        return took;
    *out = count;
    return at + took - from;
}

/* Any argument.  `before`: bytes of the command before it. */
static ptrdiff_t read_arg(const char *at, const char *end, size_t before, size_t bytes_max,
                          struct weir__text *arg, const char **what)
{
    static const char too_long[] = "the command is longer than is allowed";
    size_t len;

    if (at == end)
        return 0;
    if (*at != '$')
        return wrong(what, "expected '$' and the length of an argument");
    ptrdiff_t head = read_count(at + 1, end, bytes_max, &len, what, too_long);
    if (head <= 0)
        return head;
    head++;
    if (before + (size_t)head > bytes_max || len + 2 > bytes_max - before - (size_t)head)
        return wrong(what, too_long);
    const char *data = at + head;
    if ((size_t)(end - data) < len)
        return 0;
    ptrdiff_t tail = read_line_end(data + len, end, what);
    if (tail <= 0)
        return tail;
    arg->bytes = data;
    arg->len = len;
    return head + (ptrdiff_t)len + tail;
}

/* "-1" and CRLF, after the '*'. */
static ptrdiff_t read_null(const char *at, const char *end, size_t *count, const char **what)
{
    if (end - at > 1 && at[1] != '1')
        return wrong(what, "expected a number of arguments, or -1");
    if (end - at < 2)
        return 0;
    ptrdiff_t took = read_line_end(at + 2, end, what);
    if (took > 0)
        *count = 0;
    return took > 0 ? 2 + took : took;
}

static ptrdiff_t read_array_head(const char *bytes, const char *end,
                                 const struct weir__resp_limits *limits, size_t *count,
                                 const char **what)
{
    const char *at = bytes + 1;
    ptrdiff_t took = at < end && *at == '-'
                         ? read_null(at, end, count, what)
                         : read_count(at, end, limits->args, count, what,
                                      "the command has more arguments than are allowed");

    if (took > 0 && (size_t)took + 1 > limits->bytes)
        return wrong(what, "the command is longer than is allowed");
    return took > 0 ? took + 1 : took;
}

RARE static ptrdiff_t read_array(const char *bytes, size_t len,
                                 const struct weir__resp_limits *limits, struct weir__text *args,
                                 size_t *n, const char **what)
{
    size_t count;
    ptrdiff_t at = read_array_head(bytes, bytes + len, limits, &count, what);

    if (at <= 0)
        return at;
    for (size_t i = 0; i < count; i++) {
        ptrdiff_t took =
            read_arg(bytes + at, bytes + len, (size_t)at, limits->bytes, &args[i], what);
        if (took <= 0)
            return took;
        at += took;
    }
    *n = count;
    return at;
}

/* The size of the argument at `at`, if its length has one or two digits and it is whole within
 * `left` bytes; otherwise 0. */
static inline size_t read_plain_arg(const char *at, size_t left, struct weir__text *arg)
{
    if (left < 6 ||
        at[0] != '$') /* 6: the shortest there is, and all that is looked at of the head */
        return 0;
    size_t len = (unsigned char)(at[1] - '0'), head = 4;
    if (len > 9)
        return 0;
    if (!is_line_end(at + 2)) {
        if (len == 0 || !weir__is_digit(at[2]) || !is_line_end(at + 3))
            return 0;
        len = len * 10 + (size_t)(at[2] - '0');
        head = 5;
    }
    if (left < head + len + 2 || !is_line_end(at + head + len))
        return 0;
    arg->bytes = at + head;
    arg->len = len;
    return head + len + 2;
}

/* The array of a plain command, or 0. */
static inline ptrdiff_t read_plain(const char *bytes, size_t len,
                                   const struct weir__resp_limits *limits, struct weir__text *args,
                                   size_t *n)
{
    size_t left = len < limits->bytes ? len : limits->bytes;

    if (left < 4 || !is_line_end(bytes + 2))
        return 0;
    size_t count = (unsigned char)(bytes[1] - '0');
    if (count > 9 || count > limits->args)
        return 0;
    const char *at = bytes + 4;
    left -= 4;
    for (struct weir__text *arg = args; arg < args + count; arg++) {
        size_t took = read_plain_arg(at, left, arg);
        if (took == 0)
            return 0;
        at += took;
        left -= took;
    }
    *n = count;
    return at - bytes;
}

/* The word at `at`, which is not blank: returns its end; NULL: wrong. */
static const char *read_word(const char *at, const char *end, struct weir__text *arg,
                             const char **what)
{
    char quote = *at == '"' || *at == '\'' ? *at : '\0';
    const char *from = quote ? ++at : at;

    for (; at < end && (quote ? *at != quote : *at != ' ' && *at != '\t'); at++) {
        bool escape = quote == '"'    ? *at == '\\'
                      : quote == '\'' ? *at == '\\' && at + 1 < end && at[1] == '\''
                                      : *at == '"' || *at == '\'';
        if (escape) {
            *what =
                "an inline command has no escapes, nor quotes within a word: send it as an array";
            return NULL;
        }
    }
    arg->bytes = from;
    arg->len = (size_t)(at - from);
    if (quote && (at == end || (++at < end && *at != ' ' && *at != '\t'))) {
        *what = "expected a closing quote with a space or the line's end after it";
        return NULL;
    }
    return at;
}

static ptrdiff_t read_words(const char *at, const char *end, size_t args_max,
                            struct weir__text *args, size_t *n, const char **what)
{
    size_t count = 0;

    for (;;) {
        while (at < end && (*at == ' ' || *at == '\t'))
            at++;
        if (at == end)
            break;
        if (count == args_max)
            return wrong(what, "the command has more arguments than are allowed");
        at = read_word(at, end, &args[count++], what);
        if (at == NULL)
            return -1;
    }
    *n = count;
    return 1;
}

/* A line of words.  Words are checked only when the line is whole; control characters at once,
 * because no text has them, and other protocols have them early. */
RARE static ptrdiff_t read_inline(const char *bytes, size_t len,
                                  const struct weir__resp_limits *limits, struct weir__text *args,
                                  size_t *n, const char **what)
{
    size_t max = limits->bytes < LINE_MAX_BYTES ? limits->bytes : LINE_MAX_BYTES;
    const char *end = bytes + (len < max ? len : max), *at = bytes;

    while (at < end && ((unsigned char)*at >= ' ' || *at == '\t'))
        at++;
    const char *line_end = at;
    if (at < end && *at == '\r')
        at++;
    if (at == end)
        return len < max ? 0
                         : wrong(what, "the line of an inline command is longer than is allowed");
    if (*at != '\n')
        return wrong(what, bytes[0] == 0x16
                               ? "this is TLS, and the port is not"
                               : "expected an array ('*'), or a line without control characters");
    ptrdiff_t read = read_words(bytes, line_end, limits->args, args, n, what);
    return read < 0 ? read : at + 1 - bytes;
}

ptrdiff_t weir__resp_command(const char *bytes, size_t len, const struct weir__resp_limits *limits,
                             struct weir__text *args, size_t *n, const char **what)
{
    if (len == 0)
        return 0;
    if (bytes[0] != '*')
        return read_inline(bytes, len, limits, args, n, what);

    ptrdiff_t took = read_plain(bytes, len, limits, args, n);
    return took > 0 ? took : read_array(bytes, len, limits, args, n, what);
}

/* Digits to the end, INT64_MAX + `more` at most. */
static bool read_digits(const char *at, const char *end, uint64_t more, uint64_t *out)
{
    uint64_t n = 0;

    if (at == end)
        return false;
    for (; at < end; at++) {
        if (!weir__is_digit(*at) || n > INT64_MAX / 10)
            return false;
        n = n * 10 + (uint64_t)(*at - '0'); /* at most INT64_MAX + 2 */
    }
    *out = n;
    return n <= INT64_MAX + more;
}

RARE static bool read_signed(struct weir__text arg, int64_t *out)
{
    if (arg.len == 0)
        return false;
    bool negative = arg.bytes[0] == '-', sign = negative || arg.bytes[0] == '+';
    uint64_t n;
    if (!read_digits(arg.bytes + sign, arg.bytes + arg.len, negative, &n))
        return false;
    *out = (int64_t)(negative ? -n : n);
    return true;
}

bool weir__resp_int(struct weir__text arg, int64_t *out)
{
    uint64_t n = 0;
    size_t i = 0;

    if (arg.len - 1 >= 18) /* fewer digits cannot overflow */
        return read_signed(arg, out);
    do {
        unsigned char digit = (unsigned char)(arg.bytes[i] - '0');
        if (digit > 9)
            return read_signed(arg, out);
        n = n * 10 + digit;
    } while (++i < arg.len);
    *out = (int64_t)n;
    return true;
}

bool weir__resp_is(struct weir__text arg, const char *word)
{
    for (size_t i = 0; i < arg.len; i++) {
        unsigned char a = (unsigned char)arg.bytes[i], b = (unsigned char)word[i];
        if (b == '\0' ||
            (a != b && ((a ^ b) != 0x20 || (unsigned char)((a | 0x20) - 'a') > 'z' - 'a')))
            return false;
    }
    return word[arg.len] == '\0';
}

/* --------------------------------------------------------------- writing ---- */

static inline char *put_line_end(char *to)
{
    memcpy(to, "\r\n", 2);
    return to + 2;
}

char *weir__resp_put_header(char *to, char kind, int64_t n)
{
    to[0] = kind;
    if ((uint64_t)n > 9)
        return put_line_end(weir__put_number(to + 1, n));
    to[1] = (char)('0' + n);
    return put_line_end(to + 2);
}

char *weir__resp_put_bulk(char *to, const char *bytes, size_t len)
{
    to = weir__resp_put_header(to, '$', (int64_t)len);
    if (len > 0)
        memcpy(to, bytes, len);
    return put_line_end(to + len);
}

static char *put_text(char *to, char kind, const char *text, size_t len)
{
    *to++ = kind;
    for (size_t i = 0; i < len; i++)
        *to++ = text[i] == '\r' || text[i] == '\n' ? ' ' : text[i];
    return put_line_end(to);
}

char *weir__resp_put_simple(char *to, const char *text, size_t len)
{
    return put_text(to, '+', text, len);
}

char *weir__resp_put_error(char *to, const char *text, size_t len)
{
    return put_text(to, '-', text, len);
}

char *weir__resp_put_null(char *to, int version)
{
    size_t len = version >= 3 ? 3 : 5;

    memcpy(to, version >= 3 ? "_\r\n" : "$-1\r\n", len);
    return to + len;
}
