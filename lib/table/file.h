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

#endif
