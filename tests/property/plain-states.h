/* plain-states.h -- limits at work, and the states of their keys, found by a string. */
#ifndef WEIR_TESTS_PROPERTY_PLAIN_STATES_H
#define WEIR_TESTS_PROPERTY_PLAIN_STATES_H

#include "plain-types.h"

struct cell {
    struct cell *next;
    const struct limiter *limiter;
    char *key;
    uint64_t *state;
    bool charged; /* ever */
};

#define BUCKETS 4096

static struct cell *cells[BUCKETS];
static struct limiter *limiters;

static uint32_t hash_text(uint32_t h, const char *text)
{
    for (; *text; text++)
        h = h * 33 + (unsigned char)*text;
    return h;
}

static struct cell *plain_cell(const struct limiter *limiter, const char *key)
{
    struct cell **head = &cells[hash_text(hash_text(5381, limiter->owner), key) % BUCKETS];

    for (struct cell *c = *head; c != NULL; c = c->next)
        if (c->limiter == limiter && strcmp(c->key, key) == 0)
            return c;
    struct cell *new = calloc(1, sizeof(*new));
    *new = (struct cell){ *head, limiter, strdup(key),
                          calloc(1, weir_plan_state_size(limiter->plan) + 8), false };
    return *head = new;
}

/* A key that was never charged is in no table, and no change is told to it. */
static void plain_change(const struct limiter *limiter, const struct weir_plan *new, weir_time now)
{
    for (int i = 0; i < BUCKETS; i++)
        for (struct cell *c = cells[i]; c != NULL; c = c->next)
            if (c->limiter == limiter) {
                uint64_t *to = calloc(1, weir_plan_state_size(new) + 8);
                if (c->charged)
                    weir_step_change(limiter->plan, new, c->state, to, now);
                free(c->state);
                c->state = to;
            }
}

static struct limiter *find_limiter(const struct rule *rule, char sort, int number,
                                    const struct weir_limit *limit, char owner[400])
{
    struct limiter *l = limiters;

    snprintf(owner, 400, "%s%c%d-%s-%s", rule->name, sort, number, limit->algorithm, rule->made_of);
    while (l != NULL && strcmp(l->owner, owner) != 0)
        l = l->next;
    return l;
}

static struct weir_plan *make_plan(const struct weir_limit *limit)
{
    struct weir_plan *plan = NULL;

    if (weir_plan_create(&plan, limit, NULL) != WEIR_OK)
        abort();
    return plan;
}

static bool has_period(const struct rule *rule, int number, const struct weir_limit *limit)
{
    char owner[400];
    const struct limiter *l = find_limiter(rule, '#', number, limit, owner);

    return l != NULL && l->plan->limit.period == limit->period &&
           l->plan->limit.calendar == limit->calendar;
}

/* A limit has the first number where its period is; then the others have their place, or the first
 * that is free. */
static void plain_numbers(const struct rule *rule, int numbers[LIMITS_MAX])
{
    bool taken[LIMITS_MAX + 1] = { false };

    for (int i = 0; i < rule->limits; i++) {
        numbers[i] = 0;
        while (numbers[i] < LIMITS_MAX &&
               (taken[numbers[i]] || !has_period(rule, numbers[i], &rule->limit[i])))
            numbers[i]++;
        taken[numbers[i]] = numbers[i] < LIMITS_MAX;
    }
    for (int i = 0; i < rule->limits; i++) {
        if (numbers[i] < LIMITS_MAX)
            continue;
        numbers[i] = taken[i] ? 0 : i;
        while (taken[numbers[i]])
            numbers[i]++;
        taken[numbers[i]] = true;
    }
}

/* Whether putting this limit in force would change one that is there. */
static bool plain_would_change(const struct rule *rule, int index)
{
    char owner[400];
    int numbers[LIMITS_MAX];

    plain_numbers(rule, numbers);
    const struct limiter *l = find_limiter(rule, '#', numbers[index], &rule->limit[index], owner);
    struct weir_plan *plan = make_plan(&rule->limit[index]);
    bool would = l != NULL && !weir__limit_equal(&l->plan->limit, &plan->limit);

    weir_plan_destroy(plan);
    return would;
}

/* The limiter of that name, with this limit from now on. */
static struct limiter *plain_limiter(const struct rule *rule, char sort, int number,
                                     const struct weir_limit *limit, weir_time now)
{
    char owner[400];
    struct limiter *l = find_limiter(rule, sort, number, limit, owner);
    struct weir_plan *plan = make_plan(limit);

    if (l == NULL) {
        l = calloc(1, sizeof(*l));
        *l = (struct limiter){ limiters, strdup(owner), plan };
        return limiters = l;
    }
    if (weir__limit_equal(&l->plan->limit, &plan->limit)) {
        weir_plan_destroy(plan);
        return l;
    }
    plain_change(l, plan, now);
    weir_plan_destroy(l->plan);
    l->plan = plan;
    return l;
}

/* The set is put in force. */
static void plain_use(struct set *set, weir_time now)
{
    for (int i = 0; i < set->n; i++) {
        struct rule *r = &set->rules[i];
        int numbers[LIMITS_MAX];
        plain_numbers(r, numbers);
        for (int k = 0; k < r->limits; k++)
            r->limiter[k] = plain_limiter(r, '#', numbers[k], &r->limit[k], now);
        if (r->bans)
            r->counts = plain_limiter(r, '!', 0, &r->refusals, now);
    }
    memcpy(set->list, set->written, sizeof(set->list)); /* edited lists begin anew */
}

#endif
