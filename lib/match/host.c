/* host.c -- the name of a host as servers compare it.
 *
 * SHOP.example, shop.example:443 and shop.example. are one site to the server behind, so they are
 * one value here: small letters, no port, no dot at the end.  Everything from the first colon on is
 * the port, as servers take it, whether it is a number or not; but not in a bare IPv6 address.
 * Names in other scripts stay as they came (xn--... and UTF-8 are two names).  A value that would
 * be empty stays as it is.
 */
#include "match/values.h"

#include <string.h>

#include "match/address.h"

static size_t length_without_port(const char *host, size_t len)
{
    const char *close = host[0] == '[' ? memchr(host, ']', len) : NULL;
    const char *from = close ? close : host,
               *colon = memchr(from, ':', len - (size_t)(from - host));
    struct weir__address address;

    if (colon == NULL || (close == NULL && weir__address_parse(host, len, &address)))
        return len;
    return (size_t)(colon - host);
}

/* Without port and dots. */
static size_t kept_of(const char *host, size_t len)
{
    size_t kept = length_without_port(host, len);

    while (kept > 0 && host[kept - 1] == '.')
        kept--;
    return kept ? kept : len;
}

static bool is_capital(char c)
{
    return c >= 'A' && c <= 'Z';
}

bool weir__host_is_plain(const char *host, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (is_capital(host[i]))
            return false;
    return len == 0 || kept_of(host, len) == len;
}

size_t weir__host_plain(const char *host, size_t len, char *out, size_t size)
{
    size_t kept = len ? kept_of(host, len) : 0;

    kept = kept < size ? kept : size;
    for (size_t i = 0; i < kept; i++)
        out[i] = (char)(is_capital(host[i]) ? host[i] + 32 : host[i]);
    return kept;
}
