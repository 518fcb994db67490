/* rules-doubts.c -- rules that are valid, but probably not meant so.  Attributes that a door lacks
 * are warned of there: in nginx/attributes.c, and by server/replay/report-notes.c for a log. */
#include "server/describe/rules-doubts-private.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "match/key-template.h"

void weir__doubt(const struct weir__doubting *r, struct weir__mark mark, const char *text, ...)
{
    struct weir_problem p = { .line = mark.line, .column = mark.column, .caret = -1 };
    va_list args;

    va_start(args, text);
    vsnprintf(p.text, sizeof(p.text), text, args);
    va_end(args);
    r->say(r->context, &p);
}

/* ----------------------------------------------------------------- rules ---- */

/* Then it matches more than what `not` and lists have, which are strict. */
static bool is_loose(const struct weir__rule_draft *rule, const char *attribute)
{
    return rule->loose && weir__attribute_is_path(attribute);
}

/* Is the pattern under `not` as well, as far as that can be seen? */
static bool is_excepted(const struct weir__rule_draft *rule, const char *attribute,
                        const struct weir__pattern *p)
{
    if (is_loose(rule, attribute))
        return false;
    for (size_t i = 0; i < rule->excepts; i++)
        for (size_t k = 0; k < rule->except[i].n; k++)
            if (strcmp(rule->except[i].attribute, attribute) == 0 &&
                weir__pattern_is_within(p, &rule->except[i].patterns[k]))
                return true;
    return false;
}

static bool is_empty_list(const struct weir__doubting *r, const char *attribute,
                          const struct weir__pattern *p)
{
    for (size_t i = 0; p->kind == WEIR__LIST && i < r->draft->n_lists; i++) {
        const struct weir__list_draft *list = &r->draft->lists[i];
        if (strcmp(list->name, p->text) == 0 && strcmp(list->attribute, attribute) == 0)
            return list->n == 0;
    }
    return false;
}

#define ENTRIES_MAX 1000 /* of a list, for each pattern: more would be work */

/* The list that decides all that this names before any rule does; NULL: none. */
static const char *decided_by(const struct weir__doubting *r, const struct weir__rule_draft *rule,
                              const struct weir__condition *c)
{
    static const char *const names[] = { "allow", "deny" };

    for (size_t l = 0; l < 2 && !is_loose(rule, c->attribute); l++) {
        const struct weir__list_draft *list = weir__list_part(r->draft, names[l], c->attribute);
        size_t within = 0;
        while (list && list->n <= ENTRIES_MAX && within < c->n &&
               weir__list_has_around(list, &c->patterns[within]))
            within++;
        if (within == c->n)
            return names[l];
    }
    return NULL;
}

/* Conditions that no request can meet. */
static void doubt_match(const struct weir__doubting *r, const struct weir__rule_draft *rule,
                        const struct weir__condition *c)
{
    const struct weir__pattern *list = NULL;
    const char *decided = rule->n_limits > 0 ? decided_by(r, rule, c) : NULL;
    size_t excepted = 0, empty = 0;

    if (decided)
        weir__doubt(r, c->mark,
                    "no request comes here: all that this names is under %s, before rules",
                    decided);
    for (size_t i = 0; i < c->n; i++) {
        bool none = is_empty_list(r, c->attribute, &c->patterns[i]);
        list = none ? &c->patterns[i] : list;
        empty += none;
        excepted += !none && is_excepted(rule, c->attribute, &c->patterns[i]);
    }
    if (excepted + empty < c->n)
        return;
    if (excepted > 0)
        weir__doubt(r, c->mark, "no request can match: all that this names is under not as well");
    else if (empty > 0)
        weir__doubt(r, c->mark,
                    "the list %s has no entry of %s, so no request matches until one is added",
                    weir__quote(list->text, list->len).text, c->attribute);
}

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

#define REFUSALS_MANY 10000 /* of one client in a second */

/* Bans that nobody gets, or notices. */
static void doubt_ban_times(const struct weir__doubting *r, struct weir__mark mark,
                            const struct weir__ban_draft *ban)
{
    const struct weir_limit *refusals = &ban->refusals;
    char text[32];

    if (ban->forgets && ban->factor <= 1)
        weir__doubt(r, mark,
                    "forget has no effect without escalate: each ban is as long as the "
                    "last");
    if (ban->factor > 1 && ban->longest == ban->length)
        weir__doubt(r, mark, "escalate has no effect: longest is as short as for");
    if (ban->length < WEIR_SECOND) {
        weir_time_print(text, sizeof(text), ban->length);
        weir__doubt(r, mark, "the ban is over after %s, before the next request comes", text);
    }
    if (refusals->period > 0 &&
        (weir__i128)refusals->count * WEIR_SECOND >= (weir__i128)REFUSALS_MANY * refusals->period) {
        weir_time_print(text, sizeof(text), refusals->period);
        weir__doubt(r, mark, "no client is refused %lld times in %s: the ban never comes",
                    (long long)refusals->count, text);
    }
}

/* Clients that nothing in the key tells apart would be banned together. */
static void doubt_ban(const struct weir__doubting *r, const struct weir__rule_draft *rule)
{
    static const char *const shared[] = { "host", "method", "scheme", "server", "uri", NULL };
    struct weir__template t;
    size_t defaults = 0, others = 0;

    long long seconds = rule->ban.length / WEIR_SECOND;
    if (rule->ban.bare)
        weir__doubt(
            r, rule->mark,
            "the ban is for %lld seconds; write the unit: for: %llds, or for: %lldm for minutes",
            seconds, seconds, seconds);
    if (rule->ban.set && rule->ban.factor <= 1 && rule->ban.longest > rule->ban.length)
        weir__doubt(r, rule->mark,
                    "longest has no effect without escalate: each ban is as long as the last");
    else if (rule->ban.set)
        doubt_ban_times(r, rule->mark, &rule->ban);
    if (!rule->ban.set || weir__template_parse(&t, rule->key, NULL) != WEIR_OK)
        return;
    for (size_t i = 0; i < t.n; i++) {
        defaults += t.parts[i].fallback != NULL;
        others += is_one_of(t.parts[i].attribute, shared);
    }
    if (others == t.n)
        weir__doubt(r, rule->mark,
                    "nothing in the key tells clients apart: one client's refusals ban them all; "
                    "write key: \"{ip}\"");
    else if (defaults == t.n)
        weir__doubt(
            r, rule->mark,
            "the key has a default, '%s': all requests without the attribute share it, and one "
            "client's refusals ban them all",
            t.parts[0].fallback);
    weir__template_free(&t);
}

/* ------------------------------------------------------------------- keys ---- */

static const struct weir__condition *condition_on(const struct weir__condition *conditions,
                                                  size_t n, const char *attribute)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(conditions[i].attribute, attribute) == 0)
            return &conditions[i];
    return NULL;
}

bool weir__attribute_is_free(const char *attribute)
{
    static const char *const names[] = {
        "uri",           "header.user-agent",      "header.referer",
        "header.cookie", "header.accept-language", NULL
    };

    return is_one_of(attribute, names) || strncmp(attribute, "cookie.", 7) == 0 ||
           strncmp(attribute, "arg.", 4) == 0;
}

/* What a client may leave out. */
static bool is_in_family(const char *attribute)
{
    return strncmp(attribute, "header.", 7) == 0 || strncmp(attribute, "cookie.", 7) == 0 ||
           strncmp(attribute, "arg.", 4) == 0;
}

/* One attribute of a rule's key. */
static void doubt_part(const struct weir__doubting *r, const struct weir__rule_draft *rule,
                       const struct weir__template_part *part)
{
    const char *name = part->attribute;
    const struct weir__condition *except = condition_on(rule->except, rule->excepts, name);
    bool matched = condition_on(rule->match, rule->matches, name) != NULL;

    if (part->fallback && weir__attribute_is_address(part->fallback))
        weir__doubt(r, rule->mark,
                    "the default of {%s|%s} is the text '%s', not the attribute: all requests "
                    "without %s share one key; write {ip}:{%s|none} to tell them apart",
                    name, part->fallback, part->fallback, name, name);
    if (weir__attribute_is_address(name) && (part->prefix4 == 0 || part->prefix6 == 0))
        weir__doubt(r, rule->mark, "{%s/0} is one key for all clients of that kind of address",
                    name);
    if (except && except->patterns[0].kind == WEIR__PRESENT && part->fallback == NULL)
        weir__doubt(r, rule->mark,
                    "no request can match: its key needs %s, and every %s is under not", name,
                    name);
    else if (weir__attribute_is_free(name) && !matched)
        weir__doubt(r, rule->mark,
                    "a client that sends another %s each time is never limited: each is a key of "
                    "its own; leave it out of the key, or name its values in match",
                    name);
    else if (is_in_family(name) && part->fallback == NULL && !matched)
        weir__doubt(r, rule->mark,
                    "a request without %s is not limited; write {%s|none}, or match: { %s: \"*\" } "
                    "if that is meant",
                    name, name, name);
}

/* nginx and forward auth give these; the others a program knows, or nobody. */
static bool is_known_to_proxies(const char *attribute)
{
    static const char *const names[] = { "ip",     "uri",  "method", "host",
                                         "scheme", "user", "server", NULL };

    return is_one_of(attribute, names) || is_in_family(attribute);
}

/* A key of defaults alone, where nobody gives the attributes: one for the whole site. */
static void doubt_defaults(const struct weir__doubting *r, const struct weir__rule_draft *rule,
                           const struct weir__template *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->parts[i].fallback == NULL || is_known_to_proxies(t->parts[i].attribute) ||
            weir__attribute_is_address(t->parts[i].fallback) || /* doubted already */
            condition_on(rule->match, rule->matches, t->parts[i].attribute))
            return;
    if (t->n > 0 && !rule->ban.set) /* a ban is doubted for the same reason */
        weir__doubt(r, rule->mark,
                    "all requests without %s share one key, '%s': behind nginx or forward auth, "
                    "which give none, that is everybody; write {ip}:%s to tell them apart",
                    t->parts[0].attribute, t->parts[0].fallback, rule->key);
}

static void doubt_key(const struct weir__doubting *r, const struct weir__rule_draft *rule)
{
    struct weir__template t;

    if (weir__template_parse(&t, rule->key, NULL) != WEIR_OK)
        return;
    for (size_t i = 0; i < t.n; i++)
        weir__doubt_name(r, rule->mark, t.parts[i].attribute);
    /* a guard's key says whose requests are shed together */
    for (size_t i = 0; i < t.n && rule->n_limits > 0; i++)
        doubt_part(r, rule, &t.parts[i]);
    doubt_defaults(r, rule, &t);
    weir__template_free(&t);
}

/* ------------------------------------------------------------------ rules ---- */

static void doubt_condition(const struct weir__doubting *r, const struct weir__rule_draft *rule,
                            const struct weir__condition *c)
{
    weir__doubt_name(r, c->mark, c->attribute);
    for (size_t k = 0; k < c->n; k++)
        weir__doubt_pattern(r, rule, c, &c->patterns[k]);
}

/* Whether nothing that one names is named by the other, as far as that can be seen. */
static bool is_apart(const struct weir__condition *a, const struct weir__condition *b)
{
    for (size_t i = 0; i < a->n; i++)
        for (size_t k = 0; k < b->n; k++) {
            const struct weir__pattern *p = &a->patterns[i], *q = &b->patterns[k];
            if (p->kind == WEIR__GLOB || p->kind >= WEIR__LIST || q->kind == WEIR__GLOB ||
                q->kind >= WEIR__LIST || weir__pattern_is_within(p, q) ||
                weir__pattern_is_within(q, p))
                return false;
        }
    return true;
}

static bool excepts_all(const struct weir__condition *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->patterns[i].kind == WEIR__PREFIX && c->patterns[i].len == 1)
            return true;
    return false;
}

static bool has_key(const struct weir__draft *draft)
{
    for (size_t i = 0; i < draft->n_rules; i++)
        if (draft->rules[i].key[0])
            return true;
    return false;
}

/* One count for a page that attackers come to. */
static void doubt_one_count(const struct weir__doubting *r, const struct weir__rule_draft *rule)
{
    const struct weir__condition *c = condition_on(rule->match, rule->matches, "uri");

    for (size_t i = 0; c && i < c->n; i++)
        if (weir__path_is_guessed(&c->patterns[i])) {
            weir__doubt(r, rule->mark,
                        "one count for all clients: any one of them can keep everybody from %s; "
                        "write key: \"{ip}\"",
                        weir__quote(c->patterns[i].text, c->patterns[i].len).text);
            return;
        }
}

/* What this rule's key needs and proxies do not give, in `out`; match may say that it is given. */
static bool is_lost_at_proxies(const struct weir__rule_draft *rule, char out[64])
{
    struct weir__template t;
    bool lost = false;

    if (weir__template_parse(&t, rule->key, NULL) != WEIR_OK)
        return false;
    for (size_t i = 0; i < t.n && !lost; i++) {
        const char *name = t.parts[i].attribute;
        lost = !t.parts[i].fallback && !is_known_to_proxies(name) &&
               !condition_on(rule->match, rule->matches, name);
        snprintf(out, 64, "%s", name);
    }
    weir__template_free(&t);
    return lost;
}

/* A rule for that page that applies at proxies too. */
static bool is_limited_at_proxies(const struct weir__draft *draft, const struct weir__pattern *page)
{
    char unused[64];

    for (size_t i = 0; i < draft->n_rules; i++) {
        const struct weir__rule_draft *rule = &draft->rules[i];
        const struct weir__condition *c = condition_on(rule->match, rule->matches, "uri");
        for (size_t k = 0; c && k < c->n; k++)
            if (rule->n_limits > 0 && weir__pattern_is_within(page, &c->patterns[k]) &&
                !is_lost_at_proxies(rule, unused))
                return true;
    }
    return false;
}

/* Tries at a login that behind a proxy nobody counts. */
static void doubt_login(const struct weir__doubting *r, const struct weir__rule_draft *rule)
{
    const struct weir__condition *c = condition_on(rule->match, rule->matches, "uri");
    char name[64];

    for (size_t i = 0; c && i < c->n; i++)
        if (weir__path_is_guessed(&c->patterns[i]) && is_lost_at_proxies(rule, name) &&
            !is_limited_at_proxies(r->draft, &c->patterns[i])) {
            weir__doubt(r, rule->mark,
                        "nginx and forward auth know no %s: there the rule never applies, and no "
                        "other limits %s; write another one with key: \"{ip}\"",
                        name, weir__quote(c->patterns[i].text, c->patterns[i].len).text);
            return;
        }
}

/* Words without an effect. */
static void doubt_words(const struct weir__doubting *r, const struct weir__rule_draft *rule)
{
    if (rule->keys > 0)
        weir__doubt(r, rule->mark,
                    "keys has no effect: all rules share the table; leave it out, and choose the "
                    "table's size with weir serve --keys");
    if (rule->moded && rule->mode < r->draft->mode)
        weir__doubt(r, rule->mark,
                    "mode: %s has no effect: the file says %s, and the milder of the two counts",
                    weir_mode_name(rule->mode), weir_mode_name(r->draft->mode));
    if (rule->no_algorithm)
        weir__doubt(r, rule->mark,
                    "algorithm has no effect: day, week and month are calendar windows; write "
                    "24h, 7d or 30d for another algorithm");
    else if (rule->own_algorithms)
        weir__doubt(r, rule->mark, "algorithm has no effect: each limit names its own");
    if (rule->no_zone)
        weir__doubt(r, rule->mark,
                    "zone has no effect: only day, week and month are calendar windows");
}

#define BUCKETS_MANY 1000

/* Many keys with a long window each: docs/operating.md, when the table is full. */
static void doubt_buckets(const struct weir__doubting *r, const struct weir__rule_draft *rule)
{
    for (size_t i = 0; rule->key && rule->key[0] && i < rule->n_limits; i++)
        if (rule->limits[i].buckets > BUCKETS_MANY)
            weir__doubt(
                r, rule->mark,
                "%d buckets are %d KiB for each key, taken from other windows; write %d or fewer",
                rule->limits[i].buckets, rule->limits[i].buckets / 256, BUCKETS_MANY);
}

static void doubt_cost(const struct weir__doubting *r, const struct weir__rule_draft *rule)
{
    const char *name = rule->cost_attribute;

    weir__doubt_name(r, rule->mark, name);
    if (is_in_family(name) && !condition_on(rule->match, rule->matches, name))
        weir__doubt(r, rule->mark,
                    "a client that sends 0 as %s takes nothing, and is never limited; name its "
                    "values in match if a proxy sets it",
                    name);
}

/* What a client may send to be exempt. */
static void doubt_except(const struct weir__doubting *r, const struct weir__rule_draft *rule,
                         const struct weir__condition *c)
{
    const struct weir__condition *match = condition_on(rule->match, rule->matches, c->attribute);
    bool is_header = strncmp(c->attribute, "header.", 7) == 0;

    if (weir__attribute_is_path(c->attribute) && excepts_all(c) && !match)
        weir__doubt(r, c->mark, "every request that has a path is under not");
    else if (weir__attribute_is_free(c->attribute) && !weir__attribute_is_path(c->attribute))
        weir__doubt(r, c->mark, "any client can send this %s, and is not limited then",
                    c->attribute);
    else if (is_header && c->patterns[0].kind == WEIR__PRESENT)
        weir__doubt(r, c->mark,
                    "any client can send a %s, and is not limited then; write { glob: \"*\" } if a "
                    "proxy checks or removes it",
                    c->attribute);
    else if (match && !is_loose(rule, c->attribute) && is_apart(match, c))
        weir__doubt(r, c->mark, "this exception does nothing: match names no such %s",
                    c->attribute);
}

void weir__doubt_rule(const struct weir__doubting *r, const struct weir__rule_draft *rule)
{
    doubt_ban(r, rule);
    weir__doubt_within(r, rule);
    if (rule->n_limits > 0 && rule->cost == 0 && rule->cost_attribute == NULL)
        weir__doubt(r, rule->mark, "the rule refuses nobody: with cost: 0 a request takes nothing");
    if (rule->cost_attribute)
        doubt_cost(r, rule);
    doubt_words(r, rule);
    for (size_t i = 0; i < rule->matches + rule->excepts; i++) {
        bool match = i < rule->matches;
        const struct weir__condition *c =
            match ? &rule->match[i] : &rule->except[i - rule->matches];
        doubt_condition(r, rule, c);
        if (match)
            doubt_match(r, rule, c);
        else
            doubt_except(r, rule, c);
    }
    if (rule->n_limits > 0 && rule->key[0] == '\0' && !has_key(r->draft))
        doubt_one_count(r, rule);
    if (rule->n_limits > 0)
        doubt_login(r, rule);
    doubt_key(r, rule);
}

/* ------------------------------------------------------------------- all ---- */

void weir__rules_doubts(const struct weir__draft *draft,
                        void (*say)(void *context, const struct weir_problem *doubt), void *context)
{
    const struct weir__doubting all = { draft, say, context }, *r = &all;
    const struct weir__mark nowhere = { 0 };

    for (size_t i = 0; i < r->draft->n_rules; i++) {
        weir__doubt_rule(r, &r->draft->rules[i]);
        doubt_buckets(r, &r->draft->rules[i]);
        weir__doubt_tighter(r, i);
    }
    weir__doubt_guards(r);
    if (r->draft->n_guards > 0 && r->draft->n_rules == 0)
        weir__doubt(
            r, nowhere,
            "guards and no rules: work that enters and exits is guarded (the nginx module does "
            "both, and so do enter and exit at the server); a check or forward auth looks at "
            "rules only");
    size_t entries = 0;
    for (size_t i = 0; i < r->draft->n_lists; i++) {
        weir__doubt_list(r, i);
        entries += r->draft->lists[i].n;
    }
    if (r->draft->n_rules + r->draft->n_guards + entries == 0)
        weir__doubt(r, nowhere,
                    "no rule, no guard and no entry of a list: every request is allowed");
}

void weir__rules_doubt_print(void *name, const struct weir_problem *doubt)
{
    const char *of = name;

    if (doubt->line > 0)
        fprintf(stderr, "%s:%d:%d: warning: %s\n", of, doubt->line, doubt->column, doubt->text);
    else
        fprintf(stderr, "%s: warning: %s\n", of, doubt->text);
}
