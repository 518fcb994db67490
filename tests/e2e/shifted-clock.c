/* shifted-clock.c -- preloaded into a server: its wall clock differs by SHIFT_SECONDS, and
 * gettimeofday, which Redis asks, is ahead of clock_gettime by LATE_US. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long number(const char *name)
{
    const char *text = getenv(name);

    return text ? atol(text) : 0;
}

int clock_gettime(clockid_t which, struct timespec *out)
{
    static int (*real)(clockid_t, struct timespec *);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(which, out);
    if (code == 0 && which == CLOCK_REALTIME)
        out->tv_sec += number("SHIFT_SECONDS");
    return code;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;
    int code = clock_gettime(CLOCK_REALTIME, &now);
    long us = now.tv_nsec / 1000 + number("LATE_US");

    (void)zone;
    out->tv_sec = now.tv_sec + us / 1000000;
    out->tv_usec = us % 1000000;
    return code;
}
