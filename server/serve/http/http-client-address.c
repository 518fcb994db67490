/* http-client-address.c -- the address of the client, of a request that a proxy passes on.
 *
 * X-Forwarded-For from the right: the first entry that is no trusted proxy.  Anything to its left
 * anybody may have written.  Without it X-Real-IP, without that the peer.  If both are there and
 * name different clients the request is refused: the proxy wrote one of them, the client the other.
 *
 * An entry that is no address stands for the client all the same, as ?not-an-address: the proxy's
 * own address in its place may be on an allow list.
 */
#include "server/serve/http/http.h"

#include <string.h>
#include <strings.h>

#include "match/address.h"

static bool is_proxy(const struct weir__conn *conn, const struct weir__address *address)
{
    const struct weir__cidr_set *proxies = conn->loop->server->proxies;

    return proxies && weir__cidr_set_has(proxies, address);
}

struct weir__text weir__http_peer(const struct weir__conn *conn)
{
    const char *peer = conn->peer[0] ? conn->peer : "127.0.0.1";

    return (struct weir__text){ peer, strlen(peer) };
}

bool weir__http_is_from_proxy(const struct weir__conn *conn)
{
    struct weir__text peer = weir__http_peer(conn);
    struct weir__address address;

    return weir__address_parse(peer.bytes, peer.len, &address) && is_proxy(conn, &address);
}

/* 192.0.2.7, 192.0.2.7:4711, 2001:db8::1, [2001:db8::1], [2001:db8::1]:4711; *entry becomes the
 * address alone. */
static bool read_address(struct weir__text *entry, struct weir__address *out)
{
    struct weir__text e = *entry;
    const char *colon = e.bytes && e.len ? memrchr(e.bytes, ':', e.len) : NULL;

    if (colon && colon > e.bytes && (colon[-1] == ']' || memchr(e.bytes, ':', e.len) == colon)) {
        for (const char *c = colon + 1; c < e.bytes + e.len; c++)
            if (*c < '0' || *c > '9')
                return false;
        e.len = (size_t)(colon - e.bytes);
    }
    if (e.len > 2 && e.bytes[0] == '[' && e.bytes[e.len - 1] == ']')
        e = (struct weir__text){ e.bytes + 1, e.len - 2 };
    if (!weir__address_parse(e.bytes, e.len, out))
        return false;
    *entry = e;
    return true;
}

/* The last entry of a list with commas, which is cut off. */
static struct weir__text last_entry(struct weir__text *list)
{
    const char *comma = list->len ? memrchr(list->bytes, ',', list->len) : NULL;
    const char *begin = comma ? comma + 1 : list->bytes, *end = list->bytes + list->len;

    list->len = comma ? (size_t)(comma - list->bytes) : 0;
    while (begin < end && (*begin == ' ' || *begin == '\t'))
        begin++;
    while (begin < end && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return (struct weir__text){ begin, (size_t)(end - begin) };
}

/* Goes on from *found over the entries of one header, the last first.  False: it ends here. */
static bool walk(const struct weir__conn *conn, struct weir__text list, struct weir__text *found)
{
    struct weir__address address;

    while (list.len) {
        struct weir__text entry = last_entry(&list);
        bool known = read_address(&entry, &address);
        if (entry.len > 0)
            *found = entry;
        if (!known || !is_proxy(conn, &address))
            return false;
    }
    return true;
}

/* All lines of X-Forwarded-For count as if they were one.  False: there are none. */
static bool walk_all(const struct weir__http_call *call, struct weir__text *found)
{
    const struct weir__http_request *request = call->request;
    bool told = false, more = true;

    for (size_t i = request->n_headers; more && i-- > 0;) {
        const struct weir__http_header *header = &request->headers[i];
        if (header->value.len == 0 || !weir__http_is_named(header->name, "x-forwarded-for"))
            continue;
        told = true;
        more = walk(call->conn, header->value, found);
    }
    return told;
}

static bool is_same(const struct weir__address *a, const struct weir__address *b)
{
    return a->bits == b->bits && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* X-Real-IP of a trusted proxy tells nothing: that proxy stands before this one. */
bool weir__http_client(struct weir__http_call *call, struct weir__text *client)
{
    const struct weir__http_request *request = call->request;
    struct weir__address known, real;

    *client = weir__http_peer(call->conn);
    bool told = walk_all(call, client);
    for (size_t i = 0; i < request->n_headers; i++) {
        struct weir__text value = request->headers[i].value;
        if (value.len == 0 || !weir__http_is_named(request->headers[i].name, "x-real-ip"))
            continue;
        if (!read_address(&value, &real)) {
            *client = told ? *client : value;
            continue;
        }
        if (told && is_proxy(call->conn, &real))
            continue;
        if (told &&
            (!weir__address_parse(client->bytes, client->len, &known) || !is_same(&known, &real))) {
            weir__http_problem(&call->manner, 400, NULL,
                               "x-real-ip and x-forwarded-for differ: have the proxy remove the "
                               "one it does not set");
            return false;
        }
        *client = value;
        told = true;
    }
    return true;
}
