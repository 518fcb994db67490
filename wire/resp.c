/* resp.c -- RESP, the protocol of Redis.
 *
 * Nearly every command has at most nine arguments of less than a hundred bytes, and has come whole:
 * read_plain knows only those, and needs a handful of comparisons for each argument.  Whatever it
 * does not know (longer, cut, beyond a limit, wrong) is read again by read_array, which goes byte
 * by byte and knows everything.
 *
 * More bytes never change an earlier answer: a mistake stays one whatever follows, and a whole
 * command stays whole. A limit is enforced where it is announced, not where it is reached.  Numbers
 * are read as Redis writes them: no needless zeros.
 */
#include "wire/resp.h"

#include <string.h>

enum {
    LINE_MAX_BYTES =
        64 * 1024,         /* an inline command; in a reply: a simple string, error or big number */
    NUMBER_LINE_MAX = 32,  /* in a reply: integers, lengths, counts, booleans, null */
    DOUBLE_LINE_MAX = 512, /* printed without an exponent, the largest has 309 digits */
    REPLY_BULK_MAX = 512 * 1024 * 1024, /* as Redis has it unless told otherwise */
    REPLY_COUNT_MAX = INT32_MAX,
};

#define RARE \
    __attribute__((noinline)) /* kept out of the way of the usual, which then saves no registers \
                               */

static ptrdiff_t wrong(const char **what, const char *why)
{
    *what = why;
    return -1;
}

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') <= 9;
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
        return wrong(what, "expected LF behind CR");
    return end - at > 1 ? 2 : 0;
}

/* -------------------------------------------------------------- commands ---- */

/* Digits and CRLF. */
static ptrdiff_t read_count(const char *from, const char *end, size_t max, size_t *out,
                            const char **what, const char *too_much)
{
    const char *at = from;
    size_t count = 0;
    for (; at < end && is_digit(*at); at++) {
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

/* Any argument.  `before`: how many bytes of the command lie before it. */
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

/* "-1" and CRLF, behind the '*'. */
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

/* How many bytes the argument at `at` takes, of which `left` are there, if its length has one or
 * two digits and it is whole; otherwise 0. */
static inline size_t read_plain_arg(const char *at, size_t left, struct weir__text *arg)
{
    if (left < 6 ||
        at[0] != '$') /* 6: the shortest there is, and all that is looked at of the head */
        return 0;
    size_t len = (unsigned char)(at[1] - '0'), head = 4;
    if (len > 9)
        return 0;
    if (!is_line_end(at + 2)) {
        if (len == 0 || !is_digit(at[2]) || !is_line_end(at + 3))
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

/* The word at `at`, which is no blank: returns its end, or NULL if it is wrong. */
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
        *what = "expected a closing quote with a space or the line's end behind it";
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

/* A line of words.  Its end is looked for first: the words are judged when the line is whole, but
 * for control characters, which no text has and other protocols have early. */
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
        if (!is_digit(*at) || n > INT64_MAX / 10)
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

/* --------------------------------------------------------------- replies ---- */

/* The rest of a line of at most `max` bytes, its end included: text->len of them are text. */
static ptrdiff_t read_line(const char *from, const char *end, size_t max, struct weir__text *text,
                           const char **what)
{
    size_t room = (size_t)(end - from);
    const char *stop = from + (room < max ? room : max), *at = from;
    while (at < stop && *at != '\r' && *at != '\n')
        at++;
    if (at < stop && *at == '\n')
        return wrong(what, "expected CR before LF");
    if (stop - at < 2)
        return room < max ? 0 : wrong(what, "the line is too long");
    if (at[1] != '\n')
        return wrong(what, "expected LF behind CR");
    text->bytes = from;
    text->len = (size_t)(at - from);
    return at + 2 - from;
}

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && is_digit(*at))
        at++;
    return at;
}

static const char *skip_sign(const char *at, const char *end)
{
    return at + (at < end && (*at == '-' || *at == '+'));
}

static bool is_whole_number(struct weir__text text)
{
    const char *end = text.bytes + text.len, *digits = skip_sign(text.bytes, end);
    return digits < end && skip_digits(digits, end) == end;
}

/* inf, nan, or digits, perhaps with a fraction and an exponent. */
static bool is_double(struct weir__text text)
{
    const char *end = text.bytes + text.len, *at = skip_sign(text.bytes, end), *digits = at;
    struct weir__text word = { at, (size_t)(end - at) };
    if (weir__resp_is(word, "inf") || weir__resp_is(word, "nan"))
        return true;
    at = skip_digits(at, end);
    if (at == digits)
        return false;
    if (at < end && *at == '.')
        at = skip_digits(at + 1, end);
    if (at < end && (*at == 'e' || *at == 'E')) {
        digits = skip_sign(at + 1, end);
        at = skip_digits(digits, end);
        if (at == digits)
            return false;
    }
    return at == end;
}

/* $ ! = : a length, that many bytes, CRLF.  The length's line is in v->bytes, and took `took`. */
static ptrdiff_t read_bulk(const char *end, struct weir__resp_value *v, ptrdiff_t took,
                           const char **what)
{
    struct weir__text text = { v->bytes, v->len };
    int64_t len;
    if (!weir__resp_int(text, &len) ||
        len < (v->kind == '$'   ? -1
               : v->kind == '=' ? 4
                                : 0) ||
        len > REPLY_BULK_MAX)
        return wrong(what, "expected the length of a string, of 512 MiB at most");
    v->bytes = NULL;
    v->len = 0;
    if (len < 0)
        return took;
    const char *data = text.bytes + text.len + 2;
    if (v->kind == '=' && end - data > 3 && data[3] != ':')
        return wrong(what, "expected the format of a verbatim string, and ':'");
    if (end - data < len)
        return 0;
    ptrdiff_t tail = read_line_end(data + len, end, what);
    if (tail <= 0)
        return tail;
    size_t format = v->kind == '=' ? 4 : 0; /* "txt:" */
    v->bytes = data + format;
    v->len = (size_t)len - format;
    return took + (ptrdiff_t)len + tail;
}

static ptrdiff_t read_aggregate(struct weir__resp_value *v, ptrdiff_t took, const char **what)
{
    struct weir__text text = { v->bytes, v->len };
    v->bytes = NULL;
    v->len = 0;
    if (!weir__resp_int(text, &v->integer) || v->integer < (v->kind == '*' ? -1 : 0) ||
        v->integer > REPLY_COUNT_MAX)
        return wrong(what, "expected how many values follow, 2^31-1 at most");
    return took;
}

/* : # _ , ( -- one line and no more. */
static ptrdiff_t read_scalar(struct weir__resp_value *v, ptrdiff_t took, const char **what)
{
    struct weir__text text = { v->bytes, v->len };
    if (v->kind != ',' && v->kind != '(') {
        v->bytes = NULL;
        v->len = 0;
    }
    switch (v->kind) {
    case ':':
        return weir__resp_int(text, &v->integer) ? took
                                                 : wrong(what, "expected an integer of 64 bits");
    case '#':
        v->integer = text.len == 1 && text.bytes[0] == 't';
        return text.len == 1 && (text.bytes[0] == 't' || text.bytes[0] == 'f')
                   ? took
                   : wrong(what, "expected t or f");
    case '_':
        return text.len == 0 ? took : wrong(what, "expected nothing behind '_'");
    case ',':
        return is_double(text) ? took : wrong(what, "expected a number");
    default:
        return is_whole_number(text) ? took : wrong(what, "expected a whole number");
    }
}

/* One value or header of any kind, attributes too. */
static ptrdiff_t read_one(const char *bytes, const char *end, struct weir__resp_value *v,
                          const char **what)
{
    struct weir__text text;
    if (bytes == end)
        return 0;
    if (*bytes == '\0' || strchr("+-:$*_#,(!=%~>|", *bytes) == NULL)
        return wrong(what, "expected one of + - : $ * _ # , ( ! = % ~ > |");
    *v = (struct weir__resp_value){ .kind = *bytes };
    size_t max = strchr("+-(", v->kind) ? LINE_MAX_BYTES
                 : v->kind == ','       ? DOUBLE_LINE_MAX
                                        : NUMBER_LINE_MAX;
    ptrdiff_t took = read_line(bytes + 1, end, max, &text, what);
    if (took <= 0)
        return took;
    took++;
    v->bytes = text.bytes;
    v->len = text.len;
    if (v->kind == '+' || v->kind == '-')
        return took;
    if (strchr("$!=", v->kind))
        return read_bulk(end, v, took, what);
    return strchr("*%~>|", v->kind) ? read_aggregate(v, took, what) : read_scalar(v, took, what);
}

ptrdiff_t weir__resp_value(const char *bytes, size_t len, struct weir__resp_value *out,
                           const char **what)
{
    const char *at = bytes, *end = bytes + len;
    struct weir__resp_value v;
    int64_t pass_over =
        0; /* values that belong to attributes; all the way down, without recursion */
    for (;;) {
        ptrdiff_t took = read_one(at, end, &v, what);
        if (took <= 0)
            return took;
        at += took;
        bool pairs = v.kind == '|' || v.kind == '%',
             holds = pairs || v.kind == '*' || v.kind == '~' || v.kind == '>';
        if (v.kind != '|' && pass_over == 0)
            break;
        pass_over += (holds && v.integer > 0 ? v.integer * (pairs ? 2 : 1) : 0) - (v.kind != '|');
    }
    *out = v;
    return at - bytes;
}
