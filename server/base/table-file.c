/* table-file.c -- a table's file as other processes have it.
 *
 * Everybody who is attached holds a shared lock (flock), which the kernel lists in /proc/locks, by
 * device and inode.
 */
#include "server/base/table-file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "server/base/complain.h"

#define STEP_MS  50
#define QUIET_MS 1000

static void add_pid(struct weir__pids *out, int pid)
{
    size_t len = strlen(out->text);

    if (len + 16 < sizeof(out->text)) /* further ones are left out */
        snprintf(out->text + len, sizeof(out->text) - len, "%s %d", len ? "," : "", pid);
}

struct weir__pids weir__table_users(const char *path, bool locked)
{
    struct weir__pids out = { "" };
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

static void say_locked(const char *command, const char *path, const char *then)
{
    struct weir__pids pids = weir__table_users(path, true);

    weir__complain(command, "%s is locked by another process%s%s%s", path,
                   *pids.text ? ", pid" : "", pids.text, then);
}

bool weir__table_await(const char *command, const char *path, bool waits)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), waited = 0;
    bool locked;

    while ((locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) &&
           waits) {
        if (waited == QUIET_MS)
            say_locked(command, path, ": waiting for it");
        poll(NULL, 0, STEP_MS);
        waited += STEP_MS;
    }
    if (locked)
        say_locked(command, path, "");
    if (fd >= 0)
        close(fd);
    return !locked;
}

int64_t weir__table_disk_bytes(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? (int64_t)st.st_blocks * 512 : 0;
}
