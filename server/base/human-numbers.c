/* human-numbers.c -- numbers, shares, times and sizes as people read them. */
#include "server/base/human-numbers.h"

#include <string.h>
#include <time.h>

#include "base/utf8.h"
#include "wire/decimal.h"

const char *weir__human_count(char out[WEIR__HUMAN], int64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%lld", (long long)n), at = 0;

    for (int i = 0; i < len; i++) {
        if (i > 0 && digits[i - 1] != '-' && (len - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

const char *weir__human_counted(char out[WEIR__HUMAN], int64_t n, const char *noun)
{
    weir__human_count(out, n);
    size_t len = strlen(out);
    snprintf(out + len, WEIR__HUMAN - len, " %s%s", noun, n == 1 ? "" : "s");
    return out;
}

const char *weir__human_share(char out[WEIR__HUMAN], int64_t part, int64_t whole)
{
    double percent = whole ? 100.0 * (double)part / (double)whole : 0;

    if (part == 0)
        snprintf(out, WEIR__HUMAN, "0 %%");
    else if (percent < 0.01)
        snprintf(out, WEIR__HUMAN, "<0.01 %%");
    else if (part < whole && percent > 99.99)
        snprintf(out, WEIR__HUMAN, ">99.99 %%");
    else
        snprintf(out, WEIR__HUMAN, percent < 10 ? "%.2f %%" : "%.1f %%", percent);
    return out;
}

const char *weir__human_distinct(char out[WEIR__HUMAN], const struct weir__distinct *distinct)
{
    size_t about = !weir__distinct_is_exact(distinct);

    out[0] = '~';
    weir__human_count(out + about, weir__distinct_count(distinct));
    return out;
}

static struct tm split_time(weir_time at)
{
    time_t seconds = (time_t)(at / WEIR_SECOND);
    struct tm tm;

    gmtime_r(&seconds, &tm);
    return tm;
}

const char *weir__human_time(char out[WEIR__HUMAN], weir_time at, bool fraction)
{
    struct tm tm = split_time(at);
    size_t len = strftime(out, WEIR__HUMAN, "%Y-%m-%d %H:%M:%S", &tm);

    if (fraction)
        snprintf(out + len, WEIR__HUMAN - len, ".%03d", (int)(at % WEIR_SECOND / WEIR_MILLISECOND));
    return out;
}

const char *weir__human_clock(char out[WEIR__HUMAN], weir_time at, weir_time step)
{
    struct tm tm = split_time(at);

    if (step >= 86400 * WEIR_SECOND)
        strftime(out, WEIR__HUMAN, "%Y-%m-%d", &tm);
    else if (step >= 60 * WEIR_SECOND)
        strftime(out, WEIR__HUMAN, at % (86400 * WEIR_SECOND) == 0 ? "%m-%d %H:%M" : "%H:%M", &tm);
    else
        strftime(out, WEIR__HUMAN, "%H:%M:%S", &tm);
    return out;
}

const char *weir__human_width(char out[WEIR__HUMAN], weir_time width)
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = { { 604800, "week" }, { 86400, "day" }, { 3600, "h" }, { 60, "min" }, { 1, "s" } };
    size_t i = 0;

    while (i < 4 && width % (units[i].seconds * WEIR_SECOND) != 0)
        i++;
    int64_t n = width / (units[i].seconds * WEIR_SECOND);
    if (n == 1)
        snprintf(out, WEIR__HUMAN, "%s",
                 i < 2    ? units[i].name
                 : i == 2 ? "hour"
                 : i == 3 ? "minute"
                          : "second");
    else
        snprintf(out, WEIR__HUMAN, "%lld %s%s", (long long)n, units[i].name, i < 2 ? "s" : "");
    return out;
}

struct unit {
    weir_time size;
    const char *name;
};

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

char *weir__human_duration(char to[WEIR__DURATION], weir_time time)
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

void weir__human_bytes(char *out, size_t size, int64_t bytes)
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
