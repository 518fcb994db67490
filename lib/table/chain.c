/* chain.c -- the blocks of a long sliding log. */
#include "table/chain.h"

#include <stdlib.h>
#include <string.h>

static const struct weir__log_node *node_in(const struct weir__space *space, uint32_t block)
{
    return weir__block_is_valid(&space->slab, block, WEIR__NODE_BYTES)
               ? weir__block_at(&space->slab, block)
               : NULL;
}

/* More is damage. */
static uint64_t nodes_max(const struct weir__space *space)
{
    return space->slab.count * (WEIR__CHUNK / WEIR__NODE_BYTES);
}

static struct weir__chain_rest older_than(const struct weir__log_node *node, uint32_t stop)
{
    uint32_t number = weir__acquire(&node->number);

    return (struct weir__chain_rest){ number == stop ? 0 : weir__acquire(&node->links[0]), stop };
}

struct weir__chain_rest weir__chain_behind(const struct weir__space *space, uint64_t word)
{
    const struct weir__log_node *node =
        weir__chain_in(space, word) ? node_in(space, (uint32_t)word) : NULL;

    return node == NULL ? (struct weir__chain_rest){ 0, 0 }
                        : older_than(node, weir__acquire(&node->last));
}

struct weir__chain_rest weir__chain_before(const struct weir__space *space, uint64_t word,
                                           const struct weir__log_node *next, bool *keeps)
{
    const struct weir__log_node *node = weir__chain_in(space, word) ? node_in(space, (uint32_t)word)
                                                                    : NULL,
                                *tail;

    *keeps = node != NULL && next->number == weir__acquire(&node->number) + 1;
    if (node == NULL)
        return (struct weir__chain_rest){ 0, 0 };
    uint32_t last = weir__acquire(&node->last);
    if (!*keeps) /* it goes, and those that are newer than the next one; or all, if that is alone */
        return older_than(node, next->last == next->number ? last : next->number);
    tail = next->last == last ? NULL : node_in(space, next->tail_block);
    return tail == NULL ? (struct weir__chain_rest){ 0, 0 } : older_than(tail, last);
}

void weir__chain_give(struct weir__space *space, struct weir__chain_rest rest)
{
    const struct weir__log_node *node;

    for (uint64_t i = nodes_max(space); i > 0 && (node = node_in(space, rest.block)) != NULL; i--) {
        uint32_t block = rest.block;
        rest = older_than(node, rest.stop);
        weir__block_give(&space->slab, block, WEIR__NODE_BYTES);
    }
}

bool weir__chain_mark(struct weir__space *space, uint64_t word)
{
    const struct weir__log_node *node = weir__block_at(&space->slab, (uint32_t)word);

    for (uint32_t stop = node->last; node->number != stop;) {
        uint32_t block = node->links[0];
        if (!weir__slab_rebuild_mark(&space->slab, block, WEIR__NODE_BYTES))
            return false;
        node = weir__block_at(&space->slab, block);
    }
    return true;
}

/* ---------------------------------------------------------------- copy ---- */

/* The copy of one node; `blocks` are those of the older ones. */
static uint32_t copy_node(const struct weir__log_node *from, const struct weir__log_node *head,
                          struct weir__space *to, const uint32_t *blocks)
{
    uint32_t block = weir__block_take(&to->slab, WEIR__NODE_BYTES);
    struct weir__log_node node;

    if (block == 0)
        return 0;
    memset(&node, 0, sizeof(node));
    weir__copy_words(&node, from, weir__node_bytes(from));
    for (int level = 0; level < WEIR__NODE_LINKS; level++) {
        uint32_t i = weir__node_link(node.number, level) - head->tail;
        node.links[level] = i < node.number - head->tail ? blocks[i] : 0;
    }
    node.self = block;
    node.last = node.tail = head->tail;
    node.tail_block = node.number == head->tail ? block : blocks[0];
    memcpy(weir__block_at(&to->slab, block), &node, sizeof(node));
    return block;
}

/* The nodes from the tail on, oldest first.  False: that is no chain. */
static bool list_nodes(const struct weir_plan *plan, const struct weir__log_node *head,
                       const struct weir__log_node **nodes, uint32_t n)
{
    nodes[n - 1] = head;
    for (uint32_t i = n - 1; i-- > 0;) {
        nodes[i] = weir__node_at(plan, weir__acquire(&nodes[i + 1]->links[0]));
        if (weir__acquire(&nodes[i]->number) != head->tail + i)
            return false;
    }
    return true;
}

uint32_t weir__chain_copy(const struct weir_plan *plan, const struct weir__log_node *head,
                          struct weir__space *to)
{
    uint32_t n = head->number - head->tail + 1, done = 0;

    if (n == 0 || n > nodes_max(to))
        return 0;
    const struct weir__log_node **nodes = calloc(n, sizeof(*nodes));
    uint32_t *blocks = calloc(n, sizeof(*blocks)), block = 0;
    if (nodes != NULL && blocks != NULL && list_nodes(plan, head, nodes, n))
        while (done < n && (blocks[done] = copy_node(nodes[done], head, to, blocks)) != 0)
            done++;
    if (done == n)
        block = blocks[n - 1];
    for (uint32_t i = 0; i < done && block == 0; i++)
        weir__block_give(&to->slab, blocks[i], WEIR__NODE_BYTES);
    free(nodes);
    free(blocks);
    return block;
}
