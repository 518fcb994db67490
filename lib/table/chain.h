/* chain.h -- the blocks of a long sliding log (algo/log-chain.h).
 *
 * A slot names the newest node, and a bit beside the reference says that it is one.  The slot's
 * hand trades that node; the others go back to the slab here, by the process whose change left them
 * behind, once that is committed: nobody can reach them then.  If it is killed before, they are
 * lost until the next rebuild.
 */
#ifndef WEIR_TABLE_CHAIN_H
#define WEIR_TABLE_CHAIN_H

#include "algo/log-chain.h"
#include "table/table.h"

/* In a slot's word that names a block. */
static inline uint64_t weir__chain_bit(const struct weir__space *space)
{
    return (uint64_t)1 << (space->narrow ? 62 : 63);
}

static inline bool weir__chain_in(const struct weir__space *space, uint64_t word)
{
    return (word & weir__chain_bit(space)) != 0 && (uint32_t)word != 0;
}

/* Nodes to be given back: from `block` on, older and older, to the one with this number. */
struct weir__chain_rest {
    uint32_t block; /* 0: none */
    uint32_t stop;
};

/* All but the newest node, if a slot's word names a chain. */
struct weir__chain_rest weir__chain_behind(const struct weir__space *space, uint64_t word);

/* The newest node is about to be replaced by `next`.  *keeps: it stays in the chain. */
struct weir__chain_rest weir__chain_before(const struct weir__space *space, uint64_t word,
                                           const struct weir__log_node *next, bool *keeps);

void weir__chain_give(struct weir__space *space, struct weir__chain_rest rest);

/* For a rebuild: marks all nodes but the newest.  False: damage. */
bool weir__chain_mark(struct weir__space *space, uint64_t word);

/* Copies a log to another table's slab, where nobody else is: its newest node is `head`, and the
 * others lie in the plan's slab.  Returns the newest node's block; 0: there is no room, or the log
 * has changed. */
uint32_t weir__chain_copy(const struct weir_plan *plan, const struct weir__log_node *head,
                          struct weir__space *to);

#endif
