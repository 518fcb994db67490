/* http-forward-auth.c -- forward auth: a proxy describes a request in headers and asks whether to
 * let it through.
 *
 * nginx's auth_request, Traefik's ForwardAuth and Caddy's forward_auth each ask with the headers of
 * the client's own request beside theirs.  So a peer that is not a trusted proxy describes only
 * itself, and a trusted one is believed only where it wrote the header itself:
 *
 *     ip       http-client-address.c
 *     uri      X-Original-URI, X-Original-URL or X-Forwarded-Uri.  A proxy sets the one that it
 *              knows and passes the others on as the client
 *     method   sent them, so two that differ are refused: one of them is forged, and nobody can
 *              tell which.  For the same reason a header that a rule uses comes once, and X_Plan is
 *              X-Plan, as it is for backends that follow CGI (WSGI, Rack, PHP)
 *
 * Every parameter of the query is an attribute too: the query is written in the proxy's
 * configuration.  But where a variable is written there a client may fill it with & and parameters
 * of its own (nginx escapes nothing).  So none of them describes the request, which headers do, and
 * none comes twice: a client's parameters never take the place of the proxy's.
 */
#include "server/serve/http/http.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "engine/explain.h"
#include "match/rules.h"
#include "server/serve/http/proxy-doubts.h"

#define QUERY_MAX  4096 /* bytes */
#define PARAMS_MAX 32
#define ATTRS_MAX                      \
    (WEIR__HTTP_HEADERS + PARAMS_MAX + \
     8) /* every header can be one: none is pushed out by others */

/* -------------------------------------------------- the proxy's description ---- */

enum told {
    FOR,
    REAL_IP,
    ORIGINAL_METHOD,
    FORWARDED_METHOD,
    ORIGINAL_URI,
    ORIGINAL_URL,
    FORWARDED_URI,
    HOST,
    PROTO,
    TOLD
};

static const struct {
    const char *name;
    uint8_t len;
} told_names[TOLD] = {
    [FOR] = { "x-forwarded-for", 15 },
    [REAL_IP] = { "x-real-ip", 9 },
    [ORIGINAL_METHOD] = { "x-original-method", 17 },
    [FORWARDED_METHOD] = { "x-forwarded-method", 18 },
    [ORIGINAL_URI] = { "x-original-uri", 14 },
    [ORIGINAL_URL] = { "x-original-url", 14 },
    [FORWARDED_URI] = { "x-forwarded-uri", 15 },
    [HOST] = { "x-forwarded-host", 16 },
    [PROTO] = { "x-forwarded-proto", 17 },
};

struct forwarded {
    struct weir__http_call *call;
    uint8_t kinds[WEIR__HTTP_HEADERS]; /* enum told, of every header */
    struct weir__text host;
    struct weir_attr attrs[ATTRS_MAX];
    size_t n;
    struct weir__text params[PARAMS_MAX]; /* the names of the query's */
    size_t n_params;
    int refuse;
    char *name; /* where the next one goes */
    char names[WEIR__HTTP_HEADERS * WEIR__ATTRIBUTE_SIZE];
    char query[QUERY_MAX];
};

static void add(struct forwarded *f, const char *name, size_t name_len, struct weir__text value)
{
    if (value.len == 0 || name_len == 0 || name_len >= WEIR__ATTRIBUTE_SIZE || f->n == ATTRS_MAX)
        return;
    f->attrs[f->n++] = (struct weir_attr){
        .name = name, .name_len = name_len, .value = value.bytes, .value_len = value.len
    };
}

#define ADD(f, literal, value) add(f, literal, sizeof(literal) - 1, value)

static enum told told_of(const struct weir__text *name)
{
    if (name->len < 9 || (name->bytes[0] | 0x20) != 'x' || name->bytes[1] != '-')
        return TOLD;
    for (enum told i = 0; i < TOLD; i++)
        if (told_names[i].len == name->len &&
            strncasecmp(told_names[i].name, name->bytes, name->len) == 0)
            return i;
    return TOLD;
}

/* X_Plan is X-Plan, unless the rules know it as it stands. */
static void join_by_dashes(const struct forwarded *f, char *name, size_t len)
{
    if (memchr(name, '_', len) == NULL ||
        weir__engine_uses(f->call->conn->loop->server->engine, name, len))
        return;
    for (size_t i = 0; i < len; i++)
        name[i] = name[i] == '_' ? '-' : name[i];
}

static void add_header(struct forwarded *f, const struct weir__http_header *header)
{
    size_t len = 7 + header->name.len;

    if (len >= WEIR__ATTRIBUTE_SIZE || len > (size_t)(f->names + sizeof(f->names) - f->name))
        return;
    memcpy(f->name, "header.", 7);
    memcpy(f->name + 7, header->name.bytes, header->name.len);
    weir__attribute_lower(f->name, len);
    join_by_dashes(f, f->name, len);
    add(f, f->name, len, header->value);
    f->name += len;
}

/* Those that describe the request are set aside, all others are attributes. */
static void look_at_headers(struct forwarded *f)
{
    const struct weir__http_request *request = f->call->request;

    for (size_t i = 0; i < request->n_headers; i++) {
        const struct weir__http_header *header = &request->headers[i];
        f->kinds[i] = (uint8_t)told_of(&header->name);
        if (f->kinds[i] != TOLD)
            continue;
        if (weir__http_is_named(header->name, "host"))
            f->host = header->value;
        else if (!f->call->own_token || !weir__http_is_named(header->name, "authorization"))
            add_header(f, header);
    }
}

/* http://host/path is /path.  ingress-nginx writes the host as the client sent it, which may have a
 * ? in it but no slash, and then the path. */
static struct weir__text path_of(struct weir__text uri)
{
    const char *end = uri.bytes + uri.len,
               *slash = uri.bytes && uri.len ? memchr(uri.bytes, '/', uri.len) : NULL;

    if (slash == NULL || slash == uri.bytes || slash[-1] != ':' || end - slash < 2 ||
        slash[1] != '/')
        return uri;
    const char *host = slash + 2;
    slash = memchr(host, '/', (size_t)(end - host));
    return slash ? (struct weir__text){ slash, (size_t)(end - slash) }
                 : (struct weir__text){ "/", 1 };
}

/* The next value of a header.  Proxies make lists of hosts, which are as good as a header each. */
static bool next_value(enum told kind, struct weir__text *rest, struct weir__text *out)
{
    const char *comma = kind == HOST && rest->len ? memchr(rest->bytes, ',', rest->len) : NULL;
    size_t len = comma ? (size_t)(comma - rest->bytes) : rest->len;

    *out = (struct weir__text){ rest->bytes, len };
    while (out->len > 0 && (out->bytes[0] == ' ' || out->bytes[0] == '\t'))
        out->bytes++, out->len--;
    while (out->len > 0 && (out->bytes[out->len - 1] == ' ' || out->bytes[out->len - 1] == '\t'))
        out->len--;
    rest->bytes += len + (comma != NULL);
    rest->len -= len + (comma != NULL);
    return out->len > 0 || rest->len > 0;
}

/* Whether all values of a header are *out, which is the first of them if it was empty. */
static bool is_said(enum told kind, struct weir__text rest, struct weir__text *out)
{
    struct weir__text one;

    while (next_value(kind, &rest, &one)) {
        one = path_of(one);
        if (out->len && one.len &&
            (out->len != one.len || memcmp(out->bytes, one.bytes, one.len) != 0))
            return false;
        *out = one.len ? one : *out;
    }
    return true;
}

/* What headers from `first` to `last` say; empty if there are none.  False, and answered: they
 * differ. */
static bool agree(struct forwarded *f, enum told first, enum told last, struct weir__text *out)
{
    const struct weir__http_request *request = f->call->request;

    *out = (struct weir__text){ 0 };
    for (size_t i = 0; i < request->n_headers; i++) {
        enum told kind = f->kinds[i];
        if (kind < first || kind > last || is_said(kind, request->headers[i].value, out))
            continue;
        weir__http_problem(&f->call->manner, 400, NULL,
                           "%s and %s differ: have the proxy remove the one it does not set",
                           told_names[first].name, told_names[kind == first ? last : kind].name);
        return false;
    }
    return true;
}

static bool is_used(const struct forwarded *f, const char *attribute)
{
    return weir__engine_uses(f->call->conn->loop->server->engine, attribute, strlen(attribute));
}

static void doubt(const struct forwarded *f, enum weir__proxy_doubt kind, const char *header)
{
    weir__proxy_doubt(f->call->conn, kind, header);
}

static bool describe_forwarded(struct forwarded *f)
{
    struct weir__text client, method, uri, host, scheme;

    if (!agree(f, ORIGINAL_METHOD, FORWARDED_METHOD, &method) ||
        !agree(f, ORIGINAL_URI, FORWARDED_URI, &uri) || !agree(f, HOST, HOST, &host) ||
        !agree(f, PROTO, PROTO, &scheme) || !weir__http_client(f->call, &client))
        return false;
    ADD(f, "ip", client);
    ADD(f, "method", method);
    ADD(f, "uri", uri);
    ADD(f, "host", host.len ? host : f->host);
    ADD(f, "scheme", scheme);
    if (client.bytes == weir__http_peer(f->call->conn).bytes && is_used(f, "ip"))
        doubt(f, WEIR__PROXY_NO_CLIENT, "x-forwarded-for");
    if (uri.len == 0 && is_used(f, "uri"))
        doubt(f, WEIR__PROXY_NO_URI, "x-original-uri");
    return true;
}

/* The peer is no trusted proxy: the request is its own. */
static void describe_itself(struct forwarded *f, struct weir__text peer)
{
    ADD(f, "ip", peer);
    ADD(f, "method", f->call->request->method);
    ADD(f, "uri", f->call->request->path);
    ADD(f, "host", f->host);
    bool matters = is_used(f, "ip") || is_used(f, "uri");
    for (size_t i = 0; i < f->call->request->n_headers && matters; i++)
        if (f->kinds[i] < HOST) {
            doubt(f, WEIR__PROXY_NOT_TRUSTED, told_names[f->kinds[i]].name);
            break;
        }
}

static bool is_same_name(const struct weir_attr *a, const struct weir_attr *b)
{
    return a->name_len == b->name_len && memcmp(a->name, b->name, a->name_len) == 0;
}

/* If a header comes twice a backend takes the first, the last or both: nobody can tell.  False,
 * and answered: a rule uses one. */
static bool come_once(struct forwarded *f, size_t first)
{
    struct weir *engine = f->call->conn->loop->server->engine;

    for (size_t i = first; i < f->n; i++)
        for (size_t k = first; k < i; k++) {
            const struct weir_attr *a = &f->attrs[i];
            if (!is_same_name(a, &f->attrs[k]) || !weir__engine_uses(engine, a->name, a->name_len))
                continue;
            weir__http_problem(&f->call->manner, 400, NULL,
                               "the header %.*s comes twice, and the rules use it",
                               (int)a->name_len - 7, a->name + 7);
            return false;
        }
    return true;
}

static bool describe(struct forwarded *f)
{
    size_t first = f->n;

    look_at_headers(f);
    if (!come_once(f, first))
        return false;
    if (weir__http_is_from_proxy(f->call->conn))
        return describe_forwarded(f);
    describe_itself(f, weir__http_peer(f->call->conn));
    return true;
}

/* ------------------------------------------------------------- the query ---- */

static bool read_refuse(struct forwarded *f, struct weir__text value)
{
    static const char *const known[] = { "401", "403", "429", "503" };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (weir__http_is(value, known[i], 3))
            f->refuse = atoi(known[i]);
    if (f->refuse)
        return true;
    weir__http_problem(&f->call->manner, 400, NULL, "refuse must be 401, 403, 429 or 503, not %s",
                       WEIR__SHOWN(value));
    return false;
}

static bool refuse_param(struct forwarded *f, const char *what, struct weir__text name)
{
    weir__http_problem(&f->call->manner, 400, NULL,
                       "the query %s %s; put values that a client can choose into headers", what,
                       WEIR__SHOWN(name));
    return false;
}

/* False, and answered: it may not be there, or not again. */
static bool may_come(struct forwarded *f, struct weir__text name)
{
    if (weir__attribute_describes(name))
        return refuse_param(f, "has the parameter", name);
    for (size_t i = 0; i < f->n_params; i++)
        if (f->params[i].len == name.len && memcmp(f->params[i].bytes, name.bytes, name.len) == 0)
            return refuse_param(f, "has twice the parameter", name);
    if (f->n_params == PARAMS_MAX) {
        weir__http_problem(&f->call->manner, 400, NULL, "the query has more than %d parameters",
                           PARAMS_MAX);
        return false;
    }
    f->params[f->n_params++] = name;
    return true;
}

static bool read_query(struct forwarded *f)
{
    struct weir__text query = f->call->request->query, name, value;
    char *scratch = f->query;
    bool bad = false;

    if (query.len > sizeof(f->query)) {
        weir__http_problem(&f->call->manner, 414, NULL, "the query has more than %d bytes",
                           QUERY_MAX);
        return false;
    }
    while (weir__http_query_next(&query, &scratch, &name, &value, &bad)) {
        if (!may_come(f, name))
            return false;
        if (!weir__http_is(name, "refuse", 6))
            add(f, name.bytes, name.len, value);
        else if (!read_refuse(f, value))
            return false;
    }
    if (bad)
        weir__http_problem(&f->call->manner, 400, NULL,
                           "the query has a broken escape: %% and two hexadecimal digits");
    return !bad;
}

void weir__http_auth(struct weir__http_call *call)
{
    struct weir__loop *loop = call->conn->loop;
    struct forwarded f; /* large: only the parts that are read are set, below */
    struct weir_ruling ruling;

    f.call = call;
    f.n = f.n_params = 0;
    f.refuse = 0;
    f.name = f.names;
    f.host = (struct weir__text){ 0 };
    if (!read_query(&f) || !describe(&f))
        return;
    struct weir_request request = { .attrs = f.attrs,
                                    .n = f.n,
                                    .ask = { .cost = 1, .now = weir__loop_now(loop) } };
    weir__ask_check_many(loop, &request, 1, &ruling);
    const struct weir__check check = { .attrs = f.attrs, .n = f.n, .cost = 1 };
    weir__http_decided(call, &check, &ruling, &(struct weir__http_shape){ f.refuse, true });
}
