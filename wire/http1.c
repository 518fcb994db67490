/* http1.c -- HTTP/1.1 and 1.0 (RFC 9110, 9112).
 *
 * A head is read in one pass.  `at` moves on, or stays at the wrong byte or at the end of the
 * input; each reader returns true for "read", and false for the other two, which `status` tells
 * apart (0: more is needed). So more bytes never change an earlier answer. Headers that the
 * receiver must obey itself (lengths, Connection, Host, Expect) are noted on the way.
 *
 *     strict     Two readers of one stream that disagree on where a request ends can be made to see
 *                different requests.  So everything that servers are known to read in two ways is
 *                refused, even where RFC 9112 allows a guess: a bare LF or CR, a fold, a space
 *                before the colon, more than one length, a length and chunks, an encoding that is
 *                not exactly "chunked"
 *     lenient    one empty line before a request (RFC 9112, 2.2), and bytes beyond ASCII in a
 *                target, which browsers and curl send
 */
#include "wire/http1.h"

#include <string.h>

#include "base/cursor.h"
#include "base/digit.h"
#include "wire/decimal.h"

enum {
    HEAD_MAX = 32 * 1024,
    TARGET_MAX = 8 * 1024,
    METHOD_MAX = 32,
    REASON_MAX = 1024,
};

struct head {
    const char *at, *end;
    int status; /* 0: nothing was wrong */
    const char *what;
    struct weir__http_header *headers;
    size_t n_headers;
    int64_t content_length; /* -1: none */
    bool request;
    bool chunked, closes, keeps, continues;
    size_t hosts;
};

static bool wrong(struct head *h, int status, const char *what)
{
    h->status = status;
    h->what = what;
    return false;
}

/* -------------------------------------------------------------- characters ---- */

static bool is_token(char c)
{
    static const unsigned char marks[256] = {
        ['!'] = 1, ['#'] = 1, ['$'] = 1, ['%'] = 1,         ['&'] = 1,         ['\''] = 1,
        ['*'] = 1, ['+'] = 1, ['-'] = 1, ['.'] = 1,         ['^'] = 1,         ['_'] = 1,
        ['`'] = 1, ['|'] = 1, ['~'] = 1, ['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1
    };

    return marks[(unsigned char)c];
}

bool weir__http_is_token(char c)
{
    return is_token(c);
}

static char lower(char c)
{
    return (unsigned char)(c - 'A') <= 'Z' - 'A' ? (char)(c | 0x20) : c;
}

/* `word` is in lower case, the text in any. */
static bool is_word(struct weir__text text, const char *word)
{
    for (size_t i = 0; i < text.len; i++)
        if (word[i] == '\0' || lower(text.bytes[i]) != word[i])
            return false;
    return word[text.len] == '\0';
}

/* The high bit of each of eight bytes that is less than `least`, or DEL.  A borrow can only set the
 * bit of a byte after a true one, so the lowest is always true. */
static uint64_t special(uint64_t v, unsigned char least)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    uint64_t del = v ^ ones * 0x7f;

    return (((v - ones * least) & ~v) | ((del - ones) & ~del)) & high;
}

/* The first byte that is less than `least`, or DEL. */
static const char *find_special(const char *at, const char *end, unsigned char least)
{
    for (; end - at >= 8; at += 8) {
        uint64_t v;
        memcpy(&v, at, sizeof(v));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        v = __builtin_bswap64(v);
#endif
        v = special(v, least);
        if (v)
            return at + __builtin_ctzll(v) / 8;
    }
    while (at < end && (unsigned char)*at >= least && *at != 0x7f)
        at++;
    return at;
}

/* --------------------------------------------------------------- headers ---- */

/* CRLF; nothing else ends a line. */
static bool read_line_end(struct head *h)
{
    if (h->at < h->end && *h->at != '\r')
        return wrong(h, 400,
                     *h->at == '\n' ? "a line ends with LF alone: expected CRLF" : "expected CRLF");
    if (h->end - h->at > 1 && h->at[1] != '\n')
        return wrong(h, 400, "expected LF after CR");
    if (h->end - h->at < 2)
        return false;
    h->at += 2;
    return true;
}

static bool read_literal(struct head *h, const char *literal, const char *what)
{
    for (; *literal != '\0'; literal++, h->at++) {
        if (h->at == h->end)
            return false;
        if (*h->at != *literal)
            return wrong(h, 400, what);
    }
    return true;
}

/* "HTTP/1.", a digit. */
static bool read_version(struct head *h, int *minor)
{
    static const char expected[] = "expected HTTP/1.1 or HTTP/1.0";

    if (!read_literal(h, "HTTP/", expected))
        return false;
    if (h->at < h->end && weir__is_digit(*h->at) && *h->at != '1')
        return wrong(h, 505, "only HTTP/1.1 and HTTP/1.0 are supported");
    if (!read_literal(h, "1.", expected) || h->at == h->end)
        return false;
    if (!weir__is_digit(*h->at))
        return wrong(h, 400, expected);
    *minor = *h->at++ - '0';
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct weir__text trim(const char *from, const char *to)
{
    while (from < to && is_blank(*from))
        from++;
    while (to > from && is_blank(to[-1]))
        to--;
    return (struct weir__text){ from, (size_t)(to - from) };
}

static bool note_length(struct head *h, struct weir__text value)
{
    if (h->content_length >= 0)
        return wrong(h, 400, "more than one Content-Length");
    if (value.len == 0)
        return wrong(h, 400, "Content-Length is empty");
    return weir__count_parse(value.bytes, value.len, &h->content_length) ||
           wrong(h, 400, "Content-Length: expected one number, of 63 bits at most");
}

static bool note_encoding(struct head *h, struct weir__text value)
{
    if (h->chunked)
        return wrong(h, 400, "more than one Transfer-Encoding");
    if (!is_word(value, "chunked"))
        return wrong(h, 501, "Transfer-Encoding: only chunked is understood");
    h->chunked = true;
    return true;
}

static bool note_connection(struct head *h, struct weir__text value)
{
    const char *end = value.bytes + value.len;

    for (const char *at = value.bytes; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        struct weir__text option = trim(at, comma ? comma : end);
        h->closes |= is_word(option, "close");
        h->keeps |= is_word(option, "keep-alive");
        at = comma ? comma + 1 : end;
    }
    return true;
}

static bool note_host(struct head *h, struct weir__text value)
{
    if (!h->request)
        return true;
    if (h->hosts++ > 0)
        return wrong(h, 400, "more than one Host");
    for (size_t i = 0; i < value.len; i++)
        if (is_blank(value.bytes[i]) || value.bytes[i] == '/' || value.bytes[i] == '@' ||
            value.bytes[i] == ',')
            return wrong(h, 400, "Host: expected a name or an address, and perhaps a port");
    return true;
}

static bool note_expect(struct head *h, struct weir__text value)
{
    if (!h->request)
        return true;
    h->continues = is_word(value, "100-continue");
    return h->continues || wrong(h, 417, "Expect: only 100-continue is understood");
}

static bool note(struct head *h, const struct weir__http_header *header)
{
    switch (header->name.len) { /* so that most headers cost one comparison */
    case 4:
        return is_word(header->name, "host") ? note_host(h, header->value) : true;
    case 6:
        return is_word(header->name, "expect") ? note_expect(h, header->value) : true;
    case 10:
        return is_word(header->name, "connection") ? note_connection(h, header->value) : true;
    case 14:
        return is_word(header->name, "content-length") ? note_length(h, header->value) : true;
    case 17:
        return is_word(header->name, "transfer-encoding") ? note_encoding(h, header->value) : true;
    default:
        return true;
    }
}

/* Up to and including the colon. */
static bool read_name(struct head *h, struct weir__text *name)
{
    const char *from = h->at, *at = from, *end = h->end;

    while (at < end && is_token(*at))
        at++;
    h->at = at;
    if (at == end)
        return false;
    if (*h->at != ':' || h->at == from) {
        if (is_blank(*h->at))
            return wrong(h, 400,
                         h->at == from ? "a header line begins with a space"
                                       : "a space in or after the name of a header");
        return wrong(h, 400, "expected the name of a header, and ':'");
    }
    *name = (struct weir__text){ from, (size_t)(h->at++ - from) };
    return true;
}

/* Up to and including the end of the line. */
static bool read_value(struct head *h, struct weir__text *value)
{
    const char *from = h->at;

    while ((h->at = find_special(h->at, h->end, ' ')) < h->end && *h->at == '\t')
        h->at++;
    const char *to = h->at;
    if (to < h->end && *to != '\r' && *to != '\n')
        return wrong(h, 400, "a control character in a header");
    if (!read_line_end(h))
        return false;
    *value = trim(from, to);
    return true;
}

/* The headers, and the empty line after them. */
static bool read_headers(struct head *h)
{
    for (;;) {
        if (h->at == h->end)
            return false;
        if (*h->at == '\r' || *h->at == '\n')
            return read_line_end(h);
        if (h->n_headers == WEIR__HTTP_HEADERS)
            return wrong(h, 431, "more than 100 headers");
        struct weir__http_header *header = &h->headers[h->n_headers];
        if (!read_name(h, &header->name) || !read_value(h, &header->value) || !note(h, header))
            return false;
        h->n_headers++;
    }
}

/* Checks that need several headers. */
static bool check_headers(struct head *h, int minor)
{
    if (h->chunked && h->content_length >= 0)
        return wrong(h, 400, "Transfer-Encoding and Content-Length");
    if (h->chunked && minor == 0)
        return wrong(h, 400, "Transfer-Encoding in HTTP/1.0");
    if (h->request && minor > 0 && h->hosts == 0)
        return wrong(h, 400, "no Host");
    return true;
}

static bool keeps_alive(const struct head *h, int minor)
{
    return !h->closes && (minor > 0 || h->keeps);
}

/* The answer for a head that was not read to its end. */
static ptrdiff_t not_read(const struct head *h, size_t len, int *status, const char **what)
{
    bool too_long = h->status == 0 && len >= HEAD_MAX;

    if (h->status == 0 && !too_long)
        return 0;
    *status = too_long ? 431 : h->status;
    *what = too_long ? "request line and headers have more than 32 KiB" : h->what;
    return -1;
}

/* --------------------------------------------------------------- requests ---- */

static bool read_method(struct head *h, struct weir__text *method)
{
    const char *from = h->at;

    while (h->at < h->end && is_token(*h->at) && h->at - from <= METHOD_MAX)
        h->at++;
    if (h->at - from > METHOD_MAX)
        return wrong(h, 501, "a method of more than 32 bytes");
    if (h->at == h->end)
        return false;
    if (h->at == from || *h->at != ' ')
        return wrong(h, 400,
                     *from == 0x16 ? "this is TLS, and the port is not"
                                   : "expected a method and a space");
    *method = (struct weir__text){ from, (size_t)(h->at++ - from) };
    return true;
}

static bool read_target(struct head *h, struct weir__text *target)
{
    const char *from = h->at, *end = h->end - from > TARGET_MAX ? from + TARGET_MAX + 1 : h->end;

    h->at = find_special(from, end, '!');
    if (h->at - from > TARGET_MAX)
        return wrong(h, 414, "a target of more than 8 KiB");
    if (h->at == h->end)
        return false;
    if (h->at == from || *h->at != ' ')
        return wrong(h, 400, "expected a target, a space and HTTP/1.1");
    *target = (struct weir__text){ from, (size_t)(h->at++ - from) };
    return true;
}

/* Where the path of "http://authority/path" begins; NULL: another form. */
static const char *skip_authority(struct weir__text target)
{
    const char *end = target.bytes + target.len, *at = target.bytes;
    bool secure = target.len > 4 && lower(at[4]) == 's';
    size_t len = secure ? 8 : 7;

    if (target.len <= len ||
        !is_word((struct weir__text){ at, len }, secure ? "https://" : "http://"))
        return NULL;
    const char *authority = at += len;
    while (at < end && *at != '/' && *at != '?')
        if (*at++ == '@')
            return NULL;
    return at > authority ? at : NULL;
}

static bool is_method(const struct weir__http_request *request, const char *name)
{
    return request->method.len == strlen(name) &&
           memcmp(request->method.bytes, name, request->method.len) == 0;
}

/* RFC 9112, 3.2: the four forms of a target. */
static bool split_target(struct head *h, struct weir__http_request *out)
{
    const char *at = out->target.bytes, *end = at + out->target.len;
    bool whole = (*at == '*' && out->target.len == 1 && is_method(out, "OPTIONS")) ||
                 is_method(out, "CONNECT");

    out->path = (struct weir__text){ at, whole ? out->target.len : 0 };
    out->query = (struct weir__text){ end, 0 };
    if (memchr(at, '#', out->target.len))
        return wrong(h, 400, "a target with a fragment (#)");
    if (whole)
        return true;
    if (*at != '/' && (at = skip_authority(out->target)) == NULL)
        return wrong(h, 400, "expected a target that begins with / or http://");
    const char *mark = memchr(at, '?', (size_t)(end - at)), *path_end = mark ? mark : end;
    if (mark)
        out->query = (struct weir__text){ mark + 1, (size_t)(end - mark - 1) };
    if (at == path_end) { /* "http://host" asks for "/", and there is one before the host */
        at = memchr(out->target.bytes, '/', out->target.len);
        path_end = at + 1;
    }
    out->path = (struct weir__text){ at, (size_t)(path_end - at) };
    return true;
}

/* An empty line may be left over from the last request. */
static bool skip_empty_line(struct head *h)
{
    return h->at < h->end && *h->at == '\r' ? read_line_end(h) : true;
}

static bool read_request(struct head *h, struct weir__http_request *out)
{
    return skip_empty_line(h) && read_method(h, &out->method) && read_target(h, &out->target) &&
           read_version(h, &out->minor) && split_target(h, out) && read_line_end(h) &&
           read_headers(h) && check_headers(h, out->minor);
}

ptrdiff_t weir__http_request(const char *bytes, size_t len, struct weir__http_request *out,
                             int *status, const char **what)
{
    struct head h = { .at = bytes,
                      .end = bytes + (len < HEAD_MAX ? len : HEAD_MAX),
                      .headers = out->headers,
                      .content_length = -1,
                      .request = true };

    if (!read_request(&h, out))
        return not_read(&h, len, status, what);
    out->keep_alive = keeps_alive(&h, out->minor);
    out->chunked = h.chunked;
    out->expects_continue = h.continues && out->minor > 0;
    out->content_length = h.content_length;
    out->n_headers = h.n_headers;
    return h.at - bytes;
}

/* -------------------------------------------------------------- responses ---- */

static bool read_status(struct head *h, int *status)
{
    int n = 0;

    if (!read_literal(h, " ", "expected a space after the version"))
        return false;
    for (int digits = 0; digits < 3; digits++, h->at++) {
        if (h->at == h->end)
            return false;
        if (!weir__is_digit(*h->at) || (digits == 0 && *h->at == '0'))
            return wrong(h, 400, "expected a status of three digits");
        n = n * 10 + (*h->at - '0');
    }
    *status = n;
    return true;
}

/* Some servers leave out the reason, and the space before it too. */
static bool read_reason(struct head *h)
{
    const char *from = h->at;

    if (h->at < h->end && *h->at != ' ')
        return read_line_end(h);
    const char *end = h->end - from > REASON_MAX ? from + REASON_MAX : h->end;
    while ((h->at = find_special(h->at, end, ' ')) < end && *h->at == '\t')
        h->at++;
    if (h->at - from == REASON_MAX)
        return wrong(h, 400, "a reason of more than 1 KiB");
    return read_line_end(h);
}

static bool read_response(struct head *h, struct weir__http_response *out)
{
    return read_version(h, &out->minor) && read_status(h, &out->status) && read_reason(h) &&
           read_headers(h) && check_headers(h, out->minor);
}

ptrdiff_t weir__http_response(const char *bytes, size_t len, struct weir__http_response *out,
                              const char **what)
{
    struct head h = { .at = bytes,
                      .end = bytes + (len < HEAD_MAX ? len : HEAD_MAX),
                      .headers = out->headers,
                      .content_length = -1 };
    int status;

    if (!read_response(&h, out))
        return not_read(&h, len, &status, what);
    out->keep_alive = keeps_alive(&h, out->minor);
    out->chunked = h.chunked;
    out->content_length = h.content_length;
    out->n_headers = h.n_headers;
    return h.at - bytes;
}

struct weir__text weir__http_header(const struct weir__http_header *headers, size_t n,
                                    const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < n; i++) {
        struct weir__text text = headers[i].name;
        size_t same = 0;
        while (text.len == len && same < len && lower(text.bytes[same]) == lower(name[same]))
            same++;
        if (text.len == len && same == len)
            return headers[i].value;
    }
    return (struct weir__text){ NULL, 0 };
}

/* ------------------------------------------------------------------ query ---- */

static bool decode(struct weir__text in, char **scratch, struct weir__text *out)
{
    char *to = *scratch;

    *out = (struct weir__text){ to, 0 };
    for (size_t i = 0; i < in.len; i++) {
        char c = in.bytes[i];
        if (c == '%') {
            int high = in.len - i > 2 ? weir__hex(in.bytes[i + 1]) : -1,
                low = in.len - i > 2 ? weir__hex(in.bytes[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+') {
            c = ' ';
        }
        *to++ = c;
    }
    out->len = (size_t)(to - *scratch);
    *scratch = to;
    return true;
}

bool weir__http_query_next(struct weir__text *query, char **scratch, struct weir__text *name,
                           struct weir__text *value, bool *bad)
{
    *bad = false;
    if (query->len == 0)
        return false;
    const char *at = query->bytes, *end = at + query->len;
    while (at < end && *at == '&')
        at++;
    if (at == end)
        return false;
    const char *amp = memchr(at, '&', (size_t)(end - at)), *stop = amp ? amp : end;
    const char *equal = memchr(at, '=', (size_t)(stop - at)), *name_end = equal ? equal : stop,
               *value_start = equal ? equal + 1 : stop;
    *bad =
        !decode((struct weir__text){ at, (size_t)(name_end - at) }, scratch, name) ||
        !decode((struct weir__text){ value_start, (size_t)(stop - value_start) }, scratch, value);
    *query = (struct weir__text){ stop, (size_t)(end - stop) };
    return !*bad;
}

/* ----------------------------------------------------------------- status ---- */

const char *weir__http_status_text(int status)
{
    static const char *const texts[] = { [100] = "Continue",
                                         [200] = "OK",
                                         [201] = "Created",
                                         [202] = "Accepted",
                                         [204] = "No Content",
                                         [302] = "Found",
                                         [304] = "Not Modified",
                                         [400] = "Bad Request",
                                         [401] = "Unauthorized",
                                         [403] = "Forbidden",
                                         [404] = "Not Found",
                                         [405] = "Method Not Allowed",
                                         [408] = "Request Timeout",
                                         [409] = "Conflict",
                                         [411] = "Length Required",
                                         [413] = "Content Too Large",
                                         [414] = "URI Too Long",
                                         [415] = "Unsupported Media Type",
                                         [417] = "Expectation Failed",
                                         [422] = "Unprocessable Content",
                                         [429] = "Too Many Requests",
                                         [431] = "Request Header Fields Too Large",
                                         [500] = "Internal Server Error",
                                         [501] = "Not Implemented",
                                         [502] = "Bad Gateway",
                                         [503] = "Service Unavailable",
                                         [504] = "Gateway Timeout",
                                         [505] = "HTTP Version Not Supported" };
    const char *text =
        status >= 0 && (size_t)status < sizeof(texts) / sizeof(texts[0]) ? texts[status] : NULL;

    return text != NULL ? text : "Unknown";
}
