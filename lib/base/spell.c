/* spell.c -- how far a word is from a name: for "did you mean". */
#include <assert.h>

#include "base/base.h"

/* Not <ctype.h>: that asks the locale. */
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
