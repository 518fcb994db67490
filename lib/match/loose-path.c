/* loose-path.c -- a path in every way in which servers read it, for rules with `paths: loose`.
 *
 * One spelling is several pages: /a/;x/../b is /b to Tomcat and /a/b to nginx.  So a path with a
 * byte on which servers differ has these readings, and a rule applies if one of them matches:
 *
 *     as Tomcat           parameters go, then escapes are decoded, then dots resolved
 *     ... behind nginx    of the path that nginx hands on
 *     on Windows          no parameters; a backslash is a slash: /a;\..\b is /b
 *     escapes first       the one behind nginx without its bound of 2,048 bytes, which a long
 *                         parameter fills
 *     ; as ?              /login;/x is /login: fastify 4, and find-my-way
 *     as a URL            //x/login is /login with x as the host, http:/login is /login, and in
 *                         /x%2fy/../login the escaped slash is no slash: new URL(request.url, ...)
 *                         in Node, parse_url in PHP, Go, Apache in front of others
 *     ... strictly        and /api//../login is /api/login, since .. takes back the empty segment:
 *                         new URL, Hono
 *     ... behind nginx    only of /x/../\h/login, which is /\h/login there, and so h is a host
 *     the host of PHP     //x\y/login is /login to parse_url, which takes x\y for a host
 *     as Jetty            the same without hosts: //api/login//.. is /api/login, and Undertow
 *     escaped dots        /login/%2e/.. is /login to what resolves dots without a look at escapes:
 *                         path.normalize in Node, JoinPath in Go, urljoin in Python
 *     dots stay           /login/../x is within /login: handlers mounted there in Express, Django,
 *                         Starlette and others, which resolve nothing
 *     as nginx            in lower case; always the last one
 *
 * No client sends a # in a path, and servers differ on it: to nginx and in a URL the path ends
 * there, to Go and Node it is a byte as any other, so that /x#/../login is /login.
 *
 * Where they differ by more than a parameter at the end all such paths are one in keys: a client
 * could spell one path in any number of ways.
 */
#include <string.h>

#include "match/bytes.h"
#include "match/rules.h"

/* The path as a server sees it. */
static void plain_uri(struct weir__value *v, char scratch[WEIR__URI_MAX])
{
    if (v->len == 0)
        return;
    if (!weir__uri_is_plain(v->text, v->len)) {
        v->len = weir__uri_plain(v->text, v->len, scratch, WEIR__URI_MAX);
        v->text = scratch;
    }
    if (v->len > WEIR__URI_MAX)
        v->len = WEIR__URI_MAX;
}

static bool has_doubtful(weir__bytes v)
{
    weir__bytes marks = (weir__bytes)(v == ';') | (weir__bytes)(v == '\\') |
                        (weir__bytes)(v == '%') | (weir__bytes)(v == '#') |
                        (weir__bytes)((weir__bytes)(v - 1) < ' ');

    return weir__bytes_bits(marks) != 0;
}

static bool has_dots(const char *uri, const char *end)
{
    const char *at = uri;

    for (; (at = memchr(at, '.', (size_t)(end - at))) != NULL; at++)
        if (at > uri && at[-1] == '/' && (end - at == 1 || at[1] == '.' || at[1] == '/'))
            return true;
    return false;
}

/* Without its query, which no reading has. */
static size_t path_len(const char *uri, size_t len)
{
    const char *query = memchr(uri, '?', len);

    return query != NULL ? (size_t)(query - uri) : len;
}

static bool has_escaped_dot(const char *uri, const char *end)
{
    const char *at = uri;

    for (; (at = memchr(at, '%', (size_t)(end - at))) != NULL; at++)
        if (end - at > 2 && at[1] == '2' && (at[2] == 'e' || at[2] == 'E'))
            return true;
    return false;
}

/* What is behind a host that has a backslash; NULL: there is none. */
static const char *behind_odd_host(const char *uri, const char *end)
{
    if (end - uri < 3 || memcmp(uri, "//", 2) != 0)
        return NULL;
    const char *host = uri + 2, *slash = memchr(host, '/', (size_t)(end - host));
    return slash && memchr(host, '\\', (size_t)(slash - host)) ? slash : NULL;
}

static bool is_doubtful(const char *uri, size_t len)
{
    bool is = has_doubtful(
        len < 16 ? weir__bytes_join(weir__bytes_first(uri, len), weir__bytes_second(uri, len))
                 : weir__bytes_sixteen(uri + len - 16));

    for (size_t at = 0; at + 16 < len; at += 16)
        is |= has_doubtful(weir__bytes_sixteen(uri + at));
    return is || memchr(uri, '\0', len) != NULL || uri[0] != '/' || (len > 1 && uri[1] == '/') ||
           has_dots(uri, uri + len);
}

/* From the URI as it came: of the plain path a long parameter may have driven out the rest.
 * True: servers that know no parameters and backslashes may read it otherwise. */
static bool loose_uri(struct weir__value *loose, const struct weir__value *uri,
                      char scratch[WEIR__URI_MAX + 2])
{
    *loose = *uri;
    if (uri->len == 0 || (uri->len == 1 && uri->text[0] == '*'))
        return false;
    loose->len = weir__uri_loose(uri->text, uri->len, WEIR__TOMCAT, scratch, WEIR__URI_MAX + 2);
    loose->text = scratch;
    loose->hash = 0;
    return is_doubtful(uri->text, path_len(uri->text, uri->len));
}

static bool differ(const struct weir__value *a, const struct weir__value *b)
{
    return a->len != b->len || memcmp(a->text, b->text, a->len) != 0;
}

/* Nearly all are one and the same, which is looked at once. */
static const struct weir__value *
add_reading(struct weir__facts *facts, const struct weir__value *uri, enum weir__path_reader reader)
{
    char *out = facts->loose[facts->n_readings];
    struct weir__value *v = &facts->readings[facts->n_readings], *same = facts->readings;

    *v = (struct weir__value){
        .text = out, .len = weir__uri_loose(uri->text, uri->len, reader, out, WEIR__URI_MAX + 2)
    };
    while (differ(same, v))
        same++;
    facts->n_readings += same == v;
    return same;
}

static const struct weir__value *add_lower(struct weir__facts *facts,
                                           const struct weir__value *plain)
{
    char *out = facts->loose[facts->n_readings];
    struct weir__value *v = &facts->readings[facts->n_readings++];

    memcpy(out, plain->text, plain->len);
    weir__lower(out, plain->len);
    out[plain->len] = '/';
    *v = (struct weir__value){ .text = out, .len = plain->len + (out[plain->len - 1] != '/') };
    return v;
}

static void add_readings(struct weir__facts *facts, struct weir__value *loose,
                         const struct weir__value *uri, const struct weir__value *plain)
{
    const struct weir__value *tomcat = add_reading(facts, uri, WEIR__TOMCAT),
                             *behind = add_reading(facts, plain, WEIR__BEHIND_NGINX),
                             *windows = add_reading(facts, uri, WEIR__WINDOWS),
                             *decoded = add_reading(facts, uri, WEIR__DECODED),
                             *cut = add_reading(facts, uri, WEIR__CUT),
                             *url = add_reading(facts, uri, WEIR__URL),
                             *strictly = add_reading(facts, uri, WEIR__URL_STRICTLY),
                             *jetty = add_reading(facts, uri, WEIR__JETTY),
                             *dots = add_reading(facts, uri, WEIR__DOTS), *behind_url = windows,
                             *raw = windows, *behind_host = windows;
    const char *end = uri->text + path_len(uri->text, uri->len),
               *odd = behind_odd_host(uri->text, end);

    if (odd)
        behind_host = add_reading(
            facts, &(struct weir__value){ .text = odd, .len = (size_t)(end - odd) }, WEIR__WINDOWS);
    if (plain->len > 1 && plain->text[1] == '\\')
        behind_url = add_reading(facts, plain, WEIR__URL);
    if (has_escaped_dot(uri->text, end))
        raw = add_reading(facts, uri, WEIR__RAW_DOTS);
    const struct weir__value *nginx = add_lower(facts, plain);

    if (differ(tomcat, behind) || differ(tomcat, decoded) || differ(tomcat, cut) ||
        differ(tomcat, jetty) || differ(windows, url) || differ(windows, strictly) ||
        differ(windows, dots) || differ(windows, behind_url) || differ(windows, raw) ||
        differ(windows, behind_host) || (differ(windows, nginx) && differ(windows, tomcat)))
        *loose = (struct weir__value){ .text = "/../", .len = 4 };
}

void weir__paths_gather(const struct weir__attributes *known, struct weir__facts *facts)
{
    struct weir__value *uri = &facts->values[known->uri], *loose = &facts->values[known->loose];
    const struct weir__value came = { .text = uri->text, .len = uri->len };
    bool doubtful = known->loose > 0 && loose_uri(loose, &came, facts->loose[0]);

    plain_uri(uri, facts->uri);
    if (doubtful)
        add_readings(facts, loose, &came, uri);
}
