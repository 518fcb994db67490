/* arena.h -- memory that is given out in small pieces and goes back all at once. */
#ifndef WEIR_BASE_ARENA_H
#define WEIR_BASE_ARENA_H

#include "base/base.h"

struct weir__arena {
    struct weir__arena_block *blocks; /* the newest first */
    size_t used, size;                /* of the newest */
    bool failed;                      /* a piece could not be had; stays set */
};

/* arena.c -- zeros, aligned for anything; NULL when there is no memory. */
void *weir__arena_take(struct weir__arena *arena, size_t count, size_t size);
/* With a NUL behind it. */
char *weir__arena_copy(struct weir__arena *arena, const char *text, size_t len);
void weir__arena_clear(struct weir__arena *arena);

#endif
