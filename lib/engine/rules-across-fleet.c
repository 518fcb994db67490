/* rules-across-fleet.c -- rules across the fleet: their limits, their keys, and what decides
 * them now. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/rules-across-fleet.h"

/* ------------------------------------------------------------------ keys ---- */

void weir__across_key(const struct weir *weir, const struct weir__rule *rule,
                      const struct weir__facts *facts, unsigned char made[WEIR__KEY_MAX],
                      struct weir_key *key)
{
    if (key->len > WEIR__KEY_MAX)
        (void)weir__rule_key_make(weir->table->secrets, rule, facts, made, key);
}

void weir__public_numbers(uint64_t numbers[WEIR__HASH_SECRETS])
{
    uint64_t seed = 0x7765697220666c74u;

    for (size_t i = 0; i < WEIR__HASH_SECRETS; i++)
        numbers[i] = weir__mix64(seed += WEIR__GOLDEN);
}

/* --------------------------------------------------------------- deciding ---- */

/* A limiter cannot say that nothing passes. */
static bool has_shares(const struct weir__active *active, const struct weir__rule *rule,
                       uint32_t part)
{
    for (uint32_t k = 0; k < rule->n_limits; k++) {
        struct weir_limiter *share = active->limiters[rule->first_limit + k];
        bool meter = weir__limiter_era(share)->plan.capacity > 0;
        if (!weir__fleet_has_share(&rule->draft->limits[k], meter, part))
            return false;
    }
    return true;
}

enum weir__across weir__across_alone(const struct weir *weir, const struct weir__active *active,
                                     uint32_t i)
{
    const struct weir__rule *rule = &active->rules->rules[i];
    uint32_t part = weir__fleet_part(weir->table);

    if (part == WEIR__FLEET_WHOLE && weir__fleet_until(weir->table) == 0)
        return WEIR__ACROSS_NONE;
    if (rule->draft->when_alone == WEIR__ALONE_OPEN)
        return WEIR__ACROSS_OPEN;
    return rule->draft->when_alone == WEIR__ALONE_CLOSED || !has_shares(active, rule, part)
               ? WEIR__ACROSS_CLOSED
               : WEIR__ACROSS_SHARE;
}

bool weir__is_alone(const struct weir__alone_rules *alone, const struct weir__active *active,
                    uint32_t rule)
{
    if (alone->open && active->rules->rules[rule].draft->when_alone == WEIR__ALONE_OPEN)
        return true;
    for (size_t i = 0; !alone->all && i < alone->n; i++)
        if (strcmp(alone->rules[i], active->posts[rule].name) == 0)
            return true;
    return alone->all;
}

/* ------------------------------------------------------------------ dues ---- */

struct listing {
    const struct weir *weir;
    const struct weir__active *active;
    const struct weir__facts *facts;
    int64_t cost; /* of the ask */
    struct weir__due *out;
    size_t n, max;
};

static weir_time within_of(const struct weir__rule *rule)
{
    return rule->draft->within > 0 ? rule->draft->within : WEIR__WITHIN;
}

static void add_dues(struct listing *l, uint32_t i)
{
    const struct weir__rule *rule = &l->active->rules->rules[i];
    enum weir_mode all = weir__active_mode(l->weir, l->active);
    unsigned char made[WEIR__KEY_MAX];
    struct weir_key key;

    if (!rule->fleet || weir__post_mode(&l->active->posts[i], all) != WEIR_ENFORCE ||
        !weir__rule_key(l->weir->table->secrets, rule, l->facts, made, &key))
        return;
    weir__across_key(l->weir, rule, l->facts, made, &key);
    for (uint32_t k = 0; k < rule->n_limits && l->n < l->max; k++) {
        struct weir__due *due = &l->out[l->n++];
        due->rule = l->active->posts[i].name;
        due->index = k;
        due->cost = weir__rule_cost(rule, l->facts, l->cost);
        due->within = within_of(rule);
        due->text_len =
            (uint16_t)weir__rule_key_text(l->weir->public_numbers, rule, l->facts, due->text);
        due->own_len = (uint16_t)key.len;
        memcpy(due->own, key.bytes, key.len);
    }
}

size_t weir__dues(struct weir *weir, const struct weir_attr *attrs, size_t n,
                  const struct weir_ask *ask, struct weir__due *out, size_t max)
{
    const struct weir__active *active;
    struct weir__stripe *stripe = weir__engine_hold(weir, &active);
    struct weir__facts facts;
    struct weir__matches m;
    struct listing l = { weir, active, &facts, ask->cost, out, 0, max };

    if (active != NULL) {
        weir__facts_gather(&active->attributes, active->lists, attrs, n, &facts);
        weir__matches_begin(&m, active->rules, active->rules->match, &facts);
        do
            for (size_t i = 0; i < m.n; i++)
                add_dues(&l, m.found[i]);
        while (weir__matches_more(&m));
    }
    weir__engine_release(stripe);
    return l.n;
}

/* -------------------------------------------------------------- in force ---- */

uint64_t weir__across_generation(const struct weir *weir)
{
    return __atomic_load_n(&weir->generation, __ATOMIC_ACQUIRE);
}

/* The rule that has the limit of this number. */
static const struct weir__rule *rule_of(const struct weir_rules *rules, size_t limit)
{
    size_t low = 0, high = rules->n_rules;

    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (rules->rules[middle].first_limit <= limit)
            low = middle;
        else
            high = middle;
    }
    return &rules->rules[low];
}

struct kind {
    char text[128];
};

/* An account can follow counts: they are not part of it.  Between two windows nothing can be kept
 * that is right for both: nodes with two versions of the rules would open them for each other.  And
 * the debt of a minute would spend a bucket of a second that is added to a rule. */
static struct kind kind_of(const struct weir_limit *limit)
{
    struct weir_limit l = *limit;
    struct kind kind;

    l.algorithm = weir__limit_algorithm(limit);
    l.count = 1;
    l.burst = l.queue = 0;
    weir_limit_print(kind.text, sizeof(kind.text), &l);
    return kind;
}

static void name_account(const struct weir *weir, const struct weir__rule *rule, uint32_t index,
                         char out[WEIR__ACCOUNT_NAME])
{
    const struct weir_limit *limits = rule->draft->limits;
    struct kind mine = kind_of(&limits[index]);
    uint32_t before = 0; /* of its kind */

    for (uint32_t k = 0; k < index; k++) {
        struct kind other = kind_of(&limits[k]);
        before += strcmp(other.text, mine.text) == 0;
    }
    struct weir_key text = { mine.text, strlen(mine.text) };
    snprintf(out, WEIR__ACCOUNT_NAME, "%" PRIu32 ".%08" PRIx32, before,
             (uint32_t)weir__hash_key(weir->public_numbers, 0, text).tag);
}

static void view(const struct weir *weir, const struct weir__active *active, size_t limit,
                 struct weir__across_limit *out)
{
    const struct weir__rule *rule = rule_of(active->rules, limit);
    uint32_t index = (uint32_t)limit - rule->first_limit;

    *out = (struct weir__across_limit){
        .rule = active->posts[rule - active->rules->rules].name,
        .index = index,
        .limit = rule->draft->limits[index],
        .within = within_of(rule),
        .when_alone = (enum weir__alone)rule->draft->when_alone,
    };
    name_account(weir, rule, index, out->account);
    weir__limiter_name(out->purse, rule, '$', index, &out->limit);
    weir__limiter_name(out->share, rule, '#', index, &out->limit);
}

bool weir__across_next(struct weir *weir, int64_t *at, struct weir__across_limit *out)
{
    const struct weir__active *active;
    struct weir__stripe *stripe = weir__engine_hold(weir, &active);
    size_t i = (size_t)*at, n = active != NULL ? active->rules->n_limits : 0;

    while (i < n && active->purses[i] == NULL)
        i++;
    if (i < n)
        view(weir, active, i, out);
    *at = (int64_t)i + 1;
    weir__engine_release(stripe);
    return i < n;
}

const char *weir_fleet_rule(struct weir *weir)
{
    struct weir__across_limit limit;

    return weir__across_next(weir, &(int64_t){ 0 }, &limit) ? limit.rule : NULL;
}

const char *weir__lonely_rule(struct weir *weir, size_t *n)
{
    struct weir__across_limit limit;
    const char *first = NULL;

    *n = 0;
    if (weir__fleet_until(weir->table) != 0)
        return NULL;
    for (int64_t at = 0; weir__across_next(weir, &at, &limit);) {
        *n += limit.index == 0;
        first = first ? first : limit.rule;
    }
    return first;
}

void weir__engine_leave_fleet(struct weir *weir)
{
    weir__fleet_forget(weir->table, weir_table_now(weir->table));
}

/* ------------------------------------------------------------------ part ---- */

/* With the mutex held. */
static int change_shares(struct weir *weir, uint32_t part, weir_time now, struct weir_error *error)
{
    const struct weir__active *f = weir->active;
    int code = WEIR_OK;

    for (size_t i = 0; f != NULL && i < f->rules->n_limits; i++) {
        const struct weir__rule *rule = f->purses[i] ? rule_of(f->rules, i) : NULL;
        struct weir_limit share;
        if (rule == NULL ||
            !weir__fleet_share_limit(&share, &rule->draft->limits[i - rule->first_limit], part))
            continue;
        int failed = weir_limiter_change(f->limiters[i], &share, now, error);
        code = failed ? failed : code;
    }
    return code;
}

/* Until the shares are those of the word: another process may set it meanwhile. */
static int follow(struct weir *weir, weir_time now, struct weir_error *error)
{
    uint32_t part;
    int code;

    do {
        part = weir__fleet_part(weir->table);
        code = change_shares(weir, part, now, error);
    } while (part != weir__fleet_part(weir->table));
    return code;
}

/* The word comes first: a process that puts rules in force meanwhile looks at it last. */
int weir__fleet_part_set(struct weir *weir, uint32_t word, weir_time now, struct weir_error *error)
{
    pthread_mutex_lock(&weir->mutex);
    __atomic_store_n(&weir->table->header->fleet_part, word, __ATOMIC_SEQ_CST);
    int code = follow(weir, now, error);
    pthread_mutex_unlock(&weir->mutex);
    return code;
}

void weir__across_follow(struct weir *weir, weir_time now)
{
    (void)follow(weir, now, NULL);
}
