/* address.c -- addresses and networks: every form that is one, none that is not, and the same as
 * inet_pton on any text. */
#include "unit/test.h"

#include <arpa/inet.h>
#include <sys/mman.h>

#include "unit/fixture.h"
#include "match/address.h"

static bool parse(const char *text, struct weir__address *out)
{
    return weir__address_parse(text, strlen(text), out);
}

static const char *print(const struct weir__address *address)
{
    static char text[64];
    int len = weir__address_print(text, sizeof(text), address);

    assert_int_equal(len, strlen(text));
    return text;
}

/* ------------------------------------------------------------ addresses ---- */

static const struct {
    const char *text, *printed;
    int bits;
} good[] = {
    { "192.0.2.7", "192.0.2.7", 32 },
    { "0.0.0.0", "0.0.0.0", 32 },
    { "255.255.255.255", "255.255.255.255", 32 },
    { "1.22.3.44", "1.22.3.44", 32 },
    { "10.0.0.1", "10.0.0.1", 32 },
    { "::", "::", 128 },
    { "::1", "::1", 128 },
    { "1::", "1::", 128 },
    { "2001:db8::7", "2001:db8::7", 128 },
    { "2001:DB8::AbCd", "2001:db8::abcd", 128 },
    { "2001:0db8:0000:0000:0000:0000:0000:0007", "2001:db8::7", 128 },
    { "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8", 128 },
    { "1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0", 128 }, /* RFC 5952, 4.2.2: one group is not shortened */
    { "::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8", 128 },
    { "1:0:0:4:0:0:7:8", "1::4:0:0:7:8", 128 }, /* 4.2.3: the first of equals */
    { "1:0:0:4:0:0:0:8", "1:0:0:4::8", 128 },   /* the longest */
    { "[2001:db8::7]", "2001:db8::7", 128 },
    { "[::]", "::", 128 },
    { "::1.2.3.4", "::102:304", 128 },
    { "64:ff9b::192.0.2.33", "64:ff9b::c000:221", 128 },
    { "1:2:3:4:5:6:255.255.255.255", "1:2:3:4:5:6:ffff:ffff", 128 },
    { "abcd:abcd:abcd:abcd:abcd:abcd:255.255.255.255", "abcd:abcd:abcd:abcd:abcd:abcd:ffff:ffff",
      128 },                                 /* the longest there is */
    { "::ffff:192.0.2.7", "192.0.2.7", 32 }, /* mapped: the IPv4 address */
    { "::FFFF:c000:0207", "192.0.2.7", 32 },
    { "[::ffff:0.0.0.0]", "0.0.0.0", 32 },
    { "::fffe:192.0.2.7", "::fffe:c000:207", 128 },
    { "1::ffff:192.0.2.7", "1::ffff:c000:207", 128 },
};

static const char *const bad[] = {
    "",
    "1",
    "1.2.3",
    "1.2.3.4.5",
    "1.2.3.",
    ".1.2.3",
    "1..2.3",
    "1.2.3.256",
    "256.1.1.1",
    "1.2.3.999",
    "1.2.3.0004",
    "01.2.3.4",
    "1.2.3.04",
    "010.0.0.1",
    "00.0.0.0",
    "0x1.2.3.4",
    "1.2.3.4 ",
    " 1.2.3.4",
    "1.2.3.4:80",
    "1.2.3.4/8",
    "+1.2.3.4",
    "-1.2.3.4",
    "1.2.3.a",
    "1.2.3.4.",
    "127.1",
    "2130706433",
    "1,2,3,4",
    "[1.2.3.4]",
    "255.255.255.2555",
    "1234.1.1.1",
    "1.2.3.4\n",
    ":",
    ":::",
    "::::",
    "1",
    "1:",
    ":1",
    "1:2",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:",
    ":2:3:4:5:6:7:8",
    "1:2:3:4:5:6:7:8:",
    "1:2:3:4:5:6:7:8:9",
    "1:2:3:4:5:6:7:8::",
    "::1:2:3:4:5:6:7:8",
    "1::2:3:4:5:6:7:8",
    "1::2::3",
    "::1::",
    ":::1",
    "1:::2",
    "::1:",
    ":1::",
    "12345::",
    "::12345",
    "::g",
    "::1%eth0",
    "fe80::1%1",
    "[::1",
    "::1]",
    "[]",
    "[",
    "]",
    "[[::1]]",
    "[::1]:80",
    "::1.2.3",
    "::1.2.3.4.5",
    "::1.2.3.4:5",
    "::01.2.3.4",
    "1.2.3.4::",
    "1:2:3:4:5:6:7:1.2.3.4",
    "1:2:3:4:5:6:1.2.3.4:7",
    "1:2:3:4:5:1.2.3.4",
    "::ffff:1.2.3.256",
    "::ffff:1.2.3.4x",
    "::1 ",
    " ::1",
    "::1/128",
    "1:2:3:4:5:6::1.2.3.4:",
    "1:2:3:4:5:6:7::1.2.3.4",
    "0000000000000000000000000000000000000000::1",
};

TEST(test_R1_good_addresses)
{
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        struct weir__address a;
        memset(&a, 0xa5, sizeof(a));
        if (!parse(good[i].text, &a))
            fail_msg("'%s' is an address", good[i].text);
        assert_int_equal(a.bits, good[i].bits);
        assert_string_equal(print(&a), good[i].printed);
    }
}

TEST(test_R1_bad_addresses_touch_nothing)
{
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct weir__address a, before;
        memset(&a, 0xa5, sizeof(a));
        before = a;
        if (parse(bad[i], &a))
            fail_msg("'%s' is not an address", bad[i]);
        assert_memory_equal(&a, &before, sizeof(a));
    }
    struct weir__address a;
    assert_false(weir__address_parse("1.2.3.4\0", 8, &a));
    assert_false(weir__address_parse("::1\0", 4, &a));
    assert_false(weir__address_parse("\0\0\0\0\0\0\0", 7, &a));
    assert_false(weir__address_parse(NULL, 0, &a));
}

TEST(test_R1_every_number_in_every_place)
{
    static const int others[] = { 0, 7, 42, 255 };
    char text[32];

    for (int value = 0; value < 1000; value++)
        for (int place = 0; place < 4; place++)
            for (size_t other = 0; other < COUNT_OF(others); other++) {
                int n[4] = { others[other], others[other], others[other], others[other] };
                struct weir__address a;
                n[place] = value;
                snprintf(text, sizeof(text), "%d.%d.%d.%d", n[0], n[1], n[2], n[3]);
                assert_int_equal(parse(text, &a), value <= 255);
                if (value <= 255)
                    assert_string_equal(print(&a), text);
            }
}

/* What inet_pton makes of it, in the form of this library. */
static bool parse_by_system(const char *text, struct weir__address *out)
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
    uint8_t six[16];
    char inner[64];
    size_t len = strlen(text);

    memset(out, 0, sizeof(*out));
    out->bits = 32;
    if (inet_pton(AF_INET, text, out->bytes) == 1)
        return true;
    snprintf(inner, sizeof(inner), "%s", text);
    if (len > 2 && len < sizeof(inner) && text[0] == '[' && text[len - 1] == ']')
        snprintf(inner, sizeof(inner), "%.*s", (int)len - 2, text + 1);
    if (inet_pton(AF_INET6, inner, six) != 1)
        return false;
    if (memcmp(six, mapped, sizeof(mapped)) == 0) {
        memcpy(out->bytes, six + 12, 4);
        return true;
    }
    memcpy(out->bytes, six, 16);
    out->bits = 128;
    return true;
}

static void assert_as_system(const char *text)
{
    struct weir__address got, wanted;
    bool is = parse_by_system(text, &wanted);

    memset(&got, 0, sizeof(got));
    if (parse(text, &got) != is || (is && memcmp(&got, &wanted, sizeof(got)) != 0))
        fail_msg("'%s': %s, but inet_pton says %s", text, is ? "not, or another" : "an address",
                 is ? "one" : "none");
}

static void random_text(char *out, uint64_t *seed)
{
    size_t i = random64(seed) % 3 ? random64(seed) % COUNT_OF(good) : COUNT_OF(good), len;

    strcpy(out, i < COUNT_OF(good) ? good[i].text : "");
    len = strlen(out);
    for (uint64_t edits = random64(seed) % (i < COUNT_OF(good) ? 4 : 24); edits > 0 && len < 46;
         edits--) {
        size_t at = random64(seed) % (len + 1);
        char c = "0123456789afAF::::....[]g/"[random64(seed) % 26];
        if (random64(seed) % 3 == 0 && at < len) {
            memmove(out + at, out + at + 1, len-- - at);
        } else if (random64(seed) % 2 && at < len) {
            out[at] = c;
        } else {
            memmove(out + at + 1, out + at, ++len - at);
            out[at] = c;
        }
    }
}

TEST(test_R1_same_as_inet_pton)
{
    uint64_t seed = 1;
    char text[64];

    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_as_system(good[i].text);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (strcmp(bad[i], "[1.2.3.4]") != 0)
            assert_as_system(bad[i]);
    for (int i = 0; i < 300000; i++) {
        random_text(text, &seed);
        assert_as_system(text);
    }
}

/* Groups of every length, "::" everywhere. */
TEST(test_R1_same_as_inet_pton_in_ipv6)
{
    uint64_t seed = 2;
    char text[128];

    for (int i = 0; i < 200000; i++) {
        size_t at = 0, groups = 1 + random64(&seed) % 9, gap = random64(&seed) % 10;
        for (size_t g = 0; g < groups; g++) {
            uint64_t digits = 1 + random64(&seed) % (random64(&seed) % 16 ? 4 : 5),
                     value = random64(&seed) & ((1u << 4 * digits) - 1);
            const char *before = g == gap ? "::" : g > 0 ? ":" : "";
            at += (size_t)sprintf(text + at, random64(&seed) % 2 ? "%s%0*llx" : "%s%0*llX", before,
                                  (int)digits, (unsigned long long)value);
        }
        if (gap == groups)
            strcpy(text + at, "::");
        else if (random64(&seed) % 4 == 0)
            strcpy(text + at, ":1.20.255.0");
        if (strlen(text) < 46)
            assert_as_system(text);
    }
}

TEST(test_R1_reads_no_byte_outside_the_text)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *room = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
         *middle = room + page;
    struct weir__address a, b;

    assert_true(room != MAP_FAILED);
    assert_int_equal(mprotect(middle, page, PROT_READ | PROT_WRITE), 0);
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        size_t len = strlen(good[i].text);
        for (size_t cut = 0; cut <= len; cut++) {
            memcpy(middle, good[i].text, cut);
            memcpy(middle + page - cut, good[i].text, cut);
            bool at_begin = weir__address_parse(middle, cut, &a),
                 at_end = weir__address_parse(middle + page - cut, cut, &b);
            assert_int_equal(at_begin, at_end);
            if (at_begin)
                assert_memory_equal(&a, &b, sizeof(a));
        }
    }
    munmap(room, 3 * page);
}

TEST(test_R1_print_and_parse_again)
{
    uint64_t seed = 3;
    char theirs[64];

    for (int i = 0; i < 100000; i++) {
        struct weir__address a = { .bits = i % 2 ? 32 : 128 }, b;
        for (int byte = 0; byte < a.bits / 8; byte++) /* many zeros */
            a.bytes[byte] = random64(&seed) % 3 ? 0 : (uint8_t)random64(&seed);
        if (a.bits == 128)
            a.bytes[0] |= 0x20; /* the system prints ::1.2.3.4 otherwise */
        inet_ntop(a.bits == 32 ? AF_INET : AF_INET6, a.bytes, theirs, sizeof(theirs));
        assert_string_equal(print(&a), theirs);
        assert_true(parse(theirs, &b));
        assert_memory_equal(&a, &b, sizeof(a));
    }
}

TEST(test_print_into_little_room)
{
    struct weir__address a, none = { 0 };
    char text[8] = "xxxxxxx";

    assert_true(parse("2001:db8::7", &a));
    assert_int_equal(weir__address_print(text, 5, &a), 11);
    assert_string_equal(text, "2001");
    assert_int_equal(weir__address_print(NULL, 0, &a), 11);
    assert_int_equal(weir__address_print(text, sizeof(text), &none), 0);
    assert_string_equal(text, "");
}

TEST(test_R1_mask)
{
    uint64_t seed = 4;

    for (int i = 0; i < 20000; i++) {
        struct weir__address a = { .bits = i % 2 ? 32 : 128 }, wanted;
        unsigned prefix = (unsigned)(random64(&seed) % (a.bits + 5u));
        for (int byte = 0; byte < a.bits / 8; byte++)
            a.bytes[byte] = (uint8_t)random64(&seed);
        wanted = a;
        for (unsigned bit = prefix; bit < a.bits; bit++)
            wanted.bytes[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
        weir__address_mask(&a, prefix);
        assert_memory_equal(&a, &wanted, sizeof(a));
    }
}

/* ------------------------------------------------------------- networks ---- */

TEST(test_R1_good_networks)
{
    static const struct {
        const char *text, *address;
        int prefix;
    } nets[] = {
        { "10.0.0.0/8", "10.0.0.0", 8 },
        { "0.0.0.0/0", "0.0.0.0", 0 },
        { "192.0.2.7", "192.0.2.7", 32 },
        { "192.0.2.7/32", "192.0.2.7", 32 },
        { "192.0.2.4/31", "192.0.2.4", 31 },
        { "2001:db8::/32", "2001:db8::", 32 },
        { "[2001:db8::]/32", "2001:db8::", 32 },
        { "::/0", "::", 0 },
        { "::1", "::1", 128 },
        { "2001:db8::7/128", "2001:db8::7", 128 },
        { "::ffff:10.0.0.0/104", "10.0.0.0", 8 },
        { "::ffff:0:0/96", "0.0.0.0", 0 },
        { "::ffff:192.0.2.7", "192.0.2.7", 32 },
    };
    for (size_t i = 0; i < COUNT_OF(nets); i++) {
        struct weir__cidr cidr;
        struct weir_error error;
        if (weir__cidr_parse(nets[i].text, strlen(nets[i].text), &cidr, &error) != WEIR_OK)
            fail_msg("%s: %s", nets[i].text, error.text);
        assert_string_equal(print(&cidr.address), nets[i].address);
        assert_int_equal(cidr.prefix, nets[i].prefix);
    }
}

TEST(test_R1_bad_networks)
{
    static const struct {
        const char *text;
        int column;
        const char *says;
    } nets[] = {
        { "", 1, "missing" },
        { "/8", 1, "missing" },
        { "10.0.0.1/8", 10, "write 10.0.0.0/8 for the network, or 10.0.0.1 for the address" },
        { "2001:db8::7/32", 13, "write 2001:db8::/32 for the network" },
        { "10.0.0.0/33", 10,
          "'33' is not a prefix: after the slash of an IPv4 network comes a number from 0 to 32" },
        { "::/129", 4, "from 0 to 128" },
        { "10.0.0.0/", 10, "'' is not a prefix" },
        { "10.0.0.0/08", 10, "'08' is not a prefix" },
        { "10.0.0.0/-1", 10, "not a prefix" },
        { "10.0.0.0/8/8", 10, "'8/8' is not a prefix" },
        { "10.0.0.0/4294967304", 10, "not a prefix" },
        { "10.0.0.0/255.0.0.0", 10, "not a prefix" },
        { "::ffff:10.0.0.0/8", 17, "a mapped IPv4 network comes a number from 96 to 128" },
        { "10.0.0/8", 1, "all four numbers" },
        { "10/8", 1, "'10' is not an IP address" },
        { "010.0.0.0/8", 1, "no leading zeros" },
        { "10.0.0.09/32", 1, "no leading zeros" },
        { "192.0.2.7:80", 1, "no port" },
        { "[::1]:80", 1, "no port" },
        { "fe80::1%eth0", 1, "no scope" },
        { "10.0.0.0 /8", 1, "no spaces" },
        { "example.com", 1, "'example.com' is not an IP address" },
        { "a\nb\033", 1, "'a\\x0ab\\x1b'" },
    };
    for (size_t i = 0; i < COUNT_OF(nets); i++) {
        struct weir__cidr cidr, before;
        struct weir_error error = { 0 };
        memset(&cidr, 0xa5, sizeof(cidr));
        before = cidr;
        assert_int_equal(weir__cidr_parse(nets[i].text, strlen(nets[i].text), &cidr, &error),
                         WEIR_INVALID);
        assert_contains(error.text, nets[i].says);
        assert_int_equal(error.column, nets[i].column);
        assert_memory_equal(&cidr, &before, sizeof(cidr));
        assert_int_equal(weir__cidr_parse(nets[i].text, strlen(nets[i].text), &cidr, NULL),
                         WEIR_INVALID);
    }
}

TEST(test_bad_networks_of_any_length)
{
    char text[1000];
    struct weir__cidr cidr;

    memset(text, '7', sizeof(text));
    assert_fails(weir__cidr_parse(text, sizeof(text), &cidr, &error), WEIR_INVALID,
                 "777...' is not an IP address: write it as 192.0.2.7 or 2001:db8::7");
    memcpy(text, "10.0.0.0/", 9);
    assert_fails(weir__cidr_parse(text, sizeof(text), &cidr, &error), WEIR_INVALID, "from 0 to 32");
}
