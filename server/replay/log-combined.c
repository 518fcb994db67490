/* log-combined.c -- a line of nginx's or Apache's common and combined log formats:
 *
 *     [HOST:PORT] ADDRESS IDENT USER [10/Oct/2000:13:55:36 -0700] "REQUEST" STATUS BYTES ["REFERER"
 *     "USER AGENT"] whatever
 *
 * Clients choose the user's name and all that stands in quotes, so lines are read as servers defend
 * them: the request's opening quote is the first one behind "] " (in a name, quotes come escaped),
 * the time stands before it, and a name may have spaces and brackets. Escapes are nginx's
 * \xXX and Apache's \" \\ \n and so on.
 */
#include <string.h>

#include "base/digit.h"
#include "wire/decimal.h"
#include "server/replay/log.h"

struct span {
    const char *text;
    size_t len;
};

struct reader {
    const char *begin, *at, *end;
    char *scratch; /* where the next decoded text goes */
    struct weir__log_entry *entry;
    struct weir__log_fault *fault;
};

#define ADD(r, name, span) \
    weir__log_add((r)->entry, name, sizeof(name) - 1, (span).text, (span).len)

static bool wrong(struct reader *r, const char *at, const char *expected)
{
    *r->fault = (struct weir__log_fault){ (size_t)(at - r->begin), expected };
    return false;
}

static bool is_given(struct span s)
{
    return s.len > 1 || (s.len == 1 && *s.text != '-');
}

/* ----------------------------------------------------------------- escapes ---- */

/* The escape at `at`; returns how long it is.  A backslash that begins none stays. */
static size_t decode_escape(const char *at, const char *end, char *out)
{
    static const char names[] = "\"\\bfnrtv", bytes[] = "\"\\\b\f\n\r\t\v";
    const char *name = end - at < 2 ? NULL : memchr(names, at[1], sizeof(names) - 1);

    if (name) {
        *out = bytes[name - names];
        return 2;
    }
    if (end - at >= 4 && at[1] == 'x' && weir__hex(at[2]) >= 0 && weir__hex(at[3]) >= 0) {
        *out = (char)(weir__hex(at[2]) << 4 | weir__hex(at[3]));
        return 4;
    }
    *out = '\\';
    return 1;
}

static struct span decode(struct reader *r, struct span s)
{
    const char *at = memchr(s.text, '\\', s.len), *end = s.text + s.len;

    if (at == NULL)
        return s;
    struct span decoded = { r->scratch, 0 };
    memcpy(r->scratch, s.text, (size_t)(at - s.text));
    for (r->scratch += at - s.text; at < end; r->scratch++) {
        if (*at == '\\')
            at += decode_escape(at, end, r->scratch);
        else
            *r->scratch = *at++;
    }
    decoded.len = (size_t)(r->scratch - decoded.text);
    return decoded;
}

/* What stands in quotes from `at` on, which goes behind them.  False, and it stays, if there is no
 * closing quote. */
static bool read_quoted(struct reader *r, struct span *out)
{
    const char *begin = r->at + 1, *quote = begin;

    for (;; quote++) {
        const char *slash;
        quote = memchr(quote, '"', (size_t)(r->end - quote));
        if (quote == NULL)
            return false;
        for (slash = quote; slash > begin && slash[-1] == '\\'; slash--)
            ;
        if ((quote - slash) % 2 == 0)
            break;
    }
    *out = decode(r, (struct span){ begin, (size_t)(quote - begin) });
    r->at = quote + 1;
    return true;
}

/* ----------------------------------------------------------------- request ---- */

/* RFC 9110's token. */
static bool is_method(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char lower = (char)(text[i] | 0x20);
        bool letter = lower >= 'a' && lower <= 'z', digit = text[i] >= '0' && text[i] <= '9';
        if (!letter && !digit && (text[i] == '\0' || strchr("!#$%&'*+-.^_`|~", text[i]) == NULL))
            return false;
    }
    return len > 0;
}

static bool is_protocol(const char *text, size_t len)
{
    return len >= 6 && memcmp(text, "HTTP/", 5) == 0 && text[5] >= '0' && text[5] <= '9';
}

/* The URI may hold spaces: its end is the last one before HTTP/.  Without a protocol it is
 * HTTP/0.9, which knows GET and nothing else: all other such lines come from port scanners. */
bool weir__log_request(const char *text, size_t len, struct weir__log_request *out)
{
    const char *end = text + len, *space = memchr(text, ' ', len),
               *last = space ? memrchr(text, ' ', len) : NULL;

    if (space == NULL || !is_method(text, (size_t)(space - text)))
        return false;
    const char *uri = space + 1, *uri_end = end;
    bool protocol = is_protocol(last + 1, (size_t)(end - last - 1));
    if (protocol)
        uri_end = last;
    if (uri >= uri_end ||
        (!protocol && (space - text != 3 || memcmp(text, "GET", 3) != 0 || *uri != '/')))
        return false;
    *out = (struct weir__log_request){ .method = text,
                                       .method_len = (size_t)(space - text),
                                       .uri = uri,
                                       .uri_len = (size_t)(uri_end - uri) };
    out->protocol = protocol ? last + 1 : end;
    out->protocol_len = (size_t)(end - out->protocol);
    return true;
}

static bool read_request(struct reader *r)
{
    const char *begin = r->at;
    struct weir__log_request request;
    struct span s;

    if (!read_quoted(r, &s))
        return wrong(r, begin, "a closing quote after the request");
    if (!weir__log_request(s.text, s.len, &request))
        return true;
    weir__log_add(r->entry, "method", 6, request.method, request.method_len);
    weir__log_add(r->entry, "uri", 3, request.uri, request.uri_len);
    if (request.protocol_len > 0)
        weir__log_add(r->entry, "protocol", 8, request.protocol, request.protocol_len);
    return true;
}

/* -------------------------------------------------------------------- head ---- */

/* Up to the next space, which must be there, and behind it. */
static bool read_word(struct reader *r, const char *end, struct span *out)
{
    const char *space = memchr(r->at, ' ', (size_t)(end - r->at));

    if (space == NULL || space == r->at)
        return wrong(r, space ? space : end, "ADDRESS - USER [TIME]");
    *out = (struct span){ r->at, (size_t)(space - r->at) };
    r->at = space + 1;
    return true;
}

/* HOST:PORT, and no IPv6 address: that has more colons. */
static bool is_host(struct span s)
{
    const char *colon = memchr(s.text, ':', s.len);
    int64_t port;

    if (colon == NULL || colon == s.text)
        return false;
    size_t rest = (size_t)(s.text + s.len - colon - 1);
    return rest <= 5 && weir__count_parse(colon + 1, rest, &port);
}

/* From the line's beginning to the space before the time. */
static bool read_head(struct reader *r, const char *end)
{
    struct span ip, ident, user, host = { "", 0 };

    if (!read_word(r, end, &ip) || !read_word(r, end, &ident))
        return false;
    if (is_host(ip) && memchr(r->at, ' ', (size_t)(end - r->at)) != NULL) {
        host = (struct span){ ip.text,
                              (size_t)((const char *)memchr(ip.text, ':', ip.len) - ip.text) };
        ip = ident;
        if (!read_word(r, end, &ident))
            return false;
    }
    user = (struct span){ r->at, (size_t)(end - r->at) };
    if (is_given(ip))
        ADD(r, "ip", ip);
    if (is_given(user))
        ADD(r, "user", decode(r, user));
    if (host.len > 0)
        ADD(r, "host", host);
    return true;
}

static const char *find_request(const char *at, const char *end)
{
    for (const char *quote = at; (quote = memchr(quote, '"', (size_t)(end - quote))) != NULL;
         quote++)
        if (quote - at >= WEIR__DATE_COMBINED + 4 && quote[-1] == ' ' && quote[-2] == ']')
            return quote;
    return NULL;
}

static bool read_time_and_head(struct reader *r)
{
    const char *quote = find_request(r->at, r->end);

    if (quote == NULL)
        return wrong(r, r->begin, "ADDRESS - USER [TIME] \"REQUEST\" STATUS BYTES");
    const char *clock = quote - 2 - WEIR__DATE_COMBINED;
    if (clock[-1] != '[' || clock[-2] != ' ' || !weir__date_combined(clock, &r->entry->at))
        return wrong(r, clock, "a time such as [10/Oct/2000:13:55:36 -0700], from 1970 to 2261");
    if (!read_head(r, clock - 2))
        return false;
    r->at = quote;
    return true;
}

/* -------------------------------------------------------------------- tail ---- */

/* Behind a space, up to the next one or the end. */
static bool read_field(struct reader *r, struct span *out)
{
    if (r->at == r->end || *r->at != ' ')
        return false;
    const char *begin = r->at + 1, *space = memchr(begin, ' ', (size_t)(r->end - begin));
    r->at = space ? space : r->end;
    *out = (struct span){ begin, (size_t)(r->at - begin) };
    return true;
}

static bool read_numbers(struct reader *r)
{
    const char *begin = r->at;
    int64_t status = 0;
    struct span s;

    if (!read_field(r, &s) ||
        (is_given(s) && (!weir__count_parse(s.text, s.len, &status) || s.len != 3)) || s.len == 0)
        return wrong(r, begin, "a status of three digits");
    if (is_given(s))
        ADD(r, "status", s);
    r->entry->status = (int)status;
    begin = r->at;
    if (!read_field(r, &s) ||
        (is_given(s) && !weir__count_parse(s.text, s.len, &r->entry->bytes)) || s.len == 0)
        return wrong(r, begin, "a number of bytes");
    if (is_given(s))
        ADD(r, "bytes", s);
    return true;
}

/* Missing and cut fields are left out; the line is good without them. */
static void read_headers(struct reader *r)
{
    struct span referer, agent;

    if (r->end - r->at < 2 || r->at++[1] != '"' || !read_quoted(r, &referer))
        return;
    if (is_given(referer))
        ADD(r, "header.referer", referer);
    if (r->end - r->at < 2 || r->at[0] != ' ' || r->at++[1] != '"' || !read_quoted(r, &agent))
        return;
    if (is_given(agent))
        ADD(r, "header.user-agent", agent);
}

bool weir__log_combined(const char *line, size_t len, char *scratch, struct weir__log_entry *entry,
                        struct weir__log_fault *fault)
{
    struct reader r = { line, line, line + len, scratch, entry, fault };

    entry->n = 0;
    entry->status = 0;
    entry->bytes = -1;
    if (!read_time_and_head(&r) || !read_request(&r) || !read_numbers(&r))
        return false;
    read_headers(&r);
    return true;
}
