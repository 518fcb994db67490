/* http-pen.h -- how answers are written: bytes behind each other. */
#ifndef WEIR_SERVE_HTTP_PEN_H
#define WEIR_SERVE_HTTP_PEN_H

#include <string.h>

#include "server/base/human-numbers.h"
#include "wire/decimal.h"

/* Writes to where there is room enough: all that is written with it is bounded, names have 63 bytes
 * at the most. */
struct pen {
    char *at;
};

#define PUT(pen, literal) \
    (memcpy((pen)->at, literal, sizeof(literal) - 1), (pen)->at += sizeof(literal) - 1)

static inline void put(struct pen *pen, const char *bytes, size_t len)
{
    memcpy(pen->at, bytes, len);
    pen->at += len;
}

static inline void put_text(struct pen *pen, const char *text)
{
    put(pen, text, strlen(text));
}

static inline void put_number(struct pen *pen, int64_t n)
{
    pen->at = weir__put_number(pen->at, n);
}

static inline void put_time(struct pen *pen, weir_time t)
{
    pen->at = weir__human_duration(pen->at, t);
}

static inline void put_number_or_null(struct pen *pen, int64_t n)
{
    if (n < 0)
        PUT(pen, "null");
    else
        put_number(pen, n);
}

/* A name that needs no escapes, or null: names of rules and lists are letters, digits, dots, dashes
 * and underscores. */
static inline void put_name(struct pen *pen, const char *name)
{
    if (name == NULL) {
        PUT(pen, "null");
        return;
    }
    PUT(pen, "\"");
    put(pen, name, strnlen(name, 63));
    PUT(pen, "\"");
}

#endif
