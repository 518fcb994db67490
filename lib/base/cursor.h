/* cursor.h -- reads one line of text and says where it is wrong: limits, times, vector files.
 *
 * Each reader skips spaces and tabs, takes its part and leaves the cursor behind it.  If it fails,
 * the cursor's error says why, with a column of the whole line.
 */
#ifndef WEIR_BASE_CURSOR_H
#define WEIR_BASE_CURSOR_H

#include "base/base.h"
#include "base/digit.h"

struct weir__cursor {
    const char *text;         /* the whole line, ended by NUL: columns count from here */
    const char *at;           /* the next character; set it to text to begin */
    struct weir_error *error; /* may be NULL */
};

/* Bytes of UTF-8 count as letters, so that a wrong word is quoted whole. */
static inline bool weir__is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

static inline bool weir__is_word_end(char c)
{
    return c == '\0' || c == ' ' || c == '\t';
}

/* The column of the next character, for a caller's own error. */
int weir__cursor_column(const struct weir__cursor *cursor);
/* Fails at the next character. */
__attribute__((format(printf, 2, 3))) int weir__cursor_fail(struct weir__cursor *cursor,
                                                            const char *format, ...);
/* Adds the column to an error of a function that does not know it. */
int weir__cursor_place(struct weir__cursor *cursor, const char *at, int code);
/* The next bytes in quotes, or "the end". */
struct weir__quoted weir__cursor_quote(const struct weir__cursor *cursor, size_t len);
/* "unknown unit 'x'; " and a hint at the names. */
int weir__cursor_unknown(struct weir__cursor *cursor, size_t len, const char *sort,
                         const char *const *names, size_t n);

/* Skips spaces and tabs; true: nothing else is left. */
bool weir__cursor_end(struct weir__cursor *cursor);
/* Bytes of the next word. */
size_t weir__cursor_word(const struct weir__cursor *cursor);
/* Whether the next `len` bytes are the word; does not take it. */
bool weir__cursor_is(const struct weir__cursor *cursor, size_t len, const char *word);
/* The word must end here. */
int weir__cursor_expect_end(struct weir__cursor *cursor, const char *what);

/* One digit or more; the cursor stays on a number that is out of bounds.  `what` names the number
 * in an error: "the cost". */
int weir__cursor_digits(struct weir__cursor *cursor, const char *what, int64_t min, int64_t max,
                        int64_t *out);
/* The same, and they must fill their word. */
int weir__cursor_number(struct weir__cursor *cursor, const char *what, int64_t min, int64_t max,
                        int64_t *out);
int weir__cursor_count(struct weir__cursor *cursor, const char *what, int64_t min, int64_t *out);

/* time.c -- a time, which must fill its word; one that must not be 0; a unit, which may be missing
 * and then leaves *out alone.  `known`, ended by NULL: what an error says is known here. */
#define WEIR__UNITS      8
#define WEIR__UNIT_NAMES "w", "d", "h", "m", "s", "ms", "us", "ns"
int weir__cursor_time(struct weir__cursor *cursor, const char *what, weir_time *out);
int weir__cursor_span(struct weir__cursor *cursor, const char *what, weir_time *out);
int weir__cursor_unit(struct weir__cursor *cursor, const char *const *known, weir_time *out);

#endif
