/* table-file.c -- a table's file as other processes have it. */
#include "server/base/table-file.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "server/base/command.h"
#include "server/base/complain.h"
#include "table/file.h"

static void say_waiting(const void *context, const char *why)
{
    weir__complain(context, "%s", why);
}

int weir__table_await(const char *command, const char *path, bool waits, struct weir_error *error)
{
    const struct weir__patience patience = { waits, say_waiting, command };
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return WEIR_OK; /* then there is nothing to wait for */
    int code = weir__file_share(fd, path, &patience, error);
    close(fd);
    return code;
}

/* A signal handler can reach nothing else. */
static struct {
    struct weir__region region;
    int len;
    char text[512];
} guarded;

static void end_cut(void)
{
    ssize_t written = write(STDERR_FILENO, guarded.text, (size_t)guarded.len);

    (void)written;
    _exit(WEIR__EXIT_WRONG);
}

/* Outside of the table it is a bug: the signal comes again, and ends the process as ever. */
static void on_bus_error(int signal_number, siginfo_t *info, void *context)
{
    const unsigned char *at = info->si_addr;

    (void)context;
    if (at >= guarded.region.first && at < guarded.region.end)
        end_cut();
    signal(signal_number, SIG_DFL);
}

void weir__table_guard_bytes(const char *command, const char *path, const struct weir_table *table)
{
    struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };

    guarded.region = weir__table_region(table);
    guarded.len = snprintf(guarded.text, sizeof(guarded.text),
                           "weir %s: the table %.300s was cut by another program, or its disk "
                           "is full or fails: cannot go on\n",
                           command, path);
    sigaction(SIGBUS, &action, NULL);
}

void weir__table_check_bytes(const struct weir_table *table)
{
    if (guarded.len > 0 && weir_table_is_cut(table))
        end_cut();
}

/* Whose it is, if that is why it cannot be opened. */
static void name_owner(const char *path, struct weir_error *error)
{
    size_t len = strlen(error->text);
    struct stat st;

    if (stat(path, &st) != 0 || access(path, R_OK | W_OK) == 0 || errno != EACCES)
        return;
    const struct passwd *user = getpwuid(st.st_uid);
    if (user != NULL)
        snprintf(error->text + len, sizeof(error->text) - len, "; it belongs to the user %s",
                 user->pw_name);
    else
        snprintf(error->text + len, sizeof(error->text) - len, "; it belongs to the user %u",
                 (unsigned)st.st_uid);
}

void weir__table_no_guard(const char *command, struct weir_table *table, const char *name)
{
    enum { LIKELY = 64 };
    struct weir_guard_info found[LIKELY];
    const char *names[LIKELY];
    struct weir_guard *guard;
    size_t n = 0;

    for (int64_t at = 0; n < LIKELY && weir_guard_next(table, &at, &guard); n++) {
        weir_guard_get(guard, weir_table_now(table), &found[n]);
        names[n] = found[n].name;
    }
    weir__complain(
        command, "the table has no guard '%s'; %s", name,
        weir__hint_or(name, strlen(name), names, n, "weir guards --table lists them").text);
}

int weir__table_attach(const char *command, struct weir_table **out, const char *path,
                       struct weir_error *error)
{
    int code = weir__table_await(command, path, true, error);

    code = code ? code : weir_table_attach(out, path, error);
    if (code == WEIR_OK)
        weir__table_guard_bytes(command, path, *out);
    else if (code == WEIR_SYSTEM)
        name_owner(path, error);
    return code;
}

/* ---------------------------------------------------------------- owner ---- */

static bool read_id(const char *text, unsigned *out)
{
    char *end;
    unsigned long id = strtoul(text, &end, 10);

    *out = (unsigned)id;
    return *text >= '0' && *text <= '9' && *end == '\0' && id < UINT32_MAX;
}

int weir__table_owned(struct weir_table_options *options, const struct weir__file_owner *by,
                      struct weir_error *error)
{
    const char *owner = by->owner ? by->owner : "", *group = by->group ? by->group : "";

    if (*owner && !read_id(owner, &options->owner)) {
        const struct passwd *user = getpwnam(owner);
        if (user == NULL)
            return weir__fail(error, WEIR_INVALID, "there is no user '%s'", owner);
        options->owner = user->pw_uid;
    }
    if (*group && !read_id(group, &options->group)) {
        const struct group *found = getgrnam(group);
        if (found == NULL)
            return weir__fail(error, WEIR_INVALID, "there is no group '%s'", group);
        options->group = found->gr_gid;
    }
    return WEIR_OK;
}

int64_t weir__table_disk_bytes(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? (int64_t)st.st_blocks * 512 : 0;
}
