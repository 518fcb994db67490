/* buffer.c -- bytes that grow: answers, incomplete input.
 *
 * The room doubles.  Out of memory is remembered in `failed`, and from then on `room` is no more
 * than `len`: so the quick path of weir__buffer_room has nothing to give, and half an answer never
 * gets an end that makes it look whole.
 */
#include "wire/buffer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire/decimal.h"
#include "wire/resp.h"

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

void weir__buffer_bulk(struct weir__buffer *b, const void *bytes, size_t len)
{
    char *to = weir__buffer_room(b, len + WEIR__RESP_NUMBER_MAX);

    if (to)
        b->len = (size_t)(weir__resp_put_bulk(to, bytes, len) - b->bytes);
}

void weir__buffer_bulk_number(struct weir__buffer *b, int64_t n)
{
    char digits[WEIR__NUMBER_MAX];

    weir__buffer_bulk(b, digits, (size_t)(weir__put_number(digits, n) - digits));
}

void weir__buffer_drop(struct weir__buffer *b, size_t n)
{
    if (n < b->len)
        memmove(b->bytes, b->bytes + n, b->len - n);
    b->len -= n < b->len ? n : b->len;
    if (b->failed)
        b->room = b->len;
}

void weir__buffer_free(struct weir__buffer *b)
{
    free(b->bytes);
    *b = (struct weir__buffer){ 0 };
}

bool weir__bytes_write(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno != EINTR)
            return false;
        bytes += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}
