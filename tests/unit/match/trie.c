/* trie.c -- prefixes of a value: against trying every one of them. */
#include "unit/test.h"

#include "unit/fixture.h"

#include "match/trie.h"

OWNS(weir__trie)

#define PREFIXES 400

static int compare(const void *a, const void *b)
{
    const struct weir__prefix *x = a, *y = b;
    size_t len = x->len < y->len ? x->len : y->len;
    int order = memcmp(x->text, y->text, len);

    return order ? order : x->len < y->len ? -1 : x->len > y->len;
}

static struct weir__trie *trie_of(struct weir__prefix *prefixes, size_t n)
{
    struct weir__trie *trie = NULL;

    if (n > 0)
        qsort(prefixes, n, sizeof(*prefixes), compare);
    assert_ok(weir__trie_create(&trie, prefixes, n, NULL));
    return trie;
}

/* One after another, as the tests want them. */
struct walk {
    const struct weir__trie *trie;
    const char *text;
    size_t len, told;
};

static struct walk begin(const struct weir__trie *trie, const char *text, size_t len)
{
    return (struct walk){ trie, text, len, 0 };
}

static uint32_t next(struct walk *w)
{
    uint32_t found[WEIR__TRIE_FOUND];

    return weir__trie_find(w->trie, w->text, w->len, w->told, found) == 0 ? WEIR__TRIE_NONE
                                                                          : (w->told++, found[0]);
}

TEST(test_without_prefixes_nothing_is_found)
{
    struct weir__trie *trie = trie_of(NULL, 0);
    struct walk walk = begin(trie, "abc", 3);

    assert_int_equal(next(&walk), WEIR__TRIE_NONE);
    assert_int_equal(next(&walk), WEIR__TRIE_NONE); /* and again */
    weir__trie_destroy(trie);
    weir__trie_destroy(NULL);
}

TEST(test_prefixes_come_shortest_first)
{
    struct weir__prefix prefixes[] = { { "/", 1, 1 },     { "/api/", 5, 2 }, { "/api/v1/", 8, 3 },
                                       { "/apix", 5, 4 }, { "", 0, 5 },      { "x\0y", 3, 6 } };

    OWN(weir__trie) *trie = trie_of(prefixes, COUNT_OF(prefixes));
    struct walk walk = begin(trie, "/api/v1/users", 13);
    static const uint32_t wanted[] = { 5, 1, 2, 3, WEIR__TRIE_NONE, WEIR__TRIE_NONE };
    for (size_t i = 0; i < COUNT_OF(wanted); i++)
        assert_int_equal(next(&walk), wanted[i]);
    walk = begin(trie, "/ap", 3); /* the value ends inside a label */
    assert_int_equal(next(&walk), 5);
    assert_int_equal(next(&walk), 1);
    assert_int_equal(next(&walk), WEIR__TRIE_NONE);
    walk = begin(trie, "", 0);
    assert_int_equal(next(&walk), 5);
    assert_int_equal(next(&walk), WEIR__TRIE_NONE);
    walk = begin(trie, "x\0yz", 4); /* a NUL is a byte like others */
    assert_int_equal(next(&walk), 5);
    assert_int_equal(next(&walk), 6);
    assert_int_equal(next(&walk), WEIR__TRIE_NONE);
}

/* Text of up to nine bytes, of three letters: so that many share their beginnings. */
static size_t random_text(uint64_t *seed, char out[10])
{
    static const char letters[] = { 'a', 'b', (char)0xff };
    size_t len = random64(seed) % 10;

    for (size_t i = 0; i < len; i++)
        out[i] = letters[random64(seed) % COUNT_OF(letters)];
    return len;
}

static size_t random_prefixes(uint64_t *seed, struct weir__prefix *prefixes, char (*texts)[10])
{
    size_t n = 0;

    for (size_t i = 0; i < PREFIXES; i++)
        prefixes[i] = (struct weir__prefix){ texts[i], random_text(seed, texts[i]), 0 };
    qsort(prefixes, PREFIXES, sizeof(*prefixes), compare);
    for (size_t i = 0; i < PREFIXES; i++)
        if (n == 0 || compare(&prefixes[n - 1], &prefixes[i]) != 0)
            prefixes[n++] = prefixes[i];
    for (size_t i = 0; i < n; i++)
        prefixes[i].value = (uint32_t)i;
    return n;
}

TEST(test_the_same_as_trying_each)
{
    uint64_t seed = 7;

    for (int round = 0; round < 20; round++) {
        static char texts[PREFIXES][10];
        struct weir__prefix prefixes[PREFIXES];
        size_t n = random_prefixes(&seed, prefixes, texts);
        OWN(weir__trie) *trie = trie_of(prefixes, n);
        for (int i = 0; i < 500; i++) {
            char value[10];
            size_t len = random_text(&seed, value);
            struct walk walk = begin(trie, value, len);
            for (size_t p = 0; p < n; p++) /* sorted: a prefix of a prefix lies before it */
                if (prefixes[p].len <= len && memcmp(prefixes[p].text, value, prefixes[p].len) == 0)
                    assert_int_equal(next(&walk), p);
            assert_int_equal(next(&walk), WEIR__TRIE_NONE);
        }
    }
}

/* A chain of prefixes, each one byte longer, is as deep as a tree gets. */
TEST(test_a_long_chain)
{
    static char text[4000];
    static struct weir__prefix prefixes[4000];

    memset(text, 'z', sizeof(text));
    for (uint32_t i = 0; i < COUNT_OF(prefixes); i++)
        prefixes[i] = (struct weir__prefix){ text, i, i };
    OWN(weir__trie) *trie = trie_of(prefixes, COUNT_OF(prefixes));
    struct walk walk = begin(trie, text, sizeof(text));
    for (uint32_t i = 0; i < COUNT_OF(prefixes); i++)
        assert_int_equal(next(&walk), i);
    assert_int_equal(next(&walk), WEIR__TRIE_NONE);
}
