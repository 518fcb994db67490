/* token.c -- secrets that clients show.
 *
 * Visible ASCII without spaces: a token goes into a header, a RESP command and a line of a file,
 * and must end in none of them before its time.
 */
#include "server/base/token.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "server/base/file.h"
#include "wire/text.h"

#define FILE_MAX 65536

const char *weir__token_wrong(const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c < '!' || *c > '~')
            return "has a byte that is no visible ASCII; a secret has letters, digits and signs, "
                   "and no space";
    }
    if (strlen(text) > WEIR__TOKEN_MAX)
        return "is longer than " WEIR__DIGITS(WEIR__TOKEN_MAX) " bytes";
    return strcmp(text, "(set)") == 0
               ? "is how --print-settings hides a secret; write the secret itself"
               : NULL;
}

/* Without the end of the line. */
static size_t first_line_len(const char *text, size_t len)
{
    const char *newline = memchr(text, '\n', len);

    len = newline ? (size_t)(newline - text) : len;
    return len - (len > 0 && text[len - 1] == '\r');
}

int weir__token_read(char **out, const char *path, struct weir_error *error)
{
    size_t all = 0;
    char *text = weir__file_read(path, FILE_MAX, &all);

    if (text == NULL)
        return weir__fail(error, WEIR_SYSTEM, "cannot read %.100s: %s", path, strerror(errno));
    size_t len = first_line_len(text, all);
    char *line = strndup(text, len);
    explicit_bzero(text, all);
    free(text);
    if (line == NULL)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for %.100s", path);
    const char *wrong = len == 0             ? "has no secret in its first line"
                        : strlen(line) < len ? "has a NUL byte in its first line"
                                             : weir__token_wrong(line);
    if (wrong == NULL) {
        *out = line;
        return WEIR_OK;
    }
    explicit_bzero(line, strlen(line));
    free(line);
    return weir__fail(error, WEIR_INVALID, "%.100s %s", path, wrong);
}
