/* sizes.h -- where the parts of a table lie. */
#ifndef WEIR_TABLE_SIZES_H
#define WEIR_TABLE_SIZES_H

#include "table/table.h"

/* Where the parts of a space lie. */
struct weir__space_sizes {
    uint64_t groups, slot_size, chunks; /* chosen; the rest follows */
    uint64_t rooms_at, slots_at, map_at, slab_at, end;
};

struct weir__sizes {
    uint64_t limiters_max, guards_max;
    uint64_t users_at, guards_at;
    struct weir__space_sizes names, bans, keys;
};

/* From the options, or from a header: false if it does not agree with itself, or with the file. */
int weir__sizes_choose(const struct weir_table_options *options, struct weir__sizes *out,
                       struct weir_error *error);
bool weir__sizes_fit(const struct weir__header *header, uint64_t file_bytes,
                     struct weir__sizes *out);

#endif
