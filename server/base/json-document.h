/* json-document.h -- a JSON text whose members are found by their path: a server's answer, for
 * commands that show it.
 *
 *     weir__document_text(&d, "rules.%d.rule", i)
 */
#ifndef WEIR_SERVER_BASE_JSON_DOCUMENT_H
#define WEIR_SERVER_BASE_JSON_DOCUMENT_H

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

/* NULL: there is none, or it is null. */
const struct weir__scalar *weir__document_find(const struct weir__document *document,
                                               const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A path, as for weir__document_find, in place of the scalar. */
#define weir__document_text(document, ...) \
    weir__scalar_text(weir__document_find(document, __VA_ARGS__))
#define weir__document_number(document, otherwise, ...) \
    weir__scalar_number(weir__document_find(document, __VA_ARGS__), otherwise)
#define weir__document_ms(document, ...) weir__scalar_ms(weir__document_find(document, __VA_ARGS__))
#define weir__document_true(document, ...) \
    weir__scalar_is_true(weir__document_find(document, __VA_ARGS__))

const char *weir__scalar_text(const struct weir__scalar *scalar); /* NULL stays NULL */
/* `otherwise` if there is none, or it is no whole number. */
int64_t weir__scalar_number(const struct weir__scalar *scalar, int64_t otherwise);
/* Milliseconds; WEIR_NEVER if there is none, or it is no whole number from 0. */
weir_time weir__scalar_ms(const struct weir__scalar *scalar);
bool weir__scalar_is_true(const struct weir__scalar *scalar);

#endif
