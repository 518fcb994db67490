/* yaml-mappings.c -- mappings made whole: text as keys, none of them twice, merge keys carried out.
 *
 * Keys are compared by sorting them, not by hashing: as fast here, and no file can be made for
 * which it is slow.
 */
#include "rulefile/node.h"

#include <stdlib.h>
#include <string.h>

#define NODES_MAX 10000000 /* aliases counted in full */

struct pair {
    struct weir__node *key, *value;
    size_t rank; /* in the order of the text; a pair that is merged is behind the mapping's own */
};

/* Bounds on the nodes of any file. */
static bool count_nodes(struct weir__tree *tree, size_t at, size_t more)
{
    tree->nodes += (int64_t)(more < NODES_MAX ? more : NODES_MAX + 1);
    if (tree->nodes <= NODES_MAX)
        return true;
    weir__report_add(
        tree->report, at,
        "the file is too large: this is beyond %d values, those that << merges among them",
        NODES_MAX);
    return false;
}

struct weir__node *weir__node_create(struct weir__tree *tree, enum weir__node_kind kind, size_t at)
{
    struct weir__node *node =
        count_nodes(tree, at, 1) ? weir__arena_take(tree->arena, 1, sizeof(*node)) : NULL;

    if (node != NULL)
        *node = (struct weir__node){ .kind = kind, .at = at, .weight = 1, .text = "" };
    return node;
}

const char *weir__node_word(const struct weir__node *node)
{
    static const char *const words[] = { "nothing", "text", "a list", "a mapping" };

    return words[node->kind];
}

size_t weir__node_place(const struct weir__report *report, const struct weir__node *node,
                        int column)
{
    size_t at = node->at, into = column > 1 ? (size_t)column - 1 : 0;

    if (node->kind != WEIR__NODE_TEXT || at > report->len || into > node->n)
        return at;
    bool as_written =
        report->len - at >= node->n && memcmp(report->text + at, node->text, node->n) == 0;
    return as_written ? at + into : at;
}

/* ---------------------------------------------------------- duplicates ---- */

static int compare(const void *left, const void *right)
{
    const struct pair *a = left, *b = right;
    size_t n = a->key->n < b->key->n ? a->key->n : b->key->n;
    int order = memcmp(a->key->text, b->key->text, n);

    if (order == 0 && a->key->n != b->key->n)
        order = a->key->n < b->key->n ? -1 : 1;
    if (order == 0)
        order = a->rank < b->rank ? -1 : 1;
    return order;
}

static int compare_rank(const void *left, const void *right)
{
    const struct pair *a = left, *b = right;

    return a->rank < b->rank ? -1 : 1;
}

static bool same_key(const struct pair *a, const struct pair *b)
{
    return a->key->n == b->key->n && memcmp(a->key->text, b->key->text, a->key->n) == 0;
}

static bool is_merge(const struct weir__node *key)
{
    return key->n == 2 && memcmp(key->text, "<<", 2) == 0;
}

static void say_repeated(struct weir__report *report, const struct weir__node *first,
                         const struct weir__node *again)
{
    if (report->n == WEIR__PROBLEMS_MAX) { /* no need to find out where the first is */
        report->more++;
        return;
    }
    struct weir__mark mark = weir__report_mark(report, first->at);
    weir__report_add(report, again->at, "%s is here twice; the first is in line %d, column %d",
                     weir__quote(again->text, again->n).text, mark.line, mark.column);
}

/* Keeps the first pair of each key.  The mapping's own pairs have the lowest ranks; among these a
 * second one is a mistake. */
static size_t drop_repeated(struct weir__report *report, struct pair *pairs, size_t n, size_t own)
{
    size_t kept = 0;

    qsort(pairs, n, sizeof(*pairs), compare);
    for (size_t i = 0; i < n; i++) {
        bool repeated = kept > 0 && same_key(&pairs[kept - 1], &pairs[i]);
        if (repeated && pairs[i].rank < own)
            say_repeated(report, pairs[kept - 1].key, pairs[i].key);
        if (!repeated)
            pairs[kept++] = pairs[i];
    }
    qsort(pairs, kept, sizeof(*pairs), compare_rank);
    return kept;
}

/* ------------------------------------------------------------- merging ---- */

static bool is_mergeable(const struct weir__node *value)
{
    if (value->kind == WEIR__NODE_MAPPING)
        return true;
    for (size_t i = 0; value->kind == WEIR__NODE_LIST && i < value->n; i++) {
        if (value->items[i]->kind != WEIR__NODE_MAPPING)
            return false;
    }
    return value->kind == WEIR__NODE_LIST;
}

static size_t count_merged(const struct weir__node *from)
{
    size_t n = from->kind == WEIR__NODE_MAPPING ? from->n : 0;

    for (size_t i = 0; from->kind == WEIR__NODE_LIST && i < from->n; i++)
        n += from->items[i]->n;
    return n;
}

static size_t append(struct pair *pairs, size_t n, size_t rank, const struct weir__node *mapping)
{
    for (size_t i = 0; i < mapping->n; i++, n++)
        pairs[n] = (struct pair){ mapping->items[2 * i], mapping->items[2 * i + 1], rank + n };
    return n;
}

/* Puts the pairs of what << names behind the `n` own ones, of ranks below `rank`, and takes the <<
 * itself out. */
static size_t merge(struct pair *pairs, size_t n, size_t rank, size_t at)
{
    const struct weir__node *from = pairs[at].value;

    if (from->kind == WEIR__NODE_MAPPING)
        n = append(pairs, n, rank, from);
    for (size_t i = 0; from->kind == WEIR__NODE_LIST && i < from->n; i++)
        n = append(pairs, n, rank, from->items[i]);
    pairs[at] = pairs[n - 1];
    return n - 1;
}

/* ------------------------------------------------------------ mappings ---- */

/* How many pairs there may be when all is merged; 0 if something is wrong with a key. */
static size_t check_keys(struct weir__tree *tree, const struct weir__node *node,
                         struct weir__node **children, size_t n)
{
    size_t room = n + 1;
    bool good = true;

    for (size_t i = 0; i < n; i++) {
        const struct weir__node *key = children[2 * i], *value = children[2 * i + 1];
        if (key->kind != WEIR__NODE_TEXT) {
            weir__report_add(tree->report, key->at, "a key must be text; found %s",
                             weir__node_word(key));
            good = false;
        } else if (is_merge(key) && !is_mergeable(value)) {
            weir__report_add(tree->report, key->at,
                             "<< must name a mapping, or a list of those; found %s",
                             weir__node_word(value));
            good = false;
        } else if (is_merge(key)) {
            room += count_merged(value);
        }
    }
    return good && count_nodes(tree, node->at, room - n - 1) ? room : 0;
}

static bool store_pairs(struct weir__arena *arena, struct weir__node *node,
                        const struct pair *pairs, size_t n)
{
    node->items = weir__arena_take(arena, n, 2 * sizeof(struct weir__node *));
    if (node->items == NULL)
        return false;
    for (size_t i = 0; i < n; i++) {
        node->items[2 * i] = pairs[i].key;
        node->items[2 * i + 1] = pairs[i].value;
    }
    node->n = n;
    return true;
}

static bool sort_out(struct weir__tree *tree, struct weir__node *node, struct pair *pairs, size_t n)
{
    size_t kept = drop_repeated(tree->report, pairs, n, n), at = 0;

    while (at < kept && !is_merge(pairs[at].key))
        at++;
    if (at < kept)
        kept = drop_repeated(tree->report, pairs, merge(pairs, kept, n, at), 0);
    return store_pairs(tree->arena, node, pairs, kept);
}

static bool fill_mapping(struct weir__tree *tree, struct weir__node *node,
                         struct weir__node **children, size_t n)
{
    struct pair few[24], *pairs = few;
    size_t room = check_keys(tree, node, children, n);

    if (room == 0)
        return false;
    if (room > sizeof(few) / sizeof(*few))
        pairs = malloc(room * sizeof(*pairs));
    if (pairs == NULL) {
        tree->arena->failed = true;
        return false;
    }
    for (size_t i = 0; i < n; i++)
        pairs[i] = (struct pair){ children[2 * i], children[2 * i + 1], i };
    bool good = sort_out(tree, node, pairs, n);
    if (pairs != few)
        free(pairs);
    return good;
}

/* ------------------------------------------------------------- filling ---- */

static bool weigh(struct weir__report *report, struct weir__node *node, size_t children)
{
    for (size_t i = 0; i < children; i++) {
        const struct weir__node *child = node->items[i];
        node->weight += child->weight;
        node->height = child->height >= node->height ? child->height + 1 : node->height;
        if (node->weight > NODES_MAX) {
            weir__report_add(report, node->at,
                             "there is too much in here; a file has at most %d values, aliases "
                             "counted in full",
                             NODES_MAX);
            return false;
        }
    }
    if (node->height <= WEIR__NODES_DEPTH)
        return true;
    weir__report_add(report, node->at, "too many lists and mappings in each other; the most is %d",
                     WEIR__NODES_DEPTH);
    return false;
}

bool weir__node_fill(struct weir__tree *tree, struct weir__node *node, struct weir__node **children,
                     size_t n)
{
    if (node->kind == WEIR__NODE_MAPPING)
        return fill_mapping(tree, node, children, n / 2) && weigh(tree->report, node, 2 * node->n);
    node->items = weir__arena_take(tree->arena, n, sizeof(*children));
    if (node->items == NULL)
        return false;
    if (n > 0)
        memcpy(node->items, children, n * sizeof(*children));
    node->n = n;
    return weigh(tree->report, node, n);
}
