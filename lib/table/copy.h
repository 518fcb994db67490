/* copy.h -- a new table file that takes over what another one has.  copy.c says how. */
#ifndef WEIR_TABLE_COPY_H
#define WEIR_TABLE_COPY_H

#include <sys/stat.h>

#include "table/file.h"
#include "table/table.h"

struct weir__copy {
    struct weir_table *to;
    char path[4096];             /* while it is being made: its name and ".new" */
    struct weir_limiter **by_id; /* the new limiter of each old id; NULL until it is met */
    struct weir__copied counts;
};

/* `like` is a header with the sizes, secrets, clock and switches that the new table gets.  `owner`:
 * of the new file; NULL: the caller's. */
int weir__copy_begin(struct weir__copy *copy, const char *path, const struct weir__header *like,
                     const struct stat *owner, struct weir_error *error);
/* The limiter of an old id, under its name and its salt, so that keys have the same hash.  NULL: it
 * cannot be made. */
struct weir_limiter *weir__copy_limiter(struct weir__copy *copy, const char *name,
                                        const struct weir_limit *limit, uint64_t salt);
/* A slot's pair under the limiter's limit, into the same slot. */
void weir__copy_put(struct weir__copy *copy, struct weir_limiter *limiter, uint64_t slot,
                    uint64_t tag, const uint64_t pair[2]);
/* Of a limit that comes with the ask. */
void weir__copy_put_carried(struct weir__copy *copy, uint64_t slot, uint64_t tag, uint32_t version,
                            const uint64_t state[2]);
void weir__copy_ban(struct weir__copy *copy, uint64_t tag, const struct weir__ban_record *record);
/* Flushes the file and gives it its name; `replaces`: even if there is one.  Counts the bans that
 * are in force.  After an error (code) it removes the file, and returns the code. */
int weir__copy_end(struct weir__copy *copy, const char *path, bool replaces, int code,
                   struct weir_error *error);

#endif
