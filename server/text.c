/* text.c -- how `weir` speaks to people: complaints, suggestions, times and sizes in words, and JSON strings. */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

void weir__complain(const char *command, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "weir%s%s: ", command ? " " : "", command ? command : "");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

void weir__complain_at(const char *command, const char *option, const char *value, const struct weir_error *error)
{
    weir__complain(command, "--%s: %s", option, error->text);
    if (error->column < 1)
        return;
    fputs("    ", stderr);
    for (const char *c = value; *c; c++)
        fputc((unsigned char)*c < ' ' ? '?' : *c, stderr); /* a tab would move the caret */
    fprintf(stderr, "\n    %*s\n", error->column, "^");
}

/* ---------------------------------------------------------- suggestions ---- */

const char *weir__text_nearest(const char *const *names, const char *word, size_t len)
{
    const char *nearest = NULL;
    size_t best = len / 3 + 2; /* further off is no likeness: "q" is not "take" */

    for (; *names && len <= WEIR__EDITS_MAX; names++) {
        size_t name_len = strlen(*names);
        if (name_len > WEIR__EDITS_MAX)
            continue;
        size_t d = weir__edits(word, len, *names, name_len);
        if (len >= 2 && len < name_len && memcmp(word, *names, len) == 0)
            d = 1; /* the beginning of a name */
        if (d < best && d < name_len) {
            best = d;
            nearest = *names;
        }
    }
    return nearest;
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

/* 5.2s, 52.1ms, 521us: below a minute one unit is enough. */
static void print_short(char *out, size_t size, weir_time time)
{
    static const struct unit units[] = { { WEIR_SECOND, "s" }, { WEIR_MILLISECOND, "ms" }, { WEIR_MICROSECOND, "us" }, { 1, "ns" } };
    const struct unit *u = units;

    while (u->size > 1 && time <= 999 * u[1].size)
        u++;
    int64_t tenths = u->size >= 10 ? round_up(time, u->size / 10) : time * 10;
    if (tenths % 10 == 0 || tenths >= 1000)
        snprintf(out, size, "%lld%s", (long long)round_up(tenths, 10), u->name);
    else
        snprintf(out, size, "%lld.%lld%s", (long long)(tenths / 10), (long long)(tenths % 10), u->name);
}

void weir__text_time(char *out, size_t size, weir_time time)
{
    static const struct unit units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "m" }, { 1, "s" } };
    const struct unit *u = units;

    if (time <= 0) {
        snprintf(out, size, "0s");
        return;
    }
    if (time <= 60 * WEIR_SECOND - WEIR_SECOND / 10) {
        print_short(out, size, time);
        return;
    }
    int64_t s = round_up(time, WEIR_SECOND);
    while (s < u->size && u->size > 60)
        u++;
    int64_t low = round_up(s % u->size, u[1].size);
    int64_t high = s / u->size + (low * u[1].size == u->size); /* 1h 59m 59s is 2h */
    if (low && low * u[1].size < u->size)
        snprintf(out, size, "%lld%s %lld%s", (long long)high, u->name, (long long)low, u[1].name);
    else
        snprintf(out, size, "%lld%s", (long long)high, u->name);
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

/* ------------------------------------------------------------------ JSON ---- */

/* Length of the UTF-8 sequence at c, or 0 if it is none (overlong forms, surrogates and beyond U+10FFFF are none). */
static size_t sequence(const unsigned char *c)
{
    if (c[0] < 0x80)
        return 1;
    size_t len = c[0] >= 0xF0 ? 4 : c[0] >= 0xE0 ? 3 : 2;
    if (c[0] < 0xC2 || c[0] > 0xF4)
        return 0;
    for (size_t i = 1; i < len; i++) {
        if ((c[i] & 0xC0) != 0x80)
            return 0;
    }
    if ((c[0] == 0xE0 && c[1] < 0xA0) || (c[0] == 0xED && c[1] > 0x9F) || (c[0] == 0xF0 && c[1] < 0x90) || (c[0] == 0xF4 && c[1] > 0x8F))
        return 0;
    return len;
}

void weir__json_string(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;

    putchar('"');
    while (*c) {
        size_t len = sequence(c);
        if (len == 0)
            fputs("\\ufffd", stdout);
        else if (*c < ' ' || *c == 0x7F)
            printf("\\u%04x", *c);
        else if (*c == '"' || *c == '\\')
            printf("\\%c", *c);
        else
            fwrite(c, 1, len, stdout);
        c += len ? len : 1;
    }
    putchar('"');
}
