/* patterns.c -- regular expressions as globs: those that globs can say, and no others. */
#include "unit/server/import/importing.h"

static void print_patterns(char *out, size_t size, const struct weir__import_patterns *list)
{
    static const char marks[] = "=^*";
    size_t n = 0;

    out[0] = '\0';
    for (const struct weir__import_pattern *p = list->first; p != NULL; p = p->next)
        n += (size_t)snprintf(out + n, size - n, "%s%c%s", n > 0 ? " " : "", marks[p->kind],
                              p->text);
}

static void check_regex(const char *regex, bool path, const char *wanted)
{
    FINALLY(weir__import_clear) struct weir__import import = { 0 };
    struct weir__import_patterns list = { 0 };
    char text[1024];

    bool said = weir__pattern_regex(&import, &list, regex, path);
    print_patterns(text, sizeof(text), &list);
    assert_string_equal(said ? text : "none", wanted);
}

TEST(test_paths)
{
    check_regex("^/login$", true, "=/login");
    check_regex("^/api/", true, "^/api/");
    check_regex("\\.php$", true, "***.php");
    check_regex("\\.(jpg|png)$", true, "***.jpg ***.png");
    check_regex("\\.jpe?g$", true, "***.jpeg ***.jpg");
    check_regex("^/(a|b)/[^/]+/x$", true, "*/a/?*/x */b/?*/x");
    check_regex("^/a/.*\\.css$", true, "*/a/**.css");
    check_regex("^/a$|^/b", true, "=/a ^/b");
    check_regex("^/(?<name>a|b)$", true, "=/a =/b");
    check_regex("^/[ab]$", true, "=/a =/b");
}

TEST(test_other_values)
{
    check_regex("bot", false, "**bot*");
    check_regex("^www\\..+$", false, "*www.?*");
    check_regex("^a.c$", false, "*a?c");
}

TEST(test_what_globs_cannot_say)
{
    const char *const regexes[] = { "[0-9]+", "a+",  "a{2}", "\\d",  "^/a.c$", "(a", "a)",
                                    "(?=a)",  "\\*", "a**",  "[^a]", "(a)*",   "[",  "\\" };
    char deep[200];

    for (size_t i = 0; i < COUNT_OF(regexes); i++)
        check_regex(regexes[i], true, "none");
    memset(deep, '(', sizeof(deep) - 1);
    deep[sizeof(deep) - 1] = '\0';
    check_regex(deep, true, "none");
    check_regex("(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)", true, "none"); /* 128 globs */
}

TEST(test_hosts)
{
    FINALLY(weir__import_clear) struct weir__import import = { 0 };
    struct weir__import_patterns list = { 0 };
    char text[256];

    assert_true(weir__pattern_host(&import, &list, "A.example"));
    assert_true(weir__pattern_host(&import, &list, ".b.example"));
    assert_true(weir__pattern_host(&import, &list, "www.c.*"));
    assert_false(weir__pattern_host(&import, &list, ""));
    print_patterns(text, sizeof(text), &list);
    assert_string_equal(text, "=a.example =b.example **.b.example *www.c.*");
}
