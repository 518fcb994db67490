/* file-users.c -- which processes have a table's file, and the wait for one that has it alone.
 *
 * Everybody who is attached holds a shared lock (flock), which the kernel lists in /proc/locks, by
 * device and inode; a process that makes a table or puts it in order holds it alone.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/base.h"
#include "table/file.h"

#define STEP_MS            5
#define LOOK_MS            1000
#define WAIT_MS            30000
#define ORDER_LEAST_MS     5000
#define ORDER_BYTES_PER_MS 20000 /* of a slow disk */
#define BLOCK              512   /* of st_blocks */

/* A process may have several locks. */
static bool has_pid(const struct weir__pids *pids, int pid)
{
    char one[16];
    size_t len = (size_t)snprintf(one, sizeof(one), " %d", pid);

    for (const char *at = pids->text; (at = strstr(at, one)) != NULL; at++)
        if (at[len] == ',' || at[len] == ' ' || at[len] == '\0')
            return true;
    return false;
}

/* The third field of /proc/PID/stat; the name before it may have brackets in it. */
static bool is_stopped(int pid)
{
    char path[32], text[256];

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file)
        fclose(file);
    text[n] = '\0';
    const char *p = strrchr(text, ')');
    return p != NULL && p[1] == ' ' && (p[2] == 'T' || p[2] == 't');
}

static void add_pid(struct weir__pids *out, int pid)
{
    size_t len = strlen(out->text);

    if (has_pid(out, pid))
        return;
    out->stopped = (len == 0 || out->stopped) && is_stopped(pid);
    /* A lock belongs to whoever opened the file, as nginx's first process, which ends at once. */
    const char *gone = kill(pid, 0) != 0 && errno == ESRCH ? " (ended: its children)" : "";
    if (len + 40 < sizeof(out->text)) /* further ones are left out */
        snprintf(out->text + len, sizeof(out->text) - len, "%s %d%s", len ? "," : "", pid, gone);
}

struct weir__pids weir__table_users(const char *path, bool locked)
{
    struct weir__pids out = { .text = "" };
    char line[256], kind[16], how[16];
    unsigned major_, minor_;
    unsigned long inode;
    struct stat st;
    int pid;
    FILE *locks = stat(path, &st) == 0 ? fopen("/proc/locks", "re") : NULL;

    while (locks && fgets(line, sizeof(line), locks))
        if (sscanf(line, "%*s %15s ADVISORY %15s %d %x:%x:%lu", kind, how, &pid, &major_, &minor_,
                   &inode) == 6 &&
            strcmp(kind, "FLOCK") == 0 && (!locked || strcmp(how, "WRITE") == 0) && pid > 0 &&
            pid != (int)getpid() && inode == st.st_ino && major_ == major(st.st_dev) &&
            minor_ == minor(st.st_dev))
            add_pid(&out, pid);
    if (locks)
        fclose(locks);
    return out;
}

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
