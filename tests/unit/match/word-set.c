/* word-set.c -- sets of words: each word of the list is found, nothing else is, whatever the bytes
 * and lengths. */
#include "unit/test.h"

#include "unit/fixture.h"
#include "match/values.h"

OWNS(weir__word_set)

static struct weir__word_set *set_of(const char *const *words, size_t n)
{
    struct weir__word_set *set = NULL;
    struct weir_error error;

    if (weir__word_set_create(&set, words, n, &error) != WEIR_OK)
        fail_msg("%s", error.text);
    return set;
}

static bool has(const struct weir__word_set *set, const char *word)
{
    return weir__word_set_has(set, word, strlen(word));
}

TEST(test_R3_empty_set)
{
    struct weir__word_set *set = set_of(NULL, 0);

    assert_false(has(set, ""));
    assert_false(has(set, "a"));
    weir__word_set_destroy(set);
    weir__word_set_destroy(NULL);
}

TEST(test_R3_words_and_nothing_like_them)
{
    static const char *const words[] = {
        "alpha", "beta", "alpha", "\xff\x01\n", "a value of more than sixteen bytes", "x"
    };

    OWN(weir__word_set) *set = set_of(words, COUNT_OF(words));
    for (size_t i = 0; i < COUNT_OF(words); i++)
        assert_true(has(set, words[i]));
    assert_false(has(set, "") || has(set, "alph") || has(set, "alphab") || has(set, "Alpha") ||
                 has(set, "y"));
    assert_false(weir__word_set_has(set, "x\0", 2)); /* a NUL counts */
    assert_false(weir__word_set_has(set, "alpha\0", 6));
    assert_true(weir__word_set_has(set, "alphabet", 5)); /* no NUL is needed */
    assert_false(has(set, "a value of more than sixteen byteS"));
}

TEST(test_R3_nothing_is_a_word_too)
{
    static const char *const words[] = { "" };

    OWN(weir__word_set) *set = set_of(words, 1);
    assert_true(has(set, ""));
    assert_true(weir__word_set_has(set, NULL, 0));
    assert_false(has(set, "a"));
}

TEST(test_the_words_are_copied)
{
    char word[] = "mine";
    const char *words[] = { word };

    OWN(weir__word_set) *set = set_of(words, 1);
    strcpy(word, "gone");
    words[0] = NULL;
    assert_true(has(set, "mine"));
    assert_false(has(set, "gone"));
}

/* All words of up to four bytes of three letters; a random half is on the list, some of it
 * twice. */
TEST(test_R3_as_a_loop)
{
    enum { ALL = 1 + 3 + 9 + 27 + 81 };
    static char all[ALL][5];
    size_t count = 1, from = 0;
    for (size_t to = 1; to < ALL; from++)
        for (size_t letter = 0; letter < 3 && to < ALL; letter++, to++, count++)
            *stpcpy(all[to], all[from]) = "ab\xfe"[letter];
    assert_int_equal(count, ALL);
    for (uint64_t seed = 1; seed <= 200; seed++) {
        const char *list[2 * ALL];
        bool is[ALL] = { false };
        uint64_t s = seed;
        size_t n = 0;
        for (size_t i = 0; i < ALL; i++)
            for (uint64_t times = random64(&s) % 3; times > 0; times--, is[i] = true)
                list[n++] = all[i];
        OWN(weir__word_set) *set = set_of(list, n);
        for (size_t i = 0; i < ALL; i++)
            assert_int_equal(has(set, all[i]), is[i]);
    }
}

TEST(test_R3_hundred_thousand_entries)
{
    enum { N = 100000 };
    char(*texts)[32] = calloc(N, sizeof(*texts)), other[32];
    const char **words = calloc(N, sizeof(*words));
    for (size_t i = 0; i < N; i++) {
        snprintf(texts[i], sizeof(texts[i]), i % 2 ? "key-%zu" : "a-longer-key-of-a-client-%zu", i);
        words[i] = texts[i];
    }
    struct weir__word_set *set = set_of(words, N);
    for (size_t i = 0; i < N; i++) {
        assert_true(has(set, texts[i]));
        snprintf(other, sizeof(other), i % 2 ? "a-longer-key-of-a-client-%zu" : "key-%zu", i);
        assert_false(has(set, other));
    }
    weir__word_set_destroy(set);
    free(texts);
    free(words);
}

TEST(test_too_many_words_are_refused)
{
    static const char *const words[] = { "a" };
    struct weir__word_set *set = NULL;

    assert_fails(weir__word_set_create(&set, words, SIZE_MAX, &error), WEIR_INVALID, "at most");
    assert_null(set);
}
