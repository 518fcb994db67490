/* holder-lock.c -- a holder's lock on its place.
 *
 * Open file description locks: other open files of the same file, also in this process, do not
 * disturb them, as they would POSIX's record locks.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "table/holder-lock.h"

/* A daemon may have closed all its descriptors, and the number be another file's now. */
static bool is_table(const struct weir_table *table, int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_ino == table->inode && st.st_dev == table->device;
}

void weir__holder_lock_open(struct weir_table *table)
{
    char path[32];

    if (table->opened_by == getpid() || !is_table(table, table->fd))
        return;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", table->fd);
    int fd = weir__file_apart(open(path, O_RDWR | O_CLOEXEC));
    if (fd < 0)
        return;
    if (is_table(table, fd) && flock(fd, LOCK_SH | LOCK_NB) == 0 &&
        dup3(fd, table->fd, O_CLOEXEC) >= 0)
        table->opened_by = getpid();
    close(fd);
}

static int lock(const struct weir_table *table, uint32_t place, int command, struct flock *lock)
{
    lock->l_whence = SEEK_SET;
    lock->l_start = (off_t)(WEIR__HOLDERS_AT + place * sizeof(struct weir__holder));
    lock->l_len = 1;
    if (table->opened_by != getpid() || !is_table(table, table->fd)) {
        errno = EBADF;
        return -1;
    }
    return fcntl(table->fd, command, lock);
}

enum weir__lock weir__holder_lock_take(const struct weir_table *table, uint32_t place)
{
    struct flock wanted = { .l_type = F_WRLCK };

    return lock(table, place, F_OFD_SETLK, &wanted) == 0 ? WEIR__LOCK_OURS
           : errno == EAGAIN || errno == EACCES          ? WEIR__LOCK_OTHERS
                                                         : WEIR__LOCK_UNKNOWN;
}

void weir__holder_lock_give(const struct weir_table *table, uint32_t place)
{
    struct flock none = { .l_type = F_UNLCK };

    (void)lock(table, place, F_OFD_SETLK, &none);
}

bool weir__holder_lock_is_free(const struct weir_table *table, uint32_t place)
{
    struct flock there = { .l_type = F_WRLCK };

    return lock(table, place, F_OFD_GETLK, &there) == 0 && there.l_type == F_UNLCK;
}
