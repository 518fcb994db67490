/* file.c -- a file that a command names, in memory. */
#include "server/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

char *weir__file_read(const char *path, size_t most, size_t *len)
{
    bool standard = strcmp(path, "-") == 0;
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    char *text = fd < 0 ? NULL : weir__file_read_all(fd, most, len);
    int why = errno;

    if (fd >= 0 && !standard)
        close(fd);
    errno = why;
    return text;
}
