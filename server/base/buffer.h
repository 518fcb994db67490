/* buffer.h -- JSON in a buffer, and a buffer to print. */
#ifndef WEIR_SERVER_BASE_BUFFER_H
#define WEIR_SERVER_BASE_BUFFER_H

#include <stdio.h>

#include "wire/buffer.h"

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
void weir__buffer_member_number_or_null(struct weir__buffer *b, const char *name, bool known,
                                        int64_t n); /* null unless it is known */
void weir__buffer_member_numbers(struct weir__buffer *b, const char *name, const int64_t *values,
                                 size_t n);
/* A length of time in ms, rounded up; null for WEIR_NEVER and below 0. */
void weir__buffer_member_ms(struct weir__buffer *b, const char *name, int64_t span);
/* A point in time, as ISO 8601 in UTC with milliseconds; null for WEIR_NEVER. */
void weir__buffer_member_moment(struct weir__buffer *b, const char *name, int64_t moment);

/* Writes it to `out`, unless that is NULL, and frees it.  Returns the exit code: half a text is an
 * error, and not written. */
int weir__buffer_print(struct weir__buffer *b, FILE *out);

#endif
