/* test.h -- the head of every unit test: cmocka, and tests that name themselves once.
 *
 *     TEST(test_a_fresh_key_has_its_whole_burst) { ... }
 *     TEST_WITH(test_..., start, stop) { struct world *w = *state; ... }
 *     GROUP(make_folder, remove_folder)    around all tests of the file
 *
 * One program has all files of a room.  test.c has main: it runs the tests in the order written.
 */
#ifndef WEIR_UNIT_TEST_H
#define WEIR_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

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

void test_add(const char *file, const struct CMUnitTest *test);
void test_group(const char *file, CMFixtureFunction setup, CMFixtureFunction teardown);

#define TEST_WITH(name, setup, teardown)                                                \
    static void name(void **state);                                                     \
    __attribute__((constructor)) static void add_##name(void)                           \
    {                                                                                   \
        test_add(__FILE__, &(struct CMUnitTest){ #name, name, setup, teardown, NULL }); \
    }                                                                                   \
    static void name(__attribute__((unused)) void **state)

#define TEST(name) TEST_WITH(name, NULL, NULL)

#define GROUP(setup, teardown)                               \
    __attribute__((constructor)) static void add_group(void) \
    {                                                        \
        test_group(__FILE__, setup, teardown);               \
    }

#endif
