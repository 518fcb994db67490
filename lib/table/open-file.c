/* open-file.c -- a table's file: found or made, whose it is, and locked among others.
 *
 * A file is locked (flock) shared by every process that is attached.  A process that gets it alone
 * knows that nobody else is there: only then is a new table laid out, or an old one put in order.
 */
#include "table/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "table/table.h"

/* An empty file, or one whose maker died before the header was there.  Nothing else may be written
 * over. */
static bool is_unfinished(int fd, uint64_t bytes)
{
    char magic[WEIR__MAGIC_SIZE];

    return bytes == 0 || (pread(fd, magic, sizeof(magic), 0) == WEIR__MAGIC_SIZE &&
                          memcmp(magic, WEIR__MAKING, sizeof(magic)) == 0);
}

/* Opens the file; makes it if there are options to make it by. */
static int open_or_make(const char *path, const struct weir_table_options *options, bool *made)
{
    int fd = weir__file_apart(open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW));

    *made = fd < 0 && errno == ENOENT && options != NULL;
    if (!*made)
        return fd;
    return weir__file_apart(open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_CREAT | O_EXCL, 0600));
}

/* Owner first, so that no other group gets the mode meant for this one. */
static int own_file(int fd, const struct weir_table_options *options, struct weir_error *error)
{
    unsigned owner = options->owner, group = options->group,
             mode = options->mode ? options->mode
                    : group       ? 0660
                                  : 0600;

    if ((owner || group) &&
        fchown(fd, owner ? (uid_t)owner : (uid_t)-1, group ? (gid_t)group : (gid_t)-1) != 0)
        return weir__fail(error, WEIR_SYSTEM, "cannot give '%s' to %s %u: %s", options->path,
                          owner ? "user" : "group", owner ? owner : group, strerror(errno));
    (void)fchmod(fd, mode); /* whatever the umask */
    return WEIR_OK;
}

/* Somebody else's file that anybody can write may be a trap: its maker knows the secrets, and can
 * cut it under our feet. */
static int check_file(const struct stat *st, const char *path, struct weir_error *error)
{
    if (!S_ISREG(st->st_mode))
        return weir__fail(error, WEIR_INVALID, "'%s' is not a regular file", path);
    if (st->st_uid != geteuid() && st->st_uid != 0 && (st->st_mode & S_IWOTH))
        return weir__fail(
            error, WEIR_INVALID,
            "'%s' belongs to another user and anybody can write it; use a file of your own", path);
    return WEIR_OK;
}

#define AGAIN 1 /* another process is just making the file, or has just given up: try again */

static int try_file(struct weir_table *table, const char *path,
                    const struct weir_table_options *options, struct weir_error *error)
{
    static const struct weir__patience patience = { .waits = true };
    bool made, alone;
    struct stat st;

    table->fd = open_or_make(path, options, &made);
    if (table->fd < 0)
        return errno == EEXIST
                   ? AGAIN
                   : weir__fail_errno(error,
                                      errno == ELOOP ? "will not follow the symbolic link"
                                                     : "cannot open table",
                                      path);
    int code = made ? own_file(table->fd, options, error) : WEIR_OK;
    if (code) {
        unlink(path);
        return code;
    }
    alone = flock(table->fd, LOCK_EX | LOCK_NB) == 0;
    if (!alone && (code = weir__file_share(table->fd, path, &patience, error)))
        return code;
    if (fstat(table->fd, &st) != 0)
        return weir__fail_errno(error, "cannot look at", path);
    if ((code = check_file(&st, path, error)))
        return code;
    table->inode = st.st_ino;
    table->device = st.st_dev;
    bool unfinished = is_unfinished(table->fd, (uint64_t)st.st_size);
    if (options && (st.st_nlink == 0 || (unfinished && !alone)))
        return AGAIN;
    if (unfinished && !options)
        return weir__fail(error, WEIR_CORRUPT,
                          "'%s' is empty or was never finished; create it, or remove it", path);
    code = unfinished ? weir__table_lay_out(table, options, error)
                      : weir__table_take_up(table, path, &st, alone, error);
    if (code && made && alone)
        unlink(path);
    else if (code && unfinished) /* what it has got already is of no use to anybody */
        (void)!ftruncate(table->fd, 0);
    return code == WEIR_OK && alone ? weir__file_share(table->fd, path, &patience, error) : code;
}

int weir__table_open_file(struct weir_table *table, const char *path,
                          const struct weir_table_options *options, struct weir_error *error)
{
    for (int tries = 0; tries < 1000; tries++) {
        int code = try_file(table, path, options, error);
        if (code != AGAIN)
            return code;
        if (table->fd >= 0)
            close(table->fd);
        table->fd = -1;
        weir__clock_sleep(WEIR_MILLISECOND);
    }
    return weir__fail(error, WEIR_CORRUPT,
                      "'%s' is empty or was never finished, and somebody holds it; remove it",
                      path);
}

bool weir_table_is_cut(const struct weir_table *table)
{
    struct stat st;

    return table->fd >= 0 && fstat(table->fd, &st) == 0 && (uint64_t)st.st_size < table->bytes;
}
