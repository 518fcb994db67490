/* uri.c -- the path of a URI as a server will see it.
 *
 * A rule for /admin must hold for /%61dmin, //admin, /x/../admin and http://host/admin?x as well,
 * because the server behind it serves the same page for all of them.  In this order, each once:
 *
 *     scheme and host   http://host/a       /a         only if the scheme is followed by ://
 *     query, fragment   /a?b#c              /a         from the first of either
 *     escapes           /%61%2fb            /a/b       %2F and %2E count as the slash and dot they
 *                                                      are; another (%zz) stays
 *     slashes           //a///b             /a/b
 *     dots              /a/./b/../c  /..    /a/c  /    never above the root; a last . or .. leaves
 *                                                      its slash
 *
 * It always begins with a slash: "a" is /a, and nothing at all is /.  But "*", the whole server in
 * an OPTIONS request, stays "*". ;parameters stay.  An escape that comes out of an escape (%2561)
 * stays an escape (%61), as in a server.
 *
 * Tolerant frameworks serve one page for more spellings than that.  Loosely, beyond all this:
 *
 *     case              /LOGIN              /login/
 *     parameters        /login;x=1/a;b      /login/a/    before escapes, slashes and dots, as in
 *                                                        Tomcat: /x/..;/a, /x/;y/../a and
 *                                                        /x;%2fy/../a are /a/, /a%3bc is not
 *     backslashes       /x\..\login         /login/      as on Windows
 *     the end           /login  /login/%20  /login/      blanks, zero bytes and slashes go, and one
 *                                                        slash comes, so that "/api/" begins /api
 *                                                        and /api/v1 alike
 *
 * Servers that know no parameters read /x/;y/../a as /x/a/: loose-path.c has the other readings.
 *
 * Nearly every path is plain already.  weir__uri_is_plain looks at sixteen bytes at a time
 * (bytes.h) for anything that could change, and only then looks closely.
 */
#include "match/values.h"

#include "base/digit.h"
#include "match/bytes.h"

/* ------------------------------------------------------------- is it plain ---- */

static inline __attribute__((always_inline)) bool is_escape(const char *uri, size_t len, size_t at)
{
    return uri[at] == '%' && len - at > 2 && weir__hex(uri[at + 1]) >= 0 &&
           weir__hex(uri[at + 2]) >= 0;
}

/* Might one of these bytes change?  % ? # might, and so might two adjacent ones of . and /. */
static bool may_change(weir__bytes v)
{
    weir__bytes marks = (weir__bytes)(v == '%') | (weir__bytes)(v == '?') | (weir__bytes)(v == '#');
    uint32_t dots = weir__bytes_bits((v | ('.' ^ '/')) == ('.' | '/'));

    return (weir__bytes_bits(marks) | (dots & dots << 1)) != 0;
}

/* Is the segment after this slash one to resolve: empty before another slash, . or .. ? */
static bool is_dots(const char *uri, size_t len, size_t at)
{
    size_t dots = 0;

    if (at < len && uri[at] == '/')
        return true;
    while (at < len && uri[at] == '.' && dots < 3)
        at++, dots++;
    return (dots == 1 || dots == 2) && (at == len || uri[at] == '/');
}

static bool is_plain_closely(const char *uri, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (uri[i] == '?' || uri[i] == '#' || is_escape(uri, len, i) ||
            (uri[i] == '/' && is_dots(uri, len, i + 1)))
            return false;
    return true;
}

bool weir__uri_is_plain(const char *uri, size_t len)
{
    if (len == 0 || uri[0] != '/')
        return len == 1 && uri[0] == '*';
    bool suspect = may_change(
        len < 16 ? weir__bytes_join(weir__bytes_first(uri, len), weir__bytes_second(uri, len))
                 : weir__bytes_sixteen(uri));
    for (size_t at = 15; at + 1 < len; at += 15) /* not 16: pairs are seen whole */
        suspect |= may_change(weir__bytes_sixteen(uri + (at + 16 <= len ? at : len - 16)));
    return !suspect || is_plain_closely(uri, len);
}

/* -------------------------------------------------------------- make it so ---- */

/* Where the path begins: after the host, if there is a scheme. */
static size_t skip_host(const char *uri, size_t len)
{
    size_t at = 0;

    while (at < len && ((uri[at] | 0x20) >= 'a' && (uri[at] | 0x20) <= 'z'))
        at++;
    if (at == 0)
        return 0;
    while (at < len && (((uri[at] | 0x20) >= 'a' && (uri[at] | 0x20) <= 'z') ||
                        (uri[at] >= '0' && uri[at] <= '9') || uri[at] == '+' || uri[at] == '-' ||
                        uri[at] == '.'))
        at++;
    if (len - at < 3 || memcmp(uri + at, "://", 3) != 0)
        return 0;
    for (at += 3; at < len && uri[at] != '/' && uri[at] != '?' && uri[at] != '#';)
        at++;
    return at;
}

/* The path so far.  Bytes that do not fit are counted but not kept, so that a .. from there returns
 * to the right place: the bytes kept are the beginning of the whole path. */
struct path {
    char *out;
    size_t size, len;
    size_t segment; /* where the last segment that is kept begins: always behind a slash */
    size_t n;       /* bytes of the current segment */
    bool dots;      /* they are all dots */
    bool keeps;     /* .. stays */
    bool behind;    /* it begins beyond the bytes kept, ... */
    size_t others;  /* ... and so do this many before it */
};

static inline __attribute__((always_inline)) void put_byte(struct path *p, char c)
{
    if (!p->behind && p->len < p->size)
        p->out[p->len++] = c;
    p->dots = p->dots && c == '.';
    p->n++;
}

/* Removes the current segment. */
static void drop_segment(struct path *p)
{
    p->len = p->behind ? p->len : p->segment;
    p->n = 0;
    p->dots = true;
}

/* Removes the segment before it, and goes back to its start. */
static void step_back(struct path *p)
{
    if (p->behind && p->others > 0) {
        p->others--;
        return;
    }
    if (!p->behind && p->segment > 1)
        for (p->segment--; p->out[p->segment - 1] != '/';)
            p->segment--;
    p->behind = false;
    p->len = p->segment;
}

/* The current segment is complete: resolves it if it is . or .. */
static void end_segment(struct path *p)
{
    bool up = p->dots && p->n == 2;

    if (!p->dots || p->n > 2 || p->keeps)
        return;
    drop_segment(p);
    if (up)
        step_back(p);
}

static void put_slash(struct path *p)
{
    end_segment(p);
    if (p->n == 0)
        return; /* there is one already */
    if (p->behind) {
        p->others++;
    } else if (p->len < p->size) {
        p->out[p->len++] = '/';
        p->segment = p->len;
    } else {
        p->behind = true;
    }
    p->n = 0;
    p->dots = true;
}

/* The byte at *at, which moves behind it; an escape is one byte. */
static inline __attribute__((always_inline)) char next_byte(const char *uri, size_t len, size_t *at)
{
    size_t here = *at;

    if (!is_escape(uri, len, here)) {
        *at += 1;
        return uri[here];
    }
    *at += 3;
    return (char)(weir__hex(uri[here + 1]) << 4 | weir__hex(uri[here + 2]));
}

size_t weir__uri_plain(const char *uri, size_t len, char *out, size_t size)
{
    struct path p = { .out = out, .size = size, .len = 1, .segment = 1, .dots = true };

    if (len == 1 && uri[0] == '*') {
        out[0] = '*';
        return 1;
    }
    out[0] = '/';
    for (size_t at = skip_host(uri, len); at < len && uri[at] != '?' && uri[at] != '#';) {
        char c = next_byte(uri, len, &at);
        if (c != '/')
            put_byte(&p, c);
        else
            put_slash(&p);
    }
    end_segment(&p);
    return p.len;
}

/* ---------------------------------------------------------------- loosely ---- */

#define NO_SLASH '\x1f' /* a slash that parts nothing */

static char small(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

static bool is_slash(char c)
{
    return c == '/' || c == '\\';
}

static bool ends_name(char c)
{
    return is_slash(c) || c == '?' || c == '#';
}

/* http:/a, to a URL /a. */
static size_t skip_scheme(const char *uri, size_t len)
{
    size_t at = 0;

    while (at < len && !ends_name(uri[at]) && uri[at] != ':')
        at++;
    return len - at > 1 && uri[at] == ':' && is_slash(uri[at + 1]) ? at + 1 : 0;
}

/* To a URL //x/y, http://x/y and http:////x/y are the path /y on the host x. */
static size_t skip_url_host(const char *uri, size_t len)
{
    size_t begin = skip_scheme(uri, len), at = begin;

    while (at < len && is_slash(uri[at]))
        at++;
    if (at - begin < 2)
        return begin;
    while (at < len && !ends_name(uri[at]))
        at++;
    return at;
}

static bool is_url(enum weir__path_reader reader)
{
    return reader == WEIR__URL || reader == WEIR__URL_STRICTLY;
}

/* An escaped slash parts nothing. */
static bool keeps_slashes(enum weir__path_reader reader)
{
    return is_url(reader) || reader == WEIR__RAW_DOTS;
}

static size_t skip_to_path(const char *uri, size_t len, enum weir__path_reader reader)
{
    size_t begin = reader == WEIR__BEHIND_NGINX ? 0
                   : is_url(reader)             ? skip_url_host(uri, len)
                                                : skip_host(uri, len);

    return begin == 0 && reader == WEIR__JETTY ? skip_scheme(uri, len) : begin;
}

/* Slashes that parted nothing, and the empty segments between others. */
static size_t join_slashes(char *out, size_t len)
{
    size_t kept = 0;

    for (size_t i = 0; i < len; i++) {
        char c = (char)(out[i] == NO_SLASH ? '/' : out[i]);
        if (c != '/' || kept == 0 || out[kept - 1] != '/')
            out[kept++] = c;
    }
    return kept;
}

/* Blanks and slashes at the end become one slash. */
static size_t end_loosely(char *out, size_t len, enum weir__path_reader reader)
{
    while (len > 0 && (out[len - 1] == '/' || (unsigned char)out[len - 1] <= ' '))
        len--;
    if (keeps_slashes(reader) || reader == WEIR__JETTY)
        len = join_slashes(out, len);
    out[len++] = '/';
    return len;
}

static inline __attribute__((always_inline)) void
put_loosely(struct path *p, char c, bool escaped, bool first, enum weir__path_reader reader)
{
    bool empty = is_slash(c) && p->n == 0 && !first;

    if (!is_slash(c)) {
        put_byte(p, small(c));
        p->dots = p->dots && !(escaped && reader == WEIR__RAW_DOTS);
        return;
    }
    if ((escaped && keeps_slashes(reader)) ||
        (empty && (reader == WEIR__URL_STRICTLY || reader == WEIR__JETTY)))
        put_byte(p, NO_SLASH);
    if (!escaped || !keeps_slashes(reader))
        put_slash(p);
}

/* To some a # is a byte as any other. */
static inline __attribute__((always_inline)) bool ends_path(char c, enum weir__path_reader reader)
{
    if (reader == WEIR__BEHIND_NGINX)
        return false;
    return c == '?' || (c == ';' && reader == WEIR__CUT) ||
           (c == '#' && reader != WEIR__WINDOWS && reader != WEIR__RAW_DOTS &&
            reader != WEIR__DOTS);
}

/* All readings of a path of 8 KB are work: with the reader known to the compiler they are half as
 * much. */
static inline __attribute__((always_inline)) size_t
read_as(const char *uri, size_t len, enum weir__path_reader reader, char *out, size_t size)
{
    struct path p = { .out = out,
                      .size = size - 1,
                      .len = 1,
                      .segment = 1,
                      .dots = true,
                      .keeps = reader == WEIR__DOTS };
    bool plain = reader == WEIR__BEHIND_NGINX, parameter = false;
    size_t begin = skip_to_path(uri, len, reader);

    out[0] = '/';
    for (size_t at = begin; at < len && !ends_path(uri[at], reader);) {
        bool first = at == begin, escaped = !plain && uri[at] == '%';
        char c = plain ? uri[at++] : next_byte(uri, len, &at);
        if (reader == WEIR__DECODED)
            parameter = !is_slash(c) && (parameter || c == ';');
        else if (!escaped && (reader == WEIR__TOMCAT || reader == WEIR__JETTY || plain))
            parameter = c != '/' && (parameter || c == ';');
        if (parameter)
            continue;
        put_loosely(&p, c, escaped, first, reader);
    }
    end_segment(&p);
    return end_loosely(out, p.len, reader);
}

size_t weir__uri_loose(const char *uri, size_t len, enum weir__path_reader reader, char *out,
                       size_t size)
{
    switch (reader) {
    case WEIR__TOMCAT:
        return read_as(uri, len, WEIR__TOMCAT, out, size);
    case WEIR__BEHIND_NGINX:
        return read_as(uri, len, WEIR__BEHIND_NGINX, out, size);
    case WEIR__WINDOWS:
        return read_as(uri, len, WEIR__WINDOWS, out, size);
    case WEIR__DECODED:
        return read_as(uri, len, WEIR__DECODED, out, size);
    case WEIR__CUT:
        return read_as(uri, len, WEIR__CUT, out, size);
    case WEIR__URL:
        return read_as(uri, len, WEIR__URL, out, size);
    case WEIR__URL_STRICTLY:
        return read_as(uri, len, WEIR__URL_STRICTLY, out, size);
    case WEIR__JETTY:
        return read_as(uri, len, WEIR__JETTY, out, size);
    case WEIR__RAW_DOTS:
        return read_as(uri, len, WEIR__RAW_DOTS, out, size);
    case WEIR__DOTS:
        break;
    }
    return read_as(uri, len, WEIR__DOTS, out, size);
}
