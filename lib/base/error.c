/* error.c -- one line of text for a setup that failed, and the names of reasons. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

static void write_text(struct weir_error *error, int column, const char *fmt, va_list args)
{
    if (error == NULL)
        return;
    error->column = column;
    vsnprintf(error->text, sizeof(error->text), fmt, args);
}

int weir__fail(struct weir_error *error, enum weir_code code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    write_text(error, 0, fmt, args);
    va_end(args);
    return code;
}

int weir__fail_at(struct weir_error *error, int column, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    write_text(error, column, fmt, args);
    va_end(args);
    return WEIR_INVALID;
}

int weir__fail_errno(struct weir_error *error, const char *what, const char *path)
{
    int number = errno;

    return weir__fail(error, WEIR_SYSTEM, "%s '%s': %s", what, path, strerror(number));
}

const char *weir_reason_name(enum weir_reason reason)
{
    static const char *const names[] = { "granted",  "limited", "too-big",   "bad-ask",  "banned",
                                         "denied",   "open",    "busy",      "shed",     "degraded",
                                         "full",     "late",    "cancelled", "too-many", "no-room",
                                         "key-busy", "dry",     "alone" };

    return (unsigned)reason < sizeof(names) / sizeof(*names) ? names[reason] : "unknown";
}

const char *weir_version(void)
{
    return WEIR_VERSION;
}
