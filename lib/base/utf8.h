/* utf8.h -- characters in bytes, and which of them are safe to show. */
#ifndef WEIR_BASE_UTF8_H
#define WEIR_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the UTF-8 character at p, or 0 if there is no valid one before `end`.  Overlong forms,
 * surrogates and everything beyond U+10FFFF are not valid (Unicode 15, table 3-7). */
static inline size_t weir__utf8_length(const char *p, const char *end)
{
    const unsigned char *c = (const unsigned char *)p;

    if (p >= end)
        return 0;
    if (c[0] < 0x80)
        return 1;
    size_t n = c[0] < 0xC2 || c[0] > 0xF4 ? 0 : c[0] < 0xE0 ? 2 : c[0] < 0xF0 ? 3 : 4;
    unsigned low = c[0] == 0xE0 ? 0xA0 : c[0] == 0xF0 ? 0x90 : 0x80;
    unsigned high = c[0] == 0xED ? 0x9F : c[0] == 0xF4 ? 0x8F : 0xBF;
    if (n == 0 || n > (size_t)(end - p) || c[1] < low || c[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++) {
        if ((c[i] & 0xC0) != 0x80)
            return 0;
    }
    return n;
}

/* Whether a character of `len` bytes shows as itself: not a control character, not invisible, not a
 * change of direction, not forbidden in XML. */
static inline bool weir__utf8_is_harmless(const char *p, size_t len)
{
    const unsigned char *c = (const unsigned char *)p;
    uint32_t code = len == 1 ? c[0] : c[0] & (0x7Fu >> len);

    for (size_t i = 1; i < len; i++)
        code = code << 6 | (c[i] & 0x3F);
    return !(code < ' ' || (code >= 0x7F && code < 0xA0) || (code >= 0x200B && code <= 0x200F) ||
             (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F) ||
             code == 0xFEFF || (code & 0xFFFE) == 0xFFFE);
}

/* A character that a terminal would obey; those of UTF-8's second block begin with 0xc2. */
static inline bool weir__utf8_is_control(const char *c)
{
    unsigned char first = (unsigned char)c[0], second = (unsigned char)c[1];

    return first < 0x20 || first == 0x7f || (first == 0xc2 && second >= 0x80 && second < 0xa0);
}

/* Replaces characters that a terminal would obey. */
static inline void weir__text_clean(char *text)
{
    for (char *c = text; *c != '\0'; c++) {
        bool two = (unsigned char)*c == 0xc2;
        if (!weir__utf8_is_control(c))
            continue;
        *c = '?';
        if (two)
            *++c = '?';
    }
}

#endif
