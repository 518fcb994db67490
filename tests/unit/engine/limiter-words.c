/* limiter-words.c -- names of limiters, as people read them. */
#include "unit/test.h"

#include "weir-admin.h"

static void assert_words(bool limits, const char *name, const char *limit, const char *words)
{
    struct weir_limiter_info info = { 0 };
    char found[96];

    snprintf(info.name, sizeof(info.name), "%s", name);
    snprintf(info.limit, sizeof(info.limit), "%s", limit);
    assert_int_equal(weir_limiter_words(&info, found), limits);
    assert_string_equal(found, words);
}

TEST(test_N5_names_that_programs_have_made)
{
    assert_words(true, "login#0-1a2b3c4d", "5/1m", "login, limit 1");
    assert_words(true, "login#15-1a2b3c4d", "5/1m", "login, limit 16");
    assert_words(true, "login$1-1a2b3c4d", "5/1m", "login, purse 2");
    assert_words(true, "login!0-1a2b3c4d", "5/1m", "login, refusals for its ban");
    assert_words(false, "login@", "gcra 1/1s", "login");
    assert_words(true, "nginx:ip:1a2b3c4d0", "gcra 10/1s", "nginx zone ip");
    assert_words(true, "nginx-stream:a:b:1a2b3c4d7", "gcra 10/1s", "nginx stream zone a:b");
}

TEST(test_N5_names_of_others)
{
    static const char *const names[] = { "",
                                         "@",
                                         "api",
                                         "a#0",
                                         "a#0-1a2b3c4",
                                         "a#0-1a2b3c4dz",
                                         "nginx:ip:",
                                         "nginx::1a2b3c4d0",
                                         "nginx:1a2b3c4d0",
                                         "#0-1a2b3c4d" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_words(true, names[i], "5/1m", names[i]);
    assert_words(true, "a@", "gcra 5/1m", "a@");
}
