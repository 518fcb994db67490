/* http1-chunks.c -- chunked bodies of HTTP/1.1 (RFC 9112, 7.1), byte by byte. */
#include <string.h>

#include "base/digit.h"
#include "wire/http1.h"

enum {
    LINE_BYTES = 256,     /* a chunk's size and extensions */
    TRAILER_BYTES = 4096, /* all trailers together */
};

/* The next byte's part of the body. The first is zero, the start. */
enum {
    SIZE,
    EXTENSION,
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER_START,
    TRAILER,
    TRAILER_LF,
    LAST_LF
};

static bool is_text(char c)
{
    return ((unsigned char)c >= ' ' && c != 0x7f) || c == '\t';
}

static const char *step_size(struct weir__http_chunks *chunks, char c)
{
    int digit = weir__hex(c);

    if (digit >= 0) {
        if (chunks->left > INT64_MAX >> 4)
            return "a chunk of more than 63 bits";
        chunks->left = chunks->left << 4 | (uint64_t)digit;
    } else if (chunks->line == 0 || (c != ';' && c != '\r')) {
        return "expected the size of a chunk in hexadecimal digits, and CRLF";
    } else {
        chunks->state = c == ';' ? EXTENSION : SIZE_LF;
    }
    return ++chunks->line > LINE_BYTES ? "the line of a chunk's size has more than 256 bytes"
                                       : NULL;
}

static const char *step_extension(struct weir__http_chunks *chunks, char c)
{
    if (c == '\r')
        chunks->state = SIZE_LF;
    else if (!is_text(c))
        return "a control character in a chunk's extension";
    return ++chunks->line > LINE_BYTES ? "the line of a chunk's size has more than 256 bytes"
                                       : NULL;
}

static const char *step_trailer(struct weir__http_chunks *chunks, char c)
{
    bool start = chunks->state == TRAILER_START;

    if (c == '\r')
        chunks->state = start ? LAST_LF : TRAILER_LF;
    else if (!is_text(c) || (start && !weir__http_is_token(c)))
        return "expected a trailer or an empty line after the last chunk";
    else
        chunks->state = TRAILER;
    return ++chunks->line > TRAILER_BYTES ? "the trailers have more than 4 KiB" : NULL;
}

/* The end of a line of any kind. */
static const char *step_line_end(struct weir__http_chunks *chunks, char c)
{
    if (c != (chunks->state == DATA_CR ? '\r' : '\n'))
        return chunks->state == DATA_CR ? "expected CRLF after the data of a chunk"
                                        : "expected LF after CR";
    switch (chunks->state) {
    case SIZE_LF:
        chunks->state = chunks->left > 0 ? DATA : TRAILER_START;
        chunks->line = 0;
        break;
    case DATA_CR:
        chunks->state = DATA_LF;
        break;
    case DATA_LF:
        chunks->state = SIZE;
        break;
    case TRAILER_LF:
        chunks->state = TRAILER_START;
        break;
    default:
        chunks->ended = true;
        break;
    }
    return NULL;
}

static const char *step(struct weir__http_chunks *chunks, char c)
{
    switch (chunks->state) {
    case SIZE:
        return step_size(chunks, c);
    case EXTENSION:
        return step_extension(chunks, c);
    case TRAILER_START:
    case TRAILER:
        return step_trailer(chunks, c);
    default:
        return step_line_end(chunks, c);
    }
}

ptrdiff_t weir__http_chunked(struct weir__http_chunks *chunks, char *bytes, size_t len,
                             size_t *data_len, const char **what)
{
    size_t at = 0, data = 0;

    while (at < len && !chunks->ended) {
        if (chunks->state == DATA) {
            size_t piece = chunks->left < len - at ? (size_t)chunks->left : len - at;
            memmove(bytes + data, bytes + at, piece);
            data += piece;
            at += piece;
            chunks->left -= piece;
            if (chunks->left == 0)
                chunks->state = DATA_CR;
            continue;
        }
        const char *why = step(chunks, bytes[at]);
        if (why != NULL) {
            *what = why;
            return -1;
        }
        at++;
    }
    *data_len = data;
    return (ptrdiff_t)at;
}
