/* fork.h -- a child goes on with its parent's tables; fork.c says how. */
#ifndef WEIR_TABLE_FORK_H
#define WEIR_TABLE_FORK_H

#include "table/table.h"

void weir__fork_watch(struct weir_table *table);
void weir__fork_forget(struct weir_table *table);

#endif
