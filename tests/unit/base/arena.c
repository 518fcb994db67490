/* arena.c -- pieces of every size: apart, aligned, zero, and all gone at once. */
#include "unit/test.h"

#include "unit/fixture.h"

#include "base/arena.h"

TEST(test_pieces_are_apart_and_zero)
{
    struct weir__arena arena = { 0 };
    uint64_t seed = 1;
    unsigned char *pieces[500];
    size_t sizes[500];

    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        sizes[i] = (size_t)(random64(&seed) % (i % 50 == 0 ? 200000 : 300));
        pieces[i] = weir__arena_take(&arena, sizes[i], 1);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(pieces[i][k], 0);
        memset(pieces[i], (int)(i & 255), sizes[i]);
    }
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(pieces[i][k], i & 255);
    }
    assert_false(arena.failed);
    weir__arena_clear(&arena);
    assert_null(arena.blocks);
    weir__arena_clear(&arena);
}

TEST(test_too_much_fails_and_says_so)
{
    struct weir__arena arena = { 0 };

    assert_null(weir__arena_take(&arena, SIZE_MAX / 2, 16));
    assert_true(arena.failed);
    assert_non_null(weir__arena_take(&arena, 1, 16));
    assert_true(arena.failed); /* stays, so that one look at the end is enough */
    weir__arena_clear(&arena);
}

TEST(test_copies_end_in_nul)
{
    struct weir__arena arena = { 0 };

    assert_string_equal(weir__arena_copy(&arena, "abcdef", 3), "abc");
    assert_string_equal(weir__arena_copy(&arena, NULL, 0), "");
    weir__arena_clear(&arena);
}
