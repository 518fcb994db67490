/* test.c -- main of every unit test: runs what TEST has named. */
#include "unit/test.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TESTS_MAX 256

static struct CMUnitTest tests[TESTS_MAX];
static size_t count;
static CMFixtureFunction group_setup, group_teardown;

void test_add(const char *name, CMUnitTestFunction run, CMFixtureFunction setup,
              CMFixtureFunction teardown)
{
    assert(count < TESTS_MAX);
    tests[count++] = (struct CMUnitTest){ name, run, setup, teardown, NULL };
}

void test_group(CMFixtureFunction setup, CMFixtureFunction teardown)
{
    group_setup = setup;
    group_teardown = teardown;
}

/* PATTERN: only the tests whose name holds it. */
int main(int argc, char **argv)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (argc < 2 || strstr(tests[i].name, argv[1]))
            tests[kept++] = tests[i];
    }
    if (kept == 0) {
        fprintf(stderr, "%s: no test is called that; there are %zu\n", argv[0], count);
        return 2;
    }
    return _cmocka_run_group_tests("unit", tests, kept, group_setup, group_teardown);
}
