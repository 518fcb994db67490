/* test.h -- the head of every unit test: cmocka, and tests that name themselves once.
 *
 *     TEST(test_a_fresh_key_has_its_whole_burst) { ... }
 *     TEST_WITH(test_..., start, stop) { struct world *w = *state; ... }
 *     RACE, RACE_WITH                      it has threads: ThreadSanitizer sees these alone
 *     GROUP(make_folder, remove_folder)    around all tests of the file
 *
 * One program has all files of a room.  test.c has main: it runs the tests in the order written.
 */
#ifndef WEIR_TESTS_UNIT_TEST_H
#define WEIR_TESTS_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Rounds of a random walk or a flood: under a sanitizer a quarter looks into every corner. */
#ifdef SANITIZED
#define FEWER(n) ((n) / 4)
#else
#define FEWER(n) (n)
#endif

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* What a test owns goes at the end of its block, the last first:
 *
 *     OWN(weir_table) *table = private_table(false, 16);
 *     FINALLY(weir__buffer_free) struct weir__buffer json = { 0 };
 */
#define FINALLY(drop) __attribute__((cleanup(drop)))
#define OWN(type)     FINALLY(type##_drop) struct type
#define OWNS(type)                                      \
    static inline void type##_drop(struct type **thing) \
    {                                                   \
        type##_destroy(*thing);                         \
    }

static inline void memory_drop(void *pointer)
{
    void *memory;

    memcpy(&memory, pointer, sizeof(memory));
    free(memory);
}

#define assert_ok(code) assert_int_equal(code, WEIR_OK)

/* assert_fields(d, (allowed, true), (remaining, 4)): numbers; a wrong one is named. */
#define assert_fields(base, ...)                                                          \
    FIELDS_OF(__VA_ARGS__, FIELDS_12, FIELDS_11, FIELDS_10, FIELDS_9, FIELDS_8, FIELDS_7, \
              FIELDS_6, FIELDS_5, FIELDS_4, FIELDS_3, FIELDS_2, FIELDS_1, 0)              \
    (base, __VA_ARGS__)

#define FIELDS_OF(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, fields, ...) fields

#define FIELD_IS(base, field, wanted) \
    field_is(#base "." #field, (intmax_t)(base).field, (intmax_t)(wanted), __FILE__, __LINE__)

#define FIELD_OPEN(field, wanted)  field, wanted
#define FIELD_CALL(base, ...)      FIELD_IS(base, __VA_ARGS__)
#define FIELDS_1(base, pair)       FIELD_CALL(base, FIELD_OPEN pair)
#define FIELDS_2(base, pair, ...)  (FIELDS_1(base, pair), FIELDS_1(base, __VA_ARGS__))
#define FIELDS_3(base, pair, ...)  (FIELDS_1(base, pair), FIELDS_2(base, __VA_ARGS__))
#define FIELDS_4(base, pair, ...)  (FIELDS_1(base, pair), FIELDS_3(base, __VA_ARGS__))
#define FIELDS_5(base, pair, ...)  (FIELDS_1(base, pair), FIELDS_4(base, __VA_ARGS__))
#define FIELDS_6(base, pair, ...)  (FIELDS_1(base, pair), FIELDS_5(base, __VA_ARGS__))
#define FIELDS_7(base, pair, ...)  (FIELDS_1(base, pair), FIELDS_6(base, __VA_ARGS__))
#define FIELDS_8(base, pair, ...)  (FIELDS_1(base, pair), FIELDS_7(base, __VA_ARGS__))
#define FIELDS_9(base, pair, ...)  (FIELDS_1(base, pair), FIELDS_8(base, __VA_ARGS__))
#define FIELDS_10(base, pair, ...) (FIELDS_1(base, pair), FIELDS_9(base, __VA_ARGS__))
#define FIELDS_11(base, pair, ...) (FIELDS_1(base, pair), FIELDS_10(base, __VA_ARGS__))
#define FIELDS_12(base, pair, ...) (FIELDS_1(base, pair), FIELDS_11(base, __VA_ARGS__))

static inline void field_is(const char *name, intmax_t got, intmax_t wanted, const char *file,
                            int line)
{
    if (got == wanted)
        return;
    print_error("%s is %jd, and not %jd\n", name, got, wanted);
    _fail(file, line);
}

void test_add(const char *file, const struct CMUnitTest *test, bool races);
void test_group(const char *file, CMFixtureFunction setup, CMFixtureFunction teardown);

#define TEST_IN(name, setup, teardown, races)                                                  \
    static void name(void **state);                                                            \
    __attribute__((constructor)) static void add_##name(void)                                  \
    {                                                                                          \
        test_add(__FILE__, &(struct CMUnitTest){ #name, name, setup, teardown, NULL }, races); \
    }                                                                                          \
    static void name(__attribute__((unused)) void **state)

#define TEST_WITH(name, setup, teardown) TEST_IN(name, setup, teardown, false)
#define TEST(name)                       TEST_WITH(name, NULL, NULL)
#define RACE_WITH(name, setup, teardown) TEST_IN(name, setup, teardown, true)
#define RACE(name)                       RACE_WITH(name, NULL, NULL)

#define GROUP(setup, teardown)                               \
    __attribute__((constructor)) static void add_group(void) \
    {                                                        \
        test_group(__FILE__, setup, teardown);               \
    }

#endif
