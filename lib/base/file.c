/* file.c -- a whole file in memory; descriptors of files. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

enum { ROOM_LEAST = 4096 };

/* Room for the size that the file claims, and one byte more to see its end. */
static size_t first_room(int fd, size_t most)
{
    struct stat st;
    size_t size = fstat(fd, &st) == 0 && st.st_size > 0 ? (size_t)st.st_size : 0;

    return size > most ? 0 : size >= ROOM_LEAST ? size + 1 : ROOM_LEAST;
}

static char *give_up(char *text, int why)
{
    free(text);
    errno = why;
    return NULL;
}

char *weir__file_read_all(int fd, size_t most, size_t *len)
{
    size_t room = first_room(fd, most), used = 0;
    char *text = room ? malloc(room) : NULL;

    if (room == 0)
        return give_up(NULL, EFBIG);
    for (ssize_t got; text != NULL; used += (size_t)got) {
        if (used > most)
            return give_up(text, EFBIG);
        if (used == room) {
            char *grown = realloc(text, room *= 2);
            if (grown == NULL)
                return give_up(text, ENOMEM);
            text = grown;
        }
        got = read(fd, text + used, room - used);
        if (got == 0) {
            *len = used;
            return text;
        }
        if (got < 0 && errno != EINTR)
            return give_up(text, errno);
        got = got < 0 ? 0 : got;
    }
    return NULL;
}

/* Nobody waits for a process that might write into a pipe. */
int weir__file_load(const char *path, size_t most, char **out, size_t *len,
                    struct weir_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd < 0)
        return weir__fail_errno(error, "cannot open", path);
    bool odd = fstat(fd, &st) == 0 && !S_ISREG(st.st_mode);
    char *text = odd ? NULL : weir__file_read_all(fd, most, len);
    int code = text  ? WEIR_OK
               : odd ? weir__fail(error, WEIR_INVALID, "%s is not a regular file", path)
               : errno == EFBIG
                   ? weir__fail(error, WEIR_INVALID, "%s is too large: the most is %zu MiB", path,
                                most >> 20)
                   : weir__fail_errno(error, "cannot read", path);
    close(fd);
    if (text)
        *out = text;
    return code;
}

/* In a process that was started with one of them closed, the next file gets its number. */
int weir__file_apart(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int apart = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), why = errno;
    close(fd);
    errno = why;
    return apart;
}
