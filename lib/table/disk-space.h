/* disk-space.h -- the disk space of a table's file. */
#ifndef WEIR_TABLE_DISK_SPACE_H
#define WEIR_TABLE_DISK_SPACE_H

#include "table/sizes.h"

/* For all parts that have it from the beginning. */
int weir__space_get(struct weir_table *table, const struct weir__sizes *sizes,
                    struct weir_error *error);

/* For all that is used, if the file has less than that: `has` bytes.  Nobody else is there. */
int weir__space_mend(struct weir_table *table, const struct weir__sizes *sizes, uint64_t has,
                     struct weir_error *error);

#endif
