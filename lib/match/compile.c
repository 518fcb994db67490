/* compile.c -- makes a rule set from a draft: names become numbers, patterns tests, templates parts
 * of keys. */
#include <stdlib.h>
#include <string.h>

#include "match/rules.h"

static int no_memory(struct weir_error *error)
{
    return weir__fail(error, WEIR_NO_MEMORY, "no memory for the rules");
}

/* ------------------------------------------------------------- clauses ---- */

/* A pattern for loose paths: in lower case; one path has the slash that they end in. */
static int make_loose(struct weir_rules *set, struct weir__test *t, struct weir_error *error)
{
    char *text = weir__arena_take(&set->draft->arena, t->len + 2, 1);

    if (text == NULL)
        return no_memory(error);
    if (t->kind == WEIR__EXACT && t->text[0] == '/') {
        t->len = weir__uri_loose(t->text, t->len, WEIR__TOMCAT, text, t->len + 2);
    } else {
        memcpy(text, t->text, t->len);
        weir__lower(text, t->len);
    }
    t->text = text;
    return WEIR_OK;
}

/* As requests have it: attributes.c. */
static int make_method(struct weir_rules *set, struct weir__test *t, struct weir_error *error)
{
    char *text = weir__arena_take(&set->draft->arena, t->len + 1, 1);

    if (text == NULL)
        return no_memory(error);
    weir__method_plain(t->text, t->len, text);
    t->text = text;
    return WEIR_OK;
}

static int make_test(struct weir_rules *set, struct weir__test *t, const struct weir__pattern *p,
                     const char *attribute, bool loose, struct weir_error *error)
{
    bool text = p->kind == WEIR__EXACT || p->kind == WEIR__PREFIX || p->kind == WEIR__GLOB;

    *t = (struct weir__test){ .kind = p->kind, .text = p->text, .len = p->len, .list = -1 };
    if (loose && text)
        return make_loose(set, t, error);
    if (text && strcmp(attribute, "method") == 0)
        return make_method(set, t, error);
    if (p->kind == WEIR__CIDR)
        return weir__cidr_parse(p->text, p->len, &t->cidr, error);
    if (p->kind == WEIR__LIST && (t->list = weir__lists_find(set->lists, p->text, attribute)) < 0)
        return weir__fail(error, WEIR_INVALID, "there is no list '%s' of %s", p->text, attribute);
    return WEIR_OK;
}

/* The number of the attribute, or if *loose of the loose path.  Clears *loose if it is no path. */
static int add_attribute(struct weir_rules *set, const char *name, bool *loose,
                         struct weir_error *error)
{
    *loose = *loose && weir__attribute_is_path(name);
    return *loose ? weir__attribute_add_loose(&set->attributes, error)
                  : weir__attribute_add(&set->attributes, name, error);
}

static void keep_test(struct weir__clause *clause, const struct weir__test *test)
{
    clause->plain = test->len > 0 && (test->kind == WEIR__EXACT || test->kind == WEIR__PREFIX);
    clause->text = test->text;
    clause->len = test->len;
    clause->longest = test->kind == WEIR__EXACT ? test->len : SIZE_MAX;
}

/* `tests` and `clauses` count those in use. */
static int make_clause(struct weir_rules *set, const struct weir__condition *c, bool loose,
                       size_t *tests, size_t *clauses, struct weir_error *error)
{
    int attribute = add_attribute(set, c->attribute, &loose, error),
        code = attribute < 0 ? attribute : WEIR_OK;
    struct weir__clause clause = { .attribute = (uint16_t)attribute,
                                   .path = weir__attribute_is_path(c->attribute),
                                   .first = (uint32_t)*tests,
                                   .n = (uint32_t)c->n };

    for (size_t i = 0; code == WEIR_OK && i < c->n; i++)
        code = make_test(set, &set->tests[(*tests)++], &c->patterns[i], c->attribute, loose, error);
    if (code == WEIR_OK && c->n == 1)
        keep_test(&clause, &set->tests[clause.first]);
    set->clauses[(*clauses)++] = clause;
    return code;
}

/* An exception of a rule with loose paths: the path is exempt as every server reads it. */
static int make_loosely(struct weir_rules *set, const struct weir__condition *c,
                        struct weir__clause *clause, size_t *tests, struct weir_error *error)
{
    int code = clause->path ? weir__attribute_add_loose(&set->attributes, error) : 0;

    if (!clause->path || code < 0)
        return code;
    code = WEIR_OK;
    clause->loosely = (uint32_t)*tests;
    for (size_t i = 0; code == WEIR_OK && i < c->n; i++)
        code = make_test(set, &set->tests[(*tests)++], &c->patterns[i], c->attribute, true, error);
    return code;
}

static int make_clauses(struct weir_rules *set, struct weir__rule *rule, size_t *tests,
                        size_t *clauses, struct weir_error *error)
{
    const struct weir__rule_draft *d = rule->draft;
    int code = WEIR_OK;

    rule->clauses_first = (uint32_t)*clauses;
    rule->matches = (uint16_t)d->matches;
    rule->excepts = (uint16_t)d->excepts;
    for (size_t i = 0; code == WEIR_OK && i < d->matches; i++)
        code = make_clause(set, &d->match[i], d->loose, tests, clauses, error);
    for (size_t i = 0; code == WEIR_OK && i < d->excepts; i++) /* loosely they would exempt more */
        code = make_clause(set, &d->except[i], false, tests, clauses, error);
    for (size_t i = 0; code == WEIR_OK && d->loose && i < d->excepts; i++)
        code = make_loosely(set, &d->except[i], &set->clauses[*clauses - d->excepts + i], tests,
                            error);
    return code;
}

/* ---------------------------------------------------------------- keys ---- */

static int make_part(struct weir_rules *set, struct weir__key_part *part,
                     const struct weir__template_part *t, bool loose, struct weir_error *error)
{
    int attribute = add_attribute(set, t->attribute, &loose, error);

    if (attribute < 0)
        return attribute;
    bool whole = t->prefix4 == WEIR__NO_PREFIX;
    *part =
        (struct weir__key_part){ (uint16_t)attribute, weir__attribute_is_address(t->attribute),
                                 whole ? 32 : t->prefix4, whole ? 64 : t->prefix6, t->fallback };
    return WEIR_OK;
}

static enum weir__key_kind kind_of_key(const struct weir__rule *rule)
{
    const struct weir__key_part *p = rule->parts;

    if (rule->key.n == 0)
        return WEIR__KEY_NONE;
    if (rule->key.n > 1 || p->fallback != NULL || p->prefix4 != 32 || p->prefix6 != 64)
        return WEIR__KEY_MADE;
    return p->address ? WEIR__KEY_ADDRESS : WEIR__KEY_VALUE;
}

static int make_key(struct weir_rules *set, struct weir__rule *rule, struct weir_error *error)
{
    int code = weir__template_parse(&rule->key, rule->draft->key, error);

    for (size_t i = 0; code == WEIR_OK && i < rule->key.n; i++)
        code = make_part(set, &rule->parts[i], &rule->key.parts[i], rule->draft->loose, error);
    if (code != WEIR_OK)
        return code;
    rule->key_kind = (uint8_t)kind_of_key(rule);
    rule->cost_attribute = -1;
    if (rule->draft->cost_attribute == NULL)
        return WEIR_OK;
    int attribute = weir__attribute_add(&set->attributes, rule->draft->cost_attribute, error);
    rule->cost_attribute = (int16_t)attribute;
    return attribute < 0 ? attribute : WEIR_OK;
}

static bool has_key_of(const struct weir__rule *rule, const struct weir__rule *other)
{
    return rule->draft->loose == other->draft->loose &&
           strcmp(rule->draft->key, other->draft->key) == 0;
}

#define LOOK_BACK 64 /* rules; a key with two numbers is made twice, and no more */

static void number_keys(struct weir_rules *set)
{
    for (uint32_t i = 0; i < set->n_rules; i++) {
        struct weir__rule *rule = &set->rules[i];
        uint32_t back = i < LOOK_BACK ? i : LOOK_BACK, k = 1;
        while (k <= back && !has_key_of(rule, rule - k))
            k++;
        rule->key_number = k <= back ? rule[-(ptrdiff_t)k].key_number : i + 1;
    }
}

/* --------------------------------------------------------------- whole ---- */

static const struct weir__rule_draft *draft_of(const struct weir_rules *set, size_t i)
{
    return i < set->n_rules ? &set->draft->rules[i] : &set->draft->guards[i - set->n_rules].rule;
}

/* Room for the tests and clauses of all rules and guards. */
static int make_room(struct weir_rules *set, struct weir_error *error)
{
    size_t tests = 1, clauses = 1, n = set->n_rules + set->n_guards;

    for (size_t i = 0; i < n; i++) {
        const struct weir__rule_draft *d = draft_of(set, i);
        clauses += d->matches + d->excepts;
        for (size_t k = 0; k < d->matches; k++)
            tests += d->match[k].n;
        for (size_t k = 0; k < d->excepts; k++)
            tests += d->except[k].n * (d->loose ? 2 : 1);
    }
    set->n_tests = tests;
    set->tests = calloc(tests, sizeof(*set->tests));
    set->clauses = calloc(clauses, sizeof(*set->clauses));
    set->rules = calloc(n + 1, sizeof(*set->rules));
    set->guards = calloc(set->n_guards + 1, sizeof(*set->guards));
    return set->tests && set->clauses && set->rules && set->guards ? WEIR_OK : no_memory(error);
}

static int make_rules(struct weir_rules *set, struct weir_error *error)
{
    size_t tests = 0, clauses = 0;
    int code = WEIR_OK;

    for (size_t i = 0; code == WEIR_OK && i < set->n_rules + set->n_guards; i++) {
        struct weir__rule *rule = &set->rules[i];
        rule->draft = draft_of(set, i);
        rule->first_limit = (uint32_t)set->n_limits;
        rule->n_limits = (uint8_t)rule->draft->n_limits;
        rule->closed = rule->draft->closed;
        rule->fleet = rule->draft->fleet;
        rule->room = rule->fleet ? UINT8_MAX : rule->n_limits;
        rule->cost = rule->draft->cost;
        set->n_limits += rule->draft->n_limits;
        if ((code = make_clauses(set, rule, &tests, &clauses, error)) == WEIR_OK)
            code = make_key(set, rule, error);
    }
    if (code == WEIR_OK)
        number_keys(set);
    return code;
}

static int make_pick(struct weir_rules *set, struct weir__pick *pick,
                     const struct weir__pick_draft *d, struct weir_error *error)
{
    *pick = (struct weir__pick){ -1, d->fallback };
    if (d->attribute != NULL)
        pick->attribute = weir__attribute_add(&set->attributes, d->attribute, error);
    return d->attribute != NULL && pick->attribute < 0 ? pick->attribute : WEIR_OK;
}

static int make_guards(struct weir_rules *set, struct weir_error *error)
{
    int code = WEIR_OK;

    for (size_t i = 0; code == WEIR_OK && i < set->n_guards; i++) {
        struct weir__guard_rule *guard = &set->guards[i];
        guard->draft = &set->draft->guards[i];
        guard->by_key.draft = &guard->draft->by_key;
        if (guard->by_key.draft->key != NULL)
            code = make_key(set, &guard->by_key, error);
        if (code == WEIR_OK &&
            (code = make_pick(set, &guard->priority, &guard->draft->priority, error)) == WEIR_OK)
            code = make_pick(set, &guard->user_class, &guard->draft->user_class, error);
    }
    return code;
}

/* The set uses the attributes of lists too. */
static int find_lists(struct weir_rules *set, struct weir_error *error)
{
    for (size_t i = 0; i < set->lists->n; i++) {
        int attribute =
            weir__attribute_add(&set->attributes, set->lists->lists[i].attribute, error);
        if (attribute < 0)
            return attribute;
    }
    return WEIR_OK;
}

static bool is_everywhere(const struct weir__rule *rule)
{
    return rule->matches == 0 && rule->excepts == 0 && rule->draft->mode == WEIR_ENFORCE;
}

static bool applies_always(const struct weir__rule *rule)
{
    for (size_t i = 0; i < rule->key.n; i++)
        if (rule->parts[i].fallback == NULL)
            return false;
    return is_everywhere(rule);
}

/* With more limits or guards than can be asked together every request would be refused. */
static int check_room(const struct weir_rules *set, struct weir_error *error)
{
    size_t limits = 0, guards = 0;

    for (size_t i = 0; i < set->n_rules; i++)
        limits += applies_always(&set->rules[i]) ? set->rules[i].n_limits : 0;
    for (size_t i = 0; i < set->n_guards; i++)
        guards += is_everywhere(&set->rules[set->n_rules + i]);
    if ((limits <= WEIR_ALL_MAX && guards <= WEIR_ENTRY_MAX) || set->draft->mode != WEIR_ENFORCE)
        return WEIR_OK;
    bool over = limits > WEIR_ALL_MAX;
    return weir__fail(error, WEIR_INVALID,
                      "%zu %s apply to every request, and at most %d can: all would be refused",
                      over ? limits : guards, over ? "limits" : "guards",
                      over ? WEIR_ALL_MAX : WEIR_ENTRY_MAX);
}

static int compile(struct weir_rules *set, struct weir_error *error)
{
    int code;

    set->attributes.uri = -1;
    set->n_rules = set->draft->n_rules;
    set->n_guards = set->draft->n_guards;
    if ((code = weir__lists_create(&set->lists, set->draft->lists, set->draft->n_lists, error)) ||
        (code = make_room(set, error)) || (code = make_rules(set, error)) ||
        (code = make_guards(set, error)) || (code = find_lists(set, error)) ||
        (code = check_room(set, error)))
        return code;
    code = weir__match_create(&set->match, set, 0, set->n_rules, error);
    if (code == WEIR_OK && set->n_guards > 0)
        code = weir__match_create(&set->guard_match, set, set->n_rules, set->n_guards, error);
    return code;
}

/* A problem found only now has no place in the text. */
static int compile_told(struct weir_rules *set, const struct weir_rules_options *options,
                        struct weir_error *error)
{
    struct weir_error why = { 0 };
    int code = compile(set, &why);

    if (code != WEIR_OK && options != NULL && options->problem != NULL) {
        struct weir_problem problem = { .caret = -1 };
        memcpy(problem.text, why.text, sizeof(problem.text));
        options->problem(options->context, &problem);
    }
    return code ? weir__fail(error, code, "%s: %s",
                             options && options->name ? options->name : "rules", why.text)
                : WEIR_OK;
}

int weir_rules_parse(struct weir_rules **out, const char *text, size_t len,
                     const struct weir_rules_options *options, struct weir_error *error)
{
    struct weir_rules *set = calloc(1, sizeof(*set));

    if (set == NULL)
        return no_memory(error);
    int code = weir__draft_read(&set->draft, text, len, options, error);
    if (code == WEIR_OK)
        code = compile_told(set, options, error);
    if (code == WEIR_OK)
        *out = set;
    else
        weir_rules_destroy(set);
    return code;
}

void weir_rules_destroy(struct weir_rules *rules)
{
    if (rules == NULL)
        return;
    weir__match_destroy(rules->match);
    weir__match_destroy(rules->guard_match);
    weir__lists_destroy(rules->lists);
    for (size_t i = 0; rules->rules != NULL && i < rules->n_rules + rules->n_guards; i++)
        weir__template_free(&rules->rules[i].key);
    for (size_t i = 0; rules->guards != NULL && i < rules->n_guards; i++)
        weir__template_free(&rules->guards[i].by_key.key);
    free(rules->rules);
    free(rules->guards);
    free(rules->clauses);
    free(rules->tests);
    weir__draft_destroy(rules->draft);
    free(rules);
}

/* --------------------------------------------------------------- files ---- */

int weir_rules_read(struct weir_rules **out, const char *path,
                    const struct weir_rules_options *options, struct weir_error *error)
{
    struct weir_rules_options named = options ? *options : (struct weir_rules_options){ 0 };
    size_t len = 0;
    char *text = NULL;
    int code = weir__file_load(path, WEIR__RULES_TEXT_MAX, &text, &len, error);

    if (code != WEIR_OK)
        return code;
    named.name = path;
    named.files = true;
    code = weir_rules_parse(out, text, len, &named, error);
    free(text);
    return code;
}
