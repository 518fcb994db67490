/* safe-text.c -- strangers' texts made safe for a terminal and for markup, and cut to a length. */
#include "server/base/safe-text.h"

#include <assert.h>
#include <string.h>

#include "base/utf8.h"

/* The text that stands for a character that may not be shown; NULL: it may. */
static const char *replace(enum weir__safe kind, const char *c, size_t len)
{
    bool harmful = len == 0 || !weir__utf8_is_harmless(c, len);

    if (kind == WEIR__SAFE_TERMINAL)
        return harmful ? "?" : NULL;
    return harmful      ? "\xEF\xBF\xBD"
           : *c == '&'  ? "&amp;"
           : *c == '<'  ? "&lt;"
           : *c == '>'  ? "&gt;"
           : *c == '"'  ? "&quot;"
           : *c == '\'' ? "&#39;"
                        : NULL;
}

void weir__safe_put(FILE *out, enum weir__safe kind, const char *text, size_t len)
{
    for (const char *c = text, *end = text + len; c < end;) {
        size_t n = weir__utf8_length(c, end);
        const char *instead = replace(kind, c, n);
        if (instead)
            fputs(instead, out);
        else
            fwrite(c, 1, n, out);
        c += n ? n : 1;
    }
}

void weir__safe_text(FILE *out, enum weir__safe kind, const char *text)
{
    weir__safe_put(out, kind, text, strlen(text));
}

void weir__text_cut(char *out, size_t size, const char *text, size_t len)
{
    assert(size > 4);
    if (len < size) {
        memcpy(out, text, len);
        out[len] = '\0';
        return;
    }
    size_t n = size - 4;
    for (int back = 0; back < 3 && ((unsigned char)text[n] & 0xC0) == 0x80; back++)
        n--; /* not in the middle of a character */
    memcpy(out, text, n);
    memcpy(out + n, "...", 4);
}
