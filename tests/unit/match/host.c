/* host.c -- every spelling of a host comes out the same. */
#include "unit/test.h"

#include "match/values.h"

static const struct {
    const char *host, *plain;
} known[] = {
    { "shop.example", "shop.example" },
    { "SHOP.Example", "shop.example" },
    { "shop.example:443", "shop.example" },
    { "shop.example.", "shop.example" },
    { "Shop.Example.:8080", "shop.example" },
    { "shop.example..", "shop.example" },
    { "shop.example:", "shop.example" },
    { "shop.example:x:1", "shop.example" },
    { "192.0.2.7:80", "192.0.2.7" },
    { "[2001:DB8::1]:443", "[2001:db8::1]" },
    { "[::1]", "[::1]" },
    { "::1", "::1" },
    { "xn--Bcher-kva.example", "xn--bcher-kva.example" },
    { "B\xc3\x9c"
      "cher",
      "b\xc3\x9c"
      "cher" },
    { "", "" },
    { ".", "." },
    { ":443", ":443" },
};

TEST(test_every_spelling_of_a_host_is_one)
{
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        char out[64];
        size_t len = weir__host_plain(known[i].host, strlen(known[i].host), out, sizeof(out));
        out[len] = '\0';
        assert_string_equal(out, known[i].plain);
        assert_int_equal(weir__host_is_plain(known[i].host, strlen(known[i].host)),
                         strcmp(known[i].host, known[i].plain) == 0);
        assert_true(weir__host_is_plain(out, len));
    }
}

TEST(test_a_long_host_is_cut)
{
    char out[4];

    assert_int_equal(weir__host_plain("ABCDEFG", 7, out, sizeof(out)), 4);
    assert_memory_equal(out, "abcd", 4);
}
