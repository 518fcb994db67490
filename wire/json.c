/* json.c -- JSON, read in place.
 *
 * A loop and a stack of WEIR__JSON_DEPTH levels, no recursion: hostile input needs no more stack
 * than any other.  A string is read at most twice: once to find its end, which checks escapes and
 * UTF-8, and again to decode it if it has escapes, which few have.  Eight bytes are read at a time
 * until one of them is special.
 *
 *     path     grows with each level; a level knows how long it was when it began
 *     error    `at` stays at the byte that is wrong: of a bad UTF-8 sequence its first, of half a
 *              surrogate pair its backslash
 */
#include "wire/json.h"

#include <stdint.h>
#include <string.h>

#include "base/digit.h"
#include "base/utf8.h"

enum { PATH_OVER = WEIR__JSON_PATH + 1 }; /* the length of a path that did not fit */

struct level {
    size_t path_len; /* of the container itself */
    size_t index;    /* of the next element */
    bool object;
};

struct walk {
    const char *at, *end;
    char *scratch; /* where the next decoded string goes; NULL: none are decoded */
    bool (*each)(void *context, const struct weir__json_value *value);
    void *context;
    const char *what; /* NULL: nothing was wrong */
    size_t depth;
    size_t path_len;
    struct level levels[WEIR__JSON_DEPTH];
    char path[WEIR__JSON_PATH];
};

/* A string as it was written, between its quotes. */
struct string {
    const char *text;
    size_t len;
    bool escaped;
};

static bool wrong(struct walk *w, const char *at, const char *what)
{
    w->at = at;
    w->what = what;
    return false;
}

static bool is(const struct walk *w, char c)
{
    return w->at < w->end && *w->at == c;
}

static void skip_space(struct walk *w)
{
    while (w->at < w->end && (*w->at == ' ' || *w->at == '\n' || *w->at == '\r' || *w->at == '\t'))
        w->at++;
}

static bool is_digit(const struct walk *w)
{
    return w->at < w->end && *w->at >= '0' && *w->at <= '9';
}

/* --------------------------------------------------------------- strings ---- */

/* The special ones of eight bytes: quote, backslash, control characters, all beyond ASCII.  The
 * high bit of each is set; a borrow can only set the bit of a byte after a true one, so the lowest
 * is always true. */
static uint64_t special(uint64_t v)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    uint64_t quote = v ^ ones * '"', backslash = v ^ ones * '\\';

    return ((v - ones * 0x20) | (quote - ones) | (backslash - ones) | v) & high;
}

static uint64_t load(const char *at)
{
    uint64_t v;

    memcpy(&v, at, sizeof(v));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

static const char *skip_plain(const char *at, const char *end)
{
    for (; end - at >= 8; at += 8) {
        uint64_t found = special(load(at));
        if (found)
            return at + __builtin_ctzll(found) / 8;
    }
    while (at < end && (unsigned char)*at >= 0x20 && (unsigned char)*at < 0x80 && *at != '"' &&
           *at != '\\')
        at++;
    return at;
}

static bool skip_utf8(struct walk *w)
{
    while (w->at < w->end && (*w->at & 0x80)) {
        size_t n = weir__utf8_length(w->at, w->end);
        if (n == 0)
            return wrong(w, w->at, "UTF-8");
        w->at += n;
    }
    return true;
}

static unsigned hex4(const char *at)
{
    unsigned value = 0;

    for (int i = 0; i < 4; i++)
        value = value << 4 | (unsigned)weir__hex(at[i]);
    return value;
}

static bool skip_hex4(struct walk *w, unsigned *unit)
{
    for (int i = 0; i < 4; i++, w->at++)
        if (w->at == w->end || weir__hex(*w->at) < 0)
            return wrong(w, w->at, "four hexadecimal digits");
    *unit = hex4(w->at - 4);
    return true;
}

static bool skip_escape(struct walk *w)
{
    const char *begin = w->at++;
    unsigned unit, second;

    if (w->at == w->end || *w->at == '\0' || strchr("\"\\/bfnrtu", *w->at) == NULL)
        return wrong(w, w->at, "an escape: one of \" \\ / b f n r t u");
    if (*w->at++ != 'u')
        return true;
    if (!skip_hex4(w, &unit))
        return false;
    if (unit < 0xd800 || unit > 0xdfff)
        return true;
    if (unit > 0xdbff)
        return wrong(w, begin, "the first half of a surrogate pair before its second");
    if (w->end - w->at < 2 || w->at[0] != '\\' || w->at[1] != 'u')
        return wrong(w, begin, "both halves of a surrogate pair");
    w->at += 2;
    if (!skip_hex4(w, &second))
        return false;
    return (second >= 0xdc00 && second <= 0xdfff) ||
           wrong(w, begin, "both halves of a surrogate pair");
}

/* From the opening quote past the closing one. */
static bool read_string(struct walk *w, struct string *out)
{
    const char *begin = ++w->at;

    for (out->escaped = false;;) {
        w->at = skip_plain(w->at, w->end);
        if (w->at == w->end)
            return wrong(w, w->at, "a closing quote");
        if (*w->at == '"')
            break;
        if (*w->at == '\\') {
            out->escaped = true;
            if (!skip_escape(w))
                return false;
        } else if (!(*w->at & 0x80)) {
            return wrong(w, w->at, "an escape instead of a control character");
        } else if (!skip_utf8(w)) {
            return false;
        }
    }
    out->text = begin;
    out->len = (size_t)(w->at++ - begin);
    return true;
}

static size_t encode(unsigned c, char out[4])
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(lead[n] | c);
    return n;
}

/* The escape at `at`, which has been checked, as UTF-8; returns where it ends. */
static const char *decode_escape(const char *at, char out[4], size_t *n)
{
    static const char names[] = "bfnrt", bytes[] = "\b\f\n\r\t";
    const char *name = strchr(names, at[1]);
    unsigned c;

    *n = 1;
    out[0] = name ? bytes[name - names] : at[1];
    if (at[1] != 'u')
        return at + 2;
    c = hex4(at + 2);
    at += 6;
    if (c >= 0xd800 && c <= 0xdbff) {
        c = 0x10000 + ((c - 0xd800) << 10) + (hex4(at + 2) - 0xdc00);
        at += 6;
    }
    *n = encode(c, out);
    return at;
}

struct output {
    char *text;
    size_t room, len;
};

static void put(struct output *out, const char *piece, size_t n)
{
    if (n > 0 && out->len + n <= out->room)
        memcpy(out->text + out->len, piece, n);
    out->len += n;
}

/* Writes as much as fits and returns the whole length, never more than the string's own. */
static size_t decode(const struct string *s, char *text, size_t room)
{
    const char *at = s->text, *end = s->text + s->len;
    struct output out = { text, room, 0 };

    for (const char *stop; (stop = memchr(at, '\\', (size_t)(end - at))) != NULL;) {
        char piece[4];
        size_t n;
        put(&out, at, (size_t)(stop - at));
        at = decode_escape(stop, piece, &n);
        put(&out, piece, n);
    }
    put(&out, at, (size_t)(end - at));
    return out.len;
}

/* ---------------------------------------------------------------- scalars ---- */

static bool call(struct walk *w, enum weir__json_kind kind, const char *text, size_t len)
{
    const struct level *in = w->depth > 0 ? &w->levels[w->depth - 1] : NULL;
    struct weir__json_value value = { .kind = kind,
                                      .path = w->path,
                                      .path_len = w->path_len,
                                      .depth = w->depth,
                                      .text = text,
                                      .len = len };

    if (w->path_len == PATH_OVER)
        return true;
    if (in != NULL) {
        value.name_len = w->path_len - in->path_len - (w->depth > 1);
        value.element = !in->object;
    }
    return w->each(w->context, &value);
}

static bool string_value(struct walk *w)
{
    struct string s;

    if (!read_string(w, &s))
        return false;
    if (!s.escaped || w->scratch == NULL)
        return call(w, WEIR__JSON_STRING, s.text, s.len);
    char *decoded = w->scratch;
    size_t len = decode(&s, decoded, s.len);
    w->scratch += len;
    return call(w, WEIR__JSON_STRING, decoded, len);
}

static bool skip_digits(struct walk *w)
{
    if (!is_digit(w))
        return wrong(w, w->at, "a digit");
    while (is_digit(w))
        w->at++;
    return true;
}

static bool number_value(struct walk *w)
{
    const char *begin = w->at;

    w->at += *w->at == '-';
    if (is(w, '0'))
        w->at++; /* no digit may follow, and none follows a value */
    else if (!skip_digits(w))
        return false;
    if (is(w, '.')) {
        w->at++;
        if (!skip_digits(w))
            return false;
    }
    if (is(w, 'e') || is(w, 'E')) {
        w->at++;
        w->at += is(w, '+') || is(w, '-');
        if (!skip_digits(w))
            return false;
    }
    return call(w, WEIR__JSON_NUMBER, begin, (size_t)(w->at - begin));
}

static bool word_value(struct walk *w, enum weir__json_kind kind, const char *word)
{
    const char *begin = w->at;

    for (; *word; word++, w->at++)
        if (!is(w, *word))
            return wrong(w, w->at, "true, false or null");
    return call(w, kind, begin, (size_t)(w->at - begin));
}

/* ------------------------------------------------------------- containers ---- */

static struct level *top(struct walk *w)
{
    return &w->levels[w->depth - 1];
}

/* The path of the container and, after a dot, room for a name of `len` bytes; NULL: it does not
 * fit. */
static char *extend_path(struct walk *w, size_t len)
{
    size_t base = top(w)->path_len, dot = w->depth > 1;

    w->path_len = PATH_OVER;
    if (base == PATH_OVER || base + dot + len > WEIR__JSON_PATH)
        return NULL;
    if (dot)
        w->path[base] = '.';
    w->path_len = base + dot + len;
    return w->path + base + dot;
}

static void name_member(struct walk *w, const struct string *key)
{
    size_t len = key->escaped ? decode(key, NULL, 0) : key->len;
    char *name = extend_path(w, len);

    if (name != NULL)
        decode(key, name, len);
}

static void name_element(struct walk *w)
{
    char digits[24];
    size_t n = sizeof(digits), index = top(w)->index++;

    do
        digits[--n] = (char)('0' + index % 10);
    while (index /= 10);
    char *name = extend_path(w, sizeof(digits) - n);
    if (name != NULL)
        memcpy(name, digits + n, sizeof(digits) - n);
}

/* Before the value of a member or an element. */
static bool begin_item(struct walk *w)
{
    struct string key;

    if (!top(w)->object) {
        name_element(w);
        return true;
    }
    skip_space(w);
    if (!is(w, '"'))
        return wrong(w, w->at, "a name in quotes");
    if (!read_string(w, &key))
        return false;
    name_member(w, &key);
    skip_space(w);
    if (!is(w, ':'))
        return wrong(w, w->at, "':'");
    w->at++;
    return true;
}

static void close_container(struct walk *w)
{
    w->at++;
    w->path_len = top(w)->path_len;
    w->depth--;
}

/* Sets *more if a value must follow: a container that is not empty. */
static bool open_container(struct walk *w, bool *more)
{
    const char *begin = w->at;
    bool object = *begin == '{';

    if (w->depth == WEIR__JSON_DEPTH)
        return wrong(w, w->at, "no more than " WEIR__DIGITS(WEIR__JSON_DEPTH) " levels");
    w->levels[w->depth++] = (struct level){ w->path_len, 0, object };
    w->at++;
    skip_space(w);
    *more = !is(w, object ? '}' : ']');
    if (*more && object && !is(w, '"'))
        return wrong(w, w->at, "a name in quotes or '}'");
    if (*more)
        return begin_item(w);
    close_container(w);
    return w->depth == 0 || call(w, WEIR__JSON_EMPTY, begin, (size_t)(w->at - begin));
}

static bool read_value(struct walk *w, bool *more)
{
    skip_space(w);
    *more = false;
    switch (w->at < w->end ? *w->at : '\0') {
    case '{':
    case '[':
        return open_container(w, more);
    case '"':
        return string_value(w);
    case 't':
        return word_value(w, WEIR__JSON_TRUE, "true");
    case 'f':
        return word_value(w, WEIR__JSON_FALSE, "false");
    case 'n':
        return word_value(w, WEIR__JSON_NULL, "null");
    default:
        return is_digit(w) || is(w, '-') ? number_value(w) : wrong(w, w->at, "a value");
    }
}

/* After a value: closes the containers that end there.  Sets *more if another value must follow. */
static bool end_value(struct walk *w, bool *more)
{
    for (*more = false; w->depth > 0; close_container(w)) {
        bool object = top(w)->object;
        skip_space(w);
        if (is(w, ',')) {
            w->at++;
            *more = true;
            return begin_item(w);
        }
        if (!is(w, object ? '}' : ']'))
            return wrong(w, w->at, object ? "',' or '}'" : "',' or ']'");
    }
    skip_space(w);
    return w->at == w->end || wrong(w, w->at, "the end of the text");
}

_Static_assert(WEIR__JSON_DEPTH == 32, "an error message says so");

long weir__json_walk(const char *text, size_t len, char *scratch,
                     bool (*each)(void *context, const struct weir__json_value *value),
                     void *context, const char **what)
{
    struct walk w; /* not zeroed as a whole: that would cost more than most texts */
    bool more = true;

    w.at = text;
    w.end = text + len;
    w.scratch = scratch;
    w.each = each;
    w.context = context;
    w.what = NULL;
    w.depth = w.path_len = 0;
    while (more && read_value(&w, &more) && (more || end_value(&w, &more)))
        ;
    if (w.what == NULL)
        return -1;
    *what = w.what;
    return (long)(w.at - text);
}

struct weir__text weir__json_element(const char **at, const char *end)
{
    const char *begin = *at, *c = begin;
    size_t depth = 0;

    for (bool quoted = false; c < end; c++) {
        if (quoted && *c == '\\')
            c += c + 1 < end;
        else if (*c == '"')
            quoted = !quoted;
        else if (quoted)
            continue;
        else if (depth == 0 && (*c == ',' || *c == ']'))
            break;
        else if (*c == '{' || *c == '[')
            depth++;
        else if (*c == '}' || *c == ']')
            depth -= depth > 0;
    }
    *at = c;
    return (struct weir__text){ begin, (size_t)(c - begin) };
}

size_t weir__json_whole(const struct weir__json_value *number)
{
    size_t len = number->len;

    while (len && number->text[len - 1] == '0')
        len--;
    return len > 1 && len < number->len && number->text[len - 1] == '.' ? len - 1 : number->len;
}
