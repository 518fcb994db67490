/* url.c -- the URL of a webhook.
 *
 * No user and password: the webhook's token is a setting of its own, which is shown nowhere, and a
 * URL is shown.
 */
#include "server/base/url.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"

static int bad_url(struct weir_error *error, const char *what)
{
    return weir__fail(error, WEIR_INVALID,
                      "the URL %s; a webhook is http://HOST[:PORT]/PATH or https://...", what);
}

static bool has_odd_bytes(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text <= ' ' || (unsigned char)*text >= 0x7f)
            return true;
    }
    return false;
}

static int parse_authority(struct weir__url *url, const char *text, size_t len,
                           struct weir_error *error)
{
    const char *wrong = weir__host_read(&url->host, text, len);

    if (wrong != NULL)
        return bad_url(error, wrong);
    if (url->host.port[0] == '\0')
        snprintf(url->host.port, sizeof(url->host.port), "%s", url->tls ? "443" : "80");
    else if (strspn(url->host.port, "0") == strlen(url->host.port))
        return bad_url(error, "has port 0, where nobody listens");
    snprintf(url->authority, sizeof(url->authority), "%.*s", (int)len, text);
    return WEIR_OK;
}

int weir__url_parse(struct weir__url *out, const char *text, struct weir_error *error)
{
    struct weir__url url = { .tls = strncasecmp(text, "https://", 8) == 0 };

    if (!url.tls && strncasecmp(text, "http://", 7) != 0)
        return bad_url(error, "begins with neither http:// nor https://");
    if (has_odd_bytes(text))
        return bad_url(error,
                       "has a space, a control character or one beyond ASCII (write it as %XX)");
    const char *authority = text + (url.tls ? 8 : 7);
    size_t len = strcspn(authority, "/?#");
    if (memchr(authority, '@', len) != NULL)
        return bad_url(
            error, "has a user or password in it (the webhook's token is a setting of its own)");
    if (parse_authority(&url, authority, len, error) != WEIR_OK)
        return WEIR_INVALID;
    const char *path = authority + len;
    int path_len = snprintf(url.path, sizeof(url.path), "%s%.*s", *path == '/' ? "" : "/",
                            (int)strcspn(path, "#"), path);
    if (path_len >= (int)sizeof(url.path))
        return bad_url(error, "has a path of more than 1023 bytes");
    *out = url;
    return WEIR_OK;
}
