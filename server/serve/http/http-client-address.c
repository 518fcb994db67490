/* http-client-address.c -- the address of the client, of a request that a proxy passes on.
 *
 * X-Forwarded-For from the right: the first address that is no trusted proxy.  What is left of it
 * anybody may have written.  Without it X-Real-IP, without that the peer.
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

/* Goes on from *found over the entries of one header, the last first.  False: it ends here.  An
 * entry that is no address ends the search: nobody vouches for the entries to the left of it. */
static bool walk(const struct weir__conn *conn, struct weir__text list, struct weir__text *found)
{
    struct weir__address address;

    while (list.len) {
        struct weir__text entry = last_entry(&list);
        if (!read_address(&entry, &address))
            return false;
        *found = entry;
        if (!is_proxy(conn, &address))
            return false;
    }
    return true;
}

/* All lines of X-Forwarded-For count as if they were one. */
struct weir__text weir__http_client(const struct weir__http_call *call)
{
    const struct weir__http_request *request = call->request;
    struct weir__text found = weir__http_peer(call->conn), real = { 0 };
    struct weir__address address;
    bool told = false;

    for (size_t i = request->n_headers; i-- > 0;) {
        const struct weir__http_header *header = &request->headers[i];
        if (weir__http_is_named(header->name, "x-forwarded-for")) {
            told = true;
            if (!walk(call->conn, header->value, &found))
                return found;
        } else if (real.bytes == NULL && weir__http_is_named(header->name, "x-real-ip")) {
            real = header->value;
        }
    }
    return !told && real.len && read_address(&real, &address) ? real : found;
}
