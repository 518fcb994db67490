/* import.c -- memory and notes, shared by the steps of an import. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/complain.h"
#include "server/import/import.h"

#define NOTES_MAX 1000

void *weir__import_take(struct weir__import *import, size_t count, size_t size)
{
    void *memory = weir__arena_take(&import->arena, count, size);

    if (memory == NULL)
        exit(weir__complain("import", "no memory"));
    return memory;
}

char *weir__import_text(struct weir__import *import, const char *format, ...)
{
    char *made = NULL;
    va_list args;

    va_start(args, format);
    int len = vasprintf(&made, format, args);
    va_end(args);
    if (len < 0)
        exit(weir__complain("import", "no memory"));
    char *text = weir__import_take(import, (size_t)len + 1, 1);
    memcpy(text, made, (size_t)len);
    free(made);
    return text;
}

void weir__import_note(struct weir__import *import, const struct weir__directive *at, bool loss,
                       const char *format, ...)
{
    char text[400];
    size_t n = 0;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    import->losses += loss;
    for (struct weir__import_note *each = import->notes; each != NULL; each = each->next, n++)
        if (n == NOTES_MAX || (each->line == at->line && strcmp(each->file, at->file) == 0 &&
                               strcmp(each->text, text) == 0))
            return;
    struct weir__import_note *note = weir__import_take(import, 1, sizeof(*note));
    *note = (struct weir__import_note){ .file = at->file,
                                        .line = at->line,
                                        .loss = loss,
                                        .text = weir__import_text(import, "%s", text) };
    if (import->last_note != NULL)
        import->last_note->next = note;
    else
        import->notes = note;
    import->last_note = note;
}

void weir__import_clear(struct weir__import *import)
{
    weir__arena_clear(&import->arena);
}
