/* cursor.c -- reads one line of text: words and numbers, and where they are wrong.
 *
 * Numbers are int64 with overflow checks.  Not strtol: it skips signs and spaces, stops silently
 * and depends on the locale.
 */
#include "base/cursor.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int column(const struct weir__cursor *c, const char *at)
{
    ptrdiff_t offset = at - c->text;

    return offset < INT_MAX ? (int)offset + 1 : INT_MAX;
}

int weir__cursor_column(const struct weir__cursor *cursor)
{
    return column(cursor, cursor->at);
}

int weir__cursor_fail(struct weir__cursor *cursor, const char *format, ...)
{
    char text[sizeof(cursor->error->text)];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return weir__fail_at(cursor->error, column(cursor, cursor->at), "%s", text);
}

int weir__cursor_place(struct weir__cursor *cursor, const char *at, int code)
{
    if (code != WEIR_OK && cursor->error)
        cursor->error->column = column(cursor, at);
    return code;
}

struct weir__quoted weir__cursor_quote(const struct weir__cursor *cursor, size_t len)
{
    return *cursor->at ? weir__quote(cursor->at, len) : (struct weir__quoted){ "the end" };
}

int weir__cursor_unknown(struct weir__cursor *cursor, size_t len, const char *sort,
                         const char *const *names, size_t n)
{
    return weir__cursor_fail(cursor, "unknown %s %s; %s", sort,
                             weir__cursor_quote(cursor, len).text,
                             weir__hint(cursor->at, len, names, n).text);
}

bool weir__cursor_end(struct weir__cursor *cursor)
{
    while (*cursor->at == ' ' || *cursor->at == '\t')
        cursor->at++;
    return *cursor->at == '\0';
}

size_t weir__cursor_word(const struct weir__cursor *cursor)
{
    size_t n = 0;

    while (!weir__is_word_end(cursor->at[n]))
        n++;
    return n;
}

bool weir__cursor_is(const struct weir__cursor *cursor, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(cursor->at, word, len) == 0;
}

int weir__cursor_expect_end(struct weir__cursor *cursor, const char *what)
{
    if (weir__is_word_end(*cursor->at))
        return WEIR_OK;
    return weir__cursor_fail(cursor, "unexpected %s after %s", weir__cursor_quote(cursor, 1).text,
                             what);
}

int weir__cursor_digits(struct weir__cursor *cursor, const char *what, int64_t min, int64_t max,
                        int64_t *out)
{
    const char *at = cursor->at;
    int64_t value = 0;
    bool fits = true;

    if (!weir__is_digit(*at))
        return weir__cursor_fail(cursor, "%s must be a number such as 60; found %s", what,
                                 weir__cursor_quote(cursor, 1).text);
    for (; weir__is_digit(*at); at++)
        fits = fits && !__builtin_mul_overflow(value, 10, &value) &&
               !__builtin_add_overflow(value, *at - '0', &value);
    if (!fits || value > max)
        return weir__cursor_fail(cursor, "%s is too large; the most is %" PRId64, what, max);
    if (value < min)
        return weir__cursor_fail(cursor, "%s must be at least %" PRId64, what, min);
    cursor->at = at;
    *out = value;
    return WEIR_OK;
}

int weir__cursor_number(struct weir__cursor *cursor, const char *what, int64_t min, int64_t max,
                        int64_t *out)
{
    int code = weir__cursor_digits(cursor, what, min, max, out);

    if (code == WEIR_OK && *cursor->at == '.')
        return weir__cursor_fail(cursor, "%s must be a whole number", what);
    return code == WEIR_OK ? weir__cursor_expect_end(cursor, what) : code;
}

int weir__cursor_count(struct weir__cursor *cursor, const char *what, int64_t min, int64_t *out)
{
    int64_t value = 0;

    weir__cursor_end(cursor);
    int code = weir__cursor_number(cursor, what, min, INT64_MAX, &value);

    if (code == WEIR_OK)
        *out = value;
    return code;
}
