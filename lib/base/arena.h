/* arena.h -- memory that is handed out in small pieces and freed all at once. */
#ifndef WEIR_BASE_ARENA_H
#define WEIR_BASE_ARENA_H

#include "base/base.h"

struct weir__arena {
    struct weir__arena_block *blocks; /* the newest first */
    size_t used, size;                /* of the newest */
    bool failed;                      /* memory ran out once; stays set */
};

/* arena.c -- zeroed, aligned for anything; NULL: no memory. */
void *weir__arena_take(struct weir__arena *arena, size_t count, size_t size);
/* Adds a NUL. */
char *weir__arena_copy(struct weir__arena *arena, const char *text, size_t len);
void weir__arena_clear(struct weir__arena *arena);

#endif
