/* http-pen.h -- how answers are written: bytes behind each other. */
#ifndef WEIR_SERVER_SERVE_HTTP_HTTP_PEN_H
#define WEIR_SERVER_SERVE_HTTP_HTTP_PEN_H

#include <string.h>

#include "server/base/human-numbers.h"
#include "wire/decimal.h"

/* Writes to where there is room enough: all that is written with it is bounded, names have 63 bytes
 * at the most. */
struct weir__pen {
    char *at;
};

#define WEIR__PEN_PUT(pen, literal) \
    (memcpy((pen)->at, literal, sizeof(literal) - 1), (pen)->at += sizeof(literal) - 1)

static inline void weir__pen_put(struct weir__pen *pen, const char *bytes, size_t len)
{
    memcpy(pen->at, bytes, len);
    pen->at += len;
}

static inline void weir__pen_text(struct weir__pen *pen, const char *text)
{
    weir__pen_put(pen, text, strlen(text));
}

static inline void weir__pen_number(struct weir__pen *pen, int64_t n)
{
    pen->at = weir__put_number(pen->at, n);
}

static inline void weir__pen_time(struct weir__pen *pen, weir_time t)
{
    pen->at = weir__human_duration(pen->at, t);
}

static inline void weir__pen_number_or_null(struct weir__pen *pen, int64_t n)
{
    if (n < 0)
        WEIR__PEN_PUT(pen, "null");
    else
        weir__pen_number(pen, n);
}

/* A name that needs no escapes, or null: names of rules and lists are letters, digits, dots, dashes
 * and underscores. */
static inline void weir__pen_name(struct weir__pen *pen, const char *name)
{
    if (name == NULL) {
        WEIR__PEN_PUT(pen, "null");
        return;
    }
    WEIR__PEN_PUT(pen, "\"");
    weir__pen_put(pen, name, strnlen(name, 63));
    WEIR__PEN_PUT(pen, "\"");
}

#endif
