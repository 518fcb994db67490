/* safe-text.c -- texts that are too long. */
#include "unit/test.h"

#include "server/base/safe-text.h"

TEST(test_long_texts_are_cut_between_characters)
{
    char out[9];

    weir__text_cut(out, sizeof(out), "12345678", 8);
    assert_string_equal(out, "12345678");
    weir__text_cut(out, sizeof(out), "123456789", 9);
    assert_string_equal(out, "12345...");
    weir__text_cut(out, sizeof(out),
                   "123\xe2\x82\xac"
                   "67890",
                   11);
    assert_string_equal(out, "123...");
    weir__text_cut(out, sizeof(out), "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", 10);
    assert_string_equal(out, "\x80\x80...");
    weir__text_cut(out, sizeof(out), "", 0);
    assert_string_equal(out, "");
}
