/* words.c -- numbers and times in words, and strangers' texts made safe to show. */
#include "server/base/words.h"

#include <string.h>
#include <time.h>

/* --------------------------------------------------------------- safe texts ---- */

/* The character at *at, which moves on; -1: the byte there is no UTF-8. */
static int32_t decode(const unsigned char **at, const unsigned char *end)
{
    const unsigned char *c = *at;
    int32_t len = c[0] < 0x80                   ? 1
                  : c[0] >= 0xC2 && c[0] < 0xE0 ? 2
                  : c[0] >= 0xE0 && c[0] < 0xF0 ? 3
                  : c[0] >= 0xF0 && c[0] < 0xF5 ? 4
                                                : 0;
    int32_t code = len == 1 ? c[0] : c[0] & (0x7F >> len);

    *at += 1;
    if (len == 0 || end - c < len)
        return -1;
    for (int32_t i = 1; i < len; i++) {
        if ((c[i] & 0xC0) != 0x80)
            return -1;
        code = code << 6 | (c[i] & 0x3F);
    }
    if ((len == 3 && code < 0x800) || (len == 4 && (code < 0x10000 || code > 0x10FFFF)) ||
        (code >= 0xD800 && code < 0xE000))
        return -1;
    *at = c + len;
    return code;
}

/* Control characters, marks that turn the direction of writing or cannot be seen, and what XML does
 * not allow. */
static bool is_harmful(int32_t code)
{
    return code < ' ' || (code >= 0x7F && code < 0xA0) || (code >= 0x200B && code <= 0x200F) ||
           (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F) ||
           code == 0xFEFF || (code & 0xFFFE) == 0xFFFE;
}

static const char *replace(enum weir__safe kind, int32_t code, char escape[8])
{
    switch (kind) {
    case WEIR__SAFE_TERMINAL:
        return code < 0 || is_harmful(code) ? "?" : NULL;
    case WEIR__SAFE_MARKUP:
        if (code < 0 || is_harmful(code))
            return "\xEF\xBF\xBD";
        return code == '&'    ? "&amp;"
               : code == '<'  ? "&lt;"
               : code == '>'  ? "&gt;"
               : code == '"'  ? "&quot;"
               : code == '\'' ? "&#39;"
                              : NULL;
    case WEIR__SAFE_JSON:
        if (code < 0)
            return "\\ufffd";
        if (code >= ' ' && code != '"' && code != '\\' && code != 0x7F)
            return NULL;
        snprintf(escape, 8, "\\u%04x", (unsigned)code & 0xFFFF);
        return escape;
    }
    return "?";
}

void weir__safe_put(FILE *out, enum weir__safe kind, const char *text, size_t len)
{
    const unsigned char *c = (const unsigned char *)text, *end = c + len;
    char escape[8];

    while (c < end) {
        const unsigned char *from = c;
        const char *instead = replace(kind, decode(&c, end), escape);
        if (instead)
            fputs(instead, out);
        else
            fwrite(from, 1, (size_t)(c - from), out);
    }
}

void weir__safe_text(FILE *out, enum weir__safe kind, const char *text)
{
    weir__safe_put(out, kind, text, strlen(text));
}

/* ----------------------------------------------------------------- in words ---- */

const char *weir__words_count(char out[WEIR__WORDS], int64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%lld", (long long)n), at = 0;

    for (int i = 0; i < len; i++) {
        if (i > 0 && digits[i - 1] != '-' && (len - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

const char *weir__words_counted(char out[WEIR__WORDS], int64_t n, const char *what)
{
    weir__words_count(out, n);
    size_t len = strlen(out);
    snprintf(out + len, WEIR__WORDS - len, " %s%s", what, n == 1 ? "" : "s");
    return out;
}

const char *weir__words_share(char out[WEIR__WORDS], int64_t part, int64_t whole)
{
    double percent = whole ? 100.0 * (double)part / (double)whole : 0;

    if (part == 0)
        snprintf(out, WEIR__WORDS, "0 %%");
    else if (percent < 0.01)
        snprintf(out, WEIR__WORDS, "<0.01 %%");
    else if (part < whole && percent > 99.99)
        snprintf(out, WEIR__WORDS, ">99.99 %%");
    else
        snprintf(out, WEIR__WORDS, percent < 10 ? "%.2f %%" : "%.1f %%", percent);
    return out;
}

const char *weir__words_distinct(char out[WEIR__WORDS], const struct weir__distinct *distinct)
{
    size_t about = !weir__distinct_is_exact(distinct);

    out[0] = '~';
    weir__words_count(out + about, weir__distinct_count(distinct));
    return out;
}

static struct tm split_time(weir_time at)
{
    time_t seconds = (time_t)(at / WEIR_SECOND);
    struct tm tm;

    gmtime_r(&seconds, &tm);
    return tm;
}

const char *weir__words_time(char out[WEIR__WORDS], weir_time at, bool fraction)
{
    struct tm tm = split_time(at);
    size_t len = strftime(out, WEIR__WORDS, "%Y-%m-%d %H:%M:%S", &tm);

    if (fraction)
        snprintf(out + len, WEIR__WORDS - len, ".%03d", (int)(at % WEIR_SECOND / WEIR_MILLISECOND));
    return out;
}

const char *weir__words_clock(char out[WEIR__WORDS], weir_time at, weir_time step)
{
    struct tm tm = split_time(at);

    if (step >= 86400 * WEIR_SECOND)
        strftime(out, WEIR__WORDS, "%Y-%m-%d", &tm);
    else if (step >= 60 * WEIR_SECOND)
        strftime(out, WEIR__WORDS, at % (86400 * WEIR_SECOND) == 0 ? "%m-%d %H:%M" : "%H:%M", &tm);
    else
        strftime(out, WEIR__WORDS, "%H:%M:%S", &tm);
    return out;
}

const char *weir__words_width(char out[WEIR__WORDS], weir_time width)
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = { { 604800, "week" }, { 86400, "day" }, { 3600, "h" }, { 60, "min" }, { 1, "s" } };
    size_t i = 0;

    while (i < 4 && width % (units[i].seconds * WEIR_SECOND) != 0)
        i++;
    int64_t n = width / (units[i].seconds * WEIR_SECOND);
    if (n == 1)
        snprintf(out, WEIR__WORDS, "%s",
                 i < 2    ? units[i].name
                 : i == 2 ? "hour"
                 : i == 3 ? "minute"
                          : "second");
    else
        snprintf(out, WEIR__WORDS, "%lld %s%s", (long long)n, units[i].name, i < 2 ? "s" : "");
    return out;
}
