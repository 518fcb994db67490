/* engine.c -- rules at work on a table: making one, and putting rules in force while requests are
 * being decided.  engine.h says which thread may touch it. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/rules-across-fleet.h"
#include "engine/fleet-host.h"
#include "engine/explain.h"

#define PRIVATE_LIMITERS 65536
#define PRIVATE_SLAB_A_KEY \
    16384 /* room for about forty sliding windows of all keys; only used pages take memory */
#define PRIVATE_KEYS   65536
#define PRIVATE_GUARDS 1024

/* ------------------------------------------------------------- stripes ---- */

_Static_assert(WEIR__STRIPES == 1 << 6, "the hint below has 6 bits");

struct weir__stripe *weir__engine_hold(struct weir *weir, const struct weir__active **active)
{
    size_t first = weir__thread_hint(6);

    for (size_t i = 0;; i++) {
        struct weir__stripe *stripe = &weir->stripes[(first + i) % WEIR__STRIPES];
        uint64_t *turn = &stripe->turn, rest = weir__get(turn);
        if (rest % 2 == 0 && __atomic_compare_exchange_n(turn, &rest, rest + 1, false,
                                                         __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
            *active = __atomic_load_n(&weir->active, __ATOMIC_SEQ_CST);
            return stripe;
        }
        if (i % WEIR__STRIPES == WEIR__STRIPES - 1)
            sched_yield(); /* more threads than stripes */
    }
}

/* Waits until no thread can be reading the old rules. */
static void wait_for_checks(const struct weir *weir)
{
    for (size_t i = 0; i < WEIR__STRIPES; i++) {
        uint64_t turn = __atomic_load_n(&weir->stripes[i].turn, __ATOMIC_SEQ_CST);
        while (turn % 2 == 1 && weir__acquire(&weir->stripes[i].turn) == turn)
            sched_yield();
    }
}

/* ---------------------------------------------------------------- swap ---- */

static struct weir__tally sum(const struct weir__active *active, size_t rule)
{
    struct weir__tally t = { 0 };

    for (size_t s = 0; s <= WEIR__STRIPES; s++) {
        const struct weir__tally *more = &active->tally[s * active->rules->n_rules + rule];
        t.allowed += weir__get(&more->allowed);
        t.refused += weir__get(&more->refused);
        t.banned += weir__get(&more->banned);
        t.shadow_refused += weir__get(&more->shadow_refused);
    }
    return t;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct weir__post *)*(const void *const *)a)->name,
                  ((const struct weir__post *)*(const void *const *)b)->name);
}

/* Rules of the same name keep their counts; without memory for sorting, counts start at 0. */
static void carry_tallies(struct weir__active *to, const struct weir__active *from)
{
    size_t n = from->rules->n_rules;
    const struct weir__post **sorted = malloc((n + 1) * sizeof(*sorted));

    if (sorted == NULL)
        return;
    for (size_t i = 0; i < n; i++)
        sorted[i] = &from->posts[i];
    qsort(sorted, n, sizeof(*sorted), by_name);
    for (size_t i = 0; i < to->rules->n_rules; i++) {
        const struct weir__post *wanted = &to->posts[i];
        const struct weir__post **hit = bsearch(&wanted, sorted, n, sizeof(*sorted), by_name);
        if (hit != NULL)
            to->tally[WEIR__STRIPES * to->rules->n_rules + i] =
                sum(from, (size_t)(*hit - from->posts));
    }
    free(sorted);
}

/* The numbers given by weir_attribute, for these rules. */
static void number_attributes(const struct weir *weir, struct weir__active *active)
{
    for (size_t i = 1; i <= weir->n_attributes; i++) {
        int at = weir__attribute_find(&active->attributes, weir->attributes[i],
                                      strlen(weir->attributes[i]));
        weir__set(&active->attributes.by_id[i], (uint8_t)(at + 1));
    }
}

/* The number of a name, or 0; `copy` becomes the engine's if it is new.  With the mutex held. */
static size_t number_of(struct weir *weir, char *copy)
{
    size_t i = 1;

    while (i <= weir->n_attributes && strcmp(weir->attributes[i], copy) != 0)
        i++;
    if (i <= weir->n_attributes || i == sizeof(weir->attributes) / sizeof(*weir->attributes)) {
        free(copy);
        return i <= weir->n_attributes ? i : 0;
    }
    weir->attributes[++weir->n_attributes] = copy;
    if (weir->active != NULL)
        number_attributes(weir, weir->active);
    return i;
}

bool weir__engine_uses(struct weir *weir, const char *name, size_t len)
{
    const struct weir__active *active;
    struct weir__stripe *stripe = weir__engine_hold(weir, &active);
    bool used = active != NULL && weir__attribute_find(&active->attributes, name, len) >= 0;

    weir__engine_release(stripe);
    return used;
}

uint32_t weir_attribute(struct weir *weir, const char *name)
{
    size_t len = strlen(name), number = 0;
    char *copy = len > 0 && len < WEIR__ATTRIBUTE_SIZE ? weir__attribute_small(name) : NULL;

    pthread_mutex_lock(&weir->mutex);
    if (copy != NULL)
        number = number_of(weir, copy);
    pthread_mutex_unlock(&weir->mutex);
    return (uint32_t)number;
}

void weir__engine_swap(struct weir *weir, struct weir__active *active)
{
    number_attributes(weir, active);
    struct weir__active *old = __atomic_exchange_n(&weir->active, active, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&weir->generation, 1, __ATOMIC_RELEASE);
    wait_for_checks(weir);
    if (old == NULL)
        return;
    if (weir->shares)
        weir__counts_share(weir, old);
    carry_tallies(active, old);
    if (old->rules == active->rules)
        old->rules = NULL; /* only the lists were edited */
    else
        weir__active_leave(weir, old, true);
    weir__active_destroy(old);
}

/* A degradation that rules push comes and goes with them.  One set by hand since then stays until
 * rules push another. */
static void push_degradation(struct weir *weir, const struct weir_rules *rules, weir_time now)
{
    if (weir->aside == NULL && (weir->active == NULL || weir->active->rules->draft->degradation !=
                                                            rules->draft->degradation))
        weir__degradation_push(weir->table, rules->draft->degradation, now);
}

void weir__engine_use(struct weir *weir, struct weir__active *active, weir_time now)
{
    pthread_mutex_lock(&weir->mutex);
    push_degradation(weir, active->rules, now);
    weir__engine_swap(weir, active);
    if (weir->aside == NULL)
        weir__across_follow(weir, now);
    pthread_mutex_unlock(&weir->mutex);
}

int weir_use(struct weir *weir, struct weir_rules *rules, weir_time now, struct weir_error *error)
{
    struct weir_prepared *prepared;
    int code = weir_prepare(&prepared, weir, rules, error);

    if (code == WEIR_OK)
        weir_commit(prepared, now);
    return code;
}

/* ------------------------------------------------------------- in force ---- */

bool weir_rule_next(struct weir *weir, int64_t *at, struct weir_rule_info *out)
{
    const struct weir__active *active;
    struct weir__stripe *stripe = weir__engine_hold(weir, &active);
    bool is = active != NULL && (uint64_t)*at < active->rules->n_rules;

    if (is) {
        size_t i = (size_t)(*at)++;
        const struct weir__post *post = &active->posts[i];
        struct weir__tally t = sum(active, i);
        *out =
            (struct weir_rule_info){ .name = post->name,
                                     .written = post->mode,
                                     .switched = weir__limiter_mode(post->lever),
                                     .mode = weir__post_mode(post, weir__active_mode(weir, active)),
                                     .allowed = t.allowed,
                                     .refused = t.refused + t.banned,
                                     .banned = t.banned,
                                     .shadow_refused = t.shadow_refused };
    }
    weir__engine_release(stripe);
    return is;
}

/* Not of a limit across a fleet, which changes all the time. */
static bool has_other_limit(const struct weir__active *active, size_t rule,
                            struct weir__other_limit *out)
{
    const struct weir__rule *r = &active->rules->rules[rule];
    struct weir_plan written;

    for (size_t i = 0; !r->fleet && i < r->draft->n_limits; i++) {
        const struct weir_plan *plan =
            &weir__limiter_era(active->limiters[r->first_limit + i])->plan;
        if (weir__plan_make(&written, &r->draft->limits[i], NULL) != WEIR_OK ||
            weir__limit_equal(&plan->limit, &written.limit))
            continue;
        struct weir_limit there = weir__plan_limit_named(plan),
                          here = weir__plan_limit_named(&written);
        snprintf(out->rule, sizeof(out->rule), "%s", active->posts[rule].name);
        weir_limit_print(out->limit, sizeof(out->limit), &there);
        weir_limit_print(out->written, sizeof(out->written), &here);
        return true;
    }
    return false;
}

bool weir__other_limit_next(struct weir *weir, int64_t *at, struct weir__other_limit *out)
{
    const struct weir__active *active;
    struct weir__stripe *stripe = weir__engine_hold(weir, &active);
    bool found = false;

    while (!found && active != NULL && (uint64_t)*at < active->rules->n_rules)
        found = has_other_limit(active, (size_t)(*at)++, out);
    weir__engine_release(stripe);
    return found;
}

void weir_modes_get(struct weir *weir, struct weir_modes *out)
{
    const struct weir__active *active;
    struct weir__stripe *stripe = weir__engine_hold(weir, &active);
    enum weir_mode written = active != NULL ? active->mode : WEIR_ENFORCE,
                   by_hand = weir__table_mode(weir->table);

    *out = (struct weir_modes){ written, by_hand, by_hand == WEIR_AS_WRITTEN ? written : by_hand };
    weir__engine_release(stripe);
}

bool weir_list_next(struct weir *weir, int64_t *at, struct weir_list_info *out)
{
    const struct weir__active *active;
    struct weir__stripe *stripe = weir__engine_hold(weir, &active);
    bool is = active != NULL && (uint64_t)*at < active->lists->n;

    if (is) {
        const struct weir__list *l = &active->lists->lists[(*at)++];
        snprintf(out->name, sizeof(out->name), "%s", l->name);
        snprintf(out->attribute, sizeof(out->attribute), "%s", l->attribute);
        out->entries = l->n;
    }
    weir__engine_release(stripe);
    return is;
}

bool weir_attribute_next(struct weir *weir, int64_t *at, char name[WEIR__ATTRIBUTE_SIZE])
{
    const struct weir__active *active;
    struct weir__stripe *stripe = weir__engine_hold(weir, &active);

    if (active != NULL && *at > 0 && *at == active->attributes.loose)
        ++*at; /* no request has it */
    bool is = active != NULL && (uint64_t)*at < active->attributes.n;
    if (is)
        memcpy(name, active->attributes.names[(*at)++], WEIR__ATTRIBUTE_SIZE);
    weir__engine_release(stripe);
    return is;
}

void weir_totals_get(struct weir *weir, struct weir_totals *out)
{
    struct weir_totals t = { 0 };

    for (size_t i = 0; i < WEIR__STRIPES; i++) {
        const struct weir__stripe *s = &weir->stripes[i];
        t.allowed += weir__get(&s->allowed);
        t.refused += weir__get(&s->refused);
        t.denied += weir__get(&s->denied);
        t.allow_listed += weir__get(&s->allow_listed);
        t.unmatched += weir__get(&s->unmatched);
        t.shadow_refused += weir__get(&s->shadow_refused);
    }
    t.checked = t.allowed + t.refused;
    *out = t;
}

/* ------------------------------------------------------------ creation ---- */

/* If address space is scarce, tries with less room for sliding windows. */
static int make_table(struct weir *weir, int64_t keys, struct weir_error *error)
{
    struct weir_table_options options = { .keys = keys ? keys : PRIVATE_KEYS,
                                          .limiters = PRIVATE_LIMITERS,
                                          .guards = PRIVATE_GUARDS };
    int code = WEIR_NO_MEMORY;

    if (options.keys > INT64_MAX / PRIVATE_SLAB_A_KEY)
        return weir__fail(error, WEIR_INVALID, "%lld keys are more than any machine has room for",
                          (long long)keys);
    for (int64_t a_key = PRIVATE_SLAB_A_KEY; code == WEIR_NO_MEMORY && a_key >= 256; a_key /= 4) {
        options.slab = options.keys * a_key;
        code = weir_table_create(&weir->table, &options, error);
    }
    weir->own_table = code == WEIR_OK;
    return code;
}

int weir_create(struct weir **out, const struct weir_options *options, struct weir_error *error)
{
    struct weir *weir = aligned_alloc(_Alignof(struct weir), sizeof(*weir));

    if (weir == NULL)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for an engine");
    memset(weir, 0, sizeof(*weir));
    weir->host = &weir__host;
    weir__public_numbers(weir->public_numbers);
    pthread_mutex_init(&weir->mutex, NULL);
    weir->table = options ? options->table : NULL;
    int code = weir->table ? WEIR_OK : make_table(weir, options ? options->keys : 0, error);
    if (code == WEIR_OK)
        *out = weir;
    else
        free(weir);
    return code;
}

void weir_destroy(struct weir *weir)
{
    if (weir == NULL)
        return;
    weir__lines_free(weir);
    if (weir->active != NULL)
        weir__active_leave(weir, weir->active, false);
    weir__active_destroy(weir->active);
    if (weir->aside != NULL)
        weir__look_end(weir->table);
    weir_table_destroy(weir->aside);
    if (weir->own_table)
        weir_table_destroy(weir->table);
    weir__engine_forget(weir);
    for (size_t i = 1; i <= weir->n_attributes; i++)
        free(weir->attributes[i]);
    pthread_mutex_destroy(&weir->mutex);
    free(weir);
}

int weir__engine_peek_only(struct weir *weir, struct weir_error *error)
{
    struct weir_table_options small = { .keys = 1024,
                                        .limiters = PRIVATE_LIMITERS,
                                        .guards = PRIVATE_GUARDS,
                                        .slab = (int64_t)1 << 30 };

    int code = weir_table_create(&weir->aside, &small, error);
    if (code == WEIR_OK)
        weir__look_begin(weir->table); /* until the engine is destroyed */
    return code;
}

struct weir_table *weir_table_of(struct weir *weir)
{
    return weir->table;
}
