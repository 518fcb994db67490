/* trie.h -- which of many prefixes does a value begin with? */
#ifndef WEIR_MATCH_TRIE_H
#define WEIR_MATCH_TRIE_H

#include "base/base.h"

#define WEIR__TRIE_NONE UINT32_MAX

struct weir__prefix {
    const char *text; /* must outlive the trie */
    size_t len;
    uint32_t value;
};

struct weir__trie;

/* The prefixes must be sorted by their bytes, and none twice. */
int weir__trie_create(struct weir__trie **out, const struct weir__prefix *sorted, size_t n,
                      struct weir_error *error);
void weir__trie_destroy(struct weir__trie *trie);

#define WEIR__TRIE_FOUND 64

/* The values of all prefixes that the text begins with, shortest first, without the first `skip`;
 * returns their number.  If that is WEIR__TRIE_FOUND there may be more: ask again, skipping
 * those. */
size_t weir__trie_find(const struct weir__trie *trie, const char *text, size_t len, size_t skip,
                       uint32_t found[WEIR__TRIE_FOUND]);

#endif
