/* explain.c -- every rule's answer to a request, and why; nothing is taken.
 *
 * Slow and thorough where check.c is quick: every rule's conditions are tried one by one, not
 * through the index, which makes this a second opinion on it.
 */
#include "engine/rules-across-fleet.h"

static void tell_attribute(struct weir__explained *e, const struct weir__active *f,
                           const struct weir__facts *facts, uint16_t attribute)
{
    if (f->attributes.loose > 0 && attribute == f->attributes.loose)
        attribute = (uint16_t)f->attributes.uri; /* as it was given */
    const struct weir__value *v = &facts->values[attribute];

    e->attribute = f->attributes.names[attribute];
    e->value = v->len ? v->text : NULL;
    e->value_len = v->len;
}

static enum weir__why try_clauses(struct weir__explained *e, const struct weir__active *f,
                                  const struct weir__rule *rule, const struct weir__facts *facts)
{
    const struct weir__clause *clauses = f->rules->clauses + rule->clauses_first;

    for (uint32_t i = 0; i < (uint32_t)rule->matches + rule->excepts; i++) {
        bool wanted = i < rule->matches;
        if (weir__clause_holds(f->rules, &clauses[i], facts) == wanted)
            continue;
        tell_attribute(e, f, facts, clauses[i].attribute);
        e->condition = wanted ? &rule->draft->match[i] : &rule->draft->except[i - rule->matches];
        return wanted ? WEIR__UNMATCHED : WEIR__EXCEPTED;
    }
    return WEIR__APPLIES;
}

static enum weir__why missing_part(struct weir__explained *e, const struct weir__active *f,
                                   const struct weir__rule *rule, const struct weir__facts *facts)
{
    for (size_t i = 0; i < rule->key.n; i++) {
        if (facts->values[rule->parts[i].attribute].len != 0 || rule->parts[i].fallback != NULL)
            continue;
        tell_attribute(e, f, facts, rule->parts[i].attribute);
        break;
    }
    return WEIR__NO_KEY;
}

/* Of a limit across the fleet the table has a purse and a part: they differ from it. */
static void peek_across(struct weir__explained_limit *l, enum weir__across how,
                        struct weir_limiter *limiter, struct weir_ask ask)
{
    if (how == WEIR__ACROSS_OPEN)
        ask.cost = 0;
    weir_peek(limiter, &ask, &l->decision);
    if (how == WEIR__ACROSS_OPEN)
        (void)weir__grant(&l->decision, 0);
    if (how != WEIR__ACROSS_CLOSED)
        return;
    (void)weir__refuse(&l->decision, WEIR__ALONE_RETRY);
    l->decision.reason = WEIR_ALONE;
}

static void peek_limit(struct weir__explained_limit *l, struct weir_limiter *limiter,
                       const struct weir_ask *ask)
{
    struct weir_plan plan;
    const struct weir_plan *present = &weir__limiter_era(limiter)->plan;

    weir_peek(limiter, ask, &l->decision);
    if (weir__plan_make(&plan, l->limit, NULL) == WEIR_OK &&
        !weir__limit_equal(&plan.limit, &present->limit))
        l->present = weir__plan_limit_named(present);
}

static void peek_limits(struct weir__explained *e, const struct weir__active *f,
                        const struct weir__rule *rule, struct weir_key key,
                        const struct weir_ask *ask)
{
    e->n_limits = rule->n_limits;
    for (size_t i = 0; i < e->n_limits; i++) {
        struct weir_ask own = {
            .key = key, .cost = e->cost, .wait_max = ask->wait_max, .now = ask->now
        };
        e->limits[i] = (struct weir__explained_limit){ .limit = &rule->draft->limits[i] };
        size_t at = rule->first_limit + i;
        if (e->across == WEIR__ACROSS_HOST)
            peek_limit(&e->limits[i], f->limiters[at], &own);
        else
            peek_across(&e->limits[i], e->across,
                        e->across == WEIR__ACROSS_PURSE ? f->purses[at] : f->limiters[at], own);
    }
}

/* As check.c has it. */
static enum weir__across across_of(const struct weir *weir, const struct weir__active *f, size_t i,
                                   enum weir_mode mode, weir_time now)
{
    if (!f->rules->rules[i].fleet)
        return WEIR__ACROSS_HOST;
    if (mode == WEIR_ENFORCE)
        return weir__across_now(weir, f, (uint32_t)i, now, NULL);
    return weir__fleet_until(weir->table) == 0 ? WEIR__ACROSS_NONE : WEIR__ACROSS_SHARE;
}

/* Until when the rule bans its key of these facts, and that key's text. */
static weir_time banned_until_of(struct weir *weir, const struct weir__active *f, size_t i,
                                 const struct weir__facts *facts, char text[WEIR_KEY_TEXT],
                                 weir_time now)
{
    const struct weir__rule *rule = &f->rules->rules[i];
    struct weir_key key = { text, weir__rule_key_text(weir__text_secrets(weir, rule), rule, facts,
                                                      text) };

    return weir__ban_peek(weir->table, weir__ban_tag_salted(weir->table, f->posts[i].ban_salt, key),
                          now);
}

static void explain_rule(struct weir__explained *e, struct weir *weir, const struct weir__active *f,
                         size_t i, const struct weir__facts *facts, const struct weir_ask *ask)
{
    const struct weir__rule *rule = &f->rules->rules[i];
    unsigned char made[WEIR__KEY_MAX];
    struct weir_key key;

    *e = (struct weir__explained){ .rule = rule->draft,
                                   .mode =
                                       weir__post_mode(&f->posts[i], weir__active_mode(weir, f)) };
    e->why = try_clauses(e, f, rule, facts);
    bool has_key = weir__rule_key(weir->table->secrets, rule, facts, made, &key);
    if (e->why == WEIR__APPLIES && !has_key)
        e->why = missing_part(e, f, rule, facts);
    weir_time banned_until = has_key ? banned_until_of(weir, f, i, facts, e->key, ask->now) : 0;
    if (e->why != WEIR__APPLIES) {
        e->stays_banned = banned_until != 0 && e->key[0] != '\0';
        e->key[0] = '\0';
        return;
    }
    e->banned_until = banned_until;
    e->cost = weir__rule_cost(rule, facts, ask->cost);
    e->across = across_of(weir, f, i, e->mode, ask->now);
    if (rule->fleet)
        weir__across_key(weir, rule, facts, made, &key);
    peek_limits(e, f, rule, key, ask);
    if (e->mode == WEIR_OFF)
        e->why = WEIR__SWITCHED_OFF;
}

static void tell_list(struct weir__explanation *out, const struct weir__active *f,
                      const struct weir__facts *facts)
{
    for (size_t i = 0; i < f->denies + f->allows && out->list == NULL; i++) {
        bool deny = i < f->denies;
        int attribute = deny ? f->deny[i].attribute : f->allow[i - f->denies].attribute;
        const struct weir__list *l =
            &f->lists->lists[deny ? f->deny[i].list : f->allow[i - f->denies].list];
        const struct weir__value *v = &facts->values[attribute];
        if (v->len == 0 || !weir__list_has(l, v->text, v->len, &v->address))
            continue;
        out->list = deny ? "deny" : "allow";
        out->list_attribute = f->attributes.names[attribute];
    }
}

void weir__engine_explain(struct weir *weir, const struct weir_attr *attrs, size_t n,
                          const struct weir_ask *ask, struct weir__explanation *out,
                          void (*each)(void *context, const struct weir__explained *rule),
                          void *context)
{
    struct weir__facts facts;
    struct weir__explained e;

    *out = (struct weir__explanation){ .mode = WEIR_ENFORCE };
    weir__check_peek(weir, attrs, n, ask, &out->ruling);
    const struct weir__active *f;
    struct weir__stripe *stripe = weir__engine_hold(weir, &f);
    if (f != NULL) {
        out->mode = weir__active_mode(weir, f);
        weir__facts_gather(&f->attributes, f->lists, attrs, n, &facts);
        tell_list(out, f, &facts);
        for (size_t i = 0; i < f->rules->n_rules; i++) {
            explain_rule(&e, weir, f, i, &facts, ask);
            each(context, &e);
        }
    }
    weir__engine_release(stripe);
}

/* ---------------------------------------------------------------- guards ---- */

/* The guard's answer to any request, from its state alone. */
static enum weir_reason reason_of(const struct weir__guard_draft *g,
                                  const struct weir_guard_info *info,
                                  const struct weir_table *table, weir_time now)
{
    if (g->options.degrade > 0 && weir_degradation_get(table, NULL) >= g->options.degrade)
        return WEIR_DEGRADED;
    if (info->breaker == WEIR_BREAKER_OPEN && info->retry_at > now) /* then it is tried */
        return WEIR_OPEN;
    return info->in_flight >= info->limit && info->in_flight > 0 && !g->options.adaptive.rate
               ? WEIR_BUSY
               : WEIR_GRANTED;
}

static void explain_guard(struct weir__explained_guard *e, struct weir *weir,
                          const struct weir__active *f, uint32_t i, const struct weir__facts *facts,
                          const struct weir_ask *ask)
{
    const struct weir__rule *rule = &f->rules->rules[f->rules->n_rules + i];
    unsigned char made[WEIR__KEY_MAX];
    struct weir_ask own;
    struct weir_key user;

    *e = (struct weir__explained_guard){ .guard = f->rules->guards[i].draft };
    e->as_rule = (struct weir__explained){ .rule = rule->draft };
    e->as_rule.mode = weir__post_mode(&f->posts[f->rules->n_rules + i], weir__active_mode(weir, f));
    e->as_rule.why = try_clauses(&e->as_rule, f, rule, facts);
    if (e->as_rule.why == WEIR__APPLIES && e->as_rule.mode == WEIR_OFF)
        e->as_rule.why = WEIR__SWITCHED_OFF;
    if (rule->key_kind != WEIR__KEY_NONE &&
        weir__rule_key(weir->table->secrets, rule, facts, made, &user))
        weir__rule_key_text(weir->table->secrets, rule, facts, e->as_rule.key);
    weir__guard_ask(f->rules, i, weir->table->secrets, facts, ask, made, &own);
    e->priority = own.priority;
    e->user_class = own.user_class;
    weir__guard_peek(f->stations[i].guard, own.now, &e->info);
    e->reason = reason_of(e->guard, &e->info, weir->table, own.now);
    if (weir__guard_key(&f->rules->guards[i], weir->table->secrets, facts, made, &user)) {
        weir__rule_key_text(weir->table->secrets, &f->rules->guards[i].by_key, facts, e->key);
        e->key_in_flight = weir_guard_key_in_flight(f->stations[i].guard, user);
        if (e->reason != WEIR_DEGRADED && e->reason != WEIR_OPEN &&
            e->key_in_flight >= e->guard->options.max_per_key)
            e->reason = WEIR_KEY_BUSY;
    }
    e->refuses = e->reason != WEIR_GRANTED;
}

void weir__engine_explain_guards(
    struct weir *weir, const struct weir_attr *attrs, size_t n, const struct weir_ask *ask,
    void (*each)(void *context, const struct weir__explained_guard *guard), void *context)
{
    struct weir__facts facts;
    struct weir__explained_guard e;
    const struct weir__active *f;
    struct weir__stripe *stripe = weir__engine_hold(weir, &f);

    if (f != NULL) {
        weir__facts_gather(&f->attributes, f->lists, attrs, n, &facts);
        int entered = 0; /* guards in shadow have the room that is left */
        for (uint32_t i = 0; i < f->rules->n_guards; i++) {
            explain_guard(&e, weir, f, i, &facts, ask);
            entered += e.as_rule.why == WEIR__APPLIES && e.as_rule.mode == WEIR_ENFORCE;
            if (entered > WEIR_ENTRY_MAX && e.as_rule.mode == WEIR_ENFORCE)
                e.reason = WEIR_TOO_MANY, e.refuses = true;
            each(context, &e);
        }
    }
    weir__engine_release(stripe);
}

/* -------------------------------------------------------------- applying ---- */

/* Adds the rule's limits; returns the new number. */
static size_t add_applying(const struct weir *weir, const struct weir__active *f, uint32_t i,
                           const struct weir__facts *facts, struct weir__applying *out,
                           size_t count, size_t max)
{
    const struct weir__rule *rule = &f->rules->rules[i];
    unsigned char made[WEIR__KEY_MAX];
    struct weir_key key;

    if (!weir__rule_key(weir->table->secrets, rule, facts, made, &key))
        return count;
    for (size_t k = 0; k < rule->n_limits && count < max; k++, count++) {
        struct weir__applying *a = &out[count];
        weir__rule_key_text(weir->table->secrets, rule, facts, a->text);
        a->rule = i;
        a->index = k;
        a->limit = &rule->draft->limits[k];
        a->cost = weir__rule_cost(rule, facts, 1);
    }
    return count;
}

size_t weir__engine_applying(struct weir *weir, const struct weir_attr *attrs, size_t n,
                             struct weir__applying *out, size_t max)
{
    const struct weir__active *f;
    struct weir__stripe *stripe = weir__engine_hold(weir, &f);
    size_t count = 0;
    struct weir__facts facts;
    struct weir__matches m;

    if (f != NULL) {
        weir__facts_gather(&f->attributes, f->lists, attrs, n, &facts);
        weir__matches_begin(&m, f->rules, f->rules->match, &facts);
        do
            for (size_t i = 0; i < m.n; i++)
                count = add_applying(weir, f, m.found[i], &facts, out, count, max);
        while (weir__matches_more(&m));
    }
    weir__engine_release(stripe);
    return count;
}
