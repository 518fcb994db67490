/* spell.c -- how far a word is from a name. */
#include "unit/test.h"

#include <string.h>

#include "base/base.h"

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
