/* file.h -- a table's file as commands treat it. */
#ifndef WEIR_TABLE_FILE_H
#define WEIR_TABLE_FILE_H

#include "weir.h"

/* table.c -- the mapped bytes. */
struct weir__region {
    const unsigned char *first, *end;
};
struct weir__region weir__table_region(const struct weir_table *table);
/* The file is shorter than the table: touching the missing part is a SIGBUS. */
bool weir__table_is_cut(const struct weir_table *table);

/* What was taken over; `lost`: states that start fresh. */
struct weir__copied {
    int64_t limiters, states, bans, lost;
};

/* copy.c -- a copy of a table in use, as a new file. */
int weir__table_backup(struct weir_table *table, const char *path, struct weir__copied *out,
                       struct weir_error *error);

/* upgrade.c -- makes a file of format 3 one of this format. */
int weir__table_upgrade(const char *path, struct weir__copied *out, struct weir_error *error);

#endif
