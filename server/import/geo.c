/* geo.c -- a geo as cases: the networks of each of its values.
 *
 * nginx takes the smallest network that an address is in.  So a network stands for itself without
 * the smaller ones inside: 10.0.0.0/8 without 10.0.0.0/9 is 10.128.0.0/9.
 */
#include <stdlib.h>
#include <string.h>

#include "match/address.h"
#include "server/import/import.h"

#define RESULTS_MAX 32 /* different values */

struct network {
    struct weir__cidr cidr;
    size_t group, order;
};

struct geo {
    const char *fallback; /* the default's value */
    const char *results[RESULTS_MAX];
    size_t n_results; /* the default is the one after them */
    struct network *networks;
    size_t n;
};

/* RESULTS_MAX: there are too many. */
static size_t result_of(struct geo *g, const char *text)
{
    size_t i = 0;

    while (i < g->n_results && strcmp(g->results[i], text) != 0)
        i++;
    if (i == g->n_results && i < RESULTS_MAX)
        g->results[g->n_results++] = text;
    return i;
}

static bool is_within(const struct weir__cidr *inner, const struct weir__cidr *outer)
{
    struct weir__address start = inner->address;

    if (inner->address.bits != outer->address.bits || inner->prefix < outer->prefix)
        return false;
    weir__address_mask(&start, outer->prefix);
    return memcmp(start.bytes, outer->address.bytes, sizeof(start.bytes)) == 0;
}

/* By address, the wider one first: a network comes after all that contain it. */
static int compare_networks(const void *a, const void *b)
{
    const struct network *x = a, *y = b;
    int bits = (int)x->cidr.address.bits - (int)y->cidr.address.bits;
    int order = memcmp(x->cidr.address.bytes, y->cidr.address.bytes, 16);

    if (bits != 0 || order != 0)
        return bits != 0 ? bits : order;
    if (x->cidr.prefix != y->cidr.prefix)
        return (int)x->cidr.prefix - (int)y->cidr.prefix;
    return x->order < y->order ? -1 : 1; /* of two equal ones the later counts */
}

static bool read_network(struct geo *g, const struct weir__directive *d)
{
    size_t group = result_of(g, d->words[1]);
    struct network *n = &g->networks[g->n];

    if (group == RESULTS_MAX ||
        weir__cidr_parse(d->words[0], strlen(d->words[0]), &n->cidr, NULL) != WEIR_OK)
        return false;
    n->group = group;
    n->order = g->n;
    g->n++;
    return true;
}

static bool read_geo(struct weir__import *import, struct geo *g, const struct weir__directive *at)
{
    size_t n = 0;

    for (const struct weir__directive *d = at->first; d != NULL; d = d->next)
        n++;
    g->networks = weir__import_take(import, n + 1, sizeof(*g->networks));
    for (const struct weir__directive *d = at->first; d != NULL; d = d->next) {
        if (weir__conf_is(d, "include"))
            continue;
        if (d->n != 2 || weir__conf_is(d, "proxy") || weir__conf_is(d, "delete"))
            return false;
        if (weir__conf_is(d, "default"))
            g->fallback = d->words[1];
        else if (!read_network(g, d))
            return false;
    }
    qsort(g->networks, g->n, sizeof(*g->networks), compare_networks);
    return true;
}

/* The smallest network before this one that contains it; SIZE_MAX: none. */
static size_t outer_of(const struct geo *g, const size_t *outer, size_t i)
{
    size_t o = i > 0 ? i - 1 : SIZE_MAX;

    while (o != SIZE_MAX && !is_within(&g->networks[i].cidr, &g->networks[o].cidr))
        o = outer[o];
    return o;
}

/* Leaves out networks that have the value of the one around them. */
static void drop_repeated(struct weir__import *import, struct geo *g)
{
    size_t *outer = weir__import_take(import, g->n + 1, sizeof(*outer)), kept = 0;

    for (size_t i = 0; i < g->n; i++) {
        g->networks[kept] = g->networks[i];
        size_t o = outer_of(g, outer, kept);
        if (g->networks[kept].group == (o == SIZE_MAX ? g->n_results : g->networks[o].group))
            continue;
        outer[kept++] = o;
    }
    g->n = kept;
}

/* Adds the network without those of [from, to) that it contains: halves of it, and of those. */
static void add_rest(struct weir__import *import, const struct geo *g,
                     const struct weir__cidr *network, size_t from, size_t to,
                     struct weir__import_patterns *out)
{
    char text[64];

    while (from < to && !is_within(&g->networks[from].cidr, network))
        from++;
    if (from < to && g->networks[from].cidr.prefix == network->prefix)
        return; /* it is that one */
    if (from == to) {
        (void)weir__address_print(text, sizeof(text), &network->address);
        weir__pattern_add(import, out, WEIR__IMPORT_NETWORK,
                          weir__import_text(import, "%s/%d", text, network->prefix));
        return;
    }
    struct weir__cidr half = *network;
    size_t middle = from;
    half.prefix++;
    while (middle < to && is_within(&g->networks[middle].cidr, &half))
        middle++;
    add_rest(import, g, &half, from, middle, out);
    half.address.bytes[network->prefix / 8] |= (uint8_t)(0x80 >> network->prefix % 8);
    add_rest(import, g, &half, middle, to, out);
}

/* The networks of each value; `others`: of all values but the default. */
static void patterns_of_geo(struct weir__import *import, const struct geo *g,
                            struct weir__import_condition *values,
                            struct weir__import_condition *others)
{
    for (size_t i = 0; i < g->n; i++) {
        const struct network *n = &g->networks[i];
        size_t end = i + 1;
        while (end < g->n && is_within(&g->networks[end].cidr, &n->cidr))
            end++;
        if (n->group == g->n_results)
            continue;
        add_rest(import, g, &n->cidr, i + 1, end, &values[n->group].match);
        add_rest(import, g, &n->cidr, i + 1, end, &others->not );
    }
}

static void join_default(struct geo *g)
{
    for (size_t i = 0; i < g->n_results; i++)
        if (strcmp(g->results[i], g->fallback) == 0)
            for (size_t k = 0; k < g->n; k++)
                g->networks[k].group =
                    g->networks[k].group == i ? g->n_results : g->networks[k].group;
}

struct weir__case *weir__geo_cases(struct weir__import *import, const struct weir__directive *at)
{
    struct geo *g = weir__import_take(import, 1, sizeof(*g));
    struct weir__import_condition *values =
        weir__import_take(import, RESULTS_MAX + 1, sizeof(*values));
    struct weir__case *all = NULL, **end = &all;

    g->fallback = "";
    if ((at->n == 3 && strcmp(at->words[1], "$remote_addr") != 0) || !read_geo(import, g, at))
        return NULL;
    join_default(g);
    drop_repeated(import, g);
    patterns_of_geo(import, g, values, &values[g->n_results]);
    for (size_t i = 0; i <= g->n_results; i++) {
        const char *result = i < g->n_results ? g->results[i] : g->fallback;
        if (i < g->n_results && values[i].match.n == 0)
            continue; /* the default's */
        struct weir__case *c = weir__case_add(import, &end);
        values[i].attribute = "ip";
        if (values[i].match.n + values[i].not .n > 0)
            c->conditions = &values[i];
        if (result[0] != '\0')
            c->parts[c->n++] = (struct weir__value_part){ .text = result };
    }
    return all;
}
