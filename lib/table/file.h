/* file.h -- a table's file, and its figures, as commands treat them. */
#ifndef WEIR_TABLE_FILE_H
#define WEIR_TABLE_FILE_H

#include "weir.h"

/* table.c -- the mapped bytes. */
struct weir__region {
    const unsigned char *first, *end;
};
struct weir__region weir__table_region(const struct weir_table *table);

/* What weir_table_stats finds without a search, which takes longer in larger tables: for asks that
 * anybody may make at any rate.  The rest is 0, or -1 where that stands for not known. */
void weir__table_figures(const struct weir_table *table, struct weir_table_stats *out);

/* file-users.c -- the other processes that use the file: " 12, 34"; "" if there are none, or the
 * system does not tell.  `locked`: only one that keeps all others out. */
struct weir__pids {
    char text[80];
    bool stopped; /* all of them are */
};
struct weir__pids weir__table_users(const char *path, bool locked);

/* wait-for-file.c -- how long one that keeps others out is waited for; `named`: it is, or was
 * before. */
int weir__locker_patience_ms(const struct weir__pids *locker, bool named, uint64_t file_bytes);

/* Locks the file among others.  Without `waits` it fails at once if one process has it alone; else
 * it waits for that to end, at most for 30 s, but not for a process that is stopped.  After a
 * second it says why, unless `say` is NULL. */
struct weir__patience {
    bool waits;
    void (*say)(const void *context, const char *why);
    const void *context;
};
int weir__file_share(int fd, const char *path, const struct weir__patience *patience,
                     struct weir_error *error);

/* What was taken over; `lost`: states that start fresh. */
struct weir__copied {
    int64_t limiters, states, bans, lost;
};

/* copy.c -- a copy of a table in use, as a new file. */
int weir__table_backup(struct weir_table *table, const char *path, struct weir__copied *out,
                       struct weir_error *error);

/* upgrade.c -- makes a file of format 3 or 5 one of this format. */
int weir__table_upgrade(const char *path, struct weir__copied *out, struct weir_error *error);

#endif
