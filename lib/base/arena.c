/* arena.c -- memory that is handed out in small pieces and freed all at once.
 *
 * A rule file becomes a hundred thousand small things that live and die together.  An arena takes
 * memory in blocks and cuts pieces off the newest; it never frees a single piece, so its users need
 * no code to undo half of their work.
 */
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN     ((size_t)16)
#define BLOCK     ((size_t)1 << 16)
#define LARGE     (BLOCK / 4) /* a piece of this size gets a block of its own */
#define SIZE_MOST ((size_t)1 << 40)

struct weir__arena_block {
    struct weir__arena_block *next;
    _Alignas(16) char bytes[];
};

static struct weir__arena_block *new_block(struct weir__arena *arena, size_t size)
{
    struct weir__arena_block *block = calloc(1, sizeof(*block) + size);

    arena->failed = arena->failed || block == NULL;
    return block;
}

/* Behind the newest block, which may have room left for small pieces. */
static void *take_alone(struct weir__arena *arena, size_t bytes)
{
    struct weir__arena_block *block = new_block(arena, bytes);

    if (block == NULL)
        return NULL;
    if (arena->blocks != NULL) {
        block->next = arena->blocks->next;
        arena->blocks->next = block;
    } else {
        arena->blocks = block;
        arena->used = arena->size = bytes;
    }
    return block->bytes;
}

void *weir__arena_take(struct weir__arena *arena, size_t count, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MOST) {
        arena->failed = true;
        return NULL;
    }
    bytes = bytes ? (bytes + ALIGN - 1) & ~(ALIGN - 1) : ALIGN;
    if (bytes >= LARGE)
        return take_alone(arena, bytes);
    if (arena->blocks == NULL || arena->size - arena->used < bytes) {
        struct weir__arena_block *block = new_block(arena, BLOCK);
        if (block == NULL)
            return NULL;
        block->next = arena->blocks;
        arena->blocks = block;
        arena->size = BLOCK;
        arena->used = 0;
    }
    char *piece = arena->blocks->bytes + arena->used;
    arena->used += bytes;
    return piece;
}

char *weir__arena_copy(struct weir__arena *arena, const char *text, size_t len)
{
    char *copy = weir__arena_take(arena, len + 1, 1);

    if (copy != NULL && len > 0)
        memcpy(copy, text, len);
    return copy;
}

void weir__arena_clear(struct weir__arena *arena)
{
    for (struct weir__arena_block *block = arena->blocks, *next; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    *arena = (struct weir__arena){ 0 };
}
