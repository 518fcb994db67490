/* shifted-clock.c -- preloaded into a server: its wall clock differs by SHIFT_SECONDS. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static time_t shift(void)
{
    const char *text = getenv("SHIFT_SECONDS");

    return text ? atol(text) : 0;
}

int clock_gettime(clockid_t which, struct timespec *out)
{
    static int (*real)(clockid_t, struct timespec *);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(which, out);
    if (code == 0 && which == CLOCK_REALTIME)
        out->tv_sec += shift();
    return code;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;
    int code = clock_gettime(CLOCK_REALTIME, &now);

    (void)zone;
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return code;
}
