/* redis-url.c -- any text as the URL of Redis: no crash; a URL that is read has a host and bounds;
 * one that is not has a reason and a column, and leaves the result alone. */
#include "fuzz/fuzz.h"

#include "cluster/redis/url.h"

enum { INPUT_MAX = 2048 };

static void check_url(const struct weir__redis_url *url)
{
    check(url->n_seeds >= 1 && url->n_seeds <= WEIR__REDIS_SEEDS_MAX);
    for (size_t i = 0; i < url->n_seeds; i++) {
        check(url->seeds[i].host[0] != '\0');
        check(strlen(url->seeds[i].host) < sizeof(url->seeds[i].host));
        check(weir__redis_place(&url->seeds[i]).text[0] != '\0');
    }
    check(url->db >= 0 && url->db <= INT32_MAX);
    check(url->protocol == 0 || url->protocol == 2 || url->protocol == 3);
    check(!url->sentinel || url->master[0] != '\0');
    check(!url->login.user[0] || url->login.password[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct weir__redis_url none;
    struct weir__redis_url url = none;
    struct weir_error error = { .column = -1 };

    if (size > INPUT_MAX)
        return 0;
    char *text = calloc(1, size + 1);
    check(text != NULL);
    memcpy(text, data, size);
    if (weir__redis_url_parse(&url, text, &error) == WEIR_OK) {
        check_url(&url);
    } else {
        check(error.column >= 1 && (size_t)error.column <= strlen(text) + 1);
        check(error.text[0] != '\0' && memcmp(&url, &none, sizeof(url)) == 0);
    }
    free(text);

    struct weir__redis_address address;
    char *bytes = copy_of(data, size);
    if (weir__redis_address_read(&address, bytes, size, "near"))
        check(address.port != 0 && address.host[0] != '\0');
    free(bytes);
    return 0;
}
