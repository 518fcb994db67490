/* trie.c -- which of many prefixes does a value begin with?
 *
 * A radix tree: a node is a run of bytes, and its children lie side by side, sorted by their first
 * byte.  A walk compares the value's bytes once, whatever the number of prefixes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "match/trie.h"

struct node {
    const char *label; /* the bytes from the parent's end to here */
    uint32_t len;
    uint32_t value; /* of the prefix that ends here, or WEIR__TRIE_NONE */
    uint32_t first_child;
    uint32_t children;
};

struct weir__trie {
    struct node *nodes;
    /* The first byte of each node's label, so that siblings are searched in one line. */
    unsigned char *firsts;
    uint32_t n;
};

/* Bytes that all of these share after the first `from`.  They are sorted, so the first and the last
 * decide. */
static size_t common(const struct weir__prefix *p, size_t n, size_t from)
{
    size_t len = from;

    while (len < p[0].len && len < p[n - 1].len && p[0].text[len] == p[n - 1].text[len])
        len++;
    return len - from;
}

/* How many, from the first on, have the same next byte. */
static size_t same_byte(const struct weir__prefix *p, size_t n, size_t at)
{
    size_t i = 1;

    while (i < n && p[i].text[at] == p[0].text[at])
        i++;
    return i;
}

static size_t count_children(const struct weir__prefix *p, size_t n, size_t at)
{
    size_t children = 0;

    for (size_t i = 0; i < n; children++)
        i += same_byte(p + i, n - i, at);
    return children;
}

/* Fills node `self` from prefixes that share their first `from` bytes.  A prefix makes at most two
 * nodes, so there is room. */
static void fill(struct weir__trie *t, uint32_t self, const struct weir__prefix *p, size_t n,
                 size_t from)
{
    size_t len = self == 0 ? 0 : common(p, n, from), end = from + len;
    struct node *node = &t->nodes[self];

    *node = (struct node){ p[0].text + from, (uint32_t)len, WEIR__TRIE_NONE, t->n, 0 };
    t->firsts[self] = len > 0 ? (unsigned char)p[0].text[from] : 0;
    if (p[0].len == end) { /* the shortest sorts first */
        node->value = p[0].value;
        p++;
        n--;
    }
    if (n == 0)
        return;
    node->children = (uint32_t)count_children(p, n, end);
    t->n += node->children;
    for (uint32_t child = node->first_child; n > 0; child++) {
        size_t same = same_byte(p, n, end);
        fill(t, child, p, same, end);
        p += same;
        n -= same;
    }
}

int weir__trie_create(struct weir__trie **out, const struct weir__prefix *sorted, size_t n,
                      struct weir_error *error)
{
    struct weir__trie *t = calloc(1, sizeof(*t));

    if (t == NULL || (t->nodes = calloc(2 * n + 1, sizeof(*t->nodes))) == NULL ||
        (t->firsts = calloc(2 * n + 1, 1)) == NULL) {
        weir__trie_destroy(t);
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for the rules");
    }
    t->n = 1;
    if (n > 0)
        fill(t, 0, sorted, n, 0);
    else
        t->nodes[0].value = WEIR__TRIE_NONE;
    *out = t;
    return WEIR_OK;
}

void weir__trie_destroy(struct weir__trie *trie)
{
    if (trie == NULL)
        return;
    free(trie->nodes);
    free(trie->firsts);
    free(trie);
}

/* The child that begins with this byte, or NULL.  Most nodes have a few. */
static inline const struct node *child_of(const struct weir__trie *t, const struct node *node,
                                          unsigned char byte)
{
    const unsigned char *firsts = t->firsts + node->first_child;

    if (node->children > 16) {
        const unsigned char *hit = memchr(firsts, byte, node->children);
        return hit ? t->nodes + node->first_child + (hit - firsts) : NULL;
    }
    for (uint32_t i = 0; i < node->children; i++)
        if (firsts[i] == byte)
            return t->nodes + node->first_child + i;
    return NULL;
}

size_t weir__trie_find(const struct weir__trie *t, const char *text, size_t len, size_t skip,
                       uint32_t found[WEIR__TRIE_FOUND])
{
    const struct node *node = t->nodes;
    size_t n = 0;

    for (size_t at = 0;; at += node->len) {
        if (node->value != WEIR__TRIE_NONE) {
            if (n == skip + WEIR__TRIE_FOUND)
                return WEIR__TRIE_FOUND;
            if (n >= skip)
                found[n - skip] = node->value;
            n++;
        }
        node = at < len ? child_of(t, node, (unsigned char)text[at]) : NULL;
        if (node == NULL || node->len > len - at ||
            !weir__same_bytes(node->label, text + at, node->len))
            return n > skip ? n - skip : 0;
    }
}
