/* count-distinct.c -- counting in fixed memory: exact while there are few, within the stated error
 * when there are many. */
#include "unit/test.h"

#include "unit/fixture.h"
#include "unit/sketch-secrets.h"

OWNS(weir__distinct)

TEST(test_secrets_depend_on_the_text)
{
    struct weir__sketch_secrets a = { 0 }, b = { 0 };

    weir__sketch_secrets_make(&a, "a line", 6);
    weir__sketch_secrets_make(&b, "a line", 6);
    assert_memory_equal(&a, &b, sizeof(a));
    weir__sketch_secrets_make(&b, "a lime", 6);
    for (size_t i = 0; i < COUNT_OF(a.words); i++)
        assert_true(a.words[i] != b.words[i]);
    weir__sketch_secrets_make(&b, "", 0);
    assert_memory_not_equal(&a, &b, sizeof(a));
}

TEST(test_distinct_is_exact_up_to_its_bound)
{
    OWN(weir__distinct) *d = weir__distinct_create();
    assert_int_equal(weir__distinct_count(d), 0);
    for (int64_t i = 1; i <= WEIR__DISTINCT_EXACT; i++) {
        weir__distinct_add(d, hash_of(i));
        weir__distinct_add(d, hash_of(i));
        weir__distinct_add(d, hash_of(1));
        assert_int_equal(weir__distinct_count(d), i);
    }
    assert_true(weir__distinct_is_exact(d));
    weir__distinct_add(d, hash_of(0));
    assert_false(weir__distinct_is_exact(d));
}

TEST(test_distinct_takes_a_hash_of_zero)
{
    OWN(weir__distinct) *d = weir__distinct_create();
    weir__distinct_add(d, 0);
    weir__distinct_add(d, 0);
    assert_int_equal(weir__distinct_count(d), 1);
    weir__distinct_add(d, UINT64_MAX);
    assert_int_equal(weir__distinct_count(d), 2);
}

/* The standard error is 0.8 %; five of them are missed less than once in a million times, and the
 * seed is fixed. */
TEST(test_distinct_is_near_beyond)
{
    OWN(weir__distinct) *d = weir__distinct_create();
    int64_t n = 0;
    for (int64_t stop = 5000; stop <= 1280000; stop *= 4) {
        for (; n < stop; n++)
            weir__distinct_add(d, hash_of(n));
        int64_t off = weir__distinct_count(d) - n;
        assert_in_range(off < 0 ? -off : off, 0, n * 4 / 100);
    }
}

GROUP(fill_secrets, NULL)
