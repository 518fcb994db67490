/* active-rules.c -- a rule set and the limiters and guards that it needs.
 *
 * A limit is a limiter of the table, named after the rule, its key, the limit's algorithm and its
 * number: that of a limiter with the same period, if the table has one, else its place in the rule.
 * So a reload finds unchanged limits again, with their states; a limit whose numbers have changed
 * is changed; one whose key or algorithm has changed begins fresh.  Limiters and guards of rules
 * that are gone are dropped, and leave the table a minute later (weir_table_tend).
 *
 * A guard is found by its name; one whose options have changed is changed.
 *
 * All that can fail is done first: limiters and guards are made before any is changed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/purse.h"
#include "engine/engine.h"
#include "table/agent-lease.h"

static int no_memory(struct weir_error *error)
{
    return weir__fail(error, WEIR_NO_MEMORY, "no memory for the rules");
}

/* A limiter that exists with another limit. */
struct change {
    struct weir_limiter *limiter;
    struct weir_limit to;
};

/* A guard that exists with other options. */
struct guard_change {
    struct weir_guard *guard;
    const struct weir__guard_draft *to;
};

struct weir_prepared {
    struct weir *weir;
    struct weir__active *active;
    struct weir_error *error;
    struct change *changes;
    size_t n_changes;
    struct guard_change *guards;
    size_t n_guards;
    size_t reserved; /* records, for the changes */
};

/* -------------------------------------------------------------- names ---- */

const char *weir__engine_name(struct weir *weir, const char *name)
{
    size_t low = 0, high = weir->n_names;

    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(weir->names[middle], name);
        if (order == 0)
            return weir->names[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    char *copy = strdup(name), **more = realloc(weir->names, (weir->n_names + 1) * sizeof(*more));
    if (more != NULL)
        weir->names = more;
    if (copy == NULL || more == NULL) {
        free(copy);
        return NULL;
    }
    memmove(more + low + 1, more + low, (weir->n_names - low) * sizeof(*more));
    more[low] = copy;
    weir->n_names++;
    return copy;
}

void weir__engine_forget(struct weir *weir)
{
    for (size_t i = 0; i < weir->n_names; i++)
        free(weir->names[i]);
    free(weir->names);
}

/* FNV-1a: enough to tell a rule's templates apart, and the same in every process. */
static uint32_t digest(uint32_t h, const char *text)
{
    for (; *text != '\0'; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return h * 16777619u;
}

/* A digest of a key's parts.  The text between attributes is for people: changing it changes no
 * key. */
static uint32_t digest_key(uint32_t h, const struct weir__template *key)
{
    for (size_t i = 0; i < key->n; i++) {
        char prefixes[16];
        snprintf(prefixes, sizeof(prefixes), "/%d/%d|", key->parts[i].prefix4,
                 key->parts[i].prefix6);
        h = digest(digest(h, key->parts[i].attribute), prefixes);
        h = digest(h, key->parts[i].fallback ? key->parts[i].fallback : "");
    }
    return h;
}

void weir__limiter_name(char out[WEIR__NAME_SIZE], const struct weir__rule *rule, char sort,
                        size_t index, const struct weir_limit *l)
{
    uint32_t h = digest_key(digest(2166136261u, weir__limit_algorithm(l)), &rule->key);

    snprintf(out, WEIR__NAME_SIZE, "%s%c%zu-%08" PRIx32, rule->draft->name, sort, index, h);
}

static void lever_name(char out[WEIR__NAME_SIZE], const struct weir__rule *rule)
{
    snprintf(out, WEIR__NAME_SIZE, "%s@", rule->draft->name);
}

_Static_assert(WEIR__RULE_NAME_MAX + 12 < WEIR__NAME_SIZE,
               "a limiter's name has room for the rule's");

/* ------------------------------------------------------------ numbers ---- */

#define NO_NUMBER WEIR__RULE_LIMITS

/* The numbers of a rule's limits. */
struct numbers {
    size_t of[WEIR__RULE_LIMITS];
    bool taken[WEIR__RULE_LIMITS];
};

static void take_number(struct numbers *n, size_t limit, size_t number)
{
    n->of[limit] = number;
    n->taken[number] = true;
}

/* The number of a limiter in the table that has the limit's period. */
static size_t find_number(struct weir_table *table, const struct weir__rule *rule,
                          const struct numbers *n, const struct weir_limit *l)
{
    for (size_t number = 0; number < WEIR__RULE_LIMITS; number++) {
        char name[WEIR__NAME_SIZE];
        weir__limiter_name(name, rule, '#', number, l);
        weir__look_begin(table);
        struct weir_limiter *limiter = n->taken[number] ? NULL : weir__limiter_by_name(table, name);
        const struct weir_limit *there = limiter ? &weir__limiter_era(limiter)->plan.limit : NULL;
        bool same = there != NULL && there->period == l->period && there->calendar == l->calendar;
        weir__look_end(table);
        if (same)
            return number;
    }
    return NO_NUMBER;
}

static size_t free_number(const struct numbers *n, size_t place)
{
    if (!n->taken[place])
        return place;
    for (place = 0; n->taken[place];)
        place++;
    return place;
}

/* So that entries of `limit:` keep their states when others come, go or change places.  Across the
 * fleet a limit's number is its place, which all nodes know. */
static struct numbers number_limits(struct weir_table *table, const struct weir__rule *rule)
{
    const struct weir__rule_draft *d = rule->draft;
    struct numbers n = { 0 };

    for (size_t i = 0; i < d->n_limits; i++) {
        n.of[i] = rule->fleet ? i : find_number(table, rule, &n, &d->limits[i]);
        if (n.of[i] != NO_NUMBER)
            take_number(&n, i, n.of[i]);
    }
    for (size_t i = 0; i < d->n_limits; i++)
        if (n.of[i] == NO_NUMBER)
            take_number(&n, i, free_number(&n, i));
    return n;
}

/* ----------------------------------------------------------- limiters ---- */

static int note_change(struct weir_prepared *m, struct weir_limiter *limiter,
                       const struct weir_plan *to, const char *rule)
{
    struct change *more = realloc(m->changes, (m->n_changes + 1) * sizeof(*more));
    struct weir_error why;

    if (more == NULL)
        return no_memory(m->error);
    m->changes = more;
    more[m->n_changes++] = (struct change){ limiter, to->limit };
    int code = weir__table_fits(limiter->table, to, &why);
    return code ? weir__fail(m->error, code, "rule '%s': %s", rule, why.text) : WEIR_OK;
}

static int make_limiter(struct weir_prepared *m, struct weir_limiter **out, const char *name,
                        const struct weir__rule_draft *d, const struct weir_plan *plan)
{
    struct weir *weir = m->weir;
    struct weir_error why;
    int code = WEIR_OK;

    *out = weir->aside ? weir__limiter_by_name(weir->table, name) : NULL;
    if (*out == NULL)
        code = weir__limiter_join(out, weir->aside ? weir->aside : weir->table, name, plan, &why);
    return code ? weir__fail(m->error, code, "rule '%s': %s", d->name, why.text) : WEIR_OK;
}

/* An engine that only explains makes a missing limiter beside the table, and changes none. */
static int add_limiter(struct weir_prepared *m, struct weir_limiter **out, const char *name,
                       const struct weir__rule_draft *d, const struct weir_limit *limit)
{
    struct weir_plan plan;
    int code = weir__plan_make(&plan, limit, m->error);

    if (code == WEIR_OK)
        code = make_limiter(m, out, name, d, &plan);
    if (code || m->weir->aside != NULL ||
        weir__limit_equal(&plan.limit, &weir__limiter_era(*out)->plan.limit))
        return code;
    return note_change(m, *out, &plan, d->name);
}

/* A mode set by hand is kept under the rule's name alone, in the record of a limiter without keys,
 * so that it survives changes of the rule. */
static int add_lever(struct weir_prepared *m, struct weir__post *post,
                     const struct weir__rule *rule)
{
    struct weir_limit none;
    char name[WEIR__NAME_SIZE];

    lever_name(name, rule);
    int code = weir_limit_parse(&none, WEIR__LEVER_LIMIT, m->error);
    code = code ? code : add_limiter(m, &post->lever, name, rule->draft, &none);
    if (code == WEIR_OK)
        post->switched = &post->lever->place->mode;
    return code;
}

static int add_ban(struct weir_prepared *m, struct weir__post *post, const struct weir__rule *rule)
{
    const struct weir__rule_draft *d = rule->draft;
    char name[WEIR__NAME_SIZE];

    post->ban_salt = weir__ban_salt(m->weir->table, d->name); /* there may be bans by hand */
    if (!d->ban.set)
        return WEIR_OK;
    post->terms =
        (struct weir__ban_terms){ d->ban.length, d->ban.factor, d->ban.longest, d->ban.forget };
    weir__limiter_name(name, rule, '!', 0, &d->ban.refusals);
    return add_limiter(m, &post->refusals, name, d, &d->ban.refusals);
}

/* A limit across the fleet: a purse, and this host's part of the limit. */
static int add_across(struct weir_prepared *m, const struct weir__rule *rule, size_t i)
{
    const struct weir__rule_draft *d = rule->draft;
    struct weir_limiter **share = &m->active->limiters[rule->first_limit + i];
    struct weir_limit limit = d->limits[i];
    struct weir_plan plan;
    char name[WEIR__NAME_SIZE];

    int code = weir__plan_make(&plan, &limit, m->error);
    if (code)
        return code;
    struct weir_limit purse = weir__purse_limit(&plan);
    weir__limiter_name(name, rule, '$', i, &d->limits[i]);
    code = add_limiter(m, &m->active->purses[rule->first_limit + i], name, d, &purse);
    if (code)
        return code;
    (void)weir__fleet_share_limit(&limit, &d->limits[i], weir__fleet_part(m->weir->table));
    weir__limiter_name(name, rule, '#', i, &d->limits[i]);
    return add_limiter(m, share, name, d, &limit);
}

static int add_limits(struct weir_prepared *m, const struct weir__rule *rule)
{
    const struct weir__rule_draft *d = rule->draft;
    struct numbers numbers = number_limits(m->weir->table, rule);
    int code = WEIR_OK;

    for (size_t i = 0; code == WEIR_OK && i < d->n_limits; i++) {
        char name[WEIR__NAME_SIZE];
        weir__limiter_name(name, rule, '#', numbers.of[i], &d->limits[i]);
        code = rule->fleet ? add_across(m, rule, i)
                           : add_limiter(m, &m->active->limiters[rule->first_limit + i], name, d,
                                         &d->limits[i]);
    }
    return code;
}

static int make_post(struct weir_prepared *m, struct weir__post *post,
                     const struct weir__rule *rule)
{
    const struct weir__rule_draft *d = rule->draft;

    post->name = weir__engine_name(m->weir, d->name);
    post->limiters = m->active->limiters + rule->first_limit;
    post->mode = (uint8_t)d->mode;
    post->bare = (rule->key_kind == WEIR__KEY_VALUE || rule->key_kind == WEIR__KEY_ADDRESS) &&
                 *rule->key.parts[0].before == '\0' && *rule->key.parts[1].before == '\0';
    if (post->name == NULL)
        return no_memory(m->error);
    int code = add_limits(m, rule);
    if (code == WEIR_OK)
        code = add_lever(m, post, rule);
    return code ? code : add_ban(m, post, rule);
}

/* ------------------------------------------------------------- guards ---- */

static int note_guard_change(struct weir_prepared *m, struct weir_guard *guard,
                             const struct weir__guard_draft *d)
{
    struct guard_change *more = realloc(m->guards, (m->n_guards + 1) * sizeof(*more));

    if (more == NULL)
        return no_memory(m->error);
    m->guards = more;
    more[m->n_guards++] = (struct guard_change){ guard, d };
    return weir__guard_prepare(guard, &d->options, m->error);
}

/* An engine that only explains makes a missing guard beside the table, and changes none. */
static int add_guard(struct weir_prepared *m, struct weir_guard **out,
                     const struct weir__guard_draft *d)
{
    struct weir_error why = { 0 };
    struct weir *weir = m->weir;
    const char *differs = NULL;

    *out = weir->aside ? weir__guard_named(weir->table, d->rule.name) : NULL;
    if (*out != NULL)
        return WEIR_OK;
    int code = weir__guard_join(out, weir->aside ? weir->aside : weir->table, d->rule.name,
                                &d->options, &differs, &why);
    if (code)
        return weir__fail(m->error, code, "guard '%s': %s", d->rule.name, why.text);
    return differs ? note_guard_change(m, *out, d) : WEIR_OK;
}

static int add_fallback(struct weir_prepared *m, struct weir_fallback *out,
                        const struct weir__fallback_draft *d)
{
    if (d->status == 0)
        return WEIR_OK;
    *out = (struct weir_fallback){ d->status, d->len, weir__engine_name(m->weir, d->type) };
    return out->type ? WEIR_OK : no_memory(m->error);
}

/* A guard's mode set by hand is kept like a rule's. */
static int make_station(struct weir_prepared *m, size_t i)
{
    const struct weir_rules *rules = m->active->rules;
    const struct weir__guard_draft *d = rules->guards[i].draft;
    struct weir__post *post = &m->active->posts[rules->n_rules + i];

    post->name = weir__engine_name(m->weir, d->rule.name);
    post->mode = (uint8_t)d->rule.mode;
    if (post->name == NULL)
        return no_memory(m->error);
    int code = add_lever(m, post, &rules->rules[rules->n_rules + i]);
    if (code == WEIR_OK)
        code = add_fallback(m, &m->active->stations[i].fallback, &d->fallback);
    return code ? code : add_guard(m, &m->active->stations[i].guard, d);
}

/* -------------------------------------------------------------- whole ---- */

/* The lists that decide alone, and their attributes. */
static int find_lists(struct weir__active *f, struct weir_error *error)
{
    f->denies = f->allows = 0;
    for (size_t i = 0; i < f->lists->n; i++) {
        const struct weir__list *l = &f->lists->lists[i];
        int attribute = weir__attribute_add(&f->attributes, l->attribute, error);
        if (attribute < 0)
            return attribute;
        if (strcmp(l->name, "deny") == 0 && l->n > 0) {
            f->deny[f->denies].attribute = attribute;
            f->deny[f->denies++].list = (int)i;
        } else if (strcmp(l->name, "allow") == 0 && l->n > 0) {
            f->allow[f->allows].attribute = attribute;
            f->allow[f->allows++].list = (int)i;
        }
    }
    return WEIR_OK;
}

static struct weir__active *make_room(struct weir_rules *rules)
{
    struct weir__active *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return NULL;
    f->rules = rules;
    f->lists = rules->lists;
    f->attributes = rules->attributes;
    f->mode = (uint8_t)rules->draft->mode;
    f->posts = calloc(rules->n_rules + rules->n_guards + 1, sizeof(*f->posts));
    f->stations = calloc(rules->n_guards + 1, sizeof(*f->stations));
    f->limiters = calloc(rules->n_limits + 1, sizeof(*f->limiters));
    f->purses = calloc(rules->n_limits + 1, sizeof(*f->purses));
    f->tally = calloc((WEIR__STRIPES + 1) * rules->n_rules + 1, sizeof(*f->tally));
    f->shared = calloc(WEIR__STRIPES * rules->n_rules + 1, sizeof(*f->shared));
    if (f->posts && f->stations && f->limiters && f->purses && f->tally && f->shared)
        return f;
    f->rules = NULL;
    weir__active_destroy(f);
    return NULL;
}

/* As with limiters, none is made unless there is room for all. */
static int check_guard_places(const struct weir *weir, const struct weir_rules *rules,
                              struct weir_error *error)
{
    const struct weir_table *table = weir->aside ? weir->aside : weir->table;
    int64_t missing = 0,
            left = (int64_t)table->guards.most - weir__names_count(table, &table->guards);

    for (size_t i = 0; i < rules->n_guards; i++)
        missing += weir__name_find(weir->table, &weir->table->guards,
                                   rules->guards[i].draft->rule.name) == WEIR__NO_PLACE;
    if (missing <= left)
        return WEIR_OK;
    return weir__fail(error, WEIR_NO_MEMORY,
                      "the rules need %lld more guards, and the table, made for %u, has room for "
                      "%lld; make a new one with more",
                      (long long)missing, table->guards.most, (long long)left);
}

static bool is_missing(const struct weir *weir, const char *name)
{
    return weir__name_find(weir->table, &weir->table->limiters, name) == WEIR__NO_PLACE;
}

/* None is made unless there is room for all. */
static int check_places(const struct weir *weir, const struct weir_rules *rules,
                        struct weir_error *error)
{
    const struct weir_table *table = weir->aside ? weir->aside : weir->table;
    int64_t missing = 0,
            left = (int64_t)table->limiters.most - weir__names_count(table, &table->limiters);
    char name[WEIR__NAME_SIZE];

    for (size_t i = 0; i < rules->n_rules; i++) {
        const struct weir__rule *rule = &rules->rules[i];
        const struct weir__rule_draft *d = rule->draft;
        struct numbers numbers = number_limits(weir->table, rule);
        for (size_t k = 0; k < d->n_limits; k++) {
            weir__limiter_name(name, rule, '#', numbers.of[k], &d->limits[k]);
            missing += is_missing(weir, name);
            weir__limiter_name(name, rule, '$', k, &d->limits[k]);
            missing += rule->fleet && is_missing(weir, name);
        }
        weir__limiter_name(name, rule, '!', 0, &d->ban.refusals);
        missing += d->ban.set && is_missing(weir, name);
    }
    for (size_t i = 0; i < rules->n_rules + rules->n_guards; i++) {
        lever_name(name, &rules->rules[i]);
        missing += is_missing(weir, name);
    }
    if (missing <= left)
        return check_guard_places(weir, rules, error);
    return weir__fail(error, WEIR_NO_MEMORY,
                      "the rules need %lld more limiters (one for each limit, ban, rule and "
                      "guard), and the table, made for %lld, has room for %lld; "
                      "make a new one with more",
                      (long long)missing, (long long)table->limiters.most, (long long)left);
}

/* ------------------------------------------------- prepare and commit ---- */

static void leave_limiter(struct weir_limiter *limiter, bool dropped)
{
    if (limiter != NULL && dropped)
        weir_limiter_drop(limiter);
    else if (limiter != NULL)
        weir_limiter_release(limiter);
}

static void leave_guard(struct weir_guard *guard, bool dropped)
{
    if (guard != NULL && dropped)
        weir_guard_drop(guard);
    else if (guard != NULL)
        weir_guard_release(guard);
}

void weir__active_leave(const struct weir *weir, struct weir__active *active, bool dropped)
{
    const struct weir_rules *rules = active->rules;

    if (weir->aside != NULL) /* it only looks */
        return;
    for (size_t i = 0; i < rules->n_limits; i++) {
        leave_limiter(active->limiters[i], dropped);
        leave_limiter(active->purses[i], dropped);
    }
    for (size_t i = 0; i < rules->n_rules + rules->n_guards; i++) {
        leave_limiter(active->posts[i].lever, dropped);
        leave_limiter(active->posts[i].refusals, dropped);
    }
    for (size_t i = 0; i < rules->n_guards; i++)
        leave_guard(active->stations[i].guard, dropped);
}

int weir_prepare(struct weir_prepared **out, struct weir *weir, struct weir_rules *rules,
                 struct weir_error *error)
{
    struct weir_prepared *m = calloc(1, sizeof(*m));
    struct weir__active *active = m ? make_room(rules) : NULL;

    if (active == NULL) {
        free(m);
        return no_memory(error);
    }
    *m = (struct weir_prepared){ .weir = weir, .active = active, .error = error };
    pthread_mutex_lock(&weir->mutex); /* of the names */
    int code = find_lists(active, error);
    if (code == WEIR_OK)
        code = check_places(weir, rules, error);
    for (size_t i = 0; code == WEIR_OK && i < rules->n_rules; i++)
        code = make_post(m, &active->posts[i], &rules->rules[i]);
    for (size_t i = 0; code == WEIR_OK && i < rules->n_guards; i++)
        code = make_station(m, i);
    pthread_mutex_unlock(&weir->mutex);
    size_t changes = m->n_changes + m->n_guards;
    if (code == WEIR_OK && (code = weir__records_reserve(weir->table, changes, error)) == WEIR_OK)
        m->reserved = changes;
    if (code)
        weir_prepared_destroy(m);
    else
        *out = m;
    return code;
}

static void free_prepared(struct weir_prepared *m)
{
    weir__records_unreserve(m->weir->table, m->reserved);
    free(m->changes);
    free(m->guards);
    free(m);
}

void weir_prepared_destroy(struct weir_prepared *m)
{
    if (m == NULL)
        return;
    weir__active_leave(m->weir, m->active, false);
    m->active->rules = NULL; /* the caller's */
    weir__active_destroy(m->active);
    free_prepared(m);
}

/* As weir__limiter_name and lever_name make them. */
static bool is_rules_own(const char *name)
{
    size_t len = strnlen(name, WEIR__NAME_SIZE), digest_len = strlen("-01234567");

    if (len > 1 && name[len - 1] == '@')
        return true;
    if (len <= digest_len || name[len - digest_len] != '-')
        return false;
    size_t at = len - digest_len;
    while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9')
        at--;
    return at > 1 && at < len - digest_len && strchr("#!$", name[at - 1]) != NULL;
}

/* Rules that went while no process had them in force: nobody uses their limiters and guards. */
static void drop_orphans(struct weir_table *table)
{
    struct weir__limiter_record r;

    for (uint32_t id = 0; id < table->limiters.most; id++) {
        if (!weir__record_read(table, &table->limiters, id, &r) || !is_rules_own(r.name) ||
            weir__place_has_users(table, id))
            continue;
        weir__name_drop(table, &table->limiters, r.name);
        size_t len = strnlen(r.name, sizeof(r.name) - 1);
        bool lever = r.name[len - 1] == '@';
        r.name[len - 1] = '\0';
        if (lever)
            weir__name_drop(table, &table->guards, r.name);
    }
}

void weir_commit(struct weir_prepared *m, weir_time now)
{
    for (size_t i = 0; i < m->n_guards; i++)
        (void)weir_guard_change(m->guards[i].guard, &m->guards[i].to->options, NULL);
    for (size_t i = 0; i < m->n_changes; i++)
        (void)weir_limiter_change(m->changes[i].limiter, &m->changes[i].to, now, NULL);
    weir__engine_use(m->weir, m->active, now);
    if (m->weir->aside == NULL)
        drop_orphans(m->weir->table);
    free_prepared(m);
}

int weir__active_edited(struct weir__active **out, const struct weir__active *from,
                        struct weir__lists *lists, struct weir_error *error)
{
    struct weir__active *f = make_room(from->rules);

    if (f == NULL)
        return no_memory(error);
    memcpy(f->limiters, from->limiters, from->rules->n_limits * sizeof(*f->limiters));
    memcpy(f->purses, from->purses, from->rules->n_limits * sizeof(*f->purses));
    memcpy(f->posts, from->posts,
           (from->rules->n_rules + from->rules->n_guards) * sizeof(*f->posts));
    memcpy(f->stations, from->stations, from->rules->n_guards * sizeof(*f->stations));
    for (size_t i = 0; i < from->rules->n_rules; i++)
        f->posts[i].limiters = f->limiters + from->rules->rules[i].first_limit;
    f->lists = lists;
    int code = find_lists(f, error);
    if (code == WEIR_OK) {
        f->edited = true;
        *out = f;
        return WEIR_OK;
    }
    f->rules = NULL;
    weir__active_destroy(f);
    return code;
}

void weir__active_destroy(struct weir__active *active)
{
    if (active == NULL)
        return;
    if (active->edited)
        weir__lists_destroy(active->lists);
    weir_rules_destroy(active->rules);
    free(active->posts);
    free(active->stations);
    free(active->limiters);
    free(active->purses);
    free(active->tally);
    free(active->shared);
    free(active);
}

const struct weir__post *weir__post_find(const struct weir__active *active, size_t n,
                                         const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(active->posts[i].name, name) == 0)
            return &active->posts[i];
    return NULL;
}

const struct weir__post *weir__rule_post(const struct weir *weir, const char *rule,
                                         struct weir_error *error)
{
    const struct weir__active *f = weir->active;
    const struct weir__post *post = f ? weir__post_find(f, f->rules->n_rules, rule) : NULL;

    if (post == NULL)
        weir__fail(error, WEIR_INVALID, "there is no rule '%s'", rule);
    return post;
}
