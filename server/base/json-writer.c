/* json-writer.c -- JSON into a buffer: strings with their escapes, members, lists. */
#include "server/base/buffer.h"

#include <string.h>
#include <time.h>

#include "base/utf8.h"
#include "server/base/human-numbers.h"

static bool is_plain(unsigned char c)
{
    return c >= ' ' && c < 0x7F && c != '"' && c != '\\';
}

/* The next piece of a text (len > 0) on its way into a JSON string: how many of its bytes.  They go
 * in as they are, or, if `escape` is not empty, as that: control characters, quotes and backslashes
 * escaped, a byte that is no UTF-8 as U+FFFD, since a JSON text must be Unicode. */
static size_t next_piece(const char *text, size_t len, char escape[8])
{
    const unsigned char *c = (const unsigned char *)text;
    size_t n = 0;

    escape[0] = 0;
    while (n < len && is_plain(c[n]))
        n++;
    if (n > 0)
        return n;
    size_t bytes = weir__utf8_length(text, text + len);
    if (bytes == 0)
        memcpy(escape, "\\ufffd", 7);
    else if (*c == '"' || *c == '\\')
        memcpy(escape, (char[]){ '\\', (char)*c, 0 }, 3);
    else if (*c < ' ' || *c == 0x7F)
        snprintf(escape, 8, "\\u%04x", *c);
    return bytes ? bytes : 1;
}

void weir__buffer_json(struct weir__buffer *b, const char *text, size_t len)
{
    char escape[8];

    weir__buffer_add(b, "\"", 1);
    for (size_t n; len > 0; text += n, len -= n) {
        n = next_piece(text, len, escape);
        if (escape[0])
            weir__buffer_text(b, escape);
        else
            weir__buffer_add(b, text, n);
    }
    weir__buffer_add(b, "\"", 1);
}

void weir__buffer_member_name(struct weir__buffer *b, const char *name)
{
    if (b->len > 0 && !memchr("{[:\n", b->bytes[b->len - 1], 4))
        weir__buffer_add(b, ",", 1);
    if (!name)
        return;
    weir__buffer_json(b, name, strlen(name));
    weir__buffer_add(b, ":", 1);
}

void weir__buffer_open(struct weir__buffer *b, const char *name, char bracket)
{
    weir__buffer_member_name(b, name);
    weir__buffer_add(b, &bracket, 1);
}

void weir__buffer_close(struct weir__buffer *b, const char *brackets)
{
    weir__buffer_text(b, brackets);
}

void weir__buffer_member(struct weir__buffer *b, const char *name, const char *text)
{
    weir__buffer_member_name(b, name);
    weir__buffer_json(b, text, strlen(text));
}

void weir__buffer_member_or_null(struct weir__buffer *b, const char *name, const char *text)
{
    weir__buffer_member_name(b, name);
    if (text)
        weir__buffer_json(b, text, strlen(text));
    else
        weir__buffer_text(b, "null");
}

void weir__buffer_member_bool(struct weir__buffer *b, const char *name, bool is)
{
    weir__buffer_member_name(b, name);
    weir__buffer_text(b, is ? "true" : "false");
}

void weir__buffer_member_number(struct weir__buffer *b, const char *name, int64_t n)
{
    weir__buffer_member_name(b, name);
    weir__buffer_number(b, n);
}

void weir__buffer_member_number_or_null(struct weir__buffer *b, const char *name, bool known,
                                        int64_t n)
{
    if (known)
        weir__buffer_member_number(b, name, n);
    else
        weir__buffer_member_or_null(b, name, NULL);
}

void weir__buffer_member_numbers(struct weir__buffer *b, const char *name, const int64_t *values,
                                 size_t n)
{
    weir__buffer_open(b, name, '[');
    for (size_t i = 0; i < n; i++)
        weir__buffer_member_number(b, NULL, values[i]);
    weir__buffer_close(b, "]");
}

void weir__buffer_member_ms(struct weir__buffer *b, const char *name, int64_t span)
{
    weir__buffer_member_name(b, name);
    if (span < 0 || span == WEIR_NEVER)
        weir__buffer_text(b, "null");
    else
        weir__buffer_number(b, weir__in_unit(span, WEIR_MILLISECOND));
}

void weir__buffer_member_moment(struct weir__buffer *b, const char *name, int64_t moment)
{
    int64_t ms = (moment > 0 ? moment : 0) / WEIR_MILLISECOND;
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    char text[40];

    weir__buffer_member_name(b, name);
    if (moment == WEIR_NEVER) {
        weir__buffer_text(b, "null");
        return;
    }
    gmtime_r(&seconds, &tm);
    size_t len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + len, sizeof(text) - len, ".%03dZ", (int)(ms % 1000));
    weir__buffer_json(b, text, strlen(text));
}
