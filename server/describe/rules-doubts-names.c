/* rules-doubts-names.c -- names of attributes that no door fills: slips, and those of other proxies
 * and frameworks. */
#include "server/describe/rules-doubts-private.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"

/* Those that doors and logs fill, and those that people use most; headers may have any name. */
static const char *const attributes[] = {
    "ip",   "uri",    "method",   "host",   "user",  "account",           "org",
    "plan", "tenant", "protocol", "status", "bytes", "header.user-agent", "header.referer",
    NULL,
};

/* What proxies and frameworks call them, in small letters, without _ and -. */
static const char *const foreign[][2] = {
    { "path", "uri" },
    { "pathname", "uri" },
    { "requesturi", "uri" },
    { "requestpath", "uri" },
    { "requesturlpath", "uri" },
    { "uripath", "uri" },
    { "urlpath", "uri" },
    { "originalurl", "uri" },
    { "remoteaddr", "ip" },
    { "binaryremoteaddr", "ip" },
    { "realipremoteaddr", "ip" },
    { "remoteaddress", "ip" },
    { "remoteip", "ip" },
    { "remotehost", "ip" },
    { "clientip", "ip" },
    { "clientaddr", "ip" },
    { "clientaddress", "ip" },
    { "sourceip", "ip" },
    { "sourceaddress", "ip" },
    { "src", "ip" },
    { "srcip", "ip" },
    { "ipaddress", "ip" },
    { "ipaddr", "ip" },
    { "realip", "ip" },
    { "xrealip", "ip" },
    { "xforwardedfor", "ip" },
    { "requestmethod", "method" },
    { "verb", "method" },
    { "servername", "host" },
    { "hostname", "host" },
    { "authority", "host" },
    { "remoteuser", "user" },
    { "serverprotocol", "protocol" },
    { "useragent", "header.user-agent" },
    { "ua", "header.user-agent" },
    { "referer", "header.referer" },
    { "referrer", "header.referer" },
    { "origin", "header.origin" },
    { "authorization", "header.authorization" },
    { "cookie", "header.cookie" },
    { "acceptlanguage", "header.accept-language" },
    { "contenttype", "header.content-type" },
    { "requestip", "ip" },
    { "statuscode", "status" },
    { "responsestatus", "status" },
    { "response.status", "status" },
    { "reqip", "ip" },
    /* Forward auth reads these itself, and they are no attributes then. */
    { "header.host", "host" },
    { "header.xforwardedfor", "ip" },
    { "header.xrealip", "ip" },
    { "header.forwarded", "ip" },
    { "header.xclientip", "ip" },
    { "header.trueclientip", "ip" },
    { "header.cfconnectingip", "ip" },
    { "header.fastlyclientip", "ip" },
    { "header.xforwardedhost", "host" },
    { "header.xforwardedproto", "scheme" },
    { "header.xforwardeduri", "uri" },
    { "header.xoriginaluri", "uri" },
    { "header.xoriginalurl", "uri" },
    { "header.xforwardedmethod", "method" },
    { "header.xoriginalmethod", "method" },
};

/* http_user_agent, userAgent and User-Agent are one name. */
static const char *meant_by_foreign(const char *name, size_t len)
{
    char plain[WEIR__EDITS_MAX + 1];
    size_t n = 0;

    for (size_t i = strncasecmp(name, "http_", 5) == 0 ? 5 : 0; i < len && n < WEIR__EDITS_MAX; i++)
        if (name[i] != '_' && name[i] != '-')
            plain[n++] = (char)tolower((unsigned char)name[i]);
    plain[n] = '\0';
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
        if (strcmp(plain, foreign[i][0]) == 0)
            return foreign[i][1];
    return NULL;
}

/* args.x is arg.x, cookies.x is cookie.x. */
static bool doubt_family(const struct weir__doubting *r, struct weir__mark mark, const char *name,
                         size_t len)
{
    static const char *const families[][2] = { { "args.", "arg.NAME" },
                                               { "query.", "arg.NAME" },
                                               { "param.", "arg.NAME" },
                                               { "params.", "arg.NAME" },
                                               { "cookies.", "cookie.NAME" } };

    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        size_t n = strlen(families[i][0]);
        if (len <= n || memcmp(name, families[i][0], n) != 0)
            continue;
        weir__doubt(r, mark, "attribute %s; did you mean %s?", weir__quote(name, len).text,
                    families[i][1]);
        return true;
    }
    return false;
}

/* x-plan, Header.x-plan, headers.x-plan and http_x_plan are header.x-plan; no header that passes
 * proxies has a _. */
static void doubt_header(const struct weir__doubting *r, struct weir__mark mark, const char *name,
                         size_t len)
{
    static const char *const before[] = { "header.", "headers.", "http_", "http.", "" };
    char meant[64];
    size_t skip = 0, n = 0, i = 0;

    for (; strncasecmp(name, before[i], strlen(before[i])) != 0 || len <= strlen(before[i]);)
        i++;
    skip = strlen(before[i]);
    if (skip == 0 && (len < 3 || strncasecmp(name, "x-", 2) != 0))
        return;
    for (; n < len - skip && n < sizeof(meant) - 1; n++)
        meant[n] = name[skip + n] == '_' ? '-' : name[skip + n];
    meant[n] = '\0';
    if (i > 0 || memcmp(name, "header.", 7) != 0 || memchr(name, '_', len))
        weir__doubt(r, mark, "attribute %s; did you mean header.%s?", weir__quote(name, len).text,
                    meant);
}

/* Words of their own, though a slip away from one. */
static bool is_word(const char *name, size_t len)
{
    static const char *const words[] = { "id", "vip", "zip", "cost", "post" };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strlen(words[i]) == len && memcmp(words[i], name, len) == 0)
            return true;
    return false;
}

/* Any name is possible: only a slip away from a known one, and what others call one, are
 * doubted. */
void weir__doubt_name(const struct weir__doubting *r, struct weir__mark mark, const char *name)
{
    const char *near = NULL;
    size_t len = strlen(name);

    if (len == 6 && memcmp(name, "status", 6) == 0)
        weir__doubt(r, mark,
                    "a request has no status before it is answered: this matches lines of a log "
                    "(weir replay), and asks that give a status themselves");
    if (is_word(name, len))
        return;
    for (const char *const *at = attributes; *at && len <= WEIR__EDITS_MAX; at++) {
        size_t n = strlen(*at);
        if (n == len && memcmp(*at, name, n) == 0)
            return;
        near = weir__edits(name, len, *at, n) <= 1 ? *at : near;
    }
    if (near == NULL)
        near = meant_by_foreign(name, len);
    if (near)
        weir__doubt(r, mark, "attribute %s; did you mean %s?", weir__quote(name, len).text, near);
    else if (!doubt_family(r, mark, name, len))
        doubt_header(r, mark, name, len);
}
