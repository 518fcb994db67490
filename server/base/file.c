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

bool weir__output_open(struct weir__output *out, const char *path)
{
    int how = O_WRONLY | O_CREAT | O_CLOEXEC, fd = open(path, how | O_EXCL, 0666);

    out->made = fd >= 0;
    if (fd < 0 && errno == EEXIST)
        fd = open(path, how, 0666);
    out->path = path;
    out->file = fd < 0 ? NULL : fdopen(fd, "w");
    if (fd >= 0 && out->file == NULL)
        close(fd);
    return out->file != NULL;
}

bool weir__output_close(struct weir__output *out, bool mistake)
{
    if (out->file == NULL)
        return true;
    bool nothing = ftell(out->file) <= 0, good = !ferror(out->file);

    good = fclose(out->file) == 0 && good;
    out->file = NULL;
    if (mistake && nothing && out->made)
        unlink(out->path);
    return good;
}

bool weir__file_empty(FILE *file)
{
    struct stat st;

    return fstat(fileno(file), &st) != 0 || !S_ISREG(st.st_mode) || ftruncate(fileno(file), 0) == 0;
}
