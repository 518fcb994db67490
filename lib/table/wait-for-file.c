/* wait-for-file.c -- the wait for a process that has a table's file alone: how long, and what is
 * said meanwhile.
 *
 * A process that makes a table or puts it in order has the file locked alone.  One that is stopped
 * there, or that keeps it, must not hold up others for ever.
 */
#include <errno.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/base.h"
#include "table/file.h"

#define STEP_MS            5
#define LOOK_MS            1000
#define WAIT_MS            30000
#define ORDER_LEAST_MS     5000
#define ORDER_BYTES_PER_MS 20000 /* of a slow disk */
#define BLOCK              512   /* of st_blocks */

/* The kernel's list may lack a lock while others come and go: it is read a piece at a time. */
static struct weir__pids find_locker(const char *path)
{
    struct weir__pids pids = { .text = "" };

    for (int i = 0; i < 3 && *pids.text == '\0'; i++)
        pids = weir__table_users(path, true);
    return pids;
}

/* Of one that is stopped nobody knows when it goes on.  One that the kernel never names, because it
 * is in another pid namespace, may be: it gets as long as it takes to put the file in order. */
int weir__locker_patience_ms(const struct weir__pids *locker, bool named, uint64_t file_bytes)
{
    uint64_t order_ms = ORDER_LEAST_MS + file_bytes / ORDER_BYTES_PER_MS;

    if (locker->stopped)
        return LOOK_MS;
    return named || order_ms > WAIT_MS ? WAIT_MS : (int)order_ms;
}

/* The disk space that it has. */
static uint64_t bytes_of(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 ? (uint64_t)st.st_blocks * BLOCK : 0;
}

/* Whether to give up.  `named`: the locker is, or was at an earlier look. */
static int look(int fd, const char *path, int ms, const struct weir__patience *patience,
                bool *named, struct weir_error *error)
{
    struct weir__pids pids = find_locker(path);
    struct weir_error why;

    *named = *named || *pids.text != '\0';
    bool vain = !patience->waits || ms >= weir__locker_patience_ms(&pids, *named, bytes_of(fd));
    weir__fail(&why, WEIR_SYSTEM, "'%s' is locked by another process%s%s%s%s", path,
               *pids.text ? ", pid" : "", pids.text, pids.stopped ? ", which is stopped" : "",
               ms >= WAIT_MS ? ": gave up after 30 seconds"
               : !vain       ? ": waiting for it"
               : ms > 0      ? ": gave up"
                             : "");
    if (!vain && ms == LOOK_MS && patience->say != NULL)
        patience->say(patience->context, why.text);
    return vain ? weir__fail(error, WEIR_SYSTEM, "%s", why.text) : WEIR_OK;
}

/* A process that puts a table in order has it alone for a moment; one that keeps it must not hold
 * up others for ever.  Nobody who is attached comes here, and while somebody is, nobody has it
 * alone. */
int weir__file_share(int fd, const char *path, const struct weir__patience *patience,
                     struct weir_error *error)
{
    bool named = false;

    for (int ms = 0; flock(fd, LOCK_SH | LOCK_NB) != 0; ms += STEP_MS) {
        if (errno != EWOULDBLOCK)
            return weir__fail_errno(error, "cannot lock table", path);
        bool due = ms == 0 ? !patience->waits : ms % LOOK_MS == 0;
        int code = due ? look(fd, path, ms, patience, &named, error) : WEIR_OK;
        if (code)
            return code;
        weir__clock_sleep(STEP_MS * WEIR_MILLISECOND);
    }
    return WEIR_OK;
}
