/* glob.c -- patterns: as a matcher that tries everything does, and never in more than pattern x
 * text. */
#include "unit/test.h"

#include "unit/fixture.h"
#include "match/values.h"

static bool match(const char *pattern, const char *text, bool path)
{
    return weir__glob_match(pattern, strlen(pattern), text, strlen(text), path);
}

/* The meaning, and nothing else: slow. */
static bool match_plainly(const char *p, const char *t, bool path)
{
    if (*p == '\0')
        return *t == '\0';
    if (*p == '*') {
        bool wide = !path || p[1] == '*';
        const char *rest = p;
        while (*rest == '*')
            rest++;
        return match_plainly(rest, t, path) || (*t != '\0' && (wide || *t != '/') &&
                                                match_plainly(wide ? p : rest - 1, t + 1, path));
    }
    return *t != '\0' && (*p == '?' ? !path || *t != '/' : *p == *t) &&
           match_plainly(p + 1, t + 1, path);
}

TEST(test_R1_patterns_elsewhere)
{
    assert_true(match("", "", false) && !match("", "a", false) && !match("a", "", false));
    assert_true(match("*", "", false) && match("*", "a/b", false) && match("**", "a/b", false));
    assert_true(match("*bot*", "Googlebot/2.1", false) && match("*bot*", "bot", false) &&
                !match("*bot*", "bo t", false));
    assert_true(match("a?c", "abc", false) && match("a?c", "a/c", false) &&
                !match("a?c", "ac", false));
    assert_true(match("*.example.com", "www.example.com", false) &&
                !match("*.example.com", "example.com", false));
    assert_true(match("a*a", "aa", false) && !match("a*a", "a", false));
}

TEST(test_R1_patterns_of_paths)
{
    assert_true(match("/user/*/edit", "/user/7/edit", true) &&
                match("/user/*/edit", "/user//edit", true));
    assert_false(match("/user/*/edit", "/user/7/8/edit", true) ||
                 match("/user/*/edit", "/user/7/edit/", true));
    assert_true(match("/**/edit", "/user/7/8/edit", true) && match("/**/edit", "//edit", true) &&
                !match("/**/edit", "/edit", true));
    assert_true(match("/api/**", "/api/", true) && match("/api/**", "/api/a/b", true) &&
                !match("/api/**", "/api", true));
    assert_true(match("/a?c", "/abc", true) && !match("/a?c", "/a/c", true) &&
                !match("?", "/", true));
    assert_true(match("/*", "/a", true) && match("/*", "/", true) && !match("/*", "/a/", true));
    assert_true(match("**.php", "/a/b.php", true) && match("/*.php", "/b.php", true) &&
                !match("/*.php", "/a/b.php", true));
    assert_true(match("/***/x", "/a/b/x", true)); /* as ** */
    assert_true(match("**/a*b/c", "/x/ab/azb/c", true) && match("**/a*b/**", "/ax/ab/c", true));
}

TEST(test_R1_bytes_are_bytes)
{
    assert_true(weir__glob_match("a*\0?", 4, "axx\0y", 5, false));
    assert_false(weir__glob_match("a", 1, "a\0", 2, false));
    assert_true(match("\xc3*", "\xc3\xa9", true));
    assert_true(weir__glob_match(NULL, 0, NULL, 0, true));
}

static void random_word(char *out, const char *letters, size_t longest, uint64_t *seed)
{
    size_t n = random64(seed) % (longest + 1), kinds = strlen(letters);

    for (size_t i = 0; i < n; i++)
        out[i] = letters[random64(seed) % kinds];
    out[n] = '\0';
}

TEST(test_R1_as_the_plain_matcher)
{
    static const char *const patterns[] = { "ab*", "a*/", "a*?/", "ab**/", "a***/?b" };
    static const char *const texts[] = { "ab", "a/", "ab/", "aab/" };

    for (uint64_t seed = 1; seed <= 400000; seed++) {
        uint64_t s = seed;
        char pattern[16], text[16];
        random_word(pattern, patterns[seed % COUNT_OF(patterns)], 9, &s);
        random_word(text, texts[seed % COUNT_OF(texts)], 11, &s);
        for (int path = 0; path < 2; path++)
            if (match(pattern, text, path) != match_plainly(pattern, text, path))
                fail_msg("seed %llu: '%s' and '%s', %s a path", (unsigned long long)seed, pattern,
                         text, path ? "as" : "not");
    }
}

/* All short ones. */
TEST(test_R1_every_short_pattern)
{
    static const char letters[] = "a/*?", bytes[] = "a/b";

    for (unsigned p = 0; p < 4096; p++)
        for (unsigned t = 0; t < 729; t++) {
            char pattern[7] = "", text[7] = "";
            unsigned x = p, y = t;
            for (int i = 0; i < 6; i++, x /= 4)
                pattern[i] = letters[x % 4];
            for (int i = 0; i < 6; i++, y /= 3)
                text[i] = bytes[y % 3];
            if (match(pattern, text, true) != match_plainly(pattern, text, true))
                fail_msg("'%s' and '%s'", pattern, text);
        }
}

static char *repeat(const char *part, size_t times, const char *end)
{
    size_t len = strlen(part);
    char *out = malloc(len * times + strlen(end) + 1);

    for (size_t i = 0; i < times; i++)
        memcpy(out + i * len, part, len);
    strcpy(out + len * times, end);
    return out;
}

/* Each would take years if stars were tried in all combinations, and minutes if one text position
 * cost a text: that it ends is the test. */
TEST(test_R1_hostile_patterns_end)
{
    static const struct {
        const char *pattern, *end;
        size_t times;
        const char *text, *text_end;
    } cases[] = {
        { "*a", "b", 30, "a", "" },         { "**a", "b", 30, "a", "" },
        { "*a**a", "b", 20, "a", "/" },     { "**a*a", "*b", 20, "a", "/" },
        { "**a*a*", "b/", 1, "a", "/" },    { "**/a*a*", "b", 8, "/aaaa", "" },
        { "**a*/*a", "*b", 20, "a/a", "" }, { "?*", "x", 30, "a", "" },
        { "**?*", "x", 30, "aaa/", "" },    { "**a*", "/b", 1, "a", "/" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *pattern = repeat(cases[i].pattern, cases[i].times, cases[i].end),
             *text = repeat(cases[i].text, 100000, cases[i].text_end);
        assert_false(match(pattern, text, true));
        assert_false(match(pattern, text, false));
        free(pattern);
        free(text);
    }
}
