/* file.h -- a whole file in memory. */
#ifndef WEIR_SERVER_FILE_H
#define WEIR_SERVER_FILE_H

#include <stddef.h>

/* Of a file, a pipe, or "-", which is stdin; the caller frees it.  NULL, with errno; EFBIG if it
 * has more than `most` bytes. */
char *weir__file_read(const char *path, size_t most, size_t *len);

#endif
