/* spell.c -- names that people misspell: "did you mean", quoting. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/utf8.h"

/* Not <ctype.h>: it depends on the locale. */
static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;

    return least < c ? least : c;
}

unsigned weir__edits(const char *word, size_t n, const char *name, size_t m)
{
    unsigned d[WEIR__EDITS_MAX + 1][WEIR__EDITS_MAX + 1];

    assert(n <= WEIR__EDITS_MAX && m <= WEIR__EDITS_MAX);
    for (size_t i = 0; i <= n; i++) {
        for (size_t j = 0; j <= m; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = (unsigned)(i + j);
                continue;
            }
            bool same = lower(word[i - 1]) == lower(name[j - 1]);
            bool swapped = i > 1 && j > 1 && lower(word[i - 1]) == lower(name[j - 2]) &&
                           lower(word[i - 2]) == lower(name[j - 1]);

            d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + !same);
            if (swapped && d[i - 2][j - 2] + 1 < d[i][j])
                d[i][j] = d[i - 2][j - 2] + 1;
        }
    }
    return d[n][m];
}

/* The beginning of a name ("token") counts as one slip. */
static unsigned distance(const char *word, size_t n, const char *name, size_t m)
{
    if (n >= 2 && n < m && weir__edits(word, n, name, n) == 0)
        return 1;
    return weir__edits(word, n, name, m);
}

const char *weir__nearest(const char *word, size_t len, const char *const *names, size_t n)
{
    unsigned best = 2 + (unsigned)len / 4; /* one slip in a short word, a few in a long one */
    const char *found = NULL;

    for (size_t i = 0; len <= WEIR__EDITS_MAX && i < n && names[i] != NULL; i++) {
        size_t m = strlen(names[i]);
        if (m > WEIR__EDITS_MAX)
            continue;
        unsigned d = distance(word, len, names[i], m);
        if (d < best && d < (len > m ? len : m)) { /* "x" and "s" have nothing in common */
            best = d;
            found = names[i];
        }
    }
    return found;
}

static void list_names(struct weir__hint *hint, const char *const *names, size_t n)
{
    size_t used = (size_t)snprintf(hint->text, sizeof(hint->text), "known are");

    for (size_t i = 0; i < n && names[i] != NULL; i++) {
        if (used + strlen(names[i]) + sizeof(", , ...") > sizeof(hint->text)) {
            snprintf(hint->text + used, sizeof(hint->text) - used, ", ...");
            return;
        }
        used += (size_t)snprintf(hint->text + used, sizeof(hint->text) - used, "%s %s",
                                 i ? "," : "", names[i]);
    }
}

struct weir__hint weir__hint_or(const char *word, size_t len, const char *const *names, size_t n,
                                const char *otherwise)
{
    struct weir__hint hint;
    const char *near = weir__nearest(word, len, names, n);

    if (near)
        snprintf(hint.text, sizeof(hint.text), "did you mean '%s'?", near);
    else
        snprintf(hint.text, sizeof(hint.text), "%s", otherwise);
    return hint;
}

struct weir__hint weir__hint(const char *word, size_t len, const char *const *names, size_t n)
{
    struct weir__hint hint = weir__hint_or(word, len, names, n, "");

    if (hint.text[0])
        return hint;
    if (n == 0 || names[0] == NULL)
        return (struct weir__hint){ "there are none" };
    if (n == 1 || names[1] == NULL)
        snprintf(hint.text, sizeof(hint.text), "only '%s' is known", names[0]);
    else
        list_names(&hint, names, n);
    return hint;
}

struct weir__quoted weir__quote(const char *text, size_t len)
{
    struct weir__quoted q = { "'" };
    const size_t room = sizeof(q.text) - sizeof("\\xNN...'");
    const char *end = text + len;
    size_t n = 1;

    while (text < end && n < room) {
        size_t taken = weir__utf8_length(text, end);
        bool shown = taken > 0 && weir__utf8_is_harmless(text, taken);
        if (shown)
            memcpy(q.text + n, text, taken);
        else
            snprintf(q.text + n, sizeof(q.text) - n, "\\x%02x", (unsigned char)*text);
        n += shown ? taken : 4;
        text += shown ? taken : 1;
    }
    snprintf(q.text + n, sizeof(q.text) - n, text < end ? "...'" : "'");
    return q;
}
