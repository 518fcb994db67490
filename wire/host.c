/* host.c -- HOST:PORT as people write it. */
#include "wire/host.h"

#include <stdbool.h>
#include <string.h>

#include "wire/decimal.h"

static bool copy(char *to, size_t size, const char *from, size_t len)
{
    if (len >= size)
        return false;
    memcpy(to, from, len);
    to[len] = '\0';
    return true;
}

static bool is_port(const char *text, size_t len)
{
    int64_t port;

    return len <= 5 && weir__count_parse(text, len, &port) && port <= 65535;
}

/* Where the port begins, at its colon; `end` if there is none, NULL if that cannot be told. */
static const char *find_port(const char *text, const char *end, const char **wrong)
{
    size_t len = (size_t)(end - text);
    bool bracketed = len > 0 && *text == '[';
    const char *close = bracketed ? memchr(text, ']', len) : NULL, *colon = memchr(text, ':', len);

    if (bracketed && (close == NULL || (close + 1 < end && close[1] != ':')))
        *wrong = "has brackets that are not [HOST6] or [HOST6]:PORT";
    else if (bracketed)
        return close + 1;
    else if (colon != NULL && memchr(colon + 1, ':', (size_t)(end - colon) - 1) != NULL)
        *wrong = "has too many colons; IPv6 addresses are written [::1]:7379";
    else
        return colon != NULL ? colon : end;
    return NULL;
}

const char *weir__host_read(struct weir__host *out, const char *text, size_t len)
{
    struct weir__host host = { 0 };
    const char *end = text + len, *wrong = NULL, *port = find_port(text, end, &wrong);

    if (port == NULL)
        return wrong;
    size_t brackets = *text == '[', name_len = (size_t)(port - text) - 2 * brackets;
    if (name_len == 0)
        return "names no host; write HOST:PORT";
    if (!copy(host.name, sizeof(host.name), text + brackets, name_len))
        return "has a host of more than 255 bytes";
    if (port < end && !is_port(port + 1, (size_t)(end - port) - 1))
        return "needs a port from 0 to 65535 after the colon";
    if (port < end)
        copy(host.port, sizeof(host.port), port + 1, (size_t)(end - port) - 1);
    *out = host;
    return NULL;
}
