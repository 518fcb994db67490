/* log-chain.h -- a long sliding log in a table: a chain of nodes, each a block of the slab.
 *
 * A node is never changed once it is in the table.  A change copies the newest node and puts the
 * copy in its place; when that is full, a new one begins, and the full one stays as it is.  So a
 * change costs the same however long the log is.  log-chain.c says how instants are found.
 */
#ifndef WEIR_ALGO_LOG_CHAIN_H
#define WEIR_ALGO_LOG_CHAIN_H

#include "algo/algo.h"

#define WEIR__NODE_BYTES 512
#define WEIR__NODE_LINKS 6
#define WEIR__NODE_ROOM  428 /* bytes for entries */
#define WEIR__LOG_SHORT  53  /* instants of 8 bytes that fit a node: such a log needs no chain */

/* What every log begins with. */
struct weir__log_head {
    weir_time seen;   /* the latest moment this key has seen */
    weir_time newest; /* the newest stamp; ahead of `seen` if asks were promised a later turn */
    uint32_t first;   /* the oldest unit: its place in the ring; in a chain its number */
    uint32_t used;    /* how many units there are */
};

struct weir__log_node {
    struct weir__log_head head;       /* as of when the node was the newest */
    uint32_t self;                    /* the node's own block; 0: not in the table yet */
    uint32_t number;                  /* nodes are numbered, one by one */
    uint32_t last;                    /* number of the oldest node that is not given back */
    uint32_t tail, tail_block;        /* the node that has the oldest unit */
    uint32_t base;                    /* number of the node's first unit */
    weir_time start;                  /* of its first entry */
    uint32_t links[WEIR__NODE_LINKS]; /* the next older node whose number is a multiple of 8^i */
    uint16_t n;                       /* entries */
    unsigned char size, width;        /* bytes of an entry's time and of its count */
    /* time since `start`; units up to and with this entry, width 0: one each */
    unsigned char entries[WEIR__NODE_ROOM];
};

_Static_assert(sizeof(struct weir__log_node) == WEIR__NODE_BYTES, "a node fills its block");

/* Makes the plan one for chains in this slab, if its logs are long. */
void weir__log_chain(struct weir_plan *plan, const void *slab, uint64_t bytes);

/* The bytes of a node that mean anything, whole words. */
size_t weir__node_bytes(const struct weir__log_node *node);
/* The node in a block of the plan's slab; zeros if there cannot be one. */
const struct weir__log_node *weir__node_at(const struct weir_plan *plan, uint32_t block);
/* Which older node a node's link leads to. */
static inline uint32_t weir__node_link(uint32_t number, int level)
{
    return (number - 1) >> (3 * level) << (3 * level);
}

/* Of a log with this newest node: units that are not after `edge`; the i-th unit's time, 0 the
 * oldest. */
int64_t weir__chain_expired(const struct weir_plan *plan, const struct weir__log_node *s,
                            weir_time edge);
weir_time weir__chain_stamp(const struct weir_plan *plan, const struct weir__log_node *s,
                            int64_t i);
/* Forgets the `drop` oldest units, and adds some at t. */
void weir__chain_append(const struct weir_plan *plan, struct weir__log_node *s, int64_t drop,
                        weir_time t, int64_t units);
/* Keeps the `left` oldest units. */
void weir__chain_cut(const struct weir_plan *plan, struct weir__log_node *s, int64_t left);

#endif
