/* json-document.h -- a JSON text whose members are found by their path: a server's answer, for
 * commands that show it.
 *
 *     weir__document_text(&d, "rules.%d.rule", i)
 */
#ifndef WEIR_SERVER_JSON_DOCUMENT_H
#define WEIR_SERVER_JSON_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir.h"
#include "wire/json.h"

struct weir__scalar {
    const char *path, *text; /* ended by a zero; a string: decoded, all else: as written */
    size_t len;              /* of the text */
    enum weir__json_kind kind;
};

/* Zeroed is empty. */
struct weir__document {
    struct weir__scalar *scalars; /* by path */
    size_t n;
    char *bytes; /* of them all */
};

/* WEIR_INVALID: it is no JSON; WEIR_NO_MEMORY. */
int weir__document_read(struct weir__document *out, const char *text, size_t len,
                        struct weir_error *error);
void weir__document_free(struct weir__document *document);

#define WEIR__PATH_FORMAT(at, from) __attribute__((format(printf, at, from)))

/* NULL: there is none, or it is null. */
const struct weir__scalar *weir__document_find(const struct weir__document *document,
                                               const char *format, ...) WEIR__PATH_FORMAT(2, 3);
const char *weir__document_text(const struct weir__document *document, const char *format, ...)
    WEIR__PATH_FORMAT(2, 3);
/* `otherwise` if there is none, or it is no whole number. */
int64_t weir__document_number(const struct weir__document *document, int64_t otherwise,
                              const char *format, ...) WEIR__PATH_FORMAT(3, 4);
/* Milliseconds; WEIR_NEVER if it is null, there is none, or it is no whole number from 0. */
weir_time weir__document_ms(const struct weir__document *document, const char *format, ...)
    WEIR__PATH_FORMAT(2, 3);
/* Whether it is there and true. */
bool weir__document_true(const struct weir__document *document, const char *format, ...)
    WEIR__PATH_FORMAT(2, 3);

#endif
