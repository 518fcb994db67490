/* file.h -- files that a command names: read whole, or written. */
#ifndef WEIR_SERVER_FILE_H
#define WEIR_SERVER_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A file, a pipe, or "-" for stdin; the caller frees it.  NULL with errno: EFBIG if it has more
 * than `most` bytes. */
char *weir__file_read(const char *path, size_t most, size_t *len);

/* Opens a file to write: early, so that a wrong name fails before the work.  Its old text stays
 * until weir__file_empty, so that a mistake does not cost the last report. */
FILE *weir__file_open(const char *path);
bool weir__file_empty(FILE *file);

#endif
