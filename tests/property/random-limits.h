/* random-limits.h -- limits of every algorithm as texts: usual ones, and the widest. */
#ifndef WEIR_TESTS_PROPERTY_RANDOM_LIMITS_H
#define WEIR_TESTS_PROPERTY_RANDOM_LIMITS_H

#include <inttypes.h>
#include <stdio.h>

#include "rounds.h"

/* Of any size; often near a power of two. */
static int64_t any_number(int bits)
{
    int64_t power = (int64_t)1 << between(0, bits - 1);
    int64_t n = one_in(3) ? power + between(-1, 1) : power + between(0, power - 1);

    return n < 1 ? 1 : n;
}

/* As large and as fast as limits may be. */
static void wide_limit(char *out, size_t size, int kind)
{
    static const char *const names[] = { "gcra",         "token-bucket", "leaky-bucket",
                                         "leaky-bucket", "fixed-window", "sliding-window",
                                         "sliding-log",  "calendar",     "smooth",
                                         "warm-up" };
    static const char *const units[] = { "us", "us", "ms", "s", "h", "ns" };
    char rest[64] = "";

    if (kind < 3)
        snprintf(rest, sizeof(rest), " burst %" PRId64, any_number(60));
    else if (kind == 3)
        snprintf(rest, sizeof(rest), " burst %" PRId64 " queue %" PRId64, any_number(40),
                 any_number(40));
    else if (kind == 5)
        snprintf(rest, sizeof(rest), " buckets=%" PRId64 "%s", any_number(8),
                 one_in(3) ? " edge=loose" : "");
    if (kind == 7)
        snprintf(out, size, "%" PRId64 "/month", any_number(62));
    else
        snprintf(out, size, "%s %" PRId64 "/%" PRId64 "%s%s", names[kind],
                 any_number(kind == 6   ? 9
                            : kind == 5 ? 32
                                        : 62),
                 any_number(30), units[between(0, 5)], rest);
}

static void random_limit(char *out, size_t size, int kind)
{
    int count = int_between(1, one_in(4) ? 100 : 12), burst = int_between(1, one_in(2) ? 3 : 20);
    static const char *const periods[] = { "1s", "13s", "1h", "777777us", "1d", "50ms", "7us" };
    const char *period = periods[between(0, 6)];
    int buckets = int_between(1, one_in(2) ? 2 : 12);

    switch (kind) {
    case 0:
        if (one_in(4)) /* a price of whole microseconds and one part */
            snprintf(out, size, "gcra 1/1000001ns burst %d", burst);
        else
            snprintf(out, size, "gcra %d/%s burst %d", count, period, burst);
        return;
    case 1:
        snprintf(out, size, "token-bucket %d/%s burst %d", one_in(3) ? 1009 : count,
                 one_in(3) ? "30d" : period, one_in(3) ? 100000 : burst);
        return;
    case 2:
        snprintf(out, size, "leaky-bucket %d/%s burst %d", count, period, burst);
        return;
    case 3:
        snprintf(out, size, "leaky-bucket %d/%s burst %d queue %d", count, period, burst,
                 int_between(0, 9));
        return;
    case 4:
        snprintf(out, size, "fixed-window %d/%s%s", count, period, one_in(2) ? " align=first" : "");
        return;
    case 5:
        snprintf(out, size, "sliding-window %d/%s buckets=%d%s", count, period, buckets,
                 one_in(3) ? " edge=loose" : "");
        return;
    case 6:
        snprintf(out, size, "sliding-log %d/%s", one_in(3) ? 1 : count, period);
        return;
    case 7:
        snprintf(out, size, "%d/%s zone=%s", count, one_in(2) ? "day" : "month",
                 one_in(2) ? "Europe/Berlin" : "UTC");
        return;
    case 8:
        snprintf(out, size, "smooth %d/%s burst %d", count, period, burst);
        return;
    default:
        snprintf(out, size, "warm-up %d/%s warmup=%dms", count, period, 1 << burst);
    }
}

#endif
