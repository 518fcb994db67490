/* test.h -- what every unit test begins with: cmocka, and tests that name themselves once.
 *
 *     TEST(test_a_fresh_key_has_its_whole_burst) { ... }
 *     TEST_WITH(test_..., start, stop) { struct world *w = *state; ... }
 *     GROUP(make_folder, remove_folder)    around all tests of the file
 *
 * test.c has main: it runs them in the order of the file.
 */
#ifndef WEIR_UNIT_TEST_H
#define WEIR_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

void test_add(const char *name, CMUnitTestFunction run, CMFixtureFunction setup,
              CMFixtureFunction teardown);
void test_group(CMFixtureFunction setup, CMFixtureFunction teardown);

#define TEST_WITH(name, setup, teardown)                      \
    static void name(void **state);                           \
    __attribute__((constructor)) static void add_##name(void) \
    {                                                         \
        test_add(#name, name, setup, teardown);               \
    }                                                         \
    static void name(__attribute__((unused)) void **state)

#define TEST(name) TEST_WITH(name, NULL, NULL)

#define GROUP(setup, teardown)                               \
    __attribute__((constructor)) static void add_group(void) \
    {                                                        \
        test_group(setup, teardown);                         \
    }

#endif
