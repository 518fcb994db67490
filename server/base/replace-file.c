/* replace-file.c -- a file replaced whole.
 *
 * Flushing the folder comes last and can fail too.  Then the new text is the file, but might not be
 * after a power failure; so the old one gets a second name (a hard link) before, and its old name
 * back if need be.  Where there are no hard links this one failure cannot be undone, and the error
 * says so.
 */
#include "server/base/replace-file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/base.h"
#include "wire/buffer.h"

#define DIGITS 16

/* --------------------------------------------------------------- names ---- */

/* Where the last part of a path begins. */
static size_t name_at(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* The file behind all links; a missing one keeps its name.  NULL: no memory. */
static char *resolve(const char *path)
{
    char *real = realpath(path, NULL);

    return real ? real : strdup(path);
}

static int make_names(struct weir__store *s, const char *path, struct weir_error *error)
{
    uint32_t number;

    s->path = resolve(path);
    if (weir__random_fill(&number, sizeof(number)) != 0)
        return weir__fail_errno(error, "no random name for a copy of", path);
    int folder = s->path ? (int)name_at(s->path) : 0;
    if (s->path == NULL ||
        asprintf(&s->temporary, "%.*s.%s.weir-%08x%08" PRIx32, folder, s->path, s->path + folder,
                 (unsigned)getpid(), number) < 0 ||
        asprintf(&s->undo, "%s-old", s->temporary) < 0)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for the name of a file");
    return WEIR_OK;
}

static int open_folder(const char *path)
{
    size_t len = name_at(path);
    char *folder = len > 0 ? strndup(path, len) : strdup(".");
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int number = errno;

    free(folder);
    errno = number;
    return fd;
}

static int look_at_old(struct weir__store *s, struct weir_error *error)
{
    if (stat(s->path, &s->old) != 0) {
        s->fresh = errno == ENOENT;
        return s->fresh ? WEIR_OK : weir__fail_errno(error, "cannot look at", s->path);
    }
    return S_ISREG(s->old.st_mode)
               ? WEIR_OK
               : weir__fail(error, WEIR_SYSTEM, "%s is not a regular file; it stays as it is",
                            s->path);
}

/* ------------------------------------------------------------- writing ---- */

/* The owner and the group only as far as the process may give files away.  The mode after them: a
 * change of owner takes bits from it. */
static bool keep_permissions(const struct weir__store *s, int fd)
{
    if (s->fresh)
        return true;
    if (fchown(fd, s->old.st_uid, s->old.st_gid) != 0 && fchown(fd, (uid_t)-1, s->old.st_gid) != 0)
        errno = 0; /* it belongs to this process then, as any file that it writes */
    return fchmod(fd, s->old.st_mode & 0777) == 0;
}

static int write_temporary(struct weir__store *s, const void *bytes, size_t len,
                           struct weir_error *error)
{
    int fd = open(s->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0)
        return weir__fail_errno(error, "cannot write beside", s->path);
    s->has_temporary = true;
    bool done = weir__bytes_write(fd, bytes, len) && keep_permissions(s, fd) && fsync(fd) == 0;
    int code = done ? WEIR_OK : weir__fail_errno(error, "cannot write a new", s->path);
    if (close(fd) != 0 && code == WEIR_OK)
        code = weir__fail_errno(error, "cannot write a new", s->path);
    return code;
}

int weir__store_begin(struct weir__store *out, const char *path, const void *bytes, size_t len,
                      struct weir_error *error)
{
    struct weir__store s = { .folder = -1 };
    int code = make_names(&s, path, error);

    if (code == WEIR_OK)
        code = look_at_old(&s, error);
    if (code == WEIR_OK && (s.folder = open_folder(s.path)) < 0)
        code = weir__fail_errno(error, "cannot open the folder of", s.path);
    if (code == WEIR_OK)
        code = write_temporary(&s, bytes, len, error);
    if (code == WEIR_OK)
        *out = s;
    else
        weir__store_drop(&s);
    return code;
}

/* ----------------------------------------------------------- replacing ---- */

static int put_back(struct weir__store *s, struct weir_error *error)
{
    int number = errno, code = weir__fail_errno(error, "cannot flush the folder of", s->path);
    int failed = s->fresh ? unlink(s->path) : s->has_undo ? rename(s->undo, s->path) : -1;

    if (failed)
        return weir__fail(error, WEIR_SYSTEM,
                          "%s is replaced, but its folder cannot be flushed (%s): after a power "
                          "failure it may be the old one",
                          s->path, strerror(number));
    s->has_undo = false;
    return code;
}

int weir__store_commit(struct weir__store *s, struct weir_error *error)
{
    int code = WEIR_OK;

    s->has_undo = !s->fresh && link(s->path, s->undo) == 0;
    if (rename(s->temporary, s->path) != 0) {
        code = weir__fail_errno(error, "cannot replace", s->path);
    } else {
        s->has_temporary = false;
        if (fsync(s->folder) != 0 &&
            errno != EINVAL) /* a file system that does not flush folders keeps them in order */
            code = put_back(s, error);
    }
    weir__store_drop(s);
    return code;
}

void weir__store_drop(struct weir__store *s)
{
    if (s->has_temporary)
        (void)unlink(s->temporary);
    if (s->has_undo)
        (void)unlink(s->undo);
    if (s->folder >= 0)
        (void)close(s->folder);
    free(s->path);
    free(s->temporary);
    free(s->undo);
    *s = (struct weir__store){ .folder = -1 };
}

int weir__store_replace(const char *path, const void *bytes, size_t len, struct weir_error *error)
{
    struct weir__store s;
    int code = weir__store_begin(&s, path, bytes, len, error);

    return code == WEIR_OK ? weir__store_commit(&s, error) : code;
}

/* -------------------------------------------------------------- turns ---- */

static int take_lock(int fd, bool wait)
{
    int failed;

    do {
        failed = flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB));
    } while (failed != 0 && errno == EINTR);
    return failed;
}

int weir__store_lock(const char *path, bool make, bool wait)
{
    char *name = NULL;

    if (asprintf(&name, "%s.lock", path) < 0) {
        errno = ENOMEM;
        return -1;
    }
    int fd = open(
        name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | (make ? O_CREAT : 0), 0600);
    int number = fd < 0 || take_lock(fd, wait) != 0 ? errno : 0;
    free(name);
    if (number == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    errno = number;
    return -1;
}

/* Not by closing alone: a process that was forked just now has it open too, until it runs its own
 * program. */
void weir__store_unlock(int lock)
{
    if (lock < 0)
        return;
    (void)flock(lock, LOCK_UN);
    (void)close(lock);
}

/* ------------------------------------------------------------ cleaning ---- */

/* Whether its process is at work on it: a predecessor that still serves.  One with this process's
 * own number was another, in a container say: this one has just begun. */
static bool is_in_use(const char *digits)
{
    char text[DIGITS / 2 + 1] = "";

    memcpy(text, digits, DIGITS / 2);
    pid_t pid = (pid_t)strtoul(text, NULL, 16);
    return pid > 0 && pid != getpid() && (kill(pid, 0) == 0 || errno == EPERM);
}

/* Whether it is a temporary of this file: .NAME.weir-DIGITS, and -old behind them if it is an
 * undo. */
static bool is_leftover(const char *entry, const char *name)
{
    size_t len = strlen(name);

    if (entry[0] != '.' || strncmp(entry + 1, name, len) != 0 ||
        strncmp(entry + 1 + len, ".weir-", 6) != 0)
        return false;
    const char *digits = entry + 1 + len + 6;
    size_t n = strspn(digits, "0123456789abcdef");
    return n == DIGITS && (digits[n] == '\0' || strcmp(digits + n, "-old") == 0) &&
           !is_in_use(digits);
}

size_t weir__store_clean(const char *path)
{
    size_t removed = 0;
    char *real = resolve(path);
    int fd = real ? open_folder(real) : -1;
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;

    if (folder == NULL && fd >= 0)
        close(fd);
    for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;)
        removed +=
            is_leftover(entry->d_name, real + name_at(real)) && unlinkat(fd, entry->d_name, 0) == 0;
    if (folder != NULL)
        closedir(folder);
    free(real);
    return removed;
}
