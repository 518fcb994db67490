/* base64.c -- the examples of RFC 4648, both alphabets, and what is none. */
#include "unit/test.h"

#include "server/base/base64.h"

#include "unit/fixture.h"

TEST(test_examples_of_the_rfc)
{
    static const char *const rows[][2] = { { "f", "Zg" },          { "fo", "Zm8" },
                                           { "foo", "Zm9v" },      { "foob", "Zm9vYg" },
                                           { "fooba", "Zm9vYmE" }, { "foobar", "Zm9vYmFy" } };
    char text[16], back[16];

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        size_t len = strlen(rows[i][0]),
               n = weir__base64_write(text, rows[i][0], len, WEIR__BASE64);
        assert_string_equal(text, rows[i][1]);
        assert_int_equal(n, WEIR__BASE64_LEN(len));
        assert_int_equal(weir__base64_read(back, len, text, n, WEIR__BASE64), len);
        assert_memory_equal(back, rows[i][0], len);
        assert_int_equal(weir__base64_read(back, len - 1, text, n, WEIR__BASE64), 0); /* no room */
    }
    assert_int_equal(weir__base64_write(text, "", 0, WEIR__BASE64), 0);
    assert_string_equal(text, "");
}

TEST(test_alphabets)
{
    char text[8], back[8];

    weir__base64_write(text, "\xfb\xff\xbf", 3, WEIR__BASE64);
    assert_string_equal(text, "+/+/");
    weir__base64_write(text, "\xfb\xff\xbf", 3, WEIR__BASE64_URL);
    assert_string_equal(text, "-_-_");
    assert_int_equal(weir__base64_read(back, sizeof(back), text, 4, WEIR__BASE64_URL), 3);
    assert_memory_equal(back, "\xfb\xff\xbf", 3);
    assert_int_equal(weir__base64_read(back, sizeof(back), text, 4, WEIR__BASE64), 0);
}

/* A length that nothing has, other characters, bits that are left over. */
TEST(test_what_is_none)
{
    static const char *const bad[] = { "", "Z", "Zm9vY", "Zm9=", "Zm 9", "Zh", "Zm9" };
    char back[8];

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_equal(
            weir__base64_read(back, sizeof(back), bad[i], strlen(bad[i]), WEIR__BASE64), 0);
}
