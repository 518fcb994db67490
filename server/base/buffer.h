/* buffer.h -- bytes that grow: answers, incomplete input, JSON.
 *
 * Zeroed is empty.  Running out of memory sets `failed`, and nothing more is added: look at it
 * once, before sending.
 */
#ifndef WEIR_SERVE_BUFFER_H
#define WEIR_SERVE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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
void weir__buffer_number(struct weir__buffer *b, int64_t n); /* in decimal */

/* json-writer.c -- a JSON string, in quotes; bytes that are no UTF-8 become U+FFFD. */
void weir__buffer_json(struct weir__buffer *b, const char *text, size_t len);
/* "name":value, after a comma unless it is the first of its object, list or line.  In a list the
 * name is NULL. */
void weir__buffer_member_name(struct weir__buffer *b, const char *name); /* the value follows */
void weir__buffer_open(struct weir__buffer *b, const char *name, char bracket); /* { or [ */
void weir__buffer_close(struct weir__buffer *b, const char *brackets); /* "}", "]}" or "}\n" */
void weir__buffer_member(struct weir__buffer *b, const char *name, const char *text);
void weir__buffer_member_or_null(struct weir__buffer *b, const char *name,
                                 const char *text); /* null for NULL */
void weir__buffer_member_bool(struct weir__buffer *b, const char *name, bool is);
void weir__buffer_member_number(struct weir__buffer *b, const char *name, int64_t n);
void weir__buffer_member_numbers(struct weir__buffer *b, const char *name, const int64_t *values,
                                 size_t n);
/* A length of time in ms, rounded up; null for WEIR_NEVER and below 0. */
void weir__buffer_member_ms(struct weir__buffer *b, const char *name, int64_t span);
/* A point in time, as ISO 8601 in UTC with milliseconds; null for WEIR_NEVER. */
void weir__buffer_member_moment(struct weir__buffer *b, const char *name, int64_t moment);

void weir__buffer_drop(struct weir__buffer *b, size_t n); /* the first n bytes */
/* Writes it to `out`, unless that is NULL, and frees it.  Returns the exit code: half a text is an
 * error, and not written. */
int weir__buffer_print(struct weir__buffer *b, FILE *out);
void weir__buffer_free(struct weir__buffer *b); /* and it is empty again */

#endif
