/* buffer.h -- bytes that grow: answers, incomplete input, JSON.
 *
 * Zeroed is empty.  Running out of memory sets `failed`, and nothing more is added: look at it
 * once, before sending.
 */
#ifndef WEIR_WIRE_BUFFER_H
#define WEIR_WIRE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir__buffer {
    char *bytes;
    size_t len, room;
    bool failed;
};

/* Where `n` more bytes may be written, at the end; `len` is the caller's to move.  NULL: no
 * memory. */
char *weir__buffer_more(struct weir__buffer *b, size_t n);

static inline char *weir__buffer_room(struct weir__buffer *b, size_t n)
{
    return b->room - b->len >= n && b->bytes ? b->bytes + b->len : weir__buffer_more(b, n);
}

void weir__buffer_add(struct weir__buffer *b, const void *bytes, size_t len);
void weir__buffer_text(struct weir__buffer *b, const char *text);
__attribute__((format(printf, 2, 3))) void weir__buffer_format(struct weir__buffer *b,
                                                               const char *format, ...);
void weir__buffer_number(struct weir__buffer *b, int64_t n);                   /* in decimal */
void weir__buffer_bulk(struct weir__buffer *b, const void *bytes, size_t len); /* as RESP has it */
void weir__buffer_bulk_number(struct weir__buffer *b, int64_t n);

void weir__buffer_drop(struct weir__buffer *b, size_t n); /* the first n bytes */
void weir__buffer_free(struct weir__buffer *b);           /* and it is empty again */

/* All of them, to a file.  False: see errno. */
bool weir__bytes_write(int fd, const char *bytes, size_t len);

#endif
