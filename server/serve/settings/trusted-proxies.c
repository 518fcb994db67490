/* trusted-proxies.c -- the setting trusted-proxies: networks that are believed about a request's
 * client. */
#include "server/serve/settings/trusted-proxies.h"

#include <stdlib.h>
#include <string.h>

#include "match/address.h"

#define BLANKS " \t"

/* The next entry without the blanks around it; *text moves on. */
static const char *next_entry(const char **text, size_t *len)
{
    const char *begin = *text + strspn(*text, BLANKS), *end = begin + strcspn(begin, ",");

    *text = end + (*end == ',');
    while (end > begin && strchr(BLANKS, end[-1]))
        end--;
    *len = (size_t)(end - begin);
    return begin;
}

/* Returns how many there are, or a code. */
static int64_t read_networks(struct weir__cidr *networks, const char *text,
                             struct weir_error *error)
{
    int64_t n = 0;

    for (const char *at = text; *at;) {
        size_t len;
        const char *entry = next_entry(&at, &len);
        int code = len ? weir__cidr_parse(entry, len, &networks[n++], error) : WEIR_OK;
        if (code != WEIR_OK) {
            error->column = (int)(entry - text) + 1;
            return code;
        }
    }
    return n;
}

int weir__proxies_parse(struct weir__cidr_set **out, const char *text, struct weir_error *error)
{
    struct weir__cidr *networks = malloc((strlen(text) / 2 + 1) * sizeof(*networks));

    if (networks == NULL)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for the trusted proxies");
    struct weir__cidr_set *set = NULL;
    int64_t n = read_networks(networks, text, error);
    int code = n < 0    ? (int)n
               : n == 0 ? WEIR_OK
                        : weir__cidr_set_create(&set, networks, (size_t)n, error);
    free(networks);
    if (code == WEIR_OK)
        *out = set;
    return code;
}
