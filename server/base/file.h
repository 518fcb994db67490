/* file.h -- files that a command names: read whole, or written. */
#ifndef WEIR_SERVER_BASE_FILE_H
#define WEIR_SERVER_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A file, a pipe, or "-" for stdin; the caller frees it.  NULL with errno: EFBIG if it has more
 * than `most` bytes. */
char *weir__file_read(const char *path, size_t most, size_t *len);

/* A file to write, opened early, so that a wrong name fails before the work.  Its old text stays
 * until weir__file_empty, so that a mistake does not cost the last report. */
struct weir__output {
    const char *path;
    FILE *file; /* NULL: none is wanted */
    bool made;  /* there was no such file */
};
bool weir__output_open(struct weir__output *out, const char *path); /* false: errno */
bool weir__file_empty(FILE *file);
/* False: it could not be written.  A new file in which a mistake left nothing goes away again. */
bool weir__output_close(struct weir__output *out, bool mistake);

#endif
