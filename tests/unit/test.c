/* test.c -- main of the unit tests of a room: runs the tests that TEST has named.
 *
 *     unit-guard                  all of them
 *     unit-guard shed.c           those of a file
 *     unit-guard [shed.c] queue   those with this in their name
 */
#include "unit/test.h"

#include <assert.h>

#define FILES_MAX 64
#define TESTS_MAX 256

static struct file {
    const char *path;
    struct CMUnitTest tests[TESTS_MAX];
    size_t count;
    CMFixtureFunction setup, teardown;
} files[FILES_MAX];

static struct file *file_of(const char *path)
{
    struct file *file = files;

    while (file->path && strcmp(file->path, path) != 0)
        file++;
    assert(file < files + FILES_MAX - 1);
    file->path = path;
    return file;
}

void test_add(const char *path, const struct CMUnitTest *test, bool races)
{
    struct file *file = file_of(path);

#ifdef __SANITIZE_THREAD__
    if (!races)
        return;
#endif
    (void)races;
    assert(file->count < TESTS_MAX);
    file->tests[file->count++] = *test;
}

void test_group(const char *path, CMFixtureFunction setup, CMFixtureFunction teardown)
{
    struct file *file = file_of(path);

    file->setup = setup;
    file->teardown = teardown;
}

/* Leaves only the tests whose name has the part. */
static void keep(struct file *file, const char *part)
{
    size_t kept = 0;

    for (size_t i = 0; i < file->count; i++) {
        if (strstr(file->tests[i].name, part))
            file->tests[kept++] = file->tests[i];
    }
    file->count = kept;
}

int main(int argc, char **argv)
{
    bool one_file = argc > 1 && strstr(argv[1], ".c");
    const char *part = argc > 1 + one_file ? argv[1 + one_file] : "";
    size_t ran = 0;
    int failed = 0;

    for (struct file *file = files; file->path; file++) {
        const char *name = strrchr(file->path, '/') + 1;
        if (one_file && strcmp(name, argv[1]) != 0)
            continue;
        keep(file, part);
        ran += file->count;
        if (file->count > 0)
            failed += _cmocka_run_group_tests(name, file->tests, file->count, file->setup,
                                              file->teardown) != 0;
    }
    if (ran == 0)
        fprintf(stderr, "%s: no test has this name\n", argv[0]);
    return ran == 0 ? 2 : failed > 0;
}
