/* trie.h -- which of many prefixes does a value begin with? */
#ifndef WEIR_RULES_TRIE_H
#define WEIR_RULES_TRIE_H

#include "base/base.h"

#define WEIR__TRIE_NONE UINT32_MAX

struct weir__prefix {
    const char *text; /* must outlive the trie */
    size_t len;
    uint32_t value;
};

struct weir__trie;

/* The prefixes must be sorted by their bytes, and none twice. */
int weir__trie_create(struct weir__trie **out, const struct weir__prefix *sorted, size_t n, struct weir_error *error);
void weir__trie_destroy(struct weir__trie *trie);

/* Every prefix of the value in turn, shortest first; WEIR__TRIE_NONE when there are no more. */
struct weir__trie_walk {
    const struct weir__trie *trie;
    const char *text;
    size_t len, at;
    uint32_t node;
    bool begun; /* the empty prefix has been told */
};
static inline struct weir__trie_walk weir__trie_begin(const struct weir__trie *trie, const char *text, size_t len)
{
    return (struct weir__trie_walk){ trie, text, len, 0, 0, false };
}
uint32_t weir__trie_next(struct weir__trie_walk *walk);

#endif
