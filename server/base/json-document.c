/* json-document.c -- a JSON text whose members are found by their path.
 *
 * All scalars are copied out with their paths and sorted, so that a command can ask for them in any
 * order.  Objects and arrays are not there themselves: a list has ended where the next index has no
 * member that each element has.
 */
#include "server/base/json-document.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* ---------------------------------------------------------------- reading ---- */

/* First they are counted, then copied. */
struct gathering {
    struct weir__scalar *scalars; /* NULL: only count */
    size_t n, bytes;
    char *to;
};

static const char *copy(struct gathering *g, const char *text, size_t len)
{
    char *at = g->to;

    if (len > 0)
        memcpy(at, text, len);
    at[len] = '\0';
    g->to += len + 1;
    return at;
}

static bool gather(void *context, const struct weir__json_value *value)
{
    struct gathering *g = context;

    if (value->kind == WEIR__JSON_EMPTY)
        return true;
    if (g->scalars) {
        const char *path = copy(g, value->path, value->path_len);
        g->scalars[g->n] = (struct weir__scalar){ path, copy(g, value->text, value->len),
                                                  value->len, value->kind };
    }
    g->n++;
    g->bytes += value->path_len + value->len + 2;
    return true;
}

static int compare(const void *left, const void *right)
{
    const struct weir__scalar *a = left, *b = right;

    return strcmp(a->path, b->path);
}

int weir__document_read(struct weir__document *out, const char *text, size_t len,
                        struct weir_error *error)
{
    struct gathering g = { 0 };
    const char *what = NULL;
    long wrong = weir__json_walk(text, len, NULL, gather, &g,
                                 &what); /* as written, no string is shorter than decoded */

    if (wrong >= 0)
        return weir__fail(error, WEIR_INVALID, "no JSON: byte %ld: %s", wrong + 1, what);
    struct weir__document d = { .scalars = calloc(g.n + 1, sizeof(*d.scalars)),
                                .bytes = malloc(g.bytes + 1) };
    char *scratch = malloc(len + 1);
    if (d.scalars && d.bytes && scratch) {
        g = (struct gathering){ .scalars = d.scalars, .to = d.bytes };
        weir__json_walk(text, len, scratch, gather, &g, &what);
        d.n = g.n;
        qsort(d.scalars, d.n, sizeof(*d.scalars), compare);
        *out = d;
        d = (struct weir__document){ 0 };
    }
    bool made = d.scalars == NULL && d.bytes == NULL && scratch;
    weir__document_free(&d);
    free(scratch);
    return made ? WEIR_OK : weir__fail(error, WEIR_NO_MEMORY, "no memory for the answer");
}

void weir__document_free(struct weir__document *document)
{
    free(document->scalars);
    free(document->bytes);
    *document = (struct weir__document){ 0 };
}

/* ---------------------------------------------------------------- finding ---- */

const struct weir__scalar *weir__document_find(const struct weir__document *d, const char *format,
                                               ...)
{
    char path[WEIR__JSON_PATH + 1];
    struct weir__scalar wanted = { .path = path };
    va_list args;

    va_start(args, format);
    vsnprintf(path, sizeof(path), format, args);
    va_end(args);
    const struct weir__scalar *found =
        d->n ? bsearch(&wanted, d->scalars, d->n, sizeof(*d->scalars), compare) : NULL;
    return found && found->kind != WEIR__JSON_NULL ? found : NULL;
}

const char *weir__scalar_text(const struct weir__scalar *scalar)
{
    return scalar ? scalar->text : NULL;
}

int64_t weir__scalar_number(const struct weir__scalar *scalar, int64_t otherwise)
{
    char *end = NULL;

    if (!scalar || scalar->kind != WEIR__JSON_NUMBER)
        return otherwise;
    int64_t n = strtoll(scalar->text, &end, 10);
    return *end ? otherwise : n;
}

weir_time weir__scalar_ms(const struct weir__scalar *scalar)
{
    int64_t ms = weir__scalar_number(scalar, -1);
    weir_time time;

    return ms < 0 || __builtin_mul_overflow(ms, WEIR_MILLISECOND, &time) ? WEIR_NEVER : time;
}

bool weir__scalar_is_true(const struct weir__scalar *scalar)
{
    return scalar && scalar->kind == WEIR__JSON_TRUE;
}
