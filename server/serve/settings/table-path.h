/* table-path.h -- the default place of the table file. */
#ifndef WEIR_SERVER_SERVE_SETTINGS_TABLE_PATH_H
#define WEIR_SERVER_SERVE_SETTINGS_TABLE_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* From the environment; false: it names no place. */
bool weir__table_path(char *out, size_t size);

/* Makes the folders above the file, for this user alone.  False, after a complaint. */
bool weir__table_path_make(const char *path);

#endif
