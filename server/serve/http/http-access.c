/* http-access.c -- who may ask: the token that a request shows, its Host and its Origin.
 *
 * A client without a secret has the role that the listener gives to everybody.  On the loopback
 * that is much, and any page can make a browser on the same host ask: so such a request must name
 * this host by its address or as localhost, and come from no other page.  This does not hold for
 * /v1/auth, where the headers are those of another request.
 */
#include "server/serve/http/http.h"

#include <string.h>
#include <strings.h>

#include "match/address.h"
#include "server/base/base64.h"

#define SECRET_MAX 1024 /* bytes of a token */

/* The headers that tell the client's role and origin. */
struct asker {
    struct weir__text authorization, host, origin;
};

static struct asker asker_of(const struct weir__http_request *request)
{
    struct asker asker = { 0 };

    for (size_t i = 0; i < request->n_headers; i++) {
        const struct weir__http_header *h = &request->headers[i];
        if (weir__http_is_named(h->name, "host"))
            asker.host = h->value;
        else if (weir__http_is_named(h->name, "origin"))
            asker.origin = h->value;
        else if (weir__http_is_named(h->name, "authorization"))
            asker.authorization = h->value;
    }
    return asker;
}

/* The role that the secret gives: Bearer SECRET, or Basic with any user and the secret as
 * password. */
static enum weir__role role_of(const struct weir__settings *settings,
                               struct weir__text authorization)
{
    char plain[SECRET_MAX];
    const char *text = authorization.bytes;

    if (authorization.len > 7 && strncasecmp(text, "bearer ", 7) == 0)
        return weir__auth_role(settings, text + 7, authorization.len - 7);
    if (authorization.len <= 6 || strncasecmp(text, "basic ", 6) != 0)
        return WEIR__ROLE_NONE;
    size_t written = authorization.len - 6;
    while (written && text[6 + written - 1] == '=')
        written--;
    size_t len = weir__base64_read(plain, sizeof(plain), text + 6, written, WEIR__BASE64);
    const char *colon = len ? memchr(plain, ':', len) : NULL;
    enum weir__role role = WEIR__ROLE_NONE;
    if (colon)
        role = weir__auth_role(settings, colon + 1, len - (size_t)(colon + 1 - plain));
    explicit_bzero(plain, sizeof(plain));
    return role;
}

/* The host of "host:port", "[::1]:port" or either without a port. */
static struct weir__text without_port(struct weir__text host)
{
    const char *colon = host.len ? memrchr(host.bytes, ':', host.len) : NULL;

    if (colon && (memchr(host.bytes, ':', host.len) == colon || colon[-1] == ']'))
        host.len = (size_t)(colon - host.bytes);
    return host;
}

/* A name that no other page can have made to point here. */
static bool is_local_name(struct weir__text host)
{
    static const char local[] = ".localhost";
    const size_t n = sizeof(local) - 1;
    struct weir__address address;

    host = without_port(host);
    return weir__address_parse(host.bytes, host.len, &address) ||
           weir__http_is_named(host, "localhost") ||
           (host.len > n && strncasecmp(host.bytes + host.len - n, local, n) == 0);
}

/* A page that this server has sent itself. */
static bool is_same_origin(struct weir__text origin, struct weir__text host)
{
    size_t scheme = origin.len > 8 && memcmp(origin.bytes, "https://", 8) == 0  ? 8
                    : origin.len > 7 && memcmp(origin.bytes, "http://", 7) == 0 ? 7
                                                                                : 0;

    return scheme && origin.len - scheme == host.len &&
           strncasecmp(origin.bytes + scheme, host.bytes, host.len) == 0;
}

/* NULL, or why a request without a token is refused in spite of its address. */
static const char *why_foreign(const struct asker *asker)
{
    if (asker->host.bytes && !is_local_name(asker->host))
        return "without a token, Host must be an address or localhost: otherwise any web page "
               "could ask by a name of its own";
    if (asker->origin.bytes && !is_same_origin(asker->origin, asker->host))
        return "without a token, no other web page may ask (Origin)";
    return NULL;
}

static void turn_away(struct weir__http_call *call, weir_time wait)
{
    char header[48];

    snprintf(header, sizeof(header), "Retry-After: %lld\r\n",
             (long long)weir__http_retry_seconds(wait));
    call->manner.close = true;
    weir__http_problem(&call->manner, 429, header, "too many wrong tokens from this address");
}

static void not_known(struct weir__http_call *call, const char *detail)
{
    weir__http_problem(&call->manner, 401,
                       "WWW-Authenticate: Bearer realm=\"weir\", Basic realm=\"weir\"\r\n", "%s",
                       detail);
}

/* Whether the token, which gives no role, is a wrong one of ours; behind a proxy it may be for the
 * service there. */
static bool is_wrong(const struct weir__conn *conn, const struct weir__http_request *request)
{
    struct weir__text method = request->method;
    bool known;

    if (weir__http_is(method, "HEAD", 4))
        method = (struct weir__text){ "GET", 3 };
    const struct weir__verb *verb = weir__verb_by_path(method, request->path, &known);
    return weir__auth_has_tokens(conn->loop->server->settings) &&
           !(verb && verb->foreign && conn->role >= verb->role);
}

/* As soon as the head is whole, whatever becomes of the rest: a request that is never finished, too
 * large or for nobody would tell by its end whether the token was right. */
void weir__http_judge_token(struct weir__conn *conn, const struct weir__http_request *request)
{
    struct weir__text shown = asker_of(request).authorization;
    struct weir__shown *s = &conn->shown;

    if (s->judged) /* when less of the request was there */
        return;
    *s = (struct weir__shown){ .judged = true };
    if (shown.len == 0)
        return;
    s->role = role_of(conn->loop->server->settings, shown);
    s->wrong = s->role == WEIR__ROLE_NONE && is_wrong(conn, request);
    if (s->wrong || s->role != WEIR__ROLE_NONE)
        s->wait = weir__auth_judge(conn, s->role);
}

bool weir__http_admit(struct weir__http_call *call, enum weir__role needed, bool foreign)
{
    const struct weir__shown *shown = &call->conn->shown;
    struct asker asker = asker_of(call->request);
    const char *why = NULL;

    call->own_token = shown->role != WEIR__ROLE_NONE;
    call->role = shown->role > call->conn->role ? shown->role : call->conn->role;
    call->manner.close |= call->conn->ending;
    if (shown->wait > 0)
        turn_away(call, shown->wait);
    else if (shown->wrong)
        not_known(call, "this token is not known");
    if (shown->wait > 0 || shown->wrong)
        return false;
    if (shown->role < needed && call->conn->peer[0] && !foreign)
        why = why_foreign(&asker);
    if (call->role >= needed && why == NULL)
        return true;
    if (call->role >= needed)
        weir__http_problem(&call->manner, 403, NULL, "%s", why);
    else if (call->own_token)
        weir__http_problem(&call->manner, 403, NULL,
                           "this token is for asking only: the admin token is needed");
    else
        not_known(call, needed == WEIR__ROLE_ADMIN
                            ? "the admin token is needed: Authorization: Bearer TOKEN"
                            : "a token is needed: Authorization: Bearer TOKEN");
    return false;
}
