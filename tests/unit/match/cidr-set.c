/* cidr-set.c -- sets of networks answer as a loop over all networks does: overlapping, nested,
 * beside each other, at the ends of the address space, and clustered as real lists are. */
#include "unit/test.h"

#include "unit/fixture.h"
#include "match/address.h"

OWNS(weir__cidr_set)

static struct weir__cidr cidr_of(const char *text)
{
    struct weir__cidr cidr;
    struct weir_error error;

    if (weir__cidr_parse(text, strlen(text), &cidr, &error) != WEIR_OK)
        fail_msg("%s: %s", text, error.text);
    return cidr;
}

static struct weir__cidr_set *set_of(const struct weir__cidr *networks, size_t n)
{
    struct weir__cidr_set *set = NULL;
    struct weir_error error;

    if (weir__cidr_set_create(&set, networks, n, &error) != WEIR_OK)
        fail_msg("%s", error.text);
    return set;
}

static bool has(const struct weir__cidr_set *set, const char *text)
{
    struct weir__cidr cidr = cidr_of(text);

    return weir__cidr_set_has(set, &cidr.address);
}

static bool has_by_loop(const struct weir__cidr *networks, size_t n,
                        const struct weir__address *address)
{
    for (size_t i = 0; i < n; i++) {
        struct weir__address masked = *address;
        weir__address_mask(&masked, networks[i].prefix);
        if (address->bits == networks[i].address.bits &&
            memcmp(masked.bytes, networks[i].address.bytes, sizeof(masked.bytes)) == 0)
            return true;
    }
    return false;
}

/* ---------------------------------------------------------------- by hand ---- */

TEST(test_R3_empty_set)
{
    struct weir__cidr_set *set = set_of(NULL, 0);
    struct weir__address none = { 0 };

    assert_false(has(set, "0.0.0.0"));
    assert_false(has(set, "::"));
    assert_false(weir__cidr_set_has(set, &none));
    weir__cidr_set_destroy(set);
    weir__cidr_set_destroy(NULL);
}

TEST(test_R3_everything)
{
    struct weir__cidr four = cidr_of("0.0.0.0/0"), six = cidr_of("::/0");
    struct weir__cidr_set *fours = set_of(&four, 1), *sixes = set_of(&six, 1);
    struct weir__address none = { 0 };

    assert_true(has(fours, "0.0.0.0") && has(fours, "127.0.0.1") && has(fours, "255.255.255.255") &&
                has(fours, "::ffff:1.2.3.4"));
    assert_true(has(sixes, "::") && has(sixes, "2001:db8::") &&
                has(sixes, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"));
    assert_false(has(fours, "::1") || has(sixes, "0.0.0.1") ||
                 has(sixes, "::ffff:1.2.3.4")); /* the families are apart */
    assert_false(weir__cidr_set_has(fours, &none) || weir__cidr_set_has(sixes, &none));
    weir__cidr_set_destroy(fours);
    weir__cidr_set_destroy(sixes);
}

TEST(test_R3_nested_double_and_touching)
{
    struct weir__cidr networks[] = {
        cidr_of("10.1.2.0/24"),
        cidr_of("10.0.0.0/8"),
        cidr_of("10.1.2.3"),
        cidr_of("10.0.0.0/8"),
        cidr_of("11.0.0.0/9"),
        cidr_of("11.128.0.0/9"),
        cidr_of("255.255.255.255/32"),
        cidr_of("0.0.0.0/32"),
        cidr_of("2001:db8::/32"),
        cidr_of("2001:db8:1::/48"),
        cidr_of("::1"),
        cidr_of("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    };

    OWN(weir__cidr_set) *set = set_of(networks, COUNT_OF(networks));
    assert_true(has(set, "10.0.0.0") && has(set, "10.255.255.255") && has(set, "11.0.0.0") &&
                has(set, "11.255.255.255"));
    assert_false(has(set, "9.255.255.255") || has(set, "12.0.0.0"));
    assert_true(has(set, "0.0.0.0") && has(set, "255.255.255.255"));
    assert_false(has(set, "0.0.0.1") || has(set, "255.255.255.254"));
    assert_true(has(set, "2001:db8::") && has(set, "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff") &&
                has(set, "2001:db8:1::5"));
    assert_false(has(set, "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff") || has(set, "2001:db9::"));
    assert_true(has(set, "::1") && has(set, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"));
    assert_false(has(set, "::") || has(set, "::2") ||
                 has(set, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"));
}

/* ----------------------------------------------------------- against a loop ---- */

/* Where random addresses lie: only some of their bits are random, so that they meet often, or lie
 * close to each other and far from others. */
struct landscape {
    unsigned bits;
    unsigned clusters; /* beginnings that they share; 0: none */
    unsigned shared;   /* bits of a beginning */
    unsigned used;     /* random bits behind it; the rest is zeros or ones */
    unsigned shortest; /* prefix */
};

static const struct landscape landscapes[] = {
    { 32, 0, 0, 32, 8 },    { 32, 0, 0, 6, 0 },     { 32, 1, 16, 16, 16 },   { 32, 1, 24, 8, 20 },
    { 32, 5, 20, 12, 24 },  { 32, 3, 8, 24, 30 },   { 32, 1, 0, 12, 1 },     { 128, 0, 0, 128, 16 },
    { 128, 0, 0, 6, 0 },    { 128, 1, 32, 32, 40 }, { 128, 4, 48, 16, 50 },  { 128, 1, 64, 12, 70 },
    { 128, 3, 120, 8, 96 }, { 128, 2, 3, 61, 60 },  { 128, 20, 32, 16, 48 },
};

static void random_address(const struct landscape *l, struct weir__address *out, uint64_t *seed)
{
    uint64_t cluster = l->clusters ? random64(seed) % l->clusters : 0, fill = random64(seed);

    memset(out, 0, sizeof(*out));
    out->bits = (uint8_t)l->bits;
    for (unsigned bit = 0; bit < l->bits; bit++) {
        uint64_t of_cluster = cluster * 1000 + bit, is = bit < l->shared + l->used ? random64(seed)
                                                         : fill % 3                ? 0
                                                                                   : 1;
        if (bit < l->shared)
            is = random64(&of_cluster);
        out->bytes[bit / 8] |= (uint8_t)((is & 1) << (7 - bit % 8));
    }
}

static void random_network(const struct landscape *l, struct weir__cidr *out, uint64_t *seed)
{
    unsigned longest = random64(seed) % 2 ? l->bits : l->shared + l->used;

    random_address(l, &out->address, seed);
    out->prefix = (uint8_t)(longest <= l->shortest
                                ? longest
                                : l->shortest + random64(seed) % (longest - l->shortest + 1));
    weir__address_mask(&out->address, out->prefix);
}

/* An address near a network's begin or end, where mistakes are. */
static void near_network(const struct weir__cidr *network, struct weir__address *out,
                         uint64_t *seed)
{
    *out = network->address;
    if (random64(seed) % 2)
        for (unsigned bit = network->prefix; bit < out->bits; bit++)
            out->bytes[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
    int step = (int)(random64(seed) % 3) - 1;
    for (int i = out->bits / 8 - 1; i >= 0 && step != 0; i--) {
        int sum = out->bytes[i] + step;
        out->bytes[i] = (uint8_t)sum;
        step = sum < 0 ? -1 : sum > 255 ? 1 : 0;
    }
}

static void assert_as_loop(const struct landscape *l, size_t n, size_t asks, uint64_t seed)
{
    FINALLY(memory_drop) struct weir__cidr *networks = malloc((n + 1) * sizeof(*networks));
    uint64_t s = seed;
    for (size_t i = 0; i < n; i++)
        random_network(l, &networks[i], &s);
    OWN(weir__cidr_set) *set = set_of(networks, n);
    for (size_t i = 0; i < asks; i++) {
        struct weir__address a;
        if (n > 0 && i % 2)
            near_network(&networks[random64(&s) % n], &a, &s);
        else
            random_address(l, &a, &s);
        if (weir__cidr_set_has(set, &a) != has_by_loop(networks, n, &a)) {
            char text[64];
            weir__address_print(text, sizeof(text), &a);
            fail_msg("seed %llu, landscape %zu, %zu networks: %s", (unsigned long long)seed,
                     (size_t)(l - landscapes), n, text);
        }
    }
}

TEST(test_R3_few_networks_as_a_loop)
{
    for (uint64_t seed = 1; seed <= 3000; seed++)
        assert_as_loop(&landscapes[seed % COUNT_OF(landscapes)], seed / 15 % 40, 60, seed);
}

TEST(test_R3_many_networks_as_a_loop)
{
    for (uint64_t seed = 1; seed <= 2 * COUNT_OF(landscapes); seed++)
        assert_as_loop(&landscapes[seed % COUNT_OF(landscapes)], 500 + seed * 97, 1500,
                       100000 + seed);
}

/* Halves of halves: each network has the half of what is left, so that equal slots divide them
 * badly at every depth. */
TEST(test_R3_networks_that_crowd_to_one_side)
{
    struct weir__cidr networks[127];

    for (unsigned side = 0; side < 2; side++) {
        for (unsigned i = 0; i < COUNT_OF(networks); i++) {
            struct weir__address a = { .bits = 128 };
            for (unsigned bit = 0; bit <= i; bit++) /* 10...0 1, or its mirror */
                if ((bit == i) != (side == 1))
                    a.bytes[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
            weir__address_mask(&a, i + 1);
            networks[i] = (struct weir__cidr){ a, (uint8_t)(i + 2 > 128 ? 128 : i + 2) };
        }
        OWN(weir__cidr_set) *set = set_of(networks, COUNT_OF(networks));
        uint64_t seed = side;
        for (int ask = 0; ask < 20000; ask++) {
            struct weir__address a;
            near_network(&networks[random64(&seed) % COUNT_OF(networks)], &a, &seed);
            assert_int_equal(weir__cidr_set_has(set, &a),
                             has_by_loop(networks, COUNT_OF(networks), &a));
        }
    }
}

/* Every second address of a /15 and of an IPv6 network: no two can be merged, and each is found,
 * the ones between are not. */
TEST(test_R3_hundred_thousand_entries)
{
    enum { N = 100000 };
    FINALLY(memory_drop) struct weir__cidr *networks = calloc(N, sizeof(*networks));
    for (uint32_t i = 0; i < N; i++) {
        struct weir__address *a = &networks[i].address;
        uint32_t number = i % 2 ? 0x0a000000 + i : 2 * i;
        uint8_t *low = i % 2 ? a->bytes : a->bytes + 4;
        *a = (struct weir__address){ .bits = i % 2 ? 32 : 128 };
        a->bytes[0] = i % 2 ? 0 : 0x20;
        for (int byte = 0; byte < 4; byte++)
            low[byte] = (uint8_t)(number >> (24 - 8 * byte));
        networks[i].prefix = i % 2 ? 32 : 64;
    }
    OWN(weir__cidr_set) *set = set_of(networks, N);
    for (uint32_t i = 0; i < N; i++) {
        struct weir__address a = networks[i].address;
        assert_true(weir__cidr_set_has(set, &a));
        a.bytes[i % 2 ? 3 : 7] ^= 1; /* the one between */
        assert_false(weir__cidr_set_has(set, &a));
    }
}

TEST(test_too_many_networks_are_refused)
{
    struct weir__cidr_set *set = NULL;
    struct weir__cidr one = cidr_of("::1");

    assert_fails(weir__cidr_set_create(&set, &one, SIZE_MAX, &error), WEIR_INVALID, "at most");
    assert_null(set);
}
