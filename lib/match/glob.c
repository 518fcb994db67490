/* glob.c -- patterns with stars, in time of at most pattern x text.
 *
 *     ?    any one byte              in a path: but a slash
 *     *    any run of bytes          in a path: without a slash
 *     **   in a path: any run of bytes; elsewhere the same as *
 *
 * One pass with two places to return to: the last wide star (which may take a slash) and the last
 * narrow one after it.  A star takes as little as it can, and one more byte each time the rest
 * fails.  Earlier stars need no retry: if the pattern up to a star ends as early as possible, that
 * star has every choice that it would have later.
 *
 * `return_to_wide` keeps this from being quadratic in the text.
 */
#include "match/values.h"

#include <string.h>

#define NONE SIZE_MAX

struct matcher {
    const char *pattern, *text;
    size_t pattern_len, len;
    size_t p, t; /* being compared */
    /* The pattern behind the last wide star, and the text that is tried for it. */
    size_t wide, wide_t;
    size_t narrow, narrow_t; /* the same of the last narrow one behind that; NONE: none */
    bool path;
};

/* At a star: remembers it and passes it. */
static void pass_stars(struct matcher *m)
{
    size_t begin = m->p;

    while (m->p < m->pattern_len && m->pattern[m->p] == '*')
        m->p++;
    if (!m->path || m->p - begin > 1) {
        m->wide = m->p;
        m->wide_t = m->t;
        m->narrow = NONE;
    } else {
        m->narrow = m->p;
        m->narrow_t = m->t;
    }
}

/* Retries the wide star, because the narrow star after it has come to a slash, or there is none.
 *
 * In the first case no other start before the next slash can do better: the pattern up to its first
 * slash (or up to that star, if it has none) must end at that slash, or before it; if it did for an
 * earlier start, the rest was compared with the same text.  So the next try starts after the slash,
 * and each part of the text meets each part of the pattern once. */
static bool return_to_wide(struct matcher *m)
{
    if (m->wide == NONE)
        return false;
    if (m->narrow != NONE) {
        const char *slash = memchr(m->text + m->wide_t, '/', m->len - m->wide_t);
        if (slash == NULL)
            return false;
        m->wide_t = (size_t)(slash - m->text);
    }
    m->narrow = NONE;
    m->p = m->wide;
    m->t = ++m->wide_t;
    return true;
}

static bool try_again(struct matcher *m)
{
    if (m->narrow == NONE || m->text[m->narrow_t] == '/')
        return return_to_wide(m);
    m->p = m->narrow;
    m->t = ++m->narrow_t;
    return true;
}

static bool matches_byte(const struct matcher *m)
{
    if (m->p == m->pattern_len)
        return false;
    char c = m->pattern[m->p];
    return c == '?' ? !m->path || m->text[m->t] != '/' : c == m->text[m->t];
}

bool weir__glob_match(const char *pattern, size_t pattern_len, const char *text, size_t len,
                      bool path)
{
    struct matcher m = { .pattern = pattern,
                         .text = text,
                         .pattern_len = pattern_len,
                         .len = len,
                         .wide = NONE,
                         .narrow = NONE,
                         .path = path };

    while (m.t < len) {
        if (m.p < pattern_len && pattern[m.p] == '*') {
            pass_stars(&m);
            if (m.p == pattern_len && m.narrow == NONE)
                return true; /* a wide star takes the rest */
        } else if (matches_byte(&m)) {
            m.p++;
            m.t++;
        } else if (!try_again(&m)) {
            return false;
        }
    }
    while (m.p < pattern_len && pattern[m.p] == '*')
        m.p++;
    return m.p == pattern_len;
}
