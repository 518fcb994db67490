/* demands.c -- asks that found a purse closed.  They are demand, which decides how much the host
 * gets of what comes next; the agent hears of them once a turn.  Where there are more keys than
 * fit, some of their demand is not counted. */
#include <string.h>
#include <unistd.h>

#include "cluster/agent/agent.h"

static bool is_across(struct weir_fleet *f, const char *rule)
{
    uint32_t n = __atomic_load_n(&f->n_across, __ATOMIC_ACQUIRE);

    for (uint32_t i = 0; i < n && i < WEIR__AGENT_NAMES; i++)
        if (__atomic_load_n(&f->across[i], __ATOMIC_RELAXED) == rule)
            return true;
    return n > WEIR__AGENT_NAMES;
}

/* A key's place is the first of its few that is free or its own. */
static struct weir__agent_demand *place_of(struct weir_fleet *f, uint64_t hash,
                                           const struct weir_ruling *r, const char *key, size_t len)
{
    for (size_t i = 0; i < 4; i++) {
        struct weir__agent_demand *d = &f->demands[(hash + i) % WEIR__AGENT_DEMANDS];
        if (d->rule == NULL || (d->rule == r->rule && d->index == r->limit_index && d->len == len &&
                                memcmp(d->text, key, len) == 0))
            return d;
    }
    return NULL;
}

void weir_fleet_refused(struct weir_fleet *f, const struct weir_ruling *r, const char *key,
                        int64_t cost)
{
    size_t len = strlen(key);

    if (r->decision.reason != WEIR_LIMITED || cost <= 0 || !r->rule || !is_across(f, r->rule) ||
        f->pid != getpid()) /* a child: the mutex may be held for ever */
        return;
    uint64_t hash =
        weir__fleet_hash((uintptr_t)r->rule + r->limit_index, (struct weir_key){ key, len });
    pthread_mutex_lock(&f->mutex);
    struct weir__agent_demand *d = place_of(f, hash, r, key, len);
    if (d && d->rule == NULL) {
        *d = (struct weir__agent_demand){ .rule = r->rule,
                                          .index = r->limit_index,
                                          .len = (uint16_t)len };
        memcpy(d->text, key, len);
        f->n_demands++;
    }
    if (d)
        d->cost = cost;
    if (d && __builtin_add_overflow(d->units, cost, &d->units))
        d->units = INT64_MAX;
    pthread_mutex_unlock(&f->mutex);
}

static bool swap(struct weir_fleet *f)
{
    struct weir__agent_demand *full = f->demands;

    pthread_mutex_lock(&f->mutex);
    bool any = f->n_demands > 0;
    if (any) {
        f->demands = f->told;
        f->told = full;
        f->n_demands = 0;
    }
    pthread_mutex_unlock(&f->mutex);
    return any;
}

void weir__demands_turn(struct weir_fleet *f, weir_time now)
{
    if (!swap(f))
        return;
    for (size_t i = 0; i < WEIR__AGENT_DEMANDS; i++) {
        struct weir__agent_demand *d = &f->told[i];
        struct weir__agent_limit *l = d->rule ? weir__limit_find(f, d->rule, d->index) : NULL;
        struct weir__fleet_key *k =
            l ? weir__fleet_key_find(f->fleet, &l->fleet, (struct weir_key){ d->text, d->len })
              : NULL;
        if (k)
            weir__fleet_refused(f->fleet, k, d->units, d->cost, now);
        d->rule = NULL;
    }
}
