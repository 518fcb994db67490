/* rules-memory.c -- reading rules while every n-th allocation fails: an error each time, no crash,
 * and (under AddressSanitizer) no leak.
 *
 *     rules-memory FILE...
 *
 * Linked with --wrap for the allocators, so that only the library's own calls fail; libfyaml's do
 * not.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

static long left = -1; /* allocations until one fails; below 0: none does */

static bool fails(void)
{
    return left >= 0 && left-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}

/* Returns whether it was refused as it must be: false once there are not so many allocations. */
static bool try(const char *path, long n, bool *wrong)
{
    struct weir_rules *rules = NULL;
    struct weir_error error = { 0 };

    left = n;
    int code = weir_rules_read(&rules, path, NULL, &error);
    bool failed = left < 0;
    left = -1;
    if (failed && code == WEIR_OK) /* it did without */
        fprintf(stderr, "%s: allocation %ld fails and nothing is said\n", path, n);
    if (code != WEIR_OK && (rules != NULL || error.text[0] == '\0'))
        fprintf(stderr, "%s: allocation %ld fails: out is touched, or there is no text\n", path, n);
    *wrong = (failed && code == WEIR_OK) ||
             (code != WEIR_OK && (rules != NULL || error.text[0] == '\0'));
    weir_rules_destroy(rules);
    return failed;
}

int main(int argc, char **argv)
{
    long passed = 0, failed = 0;

    for (int i = 1; i < argc; i++) {
        bool wrong;
        for (long n = 0; try(argv[i], n, &wrong); n++) {
            passed += !wrong;
            failed += wrong;
        }
    }
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed > 0 || passed == 0;
}
