/* node.h -- a YAML text as a tree of values with their places.
 *
 * Nothing here knows about rules.  An alias is the node that it names, so a node may have several
 * parents; merge keys (<<) are resolved; keys are text, each once in a mapping.
 */
#ifndef WEIR_RULEFILE_NODE_H
#define WEIR_RULEFILE_NODE_H

#include "base/arena.h"
#include "rulefile/problem.h"

#define WEIR__NODES_DEPTH 32

enum weir__node_kind { WEIR__NODE_NOTHING, WEIR__NODE_TEXT, WEIR__NODE_LIST, WEIR__NODE_MAPPING };

struct weir__node {
    enum weir__node_kind kind;
    int32_t height; /* 0: nothing below it */
    size_t at;      /* its place in the text */
    size_t n;       /* text: bytes; list: items; mapping: pairs */
    union {
        const char *text;          /* ends in NUL, and has none before that */
        struct weir__node **items; /* a mapping's are key, value, key, value */
    };
    int64_t weight; /* nodes in it */
};

/* A tree that is being made. */
struct weir__tree {
    struct weir__arena *arena;
    struct weir__report *report;
    int64_t nodes; /* so far, and pairs that were merged */
};

/* yaml.c -- the tree.  NULL: the report says why, the arena has failed, or the text is empty. */
struct weir__node *weir__yaml_read(struct weir__arena *arena, struct weir__report *report);

/* yaml-mappings.c -- both fail by telling the report, or when there is no memory. */
struct weir__node *weir__node_create(struct weir__tree *tree, enum weir__node_kind kind, size_t at);

/* Gives a list or mapping its children (a mapping's: key, value, ...), and resolves a mapping's
 * <<. */
bool weir__node_fill(struct weir__tree *tree, struct weir__node *node, struct weir__node **children,
                     size_t n);

/* Where a byte of a scalar's text is in the file: exact if it is written literally, else the
 * scalar's beginning. */
size_t weir__node_place(const struct weir__report *report, const struct weir__node *node,
                        int column);

/* "text", "a list", "a mapping", "nothing" */
const char *weir__node_word(const struct weir__node *node);

#endif
