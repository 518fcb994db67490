/* url.c -- where Redis is, and how to log in. */
#include "cluster/redis/url.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/digit.h"
#include "wire/host.h"
#include "wire/decimal.h"
#include "wire/text.h"

_Static_assert(sizeof(((struct weir__redis_address *)0)->host) ==
                   sizeof(((struct weir__host *)0)->name),
               "a host is copied whole");

#define REDIS_PORT    "6379"
#define SENTINEL_PORT "26379"

struct reading {
    const char *text; /* the whole URL, which is never shown: it may hold a password */
    struct weir_error *error;
};

static int wrong(const struct reading *r, const char *at, const char *what)
{
    return weir__fail_at(r->error, (int)(at - r->text) + 1, "the Redis URL %s", what);
}

/* Copies a part with %XX undone. */
static int copy_part(const struct reading *r, char *to, size_t size, const char *from, size_t len)
{
    const char *end = from + len;
    size_t n = 0;

    for (const char *at = from; at < end; at++) {
        int c = (unsigned char)*at;
        if (c == '%') {
            int high = end - at > 2 ? weir__hex(at[1]) : -1, low = high < 0 ? -1 : weir__hex(at[2]);
            if (low < 0)
                return wrong(r, at, "has a % without two hexadecimal digits; write %25 for %");
            c = high * 16 + low;
            at += 2;
        }
        if (c == '\0')
            return wrong(r, at, "has a zero byte");
        if (n + 1 >= size)
            return wrong(r, from, "has a part that is too long");
        to[n++] = (char)c;
    }
    to[n] = '\0';
    return WEIR_OK;
}

static int read_count(const struct reading *r, const char *at, size_t len, int64_t max,
                      const char *what, int64_t *out)
{
    int64_t n;

    if (!weir__count_parse(at, len, &n) || n > max)
        return wrong(r, at, what);
    *out = n;
    return WEIR_OK;
}

static int read_db(const struct reading *r, const char *at, size_t len, struct weir__redis_url *url)
{
    return read_count(r, at, len, INT32_MAX, "needs a number for its database: /0, /1, ...",
                      &url->db);
}

/* --------------------------------------------------------------- options ---- */

static const struct {
    const char *name;
    size_t offset, size; /* of a text */
} texts[] = {
#define TEXT(name, member)                                \
    {                                                     \
        name, offsetof(struct weir__redis_url, member),   \
            sizeof(((struct weir__redis_url *)0)->member) \
    }
    TEXT("sentinel-user", sentinel_login.user),
    TEXT("sentinel-password", sentinel_login.password),
    TEXT("ca", ca),
    TEXT("certificate", certificate),
    TEXT("key", key),
};

#define TEXTS (sizeof(texts) / sizeof(texts[0]))

static int unknown_option(const struct reading *r, const char *at, size_t len)
{
    const char *names[TEXTS + 3] = { "db", "protocol" };

    for (size_t i = 0; i < TEXTS; i++)
        names[i + 2] = texts[i].name;
    return weir__fail_at(r->error, (int)(at - r->text) + 1,
                         "the Redis URL has an unknown option %s; %s", weir__quote(at, len).text,
                         weir__hint(at, len, names, WEIR__TO_NULL).text);
}

static int read_option(const struct reading *r, const char *at, size_t len,
                       struct weir__redis_url *url)
{
    const char *equals = memchr(at, '=', len);
    struct weir__text name = { at, equals ? (size_t)(equals - at) : len };

    if (!equals)
        return wrong(r, at, "has an option without '='; write ?NAME=VALUE");
    const char *value = equals + 1;
    size_t n = len - name.len - 1;
    if (name.len == 2 && memcmp(at, "db", 2) == 0)
        return read_db(r, value, n, url);
    if (name.len == 8 && memcmp(at, "protocol", 8) == 0) {
        int code = read_count(r, value, n, 3, "needs protocol=2 or protocol=3", &url->protocol);
        return code != WEIR_OK || url->protocol >= 2
                   ? code
                   : wrong(r, value, "needs protocol=2 or protocol=3");
    }
    for (size_t i = 0; i < TEXTS; i++) {
        if (name.len == strlen(texts[i].name) && memcmp(at, texts[i].name, name.len) == 0)
            return copy_part(r, (char *)url + texts[i].offset, texts[i].size, value, n);
    }
    return unknown_option(r, at, name.len);
}

static int read_options(const struct reading *r, const char *at, struct weir__redis_url *url)
{
    int code = WEIR_OK;

    while (*at && code == WEIR_OK) {
        size_t len = strcspn(at, "&");
        code = read_option(r, at, len, url);
        at += len + (at[len] == '&');
    }
    return code;
}

/* ----------------------------------------------------------------- parts ---- */

/* [USER]:PASSWORD, or PASSWORD alone would be a user: the colon is needed. */
static int read_login(const struct reading *r, const char *at, size_t len,
                      struct weir__redis_login *login)
{
    const char *colon = memchr(at, ':', len);

    if (!colon)
        return wrong(r, at, "has a user without a password; write USER:PASSWORD@ or :PASSWORD@");
    int code = copy_part(r, login->user, sizeof(login->user), at, (size_t)(colon - at));
    if (code != WEIR_OK)
        return code;
    if ((size_t)(colon - at) + 1 == len)
        return wrong(r, colon, "has an empty password");
    return copy_part(r, login->password, sizeof(login->password), colon + 1,
                     len - (size_t)(colon - at) - 1);
}

static int read_seed(const struct reading *r, const char *at, size_t len,
                     struct weir__redis_url *url)
{
    struct weir__host host;
    int64_t port = 0;
    const char *mistake = weir__host_read(&host, at, len);

    if (mistake)
        return wrong(r, at, mistake);
    if (url->n_seeds == WEIR__REDIS_SEEDS_MAX)
        return wrong(r, at, "names more than 16 hosts");
    if (!host.port[0])
        strcpy(host.port, url->sentinel ? SENTINEL_PORT : REDIS_PORT);
    weir__count_parse(host.port, strlen(host.port), &port);
    if (port == 0)
        return wrong(r, at, "has port 0, where nobody listens");
    struct weir__redis_address *seed = &url->seeds[url->n_seeds++];
    seed->port = (uint16_t)port;
    memcpy(seed->host, host.name, sizeof(seed->host));
    return WEIR_OK;
}

static int read_seeds(const struct reading *r, const char *at, size_t len,
                      struct weir__redis_url *url)
{
    const char *end = at + len;
    int code = WEIR_OK;

    for (;;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        code = read_seed(r, at, (size_t)((comma ? comma : end) - at), url);
        if (code != WEIR_OK || !comma)
            return code;
        at = comma + 1;
    }
}

/* "/DB", or of Sentinels "/MASTER[/DB]". */
static int read_path(const struct reading *r, const char *at, size_t len,
                     struct weir__redis_url *url)
{
    const char *end = at + len;

    at += len > 0; /* the slash */
    if (url->sentinel) {
        const char *slash = memchr(at, '/', (size_t)(end - at)), *stop = slash ? slash : end;
        if (stop == at)
            return wrong(r, at, "needs the name of the master: redis-sentinel://HOST/MASTER");
        int code = copy_part(r, url->master, sizeof(url->master), at, (size_t)(stop - at));
        if (code != WEIR_OK)
            return code;
        at = slash ? slash + 1 : end;
    }
    return at == end ? WEIR_OK : read_db(r, at, (size_t)(end - at), url);
}

#define PATH_MOST 107 /* of struct sockaddr_un, without its end */

static int read_unix(const struct reading *r, const char *at, size_t len,
                     struct weir__redis_url *url)
{
    if (len == 0 || *at != '/')
        return wrong(r, at, "needs the path of a socket: unix:///run/redis.sock");
    int code = copy_part(r, url->seeds[0].host, sizeof(url->seeds[0].host), at, len);
    if (code == WEIR_OK && strlen(url->seeds[0].host) > PATH_MOST)
        return wrong(r, at, "has a path that is too long for a socket: at most 107 bytes");
    url->n_seeds = 1;
    return code;
}

static const struct {
    const char *name;
    bool tls, sentinel, path;
} schemes[] = {
    { "redis://", false, false, false },         { "rediss://", true, false, false },
    { "redis-sentinel://", false, true, false }, { "rediss-sentinel://", true, true, false },
    { "unix://", false, false, true },
};

static int read_rest(const struct reading *r, const char *at, bool is_path,
                     struct weir__redis_url *url)
{
    size_t len = strcspn(at, "?");
    const char *end = at + len;
    const char *sign = memchr(at, '@', is_path ? len : strcspn(at, "/?"));
    int code = sign ? read_login(r, at, (size_t)(sign - at), &url->login) : WEIR_OK;

    if (code != WEIR_OK)
        return code;
    at = sign ? sign + 1 : at;
    if (is_path) {
        code = read_unix(r, at, (size_t)(end - at), url);
    } else {
        size_t hosts = strcspn(at, "/?");
        code = read_seeds(r, at, hosts, url);
        if (code == WEIR_OK)
            code = read_path(r, at + hosts, (size_t)(end - at) - hosts, url);
    }
    return code == WEIR_OK && *end ? read_options(r, end + 1, url) : code;
}

static int check_files(const struct reading *r, const struct weir__redis_url *url)
{
    if (!url->tls && (url->ca[0] || url->certificate[0] || url->key[0]))
        return wrong(r, r->text, "names files of TLS, and is not rediss://");
    if (!url->certificate[0] != !url->key[0])
        return wrong(r, r->text, "needs both certificate= and key=, or neither");
    return WEIR_OK;
}

int weir__redis_url_parse(struct weir__redis_url *out, const char *text, struct weir_error *error)
{
    const struct reading r = { text, error };

    for (const char *at = text; *at; at++) {
        if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7F)
            return wrong(&r, at, "has a space, a control character or one beyond ASCII; write %XX");
    }
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t len = strlen(schemes[i].name);
        if (strncmp(text, schemes[i].name, len) != 0)
            continue;
        struct weir__redis_url url = { .tls = schemes[i].tls, .sentinel = schemes[i].sentinel };
        int code = read_rest(&r, text + len, schemes[i].path, &url);
        if (code == WEIR_OK)
            code = check_files(&r, &url);
        if (code == WEIR_OK)
            *out = url;
        return code;
    }
    return wrong(&r, text,
                 "must begin with redis://, rediss://, redis-sentinel://, rediss-sentinel:// or "
                 "unix://");
}

/* ------------------------------------------------------------- addresses ---- */

bool weir__redis_address_same(const struct weir__redis_address *a,
                              const struct weir__redis_address *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

bool weir__redis_address_read(struct weir__redis_address *out, const char *text, size_t len,
                              const char *near)
{
    const char *colon = len ? memrchr(text, ':', len) : NULL;
    int64_t port;

    if (!colon || !weir__count_parse(colon + 1, (size_t)(text + len - colon) - 1, &port) ||
        port < 1 || port > UINT16_MAX)
        return false;
    size_t host = (size_t)(colon - text);
    if (host == 0 || (host == 1 && *text == '?')) { /* the node does not know its own name */
        text = near;
        host = strlen(near);
    }
    if (host == 0 || host >= sizeof(out->host) || memchr(text, '\0', host))
        return false;
    *out = (struct weir__redis_address){ .port = (uint16_t)port };
    memcpy(out->host, text, host);
    return true;
}

struct weir__redis_place weir__redis_place(const struct weir__redis_address *address)
{
    struct weir__redis_place place;
    bool brackets = strchr(address->host, ':') != NULL;

    if (address->port == 0)
        snprintf(place.text, sizeof(place.text), "%s", address->host);
    else
        snprintf(place.text, sizeof(place.text), brackets ? "[%s]:%u" : "%s:%u", address->host,
                 (unsigned)address->port);
    return place;
}
