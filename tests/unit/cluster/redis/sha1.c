/* sha1.c -- the examples of FIPS 180, and every length around a block. */
#include "unit/test.h"

#include "cluster/redis/sha1.h"

static void expect(const char *text, const char *wanted)
{
    char hex[WEIR__SHA1_HEX + 1];

    weir__sha1_hex(hex, text, strlen(text));
    assert_string_equal(hex, wanted);
}

TEST(test_D1_sha1)
{
    static char million[1000001];

    expect("", "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    expect("abc", "a9993e364706816aba3e25717850c26c9cd0d89d");
    expect("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
           "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    expect("return 1", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
    memset(million, 'a', sizeof(million) - 1);
    expect(million, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

/* The length's eight bytes fit behind 55 bytes, and not behind 56. */
TEST(test_D1_sha1_around_a_block)
{
    char text[65] = { 0 };

    memset(text, 'x', 64);
    text[55] = '\0';
    expect(text, "cef734ba81a024479e09eb5a75b6ddae62e6abf1");
    text[55] = 'x';
    text[56] = '\0';
    expect(text, "901305367c259952f4e7af8323f480d59f81335b");
    text[56] = 'x';
    expect(text, "bb2fa3ee7afb9f54c6dfb5d021f14b1ffe40c163");
}
