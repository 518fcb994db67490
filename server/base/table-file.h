/* table-file.h -- a table's file as other processes have it: who uses it, who has locked it. */
#ifndef WEIR_SERVER_BASE_TABLE_FILE_H
#define WEIR_SERVER_BASE_TABLE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "table/file.h"
#include "weir.h"

/* A file that somebody has locked alone can be used by nobody else.  Waits for that to end, at most
 * for 30 s, and says so after a second; not for a process that is stopped.  Without `waits` it
 * fails at once. */
int weir__table_await(const char *command, const char *path, bool waits, struct weir_error *error);
/* A mapped file that another program cuts is a SIGBUS for those that touch the missing part.  From
 * here on it ends the process with a sentence and exit code 2.  One table for each process. */
void weir__table_guard_bytes(const char *command, const char *path, const struct weir_table *table);
/* Ends the process so if the file has become shorter. */
void weir__table_check_bytes(const struct weir_table *table);
/* weir_table_attach, for a command: waits so, and guards the bytes. */
int weir__table_attach(const char *command, struct weir_table **out, const char *path,
                       struct weir_error *error);
/* Complains: the table has no guard of this name. */
void weir__table_no_guard(const char *command, struct weir_table *table, const char *name);

/* Owner and group of a new table: names or numbers; NULL or "": as the system gives them. */
struct weir__file_owner {
    const char *owner, *group;
};
int weir__table_owned(struct weir_table_options *options, const struct weir__file_owner *by,
                      struct weir_error *error);

int64_t weir__table_disk_bytes(const char *path); /* 0: there is no such file */

#endif
