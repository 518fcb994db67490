/* told-clock.c -- preloaded into a program: every clock shows the milliseconds that stand in the
 * file TOLD_CLOCK, as eight bytes. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t told(void)
{
    static _Atomic int64_t *at;

    if (at == NULL) {
        int fd = open(getenv("TOLD_CLOCK"), O_RDONLY | O_CLOEXEC);
        at = mmap(NULL, sizeof(*at), PROT_READ, MAP_SHARED, fd, 0);
        if (at == MAP_FAILED)
            abort();
        close(fd);
    }
    return atomic_load(at);
}

int clock_gettime(clockid_t which, struct timespec *out)
{
    int64_t ms = told();

    (void)which;
    *out = (struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    int64_t ms = told();

    (void)zone;
    *out = (struct timeval){ .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
    return 0;
}
