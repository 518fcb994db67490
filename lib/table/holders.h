/* holders.h -- the processes that are attached, as far as others must know when one has died: it
 * may leave a hand or permits behind. */
#ifndef WEIR_TABLE_HOLDERS_H
#define WEIR_TABLE_HOLDERS_H

#include "table/table.h"

/* This process's place among the holders; 0: it has none, because all are taken or the table is
 * private. */
uint32_t weir__holder_me(struct weir_table *table);
void weir__holder_leave(struct weir_table *table);

/* Frees the places of processes that have died, and what their hands held. */
void weir__holders_bury(struct weir_table *table, weir_time now);

#endif
