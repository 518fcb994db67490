/* file-users.c -- which processes have a table's file.
 *
 * Everybody who is attached holds a shared lock (flock), which the kernel lists in /proc/locks, by
 * device and inode; a process that makes a table or puts it in order holds it alone.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/base.h"
#include "table/file.h"

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
