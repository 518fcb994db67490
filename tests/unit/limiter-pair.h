/* limiter-pair.h -- shared by the tests of limits at work in a table: a table as two processes have
 * it, and limiters that cannot be made. */
#ifndef WEIR_TESTS_UNIT_LIMITER_PAIR_H
#define WEIR_TESTS_UNIT_LIMITER_PAIR_H

#include "unit/fixture.h"

static struct weir_limiter *const untouched = (struct weir_limiter *)(uintptr_t)0x5a5a;

static inline void expect_create_fails(struct weir_table *table, const char *name, const char *text,
                                       int code, const char *words)
{
    struct weir_limiter *limiter = untouched;
    struct weir_limit limit = limit_of(text);
    struct weir_error error = { 0 };
    int64_t limiters = stats_of(table, -1).limiters;
    int got = weir_limiter_create(&limiter, table, name, &limit, &error);

    if (got != code)
        fail_msg("%s as \"%s\" gave %d: %s", text, name, got, error.text);
    assert_ptr_equal(limiter, untouched);
    assert_contains(error.text, words);
    assert_int_equal(weir_limiter_create(&limiter, table, name, &limit, NULL), code);
    assert_int_equal(stats_of(table, -1).limiters, limiters);
}

/* A table on a file, as two processes have it. */
struct pair {
    const char *path;
    struct weir_table *one, *two;
};

static inline struct pair make_pair(bool narrow, int64_t slab)
{
    const char *path = new_path();
    struct weir_table *one = table_with(
        &(struct weir_table_options){ .path = path, .keys = 1000, .slab = slab, .narrow = narrow });

    return (struct pair){ path, one, attach(path) };
}

static inline void leave(struct pair *p)
{
    weir_table_destroy(p->one);
    weir_table_destroy(p->two);
}

#endif
