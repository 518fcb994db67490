/* reset.c -- makes the keys of a request fresh, by hand. */
#include "engine/rules-across-fleet.h"

/* Resets the rule's key for these facts; false: it has none, or the table has none of the rule's
 * limits.  Of a limit across the fleet, what this host has drawn: its account is
 * weir_fleet_reset's. */
static bool reset_key(struct weir *weir, uint32_t i, const struct weir__facts *facts, weir_time now)
{
    const struct weir__rule *rule = &weir->active->rules->rules[i];
    const struct weir__post *post = &weir->active->posts[i];
    unsigned char made[WEIR__KEY_MAX];
    char text[WEIR_KEY_TEXT];
    struct weir_key key;
    bool found = false;

    if (post->lever->table != weir->table || /* it only stands aside: the table has no such rule */
        !weir__rule_key(weir->table->secrets, rule, facts, made, &key))
        return false;
    if (rule->fleet)
        weir__across_key(weir, rule, facts, made, &key);
    for (size_t k = 0; k < rule->n_limits; k++) {
        weir_forget(post->limiters[k], key, now);
        found |= post->limiters[k]->table == weir->table; /* with another key it stands aside */
        if (rule->fleet)
            weir_forget(weir->active->purses[rule->first_limit + k], key, now);
    }
    struct weir_key shown = { text, weir__rule_key_text(weir__text_secrets(weir, rule), rule, facts,
                                                        text) };
    if (post->refusals != NULL)
        weir_forget(post->refusals, shown, now);
    return weir__ban_lift(weir->table, weir__ban_tag_salted(weir->table, post->ban_salt, shown),
                          now) ||
           found;
}

/* For every rule that matches, or for the one named. */
static int64_t reset_keys(struct weir *weir, const struct weir__post *only,
                          const struct weir_attr *attrs, size_t n, weir_time now)
{
    const struct weir__active *f = weir->active;
    struct weir__facts facts;
    struct weir__matches m;
    int64_t count = 0;

    weir__facts_gather(&f->attributes, f->lists, attrs, n, &facts);
    weir__matches_begin(&m, f->rules, f->rules->match, &facts);
    do
        for (size_t i = 0; i < m.n; i++)
            if (only == NULL || only == &f->posts[m.found[i]])
                count += reset_key(weir, m.found[i], &facts, now);
    while (weir__matches_more(&m));
    return count;
}

int64_t weir_reset(struct weir *weir, const char *rule, const struct weir_attr *attrs, size_t n,
                   weir_time now, struct weir_error *error)
{
    int64_t result = 0;

    pthread_mutex_lock(&weir->mutex);
    const struct weir__post *only = rule ? weir__rule_post(weir, rule, error) : NULL;
    if (rule != NULL && only == NULL)
        result = WEIR_INVALID;
    else if (weir->active != NULL)
        result = reset_keys(weir, only, attrs, n, now < 0 ? 0 : now);
    pthread_mutex_unlock(&weir->mutex);
    return result;
}
