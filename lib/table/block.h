/* block.h -- pieces of the slab, of any size, taken and given back without a lock.
 *
 * The slab is chunks of 64 KiB.  A chunk is free, or holds blocks of one size (64 bytes << class),
 * or is part of a run: one block of whole chunks.  A map beside the slab says which.
 *
 *     map     room, top    1 line        times that a chunk came to have room; chunks ever in use
 *             words        8 each        kind (8 bits), used (24), generation (32)
 *             bitmaps      128 each      the blocks of the chunk that are taken
 *     slab    chunks       64 KiB each
 *
 * A map of zeros is a slab that is free.  Threads and processes use it at the same time; any of
 * them may be stopped or killed anywhere.  Nobody waits for another.  A kill costs, until the next
 * rebuild:
 *
 *     between reserving and claiming a place, or the reverse      room for one block
 *     while the block is not, or no longer, noted by its user     that block
 *     while a chunk is prepared or trimmed                        that chunk
 *     while a run is taken or given back                          the run's chunks
 *
 * A stop costs the same, and only until the process goes on.
 */
#ifndef WEIR_TABLE_BLOCK_H
#define WEIR_TABLE_BLOCK_H

#include "base/atomic.h"

#define WEIR__CHUNK         ((uint64_t)64 << 10)
#define WEIR__CHUNKS_MAX    (((uint64_t)1 << 22) - 1) /* so that 32 bits name every block */
#define WEIR__BLOCK_LEAST   ((uint64_t)64)            /* bytes */
#define WEIR__BLOCK_CLASSES 10                        /* 64 bytes to 32 KiB; larger ones are runs */

/* The slab as one process sees it. */
struct weir__slab {
    uint64_t count;       /* chunks, at most WEIR__CHUNKS_MAX */
    unsigned char *bytes; /* begins on a page, */
    uint64_t file_at;     /* also in the file */
    int fd;               /* below 0: memory of this process and its children */
    uint64_t kept;        /* chunks that are left to sizes that have few; */
    uint64_t from_guests; /* that are kept from guests, once others use the slab; atomic */
    int64_t *no_disk;     /* counts blocks wanted while the disk was full; NULL: nobody does */

    /* weir__slab_open sets the rest: the map, */
    uint64_t *room, *top, *words;
    uint64_t (*bitmaps)[16];

    /* and hints by class: the chunk to look at first; 1 + *room when no chunk had any. */
    uint64_t first[WEIR__BLOCK_CLASSES + 1];
    uint64_t none[2][WEIR__BLOCK_CLASSES]; /* [1]: for guests */
};

struct weir__slab_stats {
    uint64_t bytes;     /* in blocks that are taken, rounded up to their sizes */
    uint64_t chunks;    /* not free */
    uint64_t untrimmed; /* free, but still with their disk space */
};

uint64_t weir__slab_map_bytes(uint64_t count); /* whole cache lines */

void weir__slab_open(struct weir__slab *slab, void *map); /* which begins on a cache line */

/* A block of at least `bytes` bytes with anything in it, at a multiple of its size (a run: of
 * 64 KiB).  0: none is left just now, or the disk is full. */
uint32_t weir__block_take(struct weir__slab *slab, size_t bytes);
/* The same for a limit that a client brought. */
uint32_t weir__block_take_guest(struct weir__slab *slab, size_t bytes);

/* Whether there is one. */
bool weir__slab_has_room(const struct weir__slab *slab, size_t bytes);

/* Whether any was ever taken. */
bool weir__slab_is_used(const struct weir__slab *slab);
/* Whether any of this size is taken. */
bool weir__slab_has_blocks(const struct weir__slab *slab, size_t bytes);

/* `bytes` as it was taken.  Ignores a block that is not valid or not taken. */
void weir__block_give(struct weir__slab *slab, uint32_t block, size_t bytes);

/* Whether a reference can be followed: inside the slab, and its chunk holds blocks of this size. */
bool weir__block_is_valid(const struct weir__slab *slab, uint32_t block, size_t bytes);

/* The bytes of the block that a reference names; 0: it cannot be followed. */
size_t weir__block_bytes(const struct weir__slab *slab, uint32_t block);
size_t weir__block_round(size_t bytes); /* up to the size of a block */

static inline void *weir__block_at(const struct weir__slab *slab, uint32_t block)
{
    return slab->bytes + (block - 1) * WEIR__BLOCK_LEAST;
}

/* The next chunks that have disk space, side by side: *from is the first of them, at `at` or behind
 * it.  Returns how many; 0: none. */
uint64_t weir__slab_furnished(const struct weir__slab *slab, uint64_t at, uint64_t *from);

/* Releases the disk space or memory of at most `most` free chunks; returns how many it was. */
uint64_t weir__slab_trim(struct weir__slab *slab, uint64_t most);

/* Only while nobody else uses the slab: begin, mark every block in use, end; the rest is free.
 * Undoes what kills cost and what damage did.  A rebuild that did not reach its end is begun again.
 * mark: false if the block cannot be: outside, or over another.  end: false if the disk has no
 * space for the blocks in use. */
void weir__slab_rebuild_begin(struct weir__slab *slab);
bool weir__slab_rebuild_mark(struct weir__slab *slab, uint32_t block, size_t bytes);
bool weir__slab_rebuild_end(struct weir__slab *slab);

struct weir__slab_stats weir__slab_stats(const struct weir__slab *slab);

#endif
