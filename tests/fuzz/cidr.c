/* cidr.c -- any bytes as a list of networks, one a line: no crash, an error that points into the
 * line, what parses comes back the same, and a set of them answers as a loop does. */
#include "fuzz/fuzz.h"

#include "match/address.h"

#define NETWORKS_MAX 64

static bool holds(const struct weir__cidr *network, const struct weir__address *address)
{
    struct weir__address masked = *address;

    weir__address_mask(&masked, network->prefix);
    return address->bits == network->address.bits &&
           memcmp(masked.bytes, network->address.bytes, sizeof(masked.bytes)) == 0;
}

static bool any_holds(const struct weir__cidr *networks, size_t n,
                      const struct weir__address *address)
{
    for (size_t i = 0; i < n; i++)
        if (holds(&networks[i], address))
            return true;
    return false;
}

/* Of exactly this size, so that a read beyond the end is seen. */
static bool read_network(const char *bytes, size_t len, struct weir__cidr *out)
{
    char *line = malloc(len > 0 ? len : 1), printed[64];
    struct weir_error error;
    struct weir__address again;

    check(line != NULL);
    memcpy(line, bytes, len);
    int code = weir__cidr_parse(line, len, out, &error);
    free(line);
    if (code != WEIR_OK) {
        check(error.column >= 1 && (size_t)error.column <= len + 2);
        check(memchr(error.text, '\0', sizeof(error.text)) != NULL && error.text[0] != '\0' &&
              !strpbrk(error.text, "\r\n"));
        return false;
    }
    check((size_t)weir__address_print(printed, sizeof(printed), &out->address) == strlen(printed));
    check(weir__address_parse(printed, strlen(printed), &again));
    check(again.bits == out->address.bits &&
          memcmp(again.bytes, out->address.bytes, sizeof(again.bytes)) == 0);
    check(out->prefix <= out->address.bits);
    return true;
}

/* Each network's first and last address, and the ones beside them. */
static void check_set(const struct weir__cidr_set *set, const struct weir__cidr *networks, size_t n)
{
    for (size_t i = 0; i < 4 * n; i++) {
        struct weir__address a = networks[i / 4].address;
        int step = i % 4 == 2 ? -1 : i % 4 == 3 ? 1 : 0;
        if (i % 2 == 1)
            for (unsigned bit = networks[i / 4].prefix; bit < a.bits; bit++)
                a.bytes[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
        for (int byte = a.bits / 8 - 1; byte >= 0 && step != 0; byte--) {
            int sum = a.bytes[byte] + step;
            a.bytes[byte] = (uint8_t)sum;
            step = sum < 0 ? -1 : sum > 255 ? 1 : 0;
        }
        check(weir__cidr_set_has(set, &a) == any_holds(networks, n, &a));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *at = (const char *)data, *end = at + size;
    struct weir__cidr networks[NETWORKS_MAX] = { 0 };
    struct weir__cidr_set *set;
    size_t n = 0;

    while (at < end && n < NETWORKS_MAX) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((line_end != NULL ? line_end : end) - at);
        n += read_network(at, len, &networks[n]);
        at += len + (line_end != NULL);
    }
    check(weir__cidr_set_create(&set, networks, n, NULL) == WEIR_OK);
    check_set(set, networks, n);
    weir__cidr_set_destroy(set);
    return 0;
}
