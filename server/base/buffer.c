/* buffer.c -- bytes that grow: answers, incomplete input, JSON.
 *
 * The room doubles.  Out of memory is remembered in `failed`, and from then on `room` is no more
 * than `len`: so the quick path of weir__buffer_room has nothing to give, and half an answer never
 * gets an end that makes it look whole.
 */
#include "server/base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"
#include "server/base/complain.h"
#include "server/base/words.h"
#include "weir.h"
#include "wire/text.h"

enum { ROOM_LEAST = 256 };

static char *fail(struct weir__buffer *b)
{
    b->failed = true;
    b->room = b->len;
    return NULL;
}

char *weir__buffer_more(struct weir__buffer *b, size_t n)
{
    size_t room = b->room > ROOM_LEAST ? b->room : ROOM_LEAST;

    if (b->failed || n > SIZE_MAX / 4 || b->len > SIZE_MAX / 4)
        return fail(b);
    while (room - b->len < n)
        room *= 2;
    char *bytes = realloc(b->bytes, room);
    if (!bytes)
        return fail(b);
    b->bytes = bytes;
    b->room = room;
    return bytes + b->len;
}

void weir__buffer_add(struct weir__buffer *b, const void *bytes, size_t len)
{
    char *to = len ? weir__buffer_room(b, len) : NULL;

    if (!to)
        return;
    memcpy(to, bytes, len);
    b->len += len;
}

void weir__buffer_text(struct weir__buffer *b, const char *text)
{
    weir__buffer_add(b, text, strlen(text));
}

void weir__buffer_format(struct weir__buffer *b, const char *format, ...)
{
    va_list args, again;
    char *to = weir__buffer_room(b, 1);
    size_t room = to ? b->room - b->len : 0;

    va_start(args, format);
    va_copy(again, args);
    int len = to ? vsnprintf(to, room, format, args) : -1;
    if (len < 0) {
        fail(b);
    } else if ((size_t)len < room) {
        b->len += (size_t)len;
    } else if ((to = weir__buffer_more(b, (size_t)len + 1)) !=
               NULL) { /* the NUL behind it needs room too */
        vsnprintf(to, (size_t)len + 1, format, again);
        b->len += (size_t)len;
    }
    va_end(again);
    va_end(args);
}

void weir__buffer_number(struct weir__buffer *b, int64_t n)
{
    char *to = weir__buffer_room(b, WEIR__NUMBER_MAX);

    if (to)
        b->len = (size_t)(weir__put_number(to, n) - b->bytes);
}

void weir__buffer_drop(struct weir__buffer *b, size_t n)
{
    if (n < b->len)
        memmove(b->bytes, b->bytes + n, b->len - n);
    b->len -= n < b->len ? n : b->len;
    if (b->failed)
        b->room = b->len;
}

int weir__buffer_print(struct weir__buffer *b, FILE *out)
{
    int code = out && b->failed ? weir__complain(NULL, "no memory left to print this") : 0;

    if (out && code == 0 && b->len > 0)
        fwrite(b->bytes, 1, b->len, out);
    weir__buffer_free(b);
    return code;
}

void weir__buffer_free(struct weir__buffer *b)
{
    free(b->bytes);
    *b = (struct weir__buffer){ 0 };
}

/* ------------------------------------------------------------------ JSON ---- */

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
