/* match.c -- finds the rules that apply, however many do not.
 *
 * A tree.  A node splits its rules by one attribute: those that want an exact value hang below that
 * value (one hash lookup), those that want a prefix below that prefix (a walk down a trie), those
 * that want a network below it (one hash lookup for each prefix length in use), and all others,
 * which do not use this attribute or want a glob, a list or mere presence, below `rest`.  Each part
 * is split again by another attribute.
 * A few rules that are left are a leaf: their conditions are tested one by one, without those that
 * the way down has proved already.
 *
 *                       uri
 *         "/login" /     |      \ rest
 *           method    "/api/"      org
 *        POST /         |     "acme" / \ rest
 *        [login]      [api]    [acme]   [per-ip]
 *
 * So the cost of a request depends on the rules that may apply to it and the number of attributes,
 * not on the number of rules.  Only rules that share all but their globs are tried one after
 * another.
 */
#include <stdlib.h>
#include <string.h>

#include "match/rules.h"
#include "match/trie.h"

#define NONE       UINT32_MAX
#define LEAF_RULES 3  /* no more than these are tested one by one */
#define TOKENS_MAX 64 /* a condition with more patterns is tested, not split by */
#define WORK_LEAST 4096
#define WORK_SHARE \
    8 /* a pattern hangs its rule below it this often, all nodes together; from then on there are \
         leaves only */

/* A rule at a leaf, and its conditions that are still to be tested. */
struct leaf {
    uint32_t rule;
    uint32_t clauses_first; /* the rule's */
    bool excepts;           /* it has clauses that must not hold */
    uint64_t pending;       /* bit i: the rule's i-th clause */
};

_Static_assert(WEIR__ATTRIBUTES_MAX <= 64,
               "a rule's clauses fit a word: one for each attribute at most");

struct node {
    int attribute;             /* -1: a leaf */
    uint32_t first, n;         /* a leaf's rules */
    uint32_t rest;             /* the node of the others, or NONE */
    bool exact, networks;      /* some hang below exact values; below networks */
    uint64_t lengths4;         /* prefix lengths of IPv4 networks: bit i for /i */
    uint64_t lengths6[3];      /* of IPv6 */
    struct weir__trie *prefix; /* or NULL */
};

/* Exact values and networks of all nodes. */
struct entry {
    uint64_t hash;
    const void *text; /* as hashed, the draft's: a value, or a network's bytes */
    uint32_t len;
    uint32_t node;
};

struct weir__match {
    struct node *nodes;
    size_t n_nodes, nodes_room;
    struct leaf *leaves;
    size_t n_leaves, leaves_room;
    struct entry *entries;
    uint8_t *marks; /* of the entries: mark_of their hashes */
    size_t n_entries, entry_mask;
};

/* ----------------------------------------------------------- entries ---- */

/* Quick, not keyed: hits are compared, and only rules are stored, so clients gain nothing by
 * collisions.  A value is hashed once for all nodes; each node adds a number of its own. */
static uint64_t hash_bytes(const void *bytes, size_t len, uint64_t seed)
{
    const unsigned char *p = bytes;
    uint64_t h = seed + len * 0x9e3779b97f4a7c15u, a, b;

    for (; len > 16; p += 8, len -= 8)
        h = (h ^ weir__hash_word(p)) * 0xff51afd7ed558ccdu, h ^= h >> 32;
    weir__hash_tail(p, len, &a, &b);
    h = (h ^ a) * 0xff51afd7ed558ccdu;
    h ^= h >> 32 ^ b;
    h *= 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 29;
}

static inline uint64_t hash_network(const struct weir__address *masked, unsigned prefix)
{
    uint32_t four;

    if (masked->bits != 32)
        return hash_bytes(masked->bytes, sizeof(masked->bytes), prefix + 1);
    memcpy(&four, masked->bytes, sizeof(four));
    uint64_t h = ((uint64_t)prefix << 32 | four) * 0xff51afd7ed558ccdu;
    return h ^ h >> 32;
}

static inline uint64_t entry_of(uint32_t node, uint64_t hash)
{
    return hash + (node + 1) * 0x9e3779b97f4a7c15u;
}

/* A byte that tells most values apart before anything else is read; 0: an empty place. */
static inline uint8_t mark_of(uint64_t hash)
{
    return (uint8_t)(hash >> 56 | 1);
}

static inline uint32_t find_entry(const struct weir__match *m, uint32_t node, uint64_t hash,
                                  const void *text, size_t len)
{
    hash = entry_of(node, hash);
    uint8_t mark = mark_of(hash);
    for (size_t i = hash >> 20 & m->entry_mask; m->marks[i] != 0; i = (i + 1) & m->entry_mask) {
        const struct entry *e = &m->entries[i];
        if (m->marks[i] == mark && e->hash == hash && e->len == len &&
            weir__same_bytes(e->text, text, len))
            return e->node;
    }
    return NONE;
}

static void put_entry(struct entry *entries, uint8_t *marks, size_t mask, struct entry entry)
{
    size_t i = entry.hash >> 20 & mask;

    while (marks[i] != 0)
        i = (i + 1) & mask;
    entries[i] = entry;
    marks[i] = mark_of(entry.hash);
}

/* ------------------------------------------------------------ finding ---- */

struct search {
    const struct weir_rules *set;
    const struct weir__match *match;
    struct weir__facts *facts;
    uint32_t from;
    uint32_t *found;
    size_t n;
};

/* Keeps them sorted, each once: a rule may hang in several places.  If there are too many, the
 * first in the file stay. */
static void insert_found(struct search *s, uint32_t rule)
{
    size_t i = s->n;

    while (i > 0 && s->found[i - 1] > rule)
        i--;
    if ((i > 0 && s->found[i - 1] == rule) || i == WEIR__FOUND_MAX)
        return;
    size_t last = s->n < WEIR__FOUND_MAX ? s->n : WEIR__FOUND_MAX - 1;
    memmove(s->found + i + 1, s->found + i, (last - i) * sizeof(*s->found));
    s->found[i] = rule;
    s->n = last + 1;
}

static inline void add_found(struct search *s, uint32_t rule)
{
    if (rule < s->from)
        return;
    if (s->n > 0 && (s->found[s->n - 1] >= rule || s->n == WEIR__FOUND_MAX))
        insert_found(s, rule);
    else
        s->found[s->n++] = rule;
}

static inline bool holds(const struct search *s, const struct weir__clause *c)
{
    const struct weir__value *v = &s->facts->values[c->attribute];

    return c->plain && s->facts->n_readings == 0 ? v->len >= c->len && v->len <= c->longest &&
                                                       weir__same_bytes(v->text, c->text, c->len)
                                                 : weir__clause_holds(s->set, c, s->facts);
}

static bool is_excepted(const struct search *s, const struct weir__rule *rule)
{
    const struct weir__clause *clauses = s->set->clauses + rule->clauses_first + rule->matches;

    for (uint32_t i = 0; i < rule->excepts; i++)
        if (holds(s, &clauses[i]))
            return true;
    return false;
}

static inline bool applies(const struct search *s, const struct leaf *leaf)
{
    if (leaf->pending == 0 && !leaf->excepts)
        return true;
    const struct weir__clause *clauses = s->set->clauses + leaf->clauses_first;
    for (uint64_t pending = leaf->pending; pending != 0; pending &= pending - 1)
        if (!holds(s, &clauses[__builtin_ctzll(pending)]))
            return false;
    return !leaf->excepts || !is_excepted(s, &s->set->rules[leaf->rule]);
}

static void search_node(struct search *s, uint32_t at);

static void search_network(struct search *s, uint32_t at, const struct weir__address *masked,
                           unsigned prefix)
{
    uint32_t child =
        find_entry(s->match, at, hash_network(masked, prefix), masked->bytes, masked->bits / 8u);

    if (child != NONE)
        search_node(s, child);
}

/* Usually one to four lengths are in use. */
static void search_networks(struct search *s, uint32_t at, const struct node *node,
                            const struct weir__address *address)
{
    struct weir__address masked = { .bits = address->bits };

    for (uint64_t lengths = address->bits == 32 ? node->lengths4 : 0; lengths != 0;
         lengths &= lengths - 1) {
        unsigned prefix = (unsigned)__builtin_ctzll(lengths);
        /* Both in network order. */
        uint32_t four = __builtin_bswap32((uint32_t)(0xffffffff00000000u >> prefix)), whole;
        memcpy(&whole, address->bytes, sizeof(whole));
        whole &= four;
        memcpy(masked.bytes, &whole, sizeof(whole));
        search_network(s, at, &masked, prefix);
    }
    for (unsigned i = 0; address->bits == 128 && i < 3; i++)
        for (uint64_t lengths = node->lengths6[i]; lengths != 0; lengths &= lengths - 1) {
            masked = *address;
            weir__address_mask(&masked, i * 64 + (unsigned)__builtin_ctzll(lengths));
            search_network(s, at, &masked, i * 64 + (unsigned)__builtin_ctzll(lengths));
        }
}

static inline uint32_t search_exact(struct search *s, uint32_t at, struct weir__value *v)
{
    if (v->hash == 0)
        v->hash = hash_bytes(v->text, v->len, 0);
    return find_entry(s->match, at, v->hash, v->text, v->len);
}

/* The nodes below the attribute's value. */
static inline void search_value(struct search *s, uint32_t at, const struct node *node,
                                struct weir__value *v)
{
    if (node->exact) {
        uint32_t child = search_exact(s, at, v);
        if (child != NONE)
            search_node(s, child);
    }
    if (node->prefix != NULL) {
        uint32_t found[WEIR__TRIE_FOUND];
        size_t n, skip = 0;
        do {
            n = weir__trie_find(node->prefix, v->text, v->len, skip, found);
            for (size_t i = 0; i < n; i++)
                search_node(s, found[i]);
            skip += n;
        } while (n == WEIR__TRIE_FOUND);
    }
    if (node->networks)
        search_networks(s, at, node, &v->address);
}

static void search_node(struct search *s, uint32_t at)
{
    for (; at != NONE; at = s->match->nodes[at].rest) {
        const struct node *node = &s->match->nodes[at];
        if (node->attribute < 0) {
            for (uint32_t i = 0; i < node->n; i++) {
                const struct leaf *leaf = &s->match->leaves[node->first + i];
                if (applies(s, leaf))
                    add_found(s, leaf->rule);
            }
            return;
        }
        struct weir__value *v = &s->facts->values[node->attribute];
        size_t n = 1;
        if (s->facts->n_readings > 0 && node->attribute == s->set->attributes.loose) {
            v = s->facts->readings;
            n = s->facts->n_readings;
        }
        for (; n > 0 && v->len != 0; n--)
            search_value(s, at, node, v++);
    }
}

size_t weir__match_find(const struct weir_rules *set, const struct weir__match *match,
                        struct weir__facts *facts, uint32_t from, uint32_t found[WEIR__FOUND_MAX])
{
    struct search s = { set, match, facts, from, found, 0 };

    if (match != NULL)
        search_node(&s, 0);
    return s.n;
}

/* ------------------------------------------------------------- making ---- */

struct maker {
    struct weir__match *match;
    const struct weir_rules *set;
    struct weir_error *error;
    size_t work, work_max;
};

/* One pattern of one rule, for splitting. */
struct token {
    const struct weir__test *test;
    struct leaf leaf;
};

static int no_memory(struct maker *m)
{
    return weir__fail(m->error, WEIR_NO_MEMORY, "no memory for the rules");
}

static int grow(struct maker *m, void **array, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return WEIR_OK;
    size_t wanted = *room ? 2 * *room : 64;
    void *more = realloc(*array, wanted * size);
    if (more == NULL)
        return no_memory(m);
    *array = more;
    *room = wanted;
    return WEIR_OK;
}

static int add_node(struct maker *m, uint32_t *out)
{
    struct weir__match *t = m->match;
    int code = grow(m, (void **)&t->nodes, t->n_nodes, &t->nodes_room, sizeof(*t->nodes));

    if (code != WEIR_OK)
        return code;
    *out = (uint32_t)t->n_nodes++;
    t->nodes[*out] = (struct node){ .attribute = -1, .rest = NONE };
    return WEIR_OK;
}

static int make_leaf(struct maker *m, uint32_t at, const struct leaf *rules, size_t n)
{
    struct weir__match *t = m->match;

    t->nodes[at].first = (uint32_t)t->n_leaves;
    t->nodes[at].n = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        int code = grow(m, (void **)&t->leaves, t->n_leaves, &t->leaves_room, sizeof(*t->leaves));
        if (code != WEIR_OK)
            return code;
        t->leaves[t->n_leaves++] = rules[i];
    }
    return WEIR_OK;
}

static bool can_split(const struct weir_rules *set, const struct weir__clause *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        enum weir__pattern_kind kind = set->tests[c->first + i].kind;
        if (kind != WEIR__EXACT && kind != WEIR__PREFIX && kind != WEIR__CIDR)
            return false;
    }
    return c->n > 0 && c->n <= TOKENS_MAX;
}

/* The rule's clause on this attribute, if it can be split by; or -1. */
static int clause_on(const struct weir_rules *set, const struct leaf *leaf, int attribute)
{
    const struct weir__rule *rule = &set->rules[leaf->rule];

    for (int i = 0; i < rule->matches; i++) {
        const struct weir__clause *c = &set->clauses[rule->clauses_first + (uint32_t)i];
        if (c->attribute == attribute && leaf->pending >> i & 1 && can_split(set, c))
            return i;
    }
    return -1;
}

static int compare_tokens(const void *a, const void *b)
{
    const struct weir__test *x = ((const struct token *)a)->test,
                            *y = ((const struct token *)b)->test;

    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->kind == WEIR__CIDR) {
        int by_bytes = memcmp(&x->cidr.address, &y->cidr.address, sizeof(x->cidr.address));
        return by_bytes ? by_bytes : (int)x->cidr.prefix - (int)y->cidr.prefix;
    }
    size_t len = x->len < y->len ? x->len : y->len;
    int by_bytes = memcmp(x->text, y->text, len);
    return by_bytes ? by_bytes : x->len < y->len ? -1 : x->len > y->len;
}

/* The number of different tokens that these rules have for the attribute: the gain of splitting by
 * it. */
static size_t count_tokens(const struct weir_rules *set, const struct leaf *rules, size_t n,
                           int attribute, struct token *room)
{
    size_t tokens = 0, different = 0;

    for (size_t i = 0; i < n; i++) {
        int clause = clause_on(set, &rules[i], attribute);
        if (clause < 0)
            continue;
        room[tokens++].test =
            &set->tests[set->clauses[set->rules[rules[i].rule].clauses_first + (uint32_t)clause]
                            .first]; /* its first pattern stands for it */
    }
    qsort(room, tokens, sizeof(*room), compare_tokens);
    for (size_t i = 0; i < tokens; i++)
        different += i == 0 || compare_tokens(&room[i - 1], &room[i]) != 0;
    return different;
}

/* The attribute that tells most of these rules apart, or -1. */
static int choose(const struct weir_rules *set, const struct leaf *rules, size_t n,
                  struct token *room)
{
    int best = -1;
    size_t most = 0;

    for (int a = 0; a < (int)set->attributes.n; a++) {
        size_t tokens = count_tokens(set, rules, n, a, room);
        if (tokens > most) {
            most = tokens;
            best = a;
        }
    }
    return best;
}

/* ---- splitting: the tokens of one attribute, sorted, become children ---- */

static int make_node(struct maker *m, uint32_t at, struct leaf *rules, size_t n);

static int grow_entries(struct maker *m)
{
    struct weir__match *t = m->match;
    size_t mask = 2 * t->entry_mask + 1;
    struct entry *entries = calloc(mask + 1, sizeof(*entries));
    uint8_t *marks = calloc(mask + 1, 1);

    if (entries == NULL || marks == NULL) {
        free(entries);
        free(marks);
        return no_memory(m);
    }
    for (size_t i = 0; i <= t->entry_mask; i++)
        if (t->marks[i] != 0)
            put_entry(entries, marks, mask, t->entries[i]);
    free(t->entries);
    free(t->marks);
    t->entries = entries;
    t->marks = marks;
    t->entry_mask = mask;
    return WEIR_OK;
}

static int add_entry(struct maker *m, struct entry entry)
{
    struct weir__match *t = m->match;
    int code = t->n_entries * 2 > t->entry_mask ? grow_entries(m) : WEIR_OK;

    if (code != WEIR_OK)
        return code;
    put_entry(t->entries, t->marks, t->entry_mask, entry);
    t->n_entries++;
    return WEIR_OK;
}

static int open_child(struct maker *m, uint32_t at, const struct weir__test *test, uint32_t child)
{
    struct node *node = &m->match->nodes[at];
    unsigned prefix = test->cidr.prefix;

    if (test->kind == WEIR__EXACT) {
        node->exact = true;
        return add_entry(m, (struct entry){ entry_of(at, hash_bytes(test->text, test->len, 0)),
                                            test->text, (uint32_t)test->len, child });
    }
    node->networks = true;
    if (test->cidr.address.bits == 32)
        node->lengths4 |= (uint64_t)1 << prefix;
    else
        node->lengths6[prefix / 64] |= (uint64_t)1 << prefix % 64;
    const struct weir__address *a = &test->cidr.address;
    return add_entry(
        m, (struct entry){ entry_of(at, hash_network(a, prefix)), a->bytes, a->bits / 8u, child });
}

/* A child for the rules that share a token. */
static int make_child(struct maker *m, uint32_t at, const struct token *tokens, size_t n,
                      uint32_t *child)
{
    struct leaf *rules = malloc(n * sizeof(*rules));
    int code = rules ? add_node(m, child) : no_memory(m);

    for (size_t i = 0; rules && i < n; i++)
        rules[i] = tokens[i].leaf;
    if (code == WEIR_OK && tokens[0].test->kind != WEIR__PREFIX)
        code = open_child(m, at, tokens[0].test, *child);
    if (code == WEIR_OK)
        code = make_node(m, *child, rules, n);
    free(rules);
    return code;
}

static int make_children(struct maker *m, uint32_t at, struct token *tokens, size_t n)
{
    struct weir__prefix *prefixes = malloc((n + 1) * sizeof(*prefixes));
    size_t n_prefixes = 0;
    int code = prefixes ? WEIR_OK : no_memory(m);

    for (size_t i = 0, same; code == WEIR_OK && i < n; i += same) {
        uint32_t child = NONE;
        for (same = 1; i + same < n && compare_tokens(&tokens[i], &tokens[i + same]) == 0;)
            same++;
        code = make_child(m, at, tokens + i, same, &child);
        if (tokens[i].test->kind == WEIR__PREFIX)
            prefixes[n_prefixes++] =
                (struct weir__prefix){ tokens[i].test->text, tokens[i].test->len, child };
    }
    if (code == WEIR_OK && n_prefixes > 0)
        code = weir__trie_create(&m->match->nodes[at].prefix, prefixes, n_prefixes, m->error);
    free(prefixes);
    return code;
}

/* The rules' tokens for the attribute; rules without any are moved to the front of `rules` and
 * counted. */
static size_t gather_tokens(const struct weir_rules *set, struct leaf *rules, size_t n,
                            int attribute, struct token *tokens, size_t *rest)
{
    size_t count = 0;

    *rest = 0;
    for (size_t i = 0; i < n; i++) {
        struct leaf leaf = rules[i];
        int clause = clause_on(set, &leaf, attribute);
        if (clause < 0) {
            rules[(*rest)++] = leaf;
            continue;
        }
        const struct weir__clause *c =
            &set->clauses[set->rules[leaf.rule].clauses_first + (uint32_t)clause];
        leaf.pending &= ~((uint64_t)1 << clause); /* the way down proves it */
        for (uint32_t k = 0; k < c->n; k++)
            tokens[count++] = (struct token){ &set->tests[c->first + k], leaf };
    }
    return count;
}

static size_t tokens_of(const struct weir_rules *set, const struct leaf *rules, size_t n)
{
    size_t most = n;

    for (size_t i = 0; i < n; i++) {
        const struct weir__rule *rule = &set->rules[rules[i].rule];
        uint32_t longest = 0;
        for (uint32_t k = 0; k < rule->matches; k++) {
            uint32_t c = set->clauses[rule->clauses_first + k].n;
            longest = c <= TOKENS_MAX && c > longest ? c : longest;
        }
        most += longest;
    }
    return most;
}

static int split(struct maker *m, uint32_t at, struct leaf *rules, size_t n, int attribute,
                 struct token *tokens)
{
    size_t rest, count = gather_tokens(m->set, rules, n, attribute, tokens, &rest);

    m->match->nodes[at].attribute = attribute;
    m->work += count;
    qsort(tokens, count, sizeof(*tokens), compare_tokens);
    int code = make_children(m, at, tokens, count);
    if (code == WEIR_OK && rest > 0) {
        uint32_t child;
        code = add_node(m, &child);
        if (code == WEIR_OK) {
            m->match->nodes[at].rest = child;
            code = make_node(m, child, rules, rest);
        }
    }
    return code;
}

/* `rules` is used up. */
static int make_node(struct maker *m, uint32_t at, struct leaf *rules, size_t n)
{
    if (n <= LEAF_RULES || m->work > m->work_max)
        return make_leaf(m, at, rules, n);
    struct token *tokens = malloc((tokens_of(m->set, rules, n) + 1) * sizeof(*tokens));
    if (tokens == NULL)
        return no_memory(m);
    int attribute = choose(m->set, rules, n, tokens);
    int code =
        attribute < 0 ? make_leaf(m, at, rules, n) : split(m, at, rules, n, attribute, tokens);
    free(tokens);
    return code;
}

static uint64_t all_bits(unsigned n)
{
    return n >= 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
}

static int make_root(struct maker *m, size_t first, size_t n)
{
    struct leaf *rules = malloc((n + 1) * sizeof(*rules));
    uint32_t root;
    int code = rules ? add_node(m, &root) : no_memory(m);

    for (size_t i = 0; rules && i < n; i++) {
        const struct weir__rule *rule = &m->set->rules[first + i];
        rules[i] = (struct leaf){ (uint32_t)(first + i), rule->clauses_first, rule->excepts > 0,
                                  all_bits(rule->matches) };
    }
    if (code == WEIR_OK)
        code = make_node(m, root, rules, n);
    free(rules);
    return code;
}

int weir__match_create(struct weir__match **out, const struct weir_rules *set, size_t first,
                       size_t n, struct weir_error *error)
{
    struct weir__match *match = calloc(1, sizeof(*match));
    struct maker m = { match, set, error, 0, WORK_LEAST + WORK_SHARE * set->n_tests };

    if (match == NULL || (match->entries = calloc(16, sizeof(*match->entries))) == NULL ||
        (match->marks = calloc(16, 1)) == NULL) {
        weir__match_destroy(match);
        return no_memory(&m);
    }
    match->entry_mask = 15;
    int code = make_root(&m, first, n);
    if (code == WEIR_OK)
        *out = match;
    else
        weir__match_destroy(match);
    return code;
}

void weir__match_destroy(struct weir__match *match)
{
    if (match == NULL)
        return;
    for (size_t i = 0; i < match->n_nodes; i++)
        weir__trie_destroy(match->nodes[i].prefix);
    free(match->nodes);
    free(match->leaves);
    free(match->entries);
    free(match->marks);
    free(match);
}
