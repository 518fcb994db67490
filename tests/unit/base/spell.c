/* spell.c -- how far a word is from a name, and what it was meant to be. */
#include "unit/test.h"

#include "base/base.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static unsigned edits(const char *word, const char *name)
{
    return weir__edits(word, strlen(word), name, strlen(name));
}

TEST(test_edits)
{
    static const struct {
        const char *word, *name;
        unsigned edits;
    } rows[] = {
        { "", "", 0 },          { "", "abc", 3 },      { "gcra", "gcra", 0 },
        { "GCRA", "gcra", 0 },  { "gcar", "gcra", 1 }, { "gcr", "gcra", 1 },
        { "gcraa", "gcra", 1 }, { "gcxa", "gcra", 1 }, { "brust", "burst", 1 },
        { "ab", "ba", 1 },      { "abc", "xyz", 3 },   { "kitten", "sitting", 3 },
        { "a", "b", 1 },        { "abcd", "badc", 2 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        assert_int_equal(edits(rows[i].word, rows[i].name), rows[i].edits);
        assert_int_equal(edits(rows[i].name, rows[i].word), rows[i].edits); /* there and back */
    }
}

TEST(test_the_longest_words)
{
    char a[WEIR__EDITS_MAX], b[WEIR__EDITS_MAX];

    memset(a, 'a', sizeof(a));
    memset(b, 'b', sizeof(b));
    assert_int_equal(weir__edits(a, sizeof(a), b, sizeof(b)), WEIR__EDITS_MAX);
    assert_int_equal(weir__edits(a, sizeof(a), a, sizeof(a)), 0);
    assert_int_equal(weir__edits(a, sizeof(a), b, 0), WEIR__EDITS_MAX);
}

TEST(test_nearest_words)
{
    static const char *const names[] = {
        "name", "limit", "match", "mode", "sliding-window", "not"
    };

    static const struct {
        const char *word, *nearest;
    } cases[] = {
        { "limt", "limit" },
        { "limits", "limit" },
        { "LIMIT", "limit" },
        { "mdoe", "mode" },
        { "mach", "match" },
        { "sliding", "sliding-window" },
        { "sliding_window", "sliding-window" },
        { "x", NULL },
        { "colour", NULL },
        { "", NULL },
        { "nam", "name" },
        { "ont", "not" },
        { "a-word-that-is-longer-than-forty-bytes-is-like-none", NULL },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *near =
            weir__nearest(cases[i].word, strlen(cases[i].word), names, COUNT_OF(names));
        if ((near == NULL) != (cases[i].nearest == NULL) ||
            (near && strcmp(near, cases[i].nearest) != 0))
            fail_msg("'%s' is like %s", cases[i].word, near ? near : "nothing");
    }
}

TEST(test_hints)
{
    static const char *const names[] = { "allow", "deny" };
    const char *many[100];

    assert_string_equal(weir__hint("alow", 4, names, 2).text, "did you mean 'allow'?");
    assert_string_equal(weir__hint("zzzzz", 5, names, 2).text, "known are allow, deny");
    assert_string_equal(weir__hint("zzzzz", 5, names, 1).text, "only 'allow' is known");
    assert_string_equal(weir__hint("zzzzz", 5, names, 0).text, "there are none");
    for (size_t i = 0; i < COUNT_OF(many); i++)
        many[i] = "some-name";
    struct weir__hint hint = weir__hint("zzzzz", 5, many, COUNT_OF(many));
    assert_true(strlen(hint.text) < sizeof(hint.text));
    assert_string_equal(hint.text + strlen(hint.text) - 5, ", ...");
}

TEST(test_a_quote_is_safe_and_short)
{
    assert_string_equal(weir__quote("a\x1b\nb", 4).text, "'a\\x1b\\x0ab'");
    assert_string_equal(weir__quote("\xc2\xb5s", 3).text, "'\xc2\xb5s'");
    assert_string_equal(weir__quote("\xff", 1).text, "'\\xff'");
    assert_string_equal(weir__quote("\xe2\x80\xaex", 4).text,
                        "'\\xe2\\x80\\xaex'"); /* turns right to left */
    char all[256];
    memset(all, 0xff, sizeof(all));
    assert_int_equal(strlen(weir__quote(all, sizeof(all)).text), 61);
    memset(all, 'a', sizeof(all));
    const char *text = weir__quote(all, sizeof(all)).text;
    assert_string_equal(text + strlen(text) - 5, "a...'");
}
