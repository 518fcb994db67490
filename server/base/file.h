/* file.h -- a file that a command names, in memory. */
#ifndef WEIR_SERVER_FILE_H
#define WEIR_SERVER_FILE_H

#include <stddef.h>

/* A file, a pipe, or "-" for stdin; the caller frees it.  NULL with errno: EFBIG if it has more
 * than `most` bytes. */
char *weir__file_read(const char *path, size_t most, size_t *len);

#endif
