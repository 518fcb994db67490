/* glob.c -- the first line is a pattern, the rest a text: the same answer as a table of all their
 * beginnings, and in time. */
#include "fuzz/fuzz.h"

#include "match/values.h"

#define LENGTH_MAX 4096

/* ends[i]: the pattern so far matches the first i bytes of the text. */
static bool match_by_table(const char *pattern, size_t pattern_len, const char *text, size_t len,
                           bool path)
{
    static bool ends[LENGTH_MAX + 1];

    memset(ends, 0, sizeof(ends));
    ends[0] = true;
    for (size_t p = 0; p < pattern_len; p++) {
        bool wide = !path || (p + 1 < pattern_len && pattern[p + 1] == '*') ||
                    (p > 0 && pattern[p - 1] == '*');
        if (pattern[p] == '*') {
            for (size_t t = 1; t <= len; t++)
                ends[t] |= ends[t - 1] && (wide || text[t - 1] != '/');
            continue;
        }
        for (size_t t = len; t > 0; t--)
            ends[t] = ends[t - 1] &&
                      (pattern[p] == '?' ? !path || text[t - 1] != '/' : pattern[p] == text[t - 1]);
        ends[0] = false;
    }
    return ends[len];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line = size > 0 ? memchr(data, '\n', size) : NULL;
    size_t pattern_len = line != NULL ? (size_t)(line - data) : size,
           len = size - pattern_len - (line != NULL);
    char *pattern = malloc(pattern_len + 1), *text = malloc(len + 1);

    if (pattern == NULL || text == NULL || size > LENGTH_MAX)
        goto end;
    memcpy(pattern, data, pattern_len);
    if (len > 0)
        memcpy(text, line + 1, len);
    for (int path = 0; path < 2; path++)
        if (weir__glob_match(pattern, pattern_len, text, len, path) !=
            match_by_table(pattern, pattern_len, text, len, path))
            abort();
end:
    free(pattern);
    free(text);
    return 0;
}
