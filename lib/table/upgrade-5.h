/* upgrade-5.h -- for upgrade.c: makes a table of format 5 one of this format. */
#ifndef WEIR_TABLE_UPGRADE_5_H
#define WEIR_TABLE_UPGRADE_5_H

#include "table/layout.h"

/* It was killed: only it can go on. */
bool weir__upgrade_5_is_under_way(const struct weir__header *h);
/* The caller has the file alone, and its magic is right. */
int weir__upgrade_5(int fd, uint64_t bytes, const char *path, struct weir_error *error);

#endif
