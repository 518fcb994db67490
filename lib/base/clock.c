/* clock.c -- the only file that reads a clock.  All other code gets the time as an argument. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

static weir_time read_clock(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (weir_time)t.tv_sec * WEIR_SECOND + t.tv_nsec;
}

weir_time weir__clock_monotonic(void)
{
    /* Goes on while the host is suspended, as a limit's period does. */
    return read_clock(CLOCK_BOOTTIME);
}

weir_time weir__clock_real(void)
{
    return read_clock(CLOCK_REALTIME);
}

void weir__clock_sleep(weir_time span)
{
    weir_time now = weir__clock_monotonic(),
              until = span > INT64_MAX - now ? INT64_MAX : now + span;
    struct timespec t = { .tv_sec = (time_t)(until / WEIR_SECOND),
                          .tv_nsec = (long)(until % WEIR_SECOND) };

    while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

void weir__clock_wait_word(uint32_t *word, uint32_t value, weir_time span)
{
    struct timespec t = { .tv_sec = (time_t)(span / WEIR_SECOND),
                          .tv_nsec = (long)(span % WEIR_SECOND) };

    if (span > 0)
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, span == WEIR_FOREVER ? NULL : &t, NULL,
                0);
}

void weir__clock_wake_word(uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void weir__clock_wake_shared(uint32_t *shared)
{
    syscall(SYS_futex, shared, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* As Linux 5.16 has it; headers may be older. */
#define WAIT_FOR_ANY      449 /* SYS_futex_waitv */
#define WORD_OF_32_BITS   2
#define WORD_OF_A_PROCESS 128

struct waited_word {
    uint64_t value, address;
    uint32_t flags, zero;
};

void weir__clock_wait_words(uint32_t *word, uint32_t value, uint32_t *shared, uint32_t seen,
                            weir_time span)
{
    struct waited_word both[2] = {
        { value, (uint64_t)(uintptr_t)word, WORD_OF_32_BITS | WORD_OF_A_PROCESS, 0 },
        { seen, (uint64_t)(uintptr_t)shared, WORD_OF_32_BITS, 0 },
    };
    weir_time now = read_clock(CLOCK_MONOTONIC), until;

    if (span <= 0)
        return;
    if (__builtin_add_overflow(now, span, &until))
        until = INT64_MAX;
    struct timespec t = { .tv_sec = (time_t)(until / WEIR_SECOND),
                          .tv_nsec = (long)(until % WEIR_SECOND) };
    if (syscall(WAIT_FOR_ANY, both, 2, 0, &t, CLOCK_MONOTONIC) < 0 && errno == ENOSYS)
        weir__clock_wait_word(word, value, span);
}

void weir__clock_boot_id(unsigned char id[WEIR__BOOT_ID_SIZE])
{
    memset(id, 0, WEIR__BOOT_ID_SIZE);
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f == NULL)
        return;
    int digits = 0;
    for (int c; digits < 2 * WEIR__BOOT_ID_SIZE && (c = fgetc(f)) != EOF;) {
        if (!isxdigit(c))
            continue;
        int value = isdigit(c) ? c - '0' : tolower(c) - 'a' + 10;
        id[digits / 2] = (unsigned char)(id[digits / 2] << 4 | value);
        digits++;
    }
    fclose(f);
}
