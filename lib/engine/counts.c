/* counts.c -- counts of all processes on a table.
 *
 * Deciding counts in the process, where nobody else writes.  Now and then a process adds the
 * growth to the table: of a rule to the record of its lever, of requests to the totals behind the
 * header.  Only stripes that have moved since the last time are looked at.
 */
#include <string.h>

#include "engine/engine.h"

/* ------------------------------------------------------------------ share ---- */

/* Adds the growth of a count since it was last shared. */
static void add(int64_t *to, int64_t count, int64_t *shared)
{
    if (count != *shared)
        weir__count(to, count - *shared);
    *shared = count;
}

static void share_rule(const struct weir__post *post, const struct weir__tally *t,
                       struct weir__tally *shared)
{
    struct weir__tally now = { weir__get(&t->allowed), weir__get(&t->refused),
                               weir__get(&t->banned), weir__get(&t->shadow_refused) };
    struct weir__tally *to =
        memcmp(&now, shared, sizeof(now)) == 0 ? NULL : weir__limiter_counts(post->lever);

    if (to == NULL)
        return;
    add(&to->allowed, now.allowed, &shared->allowed);
    add(&to->refused, now.refused, &shared->refused);
    add(&to->banned, now.banned, &shared->banned);
    add(&to->shadow_refused, now.shadow_refused, &shared->shadow_refused);
}

void weir__counts_share(struct weir *weir, struct weir__active *active)
{
    size_t n = active->rules->n_rules;

    for (size_t i = 0; i < WEIR__STRIPES; i++) {
        uint64_t turn = weir__acquire(&weir->stripes[i].turn);
        if (turn == active->shared_turns[i])
            continue;
        for (size_t rule = 0; rule < n; rule++)
            share_rule(&active->posts[rule], &active->tally[i * n + rule],
                       &active->shared[i * n + rule]);
        active->shared_turns[i] = turn;
    }
}

static struct weir__totals *totals_of(const struct weir_table *table)
{
    return (struct weir__totals *)((unsigned char *)table->header + WEIR__TOTALS_AT);
}

static void share_totals(struct weir *weir)
{
    struct weir__totals *to = totals_of(weir->table), *shared = &weir->shared;
    struct weir_totals t;

    weir_totals_get(weir, &t);
    add(&to->allowed, t.allowed, &shared->allowed);
    add(&to->refused, t.refused, &shared->refused);
    add(&to->denied, t.denied, &shared->denied);
    add(&to->allow_listed, t.allow_listed, &shared->allow_listed);
    add(&to->unmatched, t.unmatched, &shared->unmatched);
    add(&to->shadow_refused, t.shadow_refused, &shared->shadow_refused);
}

void weir_counts_share(struct weir *weir)
{
    if (weir->aside != NULL) /* it only looks */
        return;
    pthread_mutex_lock(&weir->mutex);
    weir->shares = true;
    share_totals(weir);
    if (weir->active != NULL)
        weir__counts_share(weir, weir->active);
    pthread_mutex_unlock(&weir->mutex);
}

/* ------------------------------------------------------------------- read ---- */

void weir_totals_shared(struct weir *weir, struct weir_totals *out)
{
    const struct weir__totals *t = totals_of(weir->table);

    *out = (struct weir_totals){ .allowed = weir__get(&t->allowed),
                                 .refused = weir__get(&t->refused),
                                 .denied = weir__get(&t->denied),
                                 .allow_listed = weir__get(&t->allow_listed),
                                 .unmatched = weir__get(&t->unmatched),
                                 .shadow_refused = weir__get(&t->shadow_refused) };
    out->checked = (int64_t)((uint64_t)out->allowed + (uint64_t)out->refused);
}

bool weir_rule_next_shared(struct weir *weir, int64_t *at, struct weir_rule_info *out)
{
    int64_t rule = *at;

    if (!weir_rule_next(weir, at, out))
        return false;
    const struct weir__active *active;
    struct weir__stripe *stripe = weir__engine_hold(weir, &active);
    struct weir__tally t = { 0 };
    if ((uint64_t)rule < active->rules->n_rules)
        (void)weir__limiter_read_counts(active->posts[rule].lever, &t);
    weir__engine_release(stripe);
    out->allowed = t.allowed;
    out->refused = (int64_t)((uint64_t)t.refused + (uint64_t)t.banned); /* any bytes */
    out->banned = t.banned;
    out->shadow_refused = t.shadow_refused;
    return true;
}
