/* uri.c -- any bytes as a URI: what comes out is a path with nothing left to resolve, fits, and is
 * the same exactly if it is said to be. */
#include "fuzz/fuzz.h"

#include "match/values.h"

static void check_path(const char *path, size_t len)
{
    check(path[0] == '/');
    for (size_t at = 1; at <= len;) {
        const char *slash = at < len ? memchr(path + at, '/', len - at) : NULL;
        size_t n = (slash != NULL ? (size_t)(slash - path) : len) - at;
        check(n > 0 || slash == NULL); /* no // */
        check(!(n == 1 && path[at] == '.') && !(n == 2 && path[at] == '.' && path[at + 1] == '.'));
        at += n + 1;
    }
}

/* Loosely: one slash at the end, and nothing left to fold; whatever room there is. */
static void check_loose(const char *uri, size_t len, enum weir__path_reader reader, size_t size)
{
    char *out = malloc(size);

    check(out != NULL);
    size_t n = weir__uri_loose(uri, len, reader, out, size);
    check(n >= 1 && n <= size && out[0] == '/' && out[n - 1] == '/');
    for (size_t i = 0; i < n; i++) {
        check((out[i] < 'A' || out[i] > 'Z') && out[i] != '\\');
        check(i == 0 || out[i] != '/' || out[i - 1] != '/');
    }
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *uri = malloc(size > 0 ? size : 1),
         *out = malloc(size + 1); /* of exactly this size, so that one byte too far is seen */

    check(uri != NULL && out != NULL);
    if (size > 0)
        memcpy(uri, data, size);
    size_t len = weir__uri_plain(uri, size, out, size + 1);
    check(len >= 1 && len <= size + 1);
    if (!(len == 1 && out[0] == '*'))
        check_path(out, len);
    check(weir__uri_is_plain(uri, size) == (len == size && memcmp(uri, out, len) == 0));
    for (enum weir__path_reader reader = WEIR__TOMCAT; reader <= WEIR__DOTS; reader++) {
        check_loose(uri, size, reader, size + 2);
        check_loose(uri, size, reader, 2 + size / 2);
    }
    free(uri);
    free(out);
    return 0;
}
