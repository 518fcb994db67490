/* lists.c -- what reading an address costs, and asking whether it, or a word, is on a list: of 0,
 * 1,000 and 100,000 entries.
 *
 *     hot      one address or word again and again: everything in cache
 *     random   many of them in turn (65,536; 8,192 to parse), half on the list
 *     create   the whole list of 100,000, in all
 */
#include <arpa/inet.h>
#include <string.h>

#include "bench.h"
#include "match/address.h"
#include "match/values.h"

#define TEXTS   65536 /* different ones, of which a run reads the first mask + 1 in turn */
#define ENTRIES 100000
#define LOOKUPS 2000000

struct subject {
    char (*texts)[64];
    size_t *lengths;
    size_t mask;
    const struct weir__cidr_set *networks;
    const struct weir__word_set *words;
    const char *pattern;
};

static struct weir__cidr networks[ENTRIES];
static char words[ENTRIES][64];
static char texts[TEXTS][64], plain[64];
static size_t lengths[TEXTS];
static struct weir__address addresses[TEXTS];

/* ------------------------------------------------------------- material ---- */

static void random_address(struct weir__address *a, unsigned bits, uint64_t number)
{
    uint64_t half[2] = { weir__mix64(number), weir__mix64(number + 1) };

    memset(a, 0, sizeof(*a));
    memcpy(a->bytes, half, bits / 8);
    a->bits = (uint8_t)bits;
    if (bits == 128)
        a->bytes[0] = 0x20 | (a->bytes[0] & 0x1f); /* 2000::/3, where addresses in use are */
}

/* Mixed lengths, most of them long, as on lists of bad addresses. */
static void make_networks(size_t n, unsigned bits)
{
    for (size_t i = 0; i < n; i++) {
        unsigned r = (unsigned)(weir__mix64(3 * i) >> 40), length = bits == 32   ? 16 + r % 17
                                                                    : r % 4 == 0 ? 128
                                                                                 : 32 + r % 33;
        random_address(&networks[i].address, bits, 1000000 + 2 * i);
        weir__address_mask(&networks[i].address, length);
        networks[i].prefix = (uint8_t)length;
    }
}

/* Half from the list's networks. */
static void make_addresses(size_t n, unsigned bits)
{
    for (size_t i = 0; i < TEXTS; i++) {
        random_address(&addresses[i], bits, 77000000 + 2 * i);
        if (n > 0 && i % 2 == 0)
            addresses[i] = networks[weir__mix64(i) % n].address;
        lengths[i] = (size_t)weir__address_print(texts[i], sizeof(texts[i]), &addresses[i]);
    }
}

static void make_words(size_t n)
{
    for (size_t i = 0; i < n; i++)
        snprintf(words[i], sizeof(words[i]), "key-%016llx", (unsigned long long)weir__mix64(i));
    for (size_t i = 0; i < TEXTS; i++)
        lengths[i] = (size_t)snprintf(texts[i], sizeof(texts[i]), "key-%016llx",
                                      (unsigned long long)(n > 0 && i % 2 == 0
                                                               ? weir__mix64(weir__mix64(i) % n)
                                                               : weir__mix64(90000000 + i)));
}

/* ----------------------------------------------------------------- work ---- */

static void parse(void *context, int64_t n)
{
    const struct subject *s = context;
    struct weir__address a;

    for (int64_t i = 0; i < n; i++) {
        size_t at = (size_t)i & s->mask;
        keep(weir__address_parse(texts[at], lengths[at], &a));
        keep(a.bytes[0]);
    }
}

static void parse_pton(void *context, int64_t n)
{
    const struct subject *s = context;
    struct in6_addr a;

    for (int64_t i = 0; i < n; i++) {
        size_t at = (size_t)i & s->mask;
        keep((uint64_t)inet_pton(addresses[at].bits == 32 ? AF_INET : AF_INET6, texts[at], &a));
    }
}

static void find_network(void *context, int64_t n)
{
    const struct subject *s = context;
    uint64_t found = 0;

    for (int64_t i = 0; i < n; i++)
        found += weir__cidr_set_has(s->networks, &addresses[(size_t)i & s->mask]);
    keep(found);
}

static void find_word(void *context, int64_t n)
{
    const struct subject *s = context;
    uint64_t found = 0;

    for (int64_t i = 0; i < n; i++)
        found +=
            weir__word_set_has(s->words, texts[(size_t)i & s->mask], lengths[(size_t)i & s->mask]);
    keep(found);
}

static void look_at_uri(void *context, int64_t n)
{
    const struct subject *s = context;

    for (int64_t i = 0; i < n; i++)
        keep(weir__uri_is_plain(s->texts[0], s->lengths[0]));
}

static void make_plain(void *context, int64_t n)
{
    const struct subject *s = context;

    for (int64_t i = 0; i < n; i++)
        keep(weir__uri_plain(s->texts[0], s->lengths[0], plain, s->lengths[0] + 1));
}

static void match_glob(void *context, int64_t n)
{
    const struct subject *s = context;

    for (int64_t i = 0; i < n; i++)
        keep(weir__glob_match(s->pattern, strlen(s->pattern), s->texts[0], s->lengths[0], true));
}

/* -------------------------------------------------------------- figures ---- */

static void show(const char *what, const char *how, work_function work, struct subject *s,
                 size_t mask)
{
    char label[80];

    snprintf(label, sizeof(label), "%s.%s", what, how);
    s->mask = mask;
    figure(label, measure(work, s, LOOKUPS), "ns");
}

static void bench_addresses(unsigned bits)
{
    struct subject s = { 0 };
    const char *name = bits == 32 ? "lists.parse.ipv4" : "lists.parse.ipv6";

    make_addresses(0, bits);
    show(name, "hot", parse, &s, 0);
    show(name, "random", parse, &s, 8191);
    show(name, "random.inet_pton", parse_pton, &s, 8191);
}

static void bench_networks(size_t n, unsigned bits)
{
    struct subject s = { 0 };
    struct weir__cidr_set *set;
    struct weir_error e;
    char name[64];

    snprintf(name, sizeof(name), "lists.networks.ipv%d.%zu", bits == 32 ? 4 : 6, n);
    make_networks(n, bits);
    make_addresses(n, bits);
    double begin = cpu_ns();
    if (weir__cidr_set_create(&set, networks, n, &e) != WEIR_OK)
        die(name, &e);
    if (n == ENTRIES)
        printf("%s.create\t%.4g\tms\n", name, (cpu_ns() - begin) / 1e6);
    s.networks = set;
    show(name, "hot-in", find_network, &s, 0);
    addresses[0] = addresses[1];
    show(name, "hot-out", find_network, &s, 0);
    show(name, "random", find_network, &s, TEXTS - 1);
    weir__cidr_set_destroy(set);
}

static void bench_words(size_t n)
{
    struct subject s = { 0 };
    struct weir__word_set *set;
    struct weir_error e;
    static const char *list[ENTRIES];
    char name[64];

    snprintf(name, sizeof(name), "lists.words.%zu", n);
    make_words(n);
    for (size_t i = 0; i < n; i++)
        list[i] = words[i];
    double begin = cpu_ns();
    if (weir__word_set_create(&set, list, n, &e) != WEIR_OK)
        die(name, &e);
    if (n == ENTRIES)
        printf("%s.create\t%.4g\tms\n", name, (cpu_ns() - begin) / 1e6);
    s.words = set;
    show(name, "hot", find_word, &s, 0);
    show(name, "random", find_word, &s, TEXTS - 1);
    weir__word_set_destroy(set);
}

static void bench_text(const char *name, const char *how, work_function work, const char *text,
                       const char *pattern)
{
    struct subject s = { .texts = texts, .lengths = lengths, .pattern = pattern };

    lengths[0] = (size_t)snprintf(texts[0], sizeof(texts[0]), "%s", text);
    show(name, how, work, &s, 0);
}

int main(void)
{
    static const size_t sizes[] = { 0, 1000, ENTRIES };

    bench_addresses(32);
    bench_addresses(128);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        bench_networks(sizes[i], 32);
        bench_networks(sizes[i], 128);
        bench_words(sizes[i]);
    }
    bench_text("lists.uri", "is-plain", look_at_uri, "/v1/customers/123456", NULL);
    bench_text("lists.uri", "plain", make_plain, "/v1//customers/./%31?x", NULL);
    bench_text("lists.glob", "match", match_glob, "/v1/customers/123456/orders", "/v1/*/*/orders");
    return 0;
}
