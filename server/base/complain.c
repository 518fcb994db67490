/* complain.c -- the errors that `weir` prints. */
#include "server/base/complain.h"

#include <stdarg.h>
#include <stdio.h>

int weir__complain(const char *command, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "weir%s%s: ", command ? " " : "", command ? command : "");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return 2;
}

void weir__complain_at(const char *command, const char *place, const char *value,
                       const struct weir_error *error)
{
    weir__complain(command, "%s: %s", place, error->text);
    if (error->column < 1)
        return;
    fputs("    ", stderr);
    for (const char *c = value; *c; c++)
        fputc((unsigned char)*c < ' ' ? '?' : *c, stderr); /* a tab would move the caret */
    fprintf(stderr, "\n    %*s\n", error->column, "^");
}
