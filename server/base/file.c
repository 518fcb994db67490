/* file.c -- a whole file in memory, for the commands that read one: rules, vectors. */
#include "server/base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for more; NULL if there is none, or it is enough. */
static char *grow(char *text, size_t *room, size_t most)
{
    size_t more = *room ? *room * 2 : 1 << 16;
    char *grown = *room < most ? realloc(text, more) : NULL;

    if (grown != NULL)
        *room = more;
    return grown;
}

char *weir__file_read(const char *path, size_t most, size_t *len)
{
    char *text = NULL, *grown;
    size_t room = 0;

    errno = 0;
    *len = 0;
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    while (file && !ferror(file) && !feof(file)) {
        if (*len == room) {
            if ((grown = grow(text, &room, most)) == NULL) {
                errno = EFBIG;
                break;
            }
            text = grown;
        }
        *len += fread(text + *len, 1, room - *len, file);
    }
    int code = file && feof(file) ? 0 : errno ? errno : EIO;
    if (file && file != stdin)
        fclose(file);
    if (code == 0 && text)
        return text;
    free(text);
    errno = code;
    return NULL;
}
