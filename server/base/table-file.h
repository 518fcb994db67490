/* table-file.h -- a table's file as other processes have it: who uses it, who has locked it. */
#ifndef WEIR_SERVER_TABLE_FILE_H
#define WEIR_SERVER_TABLE_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* The other processes that use the file: " 12, 34"; "" if there are none, or the system does not
 * tell.  `locked`: only one that keeps all others out. */
struct weir__pids {
    char text[80];
};
struct weir__pids weir__table_users(const char *path, bool locked);

/* A file that somebody has locked alone can be used by nobody else.  Waits for that to end, and
 * says so after a second; without `waits` it complains at once and returns false. */
bool weir__table_await(const char *command, const char *path, bool waits);

int64_t weir__table_disk_bytes(const char *path); /* 0: there is no such file */

#endif
