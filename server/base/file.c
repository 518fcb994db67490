/* file.c -- files that a command names: read whole, or written. */
#include "server/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
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

FILE *weir__file_open(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

    if (fd >= 0 && file == NULL)
        close(fd);
    return file;
}

bool weir__file_empty(FILE *file)
{
    struct stat st;

    return fstat(fileno(file), &st) != 0 || !S_ISREG(st.st_mode) || ftruncate(fileno(file), 0) == 0;
}
