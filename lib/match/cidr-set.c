/* cidr-set.c -- is an address in any of a hundred thousand networks?
 *
 * The networks, overlaps merged, are kept as the points where the answer changes: an address is in
 * the set if an odd number of points are not above it.  10.0.0.0/8 is the two points 10.0.0.0 and
 * 11.0.0.0.  So a lookup counts points, and an index says where to begin:
 *
 *     span     a few points (up to LEAF), or a node
 *     node     more of them: the distance between its first point and its last is cut into slots of
 *              equal size, about half as many as there are points, and each slot has a span
 *
 * If networks are spread evenly, one node is enough: a lookup reads a span, then a few adjacent
 * points.  Real lists are not (much of IPv6 in use is in 2001::/16 and 2a00::/12); a slot with many
 * points is another node that starts at its own first point, which skips the bits that all its
 * points share.
 *
 * Numbers are addresses as numbers of 128 bits, IPv4 in the highest 32.  IPv4's points are kept as
 * 32 bits, so that they fit the cache.
 *
 * Why not a hash per prefix length: a lookup asks each length, and there are up to 128.  Why not a
 * trie by bits: ten dependent loads where this does two.
 */
#include "match/address.h"

#include <stdlib.h>

#define LEAF         8
#define DEEPER       15                /* in a span, instead of a number of points */
#define NETWORKS_MAX ((size_t)1 << 27) /* two points each, and a span counts them in 28 bits */

typedef uint32_t span; /* the first point << 4 | how many; or the node << 4 | DEEPER */

struct node {
    weir__u128 base;     /* its first point */
    uint32_t first, end; /* its points */
    uint32_t spans;      /* the first of its slots' */
    uint32_t slots;
    uint32_t shift; /* a slot is 2^shift numbers wide */
};

/* One of the two families. */
struct index {
    uint32_t n; /* points */
    span root;
    span *spans;
    struct node *nodes;
    uint32_t *four;  /* the points: either these */
    weir__u128 *six; /* or those */
};

struct weir__cidr_set {
    struct index four, six;
};

/* --------------------------------------------------------------- lookup ---- */

/* The span with the points around x: only its points need counting.  Beyond a node's ends: an empty
 * span. */
static inline span find_span(const struct index *index, weir__u128 x)
{
    span s = index->root;

    while ((s & 15) == DEEPER) {
        const struct node *node = &index->nodes[s >> 4];
        weir__u128 slot = (x - node->base) >> node->shift;
        if (x < node->base)
            return node->first << 4;
        if (slot >= node->slots)
            return node->end << 4;
        s = index->spans[node->spans + (uint32_t)slot];
    }
    return s;
}

/* Always compares LEAF points, because a varying number would be mispredicted.  Points after the
 * span are above x; the padding after the last one may equal x, but then no point is above x, and
 * the minimum is right. */
static bool is_in_four(const struct index *index, uint32_t x)
{
    span s = find_span(index, (weir__u128)x << 96);
    const uint32_t *points = index->four + (s >> 4);
    uint32_t count = 0;

    for (uint32_t i = 0; i < LEAF; i++)
        count += points[i] <= x;
    return ((s >> 4) + (count < (s & 15) ? count : s & 15)) & 1;
}

static bool is_in_six(const struct index *index, weir__u128 x)
{
    span s = find_span(index, x);
    const weir__u128 *points = index->six + (s >> 4);
    uint32_t count = s >> 4;

    for (uint32_t i = 0; i < (s & 15); i++)
        count += points[i] <= x;
    return count & 1;
}

bool weir__cidr_set_has(const struct weir__cidr_set *set, const struct weir__address *address)
{
    if (address->bits == 32)
        return set->four.n > 0 &&
               is_in_four(&set->four, (uint32_t)(weir__address_number(address) >> 96));
    return address->bits == 128 && set->six.n > 0 &&
           is_in_six(&set->six, weir__address_number(address));
}

/* --------------------------------------------------------------- points ---- */

struct range {
    weir__u128 first, last;
};

static int by_first(const void *a, const void *b)
{
    const struct range *x = a, *y = b;

    return x->first < y->first ? -1 : x->first > y->first;
}

static size_t gather(struct range *out, const struct weir__cidr *networks, size_t n, unsigned bits)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        if (networks[i].address.bits == bits) {
            weir__u128 hosts = networks[i].prefix == 0
                                   ? ~(weir__u128)0
                                   : ((weir__u128)1 << (128 - networks[i].prefix)) - 1;
            weir__u128 number = weir__address_number(&networks[i].address);
            out[count++] = (struct range){ number & ~hosts, number | hosts };
        }
    return count;
}

/* Merges sorted ranges that overlap or touch, and writes the first number of each and the first one
 * after it, if there is one. */
static uint32_t write_points(weir__u128 *out, const struct range *ranges, size_t n)
{
    uint32_t count = 0;

    for (size_t i = 0; i < n;) {
        weir__u128 last = ranges[i].last;
        out[count++] = ranges[i].first;
        for (i++; i < n && (ranges[i].first <= last || ranges[i].first == last + 1); i++)
            last = ranges[i].last > last ? ranges[i].last : last;
        if (last == ~(weir__u128)0)
            break;
        out[count++] = last + 1;
    }
    return count;
}

/* ---------------------------------------------------------------- index ---- */

struct builder {
    const weir__u128 *points;
    span *spans;
    struct node *nodes;
    size_t n_spans, n_nodes, spans_room, nodes_room;
};

/* Room for `more` members of `size` bytes after the n in *array. */
static bool make_room(void **array, size_t *room, size_t n, size_t more, size_t size)
{
    if (n + more <= *room)
        return true;
    size_t wanted = (n + more) * 3 / 2 + 16;
    void *bigger = wanted >> 28 ? NULL : realloc(*array, wanted * size);
    if (bigger == NULL)
        return false;
    *array = bigger;
    *room = wanted;
    return true;
}

static uint32_t bit_length(weir__u128 x)
{
    uint64_t high = (uint64_t)(x >> 64), low = (uint64_t)x;

    return high  ? 128 - (uint32_t)__builtin_clzll(high)
           : low ? 64 - (uint32_t)__builtin_clzll(low)
                 : 0;
}

/* The first and the last slot hold points, so every slot has fewer than the node: the recursion
 * ends. */
static struct node plan_node(const weir__u128 *points, uint32_t first, uint32_t end)
{
    weir__u128 extent = points[end - 1] - points[first];
    uint32_t width = bit_length(extent),
             depth = bit_length(end - first) -
                     2; /* 2^depth slots at most: half the points, or a quarter */
    struct node node = { .base = points[first],
                         .first = first,
                         .end = end,
                         .shift = width > depth ? width - depth : 0 };

    node.slots = (uint32_t)(extent >> node.shift) + 1;
    return node;
}

static bool build_span(struct builder *b, uint32_t first, uint32_t end, span *out);

static bool build_slots(struct builder *b, const struct node *node)
{
    uint32_t at = node->first;

    for (uint32_t slot = 0; slot < node->slots; slot++) {
        uint32_t begin = at;
        span s;
        while (at < node->end && (b->points[at] - node->base) >> node->shift == slot)
            at++;
        if (!build_span(b, begin, at, &s))
            return false;
        b->spans[node->spans + slot] = s; /* not through a pointer: the array moves as it grows */
    }
    return true;
}

static bool build_span(struct builder *b, uint32_t first, uint32_t end, span *out)
{
    if (end - first <= LEAF) {
        *out = first << 4 | (end - first);
        return true;
    }
    struct node node = plan_node(b->points, first, end);
    if (!make_room((void **)&b->spans, &b->spans_room, b->n_spans, node.slots, sizeof(*b->spans)) ||
        !make_room((void **)&b->nodes, &b->nodes_room, b->n_nodes, 1, sizeof(*b->nodes)))
        return false;
    node.spans = (uint32_t)b->n_spans;
    *out = (uint32_t)b->n_nodes << 4 | DEEPER;
    b->n_spans += node.slots;
    b->nodes[b->n_nodes++] = node;
    return build_slots(b, &node);
}

/* ------------------------------------------------------ create, destroy ---- */

static bool copy_points(struct index *index, const weir__u128 *points, unsigned bits)
{
    if (bits == 32 && (index->four = malloc((index->n + LEAF) * sizeof(*index->four))) != NULL)
        for (uint32_t i = 0; i < index->n + LEAF; i++)
            index->four[i] = i < index->n ? (uint32_t)(points[i] >> 96) : UINT32_MAX;
    if (bits == 128 && (index->six = malloc(index->n * sizeof(*index->six))) != NULL)
        memcpy(index->six, points, index->n * sizeof(*points));
    return index->four != NULL || index->six != NULL;
}

static bool build_index(struct index *index, const struct weir__cidr *networks, size_t n,
                        unsigned bits, struct range *ranges, weir__u128 *points)
{
    size_t count = gather(ranges, networks, n, bits);
    struct builder b = { .points = points };

    if (count == 0)
        return true;
    qsort(ranges, count, sizeof(*ranges), by_first);
    index->n = write_points(points, ranges, count);
    bool built = copy_points(index, points, bits) && build_span(&b, 0, index->n, &index->root);
    index->spans = b.spans;
    index->nodes = b.nodes;
    return built;
}

int weir__cidr_set_create(struct weir__cidr_set **out, const struct weir__cidr *networks, size_t n,
                          struct weir_error *error)
{
    if (n > NETWORKS_MAX)
        return weir__fail(error, WEIR_INVALID, "%zu networks are too many for a list: at most %zu",
                          n, NETWORKS_MAX);
    struct weir__cidr_set *set = calloc(1, sizeof(*set));
    struct range *ranges = malloc((n + 1) * sizeof(*ranges));
    weir__u128 *points = malloc((2 * n + 1) * sizeof(*points));
    bool built = set && ranges && points &&
                 build_index(&set->four, networks, n, 32, ranges, points) &&
                 build_index(&set->six, networks, n, 128, ranges, points);
    free(ranges);
    free(points);
    if (!built) {
        weir__cidr_set_destroy(set);
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for a list of %zu networks", n);
    }
    *out = set;
    return WEIR_OK;
}

static void destroy_index(struct index *index)
{
    free(index->spans);
    free(index->nodes);
    free(index->four);
    free(index->six);
}

void weir__cidr_set_destroy(struct weir__cidr_set *set)
{
    if (set == NULL)
        return;
    destroy_index(&set->four);
    destroy_index(&set->six);
    free(set);
}
