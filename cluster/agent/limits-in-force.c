/* limits-in-force.c -- the limits across the fleet, as the rules in force have them.
 *
 * A rule set that is swapped in may have other limits: keys of those that went pay back and are
 * forgotten.  A limit itself stays as long as asks to Redis under it are under way.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/agent/agent.h"

static void release(struct weir_fleet *f, struct weir__agent_limit *l)
{
    if (l->purse)
        f->host->release(l->purse);
    if (l->share)
        f->host->release(l->share);
    l->purse = l->share = NULL;
}

void weir__limit_leave(struct weir__agent_limit *l)
{
    if (--l->uses == 0 && l->retired)
        free(l);
}

/* ------------------------------------------------------------------ chains ---- */

/* There may be thousands of rules, and each ask looks for its own. */
static size_t chain_of(const char *rule, uint32_t index)
{
    return weir__fleet_hash(index, (struct weir_key){ rule, strlen(rule) }) % WEIR__AGENT_CHAINS;
}

struct weir__agent_limit *weir__limit_find(const struct weir_fleet *f, const char *rule,
                                           uint32_t index)
{
    struct weir__agent_limit *l = f->chains[chain_of(rule, index)];

    while (l && !(l->index == index && strcmp(l->rule, rule) == 0))
        l = l->chain;
    return l;
}

/* Before one that it replaces. */
void weir__limit_add(struct weir_fleet *f, struct weir__agent_limit *l)
{
    struct weir__agent_limit **first = &f->chains[chain_of(l->rule, l->index)];

    l->next = f->limits;
    f->limits = l;
    l->chain = *first;
    *first = l;
}

static void unchain(struct weir_fleet *f, const struct weir__agent_limit *l)
{
    struct weir__agent_limit **at = &f->chains[chain_of(l->rule, l->index)];

    while (*at != l)
        at = &(*at)->chain;
    *at = l->chain;
}

/* ----------------------------------------------------------------- in force ---- */

static void name_accounts(const struct weir_fleet *f, struct weir__agent_limit *l,
                          const char *account)
{
    l->head_len = (size_t)snprintf(l->head, sizeof(l->head), "weir:{%s/%s:", f->name, l->rule);
    l->tail_len = (size_t)snprintf(l->tail, sizeof(l->tail), "}:%s", account);
    assert(l->head_len < sizeof(l->head));
}

static struct weir__agent_limit *make(struct weir_fleet *f, const struct weir__across_limit *from,
                                      const char *text)
{
    struct weir__agent_limit *l = calloc(1, sizeof(*l));

    if (!l)
        return NULL;
    l->rule = from->rule;
    l->index = from->index;
    memcpy(l->text, text, sizeof(l->text));
    memcpy(l->purse_name, from->purse, sizeof(l->purse_name));
    name_accounts(f, l, from->account);
    l->uses = 1; /* by the list */
    if (weir__plan_make(&l->plan, &from->limit, NULL) == WEIR_OK &&
        weir__fleet_limit_make(&l->fleet, &l->plan, NULL) == WEIR_OK) {
        l->purse = f->host->use(f->table, from->purse);
        l->share = f->host->use(f->table, from->share);
    }
    if (l->purse && l->share)
        return l;
    release(f, l); /* the rules were swapped meanwhile; or the limit is not for accounts */
    free(l);
    return NULL;
}

static bool is_same(const struct weir__agent_limit *l, const struct weir__across_limit *from,
                    const char *text)
{
    return strcmp(l->text, text) == 0 && strcmp(l->purse_name, from->purse) == 0 &&
           strcmp(l->tail + 2, from->account) == 0;
}

static void add(struct weir_fleet *f, const struct weir__across_limit *from)
{
    struct weir__agent_limit *l;
    char text[sizeof(l->text)] = "";

    weir_limit_print(text, sizeof(text), &from->limit);
    l = weir__limit_find(f, from->rule, from->index);
    if (!l || !is_same(l, from, text)) {
        l = make(f, from, text);
        if (!l)
            return;
        weir__limit_add(f, l);
    }
    l->in_force = true;
}

static bool is_over(const struct weir__fleet_key *k)
{
    return !weir__agent_limit_of(k)->in_force;
}

static bool has_key_that_is_over(const struct weir__agent_ask *a)
{
    for (size_t i = 0; i < a->wait.n; i++)
        if (is_over(a->wait.items[i].key))
            return true;
    return false;
}

/* Of all limits that went together: each of them may be one of thousands. */
static void drop_keys(struct weir_fleet *f, weir_time now)
{
    struct weir__agent_ask *next;
    struct weir__fleet_key *k;

    for (struct weir__agent_ask *a = f->first; a; a = next) {
        next = a->next;
        if (has_key_that_is_over(a))
            weir__ask_end(f, a, now);
    }
    weir__asks_answer(f, now);
    for (size_t at = 0; (k = weir__fleet_key_next(f->fleet, &at)) != NULL;)
        if (is_over(k))
            weir__fleet_drop(f->fleet, k, now);
}

static void retire(struct weir_fleet *f, struct weir__agent_limit *l)
{
    unchain(f, l);
    release(f, l);
    l->retired = true;
    weir__limit_leave(l);
}

/* For those who want to know whether a refusal is the fleet's business. */
static void tell_names(struct weir_fleet *f)
{
    uint32_t n = 0;

    for (const struct weir__agent_limit *l = f->limits; l; l = l->next, n++)
        if (n < WEIR__AGENT_NAMES)
            __atomic_store_n(&f->across[n], l->rule, __ATOMIC_RELAXED);
    __atomic_store_n(&f->n_across, n, __ATOMIC_RELEASE);
}

static void sweep(struct weir_fleet *f)
{
    struct weir__agent_limit **at = &f->limits, *l;

    while ((l = *at) != NULL) {
        if (l->in_force) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        retire(f, l);
    }
}

void weir__limits_turn(struct weir_fleet *f, weir_time now)
{
    uint64_t generation = f->host->generation(f->weir);
    struct weir__across_limit limit;
    int64_t at = 0;

    if (generation == f->generation)
        return;
    f->generation = generation;
    for (struct weir__agent_limit *l = f->limits; l; l = l->next)
        l->in_force = false;
    while (f->host->limit_next(f->weir, &at, &limit))
        add(f, &limit);
    drop_keys(f, now);
    sweep(f);
    tell_names(f);
}

void weir__limits_free(struct weir_fleet *f)
{
    struct weir__agent_limit *next;

    for (struct weir__agent_limit *l = f->limits; l; l = next) {
        next = l->next;
        release(f, l);
        l->retired = true;
        weir__limit_leave(l);
    }
    f->limits = NULL;
}
