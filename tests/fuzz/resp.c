/* resp.c -- any bytes as commands: no crash, and no answer that more bytes would change.
 *
 *   the first byte chooses the limits; the rest is read as one command after the other; a beginning
 *   of it answers "not whole yet" or the same as the whole, for the same reason; all arguments lie
 *   in the input and within the limits; a command that was read and written again reads the same.
 */
#include "fuzz/fuzz.h"

#include "wire/resp.h"

enum { ARGS_MAX = 16, INPUT_MAX = 4096, EVERY_PREFIX_TO = 512 };

static bool lies_in(const char *bytes, size_t len, const char *at, size_t n)
{
    return at >= bytes && n <= len && at <= bytes + len - n;
}

static bool same_arg(struct weir__text a, struct weir__text b)
{
    return a.len == b.len && memcmp(a.bytes, b.bytes, a.len) == 0;
}

static ptrdiff_t read_command(const char *bytes, size_t len, const struct weir__resp_limits *limits,
                              struct weir__text *args, size_t *n, const char **what)
{
    *what = NULL;
    *n = SIZE_MAX;
    ptrdiff_t took = weir__resp_command(bytes, len, limits, args, n, what);
    check(took <= (ptrdiff_t)len && (took < 0) == (*what != NULL) &&
          (took > 0) == (*n != SIZE_MAX));
    check(took <= 0 || ((size_t)took <= limits->bytes && *n <= limits->args));
    for (size_t i = 0; took > 0 && i < *n; i++)
        check(lies_in(bytes, (size_t)took, args[i].bytes, args[i].len));
    return took;
}

static void check_prefix(const char *bytes, size_t len, const struct weir__resp_limits *limits,
                         ptrdiff_t whole, size_t whole_n, const char *whole_what)
{
    struct weir__text args[ARGS_MAX];
    size_t n;
    const char *what;
    char *copy = copy_of(bytes, len);
    ptrdiff_t took = read_command(copy, len, limits, args, &n, &what);

    if (whole > 0)
        check(len < (size_t)whole ? took == 0 : took == whole && n == whole_n);
    else
        check(took == 0 || (took == whole && what == whole_what));
    check(whole != 0 || took == 0);
    free(copy);
}

static void check_written_again(const struct weir__text *args, size_t n)
{
    static char text[INPUT_MAX + ARGS_MAX * 2 * WEIR__RESP_NUMBER_MAX];
    const struct weir__resp_limits limits = { ARGS_MAX, sizeof(text) };
    struct weir__text again[ARGS_MAX];
    size_t n_again;
    const char *what;
    char *end = weir__resp_put_header(text, '*', (int64_t)n);

    for (size_t i = 0; i < n; i++)
        end = weir__resp_put_bulk(end, args[i].bytes, args[i].len);
    check(read_command(text, (size_t)(end - text), &limits, again, &n_again, &what) == end - text &&
          n_again == n);
    for (size_t i = 0; i < n; i++) {
        int64_t number;
        check(same_arg(args[i], again[i]));
        if (weir__resp_int(args[i], &number)) {
            char print[WEIR__RESP_NUMBER_MAX];
            size_t len = (size_t)(weir__resp_put_integer(print, number) - print);
            int64_t number_again = ~number;
            check(weir__resp_int((struct weir__text){ print + 1, len - 3 }, &number_again) &&
                  number_again == number);
        }
    }
}

static void check_commands(const char *bytes, size_t len, const struct weir__resp_limits *limits)
{
    struct weir__text args[ARGS_MAX];
    size_t n;
    const char *what;

    for (;;) {
        ptrdiff_t took = read_command(bytes, len, limits, args, &n, &what);
        for (size_t cut = 0; cut < len; cut += cut < EVERY_PREFIX_TO ? 1 : 97)
            check_prefix(bytes, cut, limits, took, n, what);
        if (took <= 0)
            return;
        check_written_again(args, n);
        bytes += took;
        len -= (size_t)took;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > INPUT_MAX)
        return 0;
    struct weir__resp_limits limits = { .args = ARGS_MAX - data[0] % ARGS_MAX,
                                        .bytes = (size_t)INPUT_MAX >> data[0] / ARGS_MAX };
    char *bytes = copy_of((const char *)data + 1, size - 1);
    check_commands(bytes, size - 1, &limits);
    free(bytes);
    return 0;
}
