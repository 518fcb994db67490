/* text.c -- how `weir` speaks to people: complaints, and times and sizes in words. */
#include "server/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire/text.h"

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

/* ------------------------------------------------------- times and sizes ---- */

struct unit {
    weir_time size;
    const char *name;
};

bool weir__wants_colours(void)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

static int64_t round_up(int64_t n, int64_t step)
{
    return n / step + (n % step != 0);
}

static char *put_text(char *to, const char *text)
{
    while (*text)
        *to++ = *text++;
    *to = '\0';
    return to;
}

/* 5.2s, 52.1ms, 521us: below a minute one unit is enough. */
static char *put_short(char *to, weir_time time)
{
    static const struct unit units[] = {
        { WEIR_SECOND, "s" }, { WEIR_MILLISECOND, "ms" }, { WEIR_MICROSECOND, "us" }, { 1, "ns" }
    };
    const struct unit *u = units;

    while (u->size > 1 && time <= 999 * u[1].size)
        u++;
    int64_t tenths = u->size >= 10 ? round_up(time, u->size / 10) : time * 10;
    bool whole = tenths % 10 == 0 || tenths >= 1000;
    to = weir__put_number(to, whole ? round_up(tenths, 10) : tenths / 10);
    if (!whole)
        to = weir__put_number(put_text(to, "."), tenths % 10);
    return put_text(to, u->name);
}

char *weir__text_time(char to[WEIR__TIME_TEXT], weir_time time)
{
    static const struct unit units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "m" }, { 1, "s" } };
    const struct unit *u = units;

    if (time <= 0)
        return put_text(to, "0s");
    if (time <= 60 * WEIR_SECOND - WEIR_SECOND / 10)
        return put_short(to, time);
    int64_t s = round_up(time, WEIR_SECOND);
    while (s < u->size && u->size > 60)
        u++;
    int64_t low = round_up(s % u->size, u[1].size);
    int64_t high = s / u->size + (low * u[1].size == u->size); /* 1h 59m 59s is 2h */
    to = put_text(weir__put_number(to, high), u->name);
    if (low && low * u[1].size < u->size)
        to = put_text(weir__put_number(put_text(to, " "), low), u[1].name);
    return to;
}

void weir__text_bytes(char *out, size_t size, int64_t bytes)
{
    static const char *const names[] = { "KiB", "MiB", "GiB", "TiB" };
    double n = (double)bytes / 1024;
    size_t i = 0;

    if (bytes < 1024) {
        snprintf(out, size, "%lld bytes", (long long)bytes);
        return;
    }
    for (; n >= 1024 && i < 3; i++)
        n /= 1024;
    snprintf(out, size, "%.1f %s", n, names[i]);
}
