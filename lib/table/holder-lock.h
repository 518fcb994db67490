/* holder-lock.h -- a holder's lock on its place: a byte of the table's file.
 *
 * The kernel takes it away when the process ends, and when it goes on as another program: the
 * descriptor is closed by exec.  That is known in every container that sees the file, where pids
 * mean nothing.
 */
#ifndef WEIR_TABLE_HOLDER_LOCK_H
#define WEIR_TABLE_HOLDER_LOCK_H

#include "table/table.h"

enum weir__lock {
    WEIR__LOCK_OURS,
    WEIR__LOCK_OTHERS,
    WEIR__LOCK_UNKNOWN, /* the file cannot be locked here */
};

/* Locks belong to an open file, which a child shares with its parent by its descriptor and by its
 * memory: opens the file anew, for a process that has not done so. */
void weir__holder_lock_open(struct weir_table *table);

/* Tries to get it. */
enum weir__lock weir__holder_lock_take(const struct weir_table *table, uint32_t place);
void weir__holder_lock_give(const struct weir_table *table, uint32_t place);

/* Whether it is certain that no other open file has it. */
bool weir__holder_lock_is_free(const struct weir_table *table, uint32_t place);

#endif
