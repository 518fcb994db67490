/* utf8.c -- characters in bytes, and which of them are safe to show. */
#include "unit/test.h"

#include "base/utf8.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

TEST(test_R6_utf8)
{
    static const struct {
        const char *bytes;
        size_t len;
    } cases[] = { { "a", 1 },
                  { "\xc3\xa4", 2 },
                  { "\xe2\x82\xac", 3 },
                  { "\xf0\x9f\x98\x80", 4 },
                  { "\xc3", 0 },
                  { "\xc0\x80", 0 },
                  { "\xe0\x80\x80", 0 },
                  { "\xed\xa0\x80", 0 },
                  { "\xf4\x90\x80\x80", 0 },
                  { "\x80", 0 },
                  { "\xff", 0 },
                  { "\xe2\x82", 0 },
                  { "", 0 } };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(weir__utf8_length(cases[i].bytes, cases[i].bytes + strlen(cases[i].bytes)),
                         cases[i].len);
}

TEST(test_harmless)
{
    static const char *const harmless[] = {
        "a", " ", "~", "\xc2\xa0", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80"
    };
    static const char *const harmful[] = { "\n",           "\x1b",         "\x7f",
                                           "\xc2\x80",     "\xc2\x9b",     "\xe2\x80\x8b",
                                           "\xe2\x80\x8f", "\xe2\x80\xae", "\xe2\x81\xa6",
                                           "\xef\xbb\xbf", "\xef\xbf\xbf" };

    for (size_t i = 0; i < COUNT_OF(harmless); i++)
        assert_true(weir__utf8_is_harmless(harmless[i], strlen(harmless[i])));
    for (size_t i = 0; i < COUNT_OF(harmful); i++)
        assert_false(weir__utf8_is_harmless(harmful[i], strlen(harmful[i])));
}
