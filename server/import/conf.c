/* conf.c -- an nginx.conf as directives, with the files it includes.
 *
 * As nginx reads it: a word ends at a blank, ; or {; a quote, or # for a comment, counts only where
 * a word begins; after $ a brace belongs to the word; a backslash keeps the next byte, and stays
 * unless that is a quote, a backslash, or t, r, n.  The code of a ..._by_lua_block is skipped.
 */
#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/import/import.h"

#define WORDS_MAX 1000 /* of a directive */

struct reader {
    struct weir__import *import;
    const char *file, *at, *end;
    int line;
    struct weir_error *error;
    char *words[WORDS_MAX];
    size_t n;
    int first_line; /* of the directive */
};

static int read_file(struct weir__import *import, const char *path, const char *text, size_t len,
                     struct weir__directive *into, struct weir_error *error);

bool weir__conf_is(const struct weir__directive *d, const char *name)
{
    return strcmp(d->words[0], name) == 0;
}

struct weir__directive *weir__conf_find(const struct weir__directive *in, const char *name)
{
    for (struct weir__directive *d = in->first; d != NULL; d = d->next)
        if (weir__conf_is(d, name))
            return d;
    return NULL;
}

bool weir__conf_has_anywhere(const struct weir__directive *block, const char *name)
{
    for (const struct weir__directive *d = block->first; d != NULL; d = d->next)
        if (weir__conf_is(d, name) || weir__conf_has_anywhere(d, name))
            return true;
    return false;
}

size_t weir__conf_option_at(const struct weir__directive *d, const char *name)
{
    size_t i = d->n - 1;

    while (i > 0 && strncmp(d->words[i], name, strlen(name)) != 0)
        i--;
    return i;
}

const char *weir__conf_option(const struct weir__directive *d, const char *name)
{
    size_t i = weir__conf_option_at(d, name);

    return i > 0 ? d->words[i] + strlen(name) : NULL;
}

const char *const weir__heirlooms[WEIR__HEIRLOOMS] = { "limit_req", "limit_conn",
                                                       "limit_req_dry_run", "limit_conn_dry_run" };

/* Blocks remember. */
const struct weir__directive *weir__conf_inherited(const struct weir__directive *block,
                                                   enum weir__heirloom which)
{
    struct weir__directive *b = (struct weir__directive *)block;

    if (b == NULL)
        return NULL;
    if (!b->known[which]) {
        b->heirlooms[which] = weir__conf_find(b, weir__heirlooms[which]);
        if (b->heirlooms[which] == NULL)
            b->heirlooms[which] = weir__conf_inherited(b->parent, which);
        b->known[which] = true;
    }
    return b->heirlooms[which];
}

static int fail(const struct reader *r, const char *what)
{
    return weir__fail(r->error, WEIR_INVALID, "%s:%d: %s", r->file, r->line, what);
}

/* ------------------------------------------------------------------- words ---- */

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && (isspace((unsigned char)*r->at) || *r->at == '#')) {
        if (*r->at == '#')
            while (r->at < r->end && *r->at != '\n')
                r->at++;
        else
            r->line += *r->at++ == '\n';
    }
}

/* The byte after a backslash, at the end of `word`. */
static char *add_escaped(const struct reader *r, char *word)
{
    static const char plain[] = "\"'\\", letters[] = "trn", bytes[] = "\t\r\n";
    const char *letter = strchr(letters, *r->at);

    if (letter != NULL && *letter != '\0') {
        *word++ = bytes[letter - letters];
        return word;
    }
    if (strchr(plain, *r->at) == NULL)
        *word++ = '\\';
    *word++ = *r->at;
    return word;
}

static bool ends_word(char c, char quote, char before)
{
    if (quote != '\0')
        return c == quote;
    return isspace((unsigned char)c) || c == ';' || (c == '{' && before != '$');
}

static int end_quoted(struct reader *r)
{
    if (r->at == r->end)
        return fail(r, "a quote is not closed");
    r->at++;
    if (r->at < r->end && !isspace((unsigned char)*r->at) && !strchr(";{)", *r->at))
        return fail(r, "expected a blank or ; after the quote");
    return WEIR_OK;
}

/* Where the word ends; its text is no longer than that. */
static const char *find_end(const struct reader *r, char quote)
{
    const char *at = r->at;
    char before = '\0';

    while (at < r->end && !ends_word(*at, quote, before)) {
        before = *at;
        at += before == '\\' && at + 1 < r->end ? 2 : 1;
    }
    return at;
}

static int read_word(struct reader *r)
{
    char quote = *r->at == '"' || *r->at == '\'' ? *r->at : '\0';

    if (r->n == WORDS_MAX)
        return fail(r, "a directive of too many words");
    r->at += quote != '\0';
    const char *end = find_end(r, quote);
    char *word = weir__import_take(r->import, (size_t)(end - r->at) + 1, 1), *to = word;
    for (; r->at < end; r->at++) {
        r->line += *r->at == '\n';
        if (*r->at == '\0')
            return fail(r, "a NUL byte");
        if (*r->at == '\\' && r->at + 1 < end && r->at[1] != '\0') {
            r->at++;
            r->line += *r->at == '\n';
            to = add_escaped(r, to);
        } else {
            *to++ = *r->at;
        }
    }
    r->words[r->n++] = word;
    return quote != '\0' ? end_quoted(r) : WEIR_OK;
}

/* -------------------------------------------------------------- directives ---- */

static struct weir__directive *add_directive(struct reader *r, struct weir__directive *into)
{
    struct weir__directive *d = weir__import_take(r->import, 1, sizeof(*d));

    d->file = r->file;
    d->line = r->first_line;
    d->n = r->n;
    d->words = weir__import_take(r->import, r->n + 1, sizeof(*d->words));
    memcpy(d->words, r->words, r->n * sizeof(*d->words));
    d->parent = into;
    if (into->last != NULL)
        into->last->next = d;
    else
        into->first = d;
    into->last = d;
    return d;
}

static int include_file(struct reader *r, const char *path, struct weir__directive *into)
{
    size_t len, most = WEIR__IMPORT_BYTES_MAX - r->import->bytes;
    char *text = weir__file_read(path, most, &len);

    if (text == NULL)
        return weir__fail(r->error, WEIR_SYSTEM, "%s:%d: %s: %s", r->file, r->first_line, path,
                          strerror(errno));
    int code =
        read_file(r->import, weir__import_text(r->import, "%s", path), text, len, into, r->error);
    free(text);
    return code;
}

/* Of a pattern all files, and there may be none. */
static int include(struct reader *r, const struct weir__directive *d, struct weir__directive *into)
{
    const char *name = d->n == 2 ? d->words[1] : "";
    glob_t found = { 0 };
    int code = WEIR_OK;

    if (d->n != 2)
        return fail(r, "include needs one file");
    if (r->import->folder == NULL)
        return WEIR_OK;
    if (name[0] != '/')
        name = weir__import_text(r->import, "%s/%s", r->import->folder, name);
    if (strpbrk(name, "*?[") == NULL)
        return include_file(r, name, into);
    if (glob(name, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && code == WEIR_OK; i++)
            code = include_file(r, found.gl_pathv[i], into);
    globfree(&found);
    return code;
}

/* From the [ of [[...]] or [=[...]=] to its last byte.  False: it is not one. */
static bool skip_long(struct reader *r)
{
    const char *at = r->at + 1;
    size_t level = 0;

    for (; at < r->end && *at == '='; at++)
        level++;
    if (at == r->end || *at != '[')
        return false;
    for (; at < r->end; at++) {
        size_t n = 0;
        r->line += *at == '\n';
        while (*at == ']' && at + 1 + n < r->end && at[1 + n] == '=')
            n++;
        if (*at == ']' && n == level && at + 1 + n < r->end && at[1 + n] == ']')
            break;
    }
    r->at = at < r->end ? at + level + 1 : r->end - 1;
    return true;
}

/* From its -- to the last byte. */
static void skip_comment(struct reader *r)
{
    r->at += 2;
    if (r->at < r->end && *r->at == '[' && skip_long(r))
        return;
    for (r->at--; r->at + 1 < r->end && r->at[1] != '\n'; r->at++)
        ;
}

/* Lua's own braces, strings and comments. */
static int skip_lua(struct reader *r)
{
    int depth = 1;

    for (; r->at < r->end; r->at++) {
        char c = *r->at;
        r->line += c == '\n';
        if (c == '-' && r->at + 1 < r->end && r->at[1] == '-') {
            skip_comment(r);
        } else if (c == '[') {
            (void)skip_long(r);
        } else if (c == '"' || c == '\'') {
            while (++r->at < r->end && *r->at != c && *r->at != '\n')
                r->at += *r->at == '\\' && r->at + 1 < r->end;
            if (r->at == r->end)
                break;
        } else if (c == '{') {
            depth++;
        } else if (c == '}' && --depth == 0) {
            r->at++;
            return WEIR_OK;
        }
    }
    return fail(r, "the Lua code is not closed");
}

static bool is_lua(const char *name)
{
    static const char end[] = "_by_lua_block";
    size_t len = strlen(name);

    return len >= sizeof(end) && strcmp(name + len - (sizeof(end) - 1), end) == 0;
}

/* Up to ; or {.  0: a directive; 1: with a block; 2: a } instead; 3: the end. */
static int read_words(struct reader *r, int *code)
{
    r->n = 0;
    for (;;) {
        skip_blanks(r);
        if (r->at == r->end) {
            *code = r->n > 0 ? fail(r, "the file ends within a directive: expected ;") : WEIR_OK;
            return 3;
        }
        if (r->n == 0)
            r->first_line = r->line;
        char c = *r->at;
        if (c == ';' || c == '{' || c == '}') {
            r->at++;
            if ((c == '}') != (r->n == 0))
                *code = fail(r, c == '}' ? "expected ; before }" : "a directive without a name");
            return c == ';' ? 0 : c == '{' ? 1 : 2;
        }
        if ((*code = read_word(r)) != WEIR_OK)
            return 3;
    }
}

static int read_text(struct reader *r, struct weir__directive *into)
{
    struct weir__directive *top = into, *d;
    int code = WEIR_OK, depth = 0;

    for (;;) {
        int end = read_words(r, &code);
        if (code != WEIR_OK)
            return code;
        if (end == 3)
            return into == top ? WEIR_OK : fail(r, "the file ends within a block: expected }");
        if (end == 2) {
            if (into == top)
                return fail(r, "a } without its {");
            into = into->parent;
            depth--;
            continue;
        }
        d = add_directive(r, into);
        if (end == 0 && weir__conf_is(d, "include"))
            code = include(r, d, into);
        else if (end == 1 && is_lua(d->words[0]))
            code = skip_lua(r);
        else if (end == 1 && ++depth > WEIR__IMPORT_DEPTH_MAX)
            code = fail(r, "blocks within blocks, too deep");
        else if (end == 1)
            into = d;
        if (code != WEIR_OK)
            return code;
    }
}

static int read_file(struct weir__import *import, const char *path, const char *text, size_t len,
                     struct weir__directive *into, struct weir_error *error)
{
    struct reader *r = weir__import_take(import, 1, sizeof(*r));

    *r = (struct reader){ .import = import, .file = path, .line = 1, .error = error };
    r->at = text;
    r->end = text + len;
    import->bytes += len;
    if (import->bytes > WEIR__IMPORT_BYTES_MAX)
        return fail(r, "the files are too large together");
    if (import->depth == WEIR__IMPORT_DEPTH_MAX)
        return fail(r, "files include files, too deep; perhaps one includes itself");
    import->depth++;
    int code = read_text(r, into);
    import->depth--;
    return code;
}

int weir__conf_read(struct weir__import *import, const char *path, const char *text, size_t len,
                    struct weir_error *error)
{
    static char empty[] = "", *no_name[] = { empty, NULL };

    import->root = (struct weir__directive){ .file = path, .words = no_name, .n = 1 };
    return read_file(import, path, text, len, &import->root, error);
}
