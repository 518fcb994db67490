/* rules-diff.c -- the changes when one rule file replaces another, and their effect.
 *
 * Rules are the same if their names are.  The effect on counted keys follows from weir_use: a limit
 * of the same rule, algorithm and period, else in the same place and by the same algorithm, keeps
 * its counts; others begin fresh.
 */
#include "server/describe/rules-diff.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "match/key-template.h"
#include "server/describe/rules-words.h"
#include "server/describe/tell-change.h"

static const char keeps[] = "keys keep their counts", fresh[] = "all keys begin fresh";

/* ------------------------------------------------------------------ keys ---- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* The same attributes in the same way; the text between them is for people only. */
static bool same_parts(const char *old, const char *new)
{
    struct weir__template a, b;
    bool same = false;

    if (weir__template_parse(&a, old, NULL) != WEIR_OK)
        return false;
    if (weir__template_parse(&b, new, NULL) == WEIR_OK) {
        same = a.n == b.n;
        for (size_t i = 0; same && i < a.n; i++)
            same = same_text(a.parts[i].attribute, b.parts[i].attribute) &&
                   same_text(a.parts[i].fallback, b.parts[i].fallback) &&
                   a.parts[i].prefix4 == b.parts[i].prefix4 &&
                   a.parts[i].prefix6 == b.parts[i].prefix6;
        weir__template_free(&b);
    }
    weir__template_free(&a);
    return same;
}

static void put_key(FILE *to, const void *key)
{
    if (*(const char *)key)
        weir__rules_words_value(to, key, strlen(key));
    else
        fputs("none (one state for everybody)", to);
}

/* ---------------------------------------------------------------- limits ---- */

static const char *algorithm_of(const struct weir_limit *limit)
{
    return limit->algorithm ? limit->algorithm : limit->calendar ? "calendar" : "token-bucket";
}

static void diff_limit(struct weir__diff *d, const struct weir_limit *old,
                       const struct weir_limit *new, bool same_key)
{
    char before[256] = "", after[256] = "";

    if (old)
        weir_limit_print(before, sizeof(before), old);
    if (new)
        weir_limit_print(after, sizeof(after), new);
    if (strcmp(before, after) == 0)
        return;
    if (!old)
        weir__diff_say(d, "limit", same_key ? "all keys begin fresh in it" : "", "limit %s is new",
                       after);
    else if (!new)
        weir__diff_say(d, "limit", "", "limit %s is gone", before);
    else
        weir__diff_say(d, "limit",
                       !same_key ? ""
                       : strcmp(algorithm_of(old), algorithm_of(new)) == 0
                           ? keeps
                           : "another algorithm: all keys begin fresh",
                       "limit %s -> %s", before, after);
}

static bool same_span(const struct weir_limit *a, const struct weir_limit *b)
{
    return strcmp(algorithm_of(a), algorithm_of(b)) == 0 && a->period == b->period &&
           a->calendar == b->calendar;
}

/* The old limit whose counts each new one goes on with, as the engine finds it: by algorithm and
 * period, then by place; across the fleet by place alone. */
static void pair_limits(const struct weir__rule_draft *old, const struct weir__rule_draft *new,
                        const struct weir_limit *before[WEIR__RULE_LIMITS],
                        bool goes_on[WEIR__RULE_LIMITS])
{
    for (size_t i = 0; i < new->n_limits && !new->fleet; i++)
        for (size_t k = 0; k < old->n_limits && before[i] == NULL; k++)
            if (!goes_on[k] && same_span(&old->limits[k], &new->limits[i])) {
                before[i] = &old->limits[k];
                goes_on[k] = true;
            }
    for (size_t i = 0; i < new->n_limits; i++)
        if (before[i] == NULL && i < old->n_limits && !goes_on[i]) {
            before[i] = &old->limits[i];
            goes_on[i] = true;
        }
}

static void diff_limits(struct weir__diff *d, const struct weir__rule_draft *old,
                        const struct weir__rule_draft *new)
{
    const struct weir_limit *before[WEIR__RULE_LIMITS] = { 0 };
    bool same_key = same_parts(old->key, new->key), goes_on[WEIR__RULE_LIMITS] = { 0 };

    pair_limits(old, new, before, goes_on);
    for (size_t i = 0; i < new->n_limits; i++)
        diff_limit(d, before[i], &new->limits[i], same_key);
    for (size_t i = 0; i < old->n_limits; i++)
        if (!goes_on[i])
            diff_limit(d, &old->limits[i], NULL, same_key);
}

/* ------------------------------------------------------------ conditions ---- */

static const struct weir__condition *find_condition(const struct weir__condition *conditions,
                                                    size_t n, const char *attribute)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(conditions[i].attribute, attribute) == 0)
            return &conditions[i];
    }
    return NULL;
}

static int compare_patterns(const void *left, const void *right)
{
    const struct weir__pattern *a = *(const struct weir__pattern *const *)left,
                               *b = *(const struct weir__pattern *const *)right;

    return a->kind != b->kind ? (a->kind < b->kind ? -1 : 1) : strcmp(a->text, b->text);
}

static const struct weir__pattern **sort_patterns(struct weir__diff *d,
                                                  const struct weir__condition *c)
{
    const struct weir__pattern **all = malloc((c->n + 1) * sizeof(*all));

    if (all == NULL) {
        d->failed = true;
        return NULL;
    }
    for (size_t i = 0; i < c->n; i++)
        all[i] = &c->patterns[i];
    if (c->n > 1)
        qsort(all, c->n, sizeof(*all), compare_patterns);
    return all;
}

/* The patterns of `from` that `without` has not. */
static void diff_patterns(struct weir__diff *d, const char *what,
                          const struct weir__condition *from, const struct weir__condition *without,
                          const char *verb, const char *effect)
{
    const struct weir__pattern **known = sort_patterns(d, without);
    struct weir__page page;
    size_t n = 0;

    if (known == NULL || !weir__page_open(d, &page)) {
        free(known);
        return;
    }
    fprintf(page.to, "%s %s %s", what, from->attribute, verb);
    for (size_t i = 0; i < from->n; i++) {
        const struct weir__pattern *p = &from->patterns[i];
        if (without->n && bsearch(&p, known, without->n, sizeof(*known), compare_patterns))
            continue;
        if (n < 5) {
            fputs(n ? ", " : " ", page.to);
            weir__rules_words_pattern(page.to, p);
        }
        n++;
    }
    if (n > 5)
        fprintf(page.to, ", ... (%zu in all)", n);
    free(known);
    if (n > 0) {
        weir__diff_tell_page(d, &page, what, effect);
        return;
    }
    free(weir__page_close(d, &page));
}

static void tell_condition(struct weir__diff *d, const char *what, const struct weir__condition *c,
                           const char *verb, const char *effect)
{
    struct weir__page page;

    if (!weir__page_open(d, &page))
        return;
    fprintf(page.to, "%s ", what);
    weir__rules_words_condition(page.to, c, 5);
    fprintf(page.to, " %s", verb);
    weir__diff_tell_page(d, &page, what, effect);
}

/* More conditions in `match` are fewer requests; in `not` it is the other way round. */
static void diff_conditions(struct weir__diff *d, const char *what,
                            const struct weir__condition *old, size_t olds,
                            const struct weir__condition *new, size_t news)
{
    bool match = strcmp(what, "match") == 0;
    bool guard = strcmp(d->of, "guard") == 0;
    const char *wider = guard ? "the guard is for more requests" : "the rule is for more requests";
    const char *narrower =
        guard ? "the guard is for fewer requests" : "the rule is for fewer requests";

    for (size_t i = 0; i < olds; i++) {
        const struct weir__condition *now = find_condition(new, news, old[i].attribute);
        if (!now) {
            tell_condition(d, what, &old[i], "is gone", wider);
            continue;
        }
        diff_patterns(d, what, now, &old[i], "also", match ? wider : narrower);
        diff_patterns(d, what, &old[i], now, "no longer", match ? narrower : wider);
    }
    for (size_t i = 0; i < news; i++) {
        if (!find_condition(old, olds, new[i].attribute))
            tell_condition(d, what, &new[i], "is new", narrower);
    }
}

/* ----------------------------------------------------------------- rules ---- */

static void diff_mode(struct weir__diff *d, enum weir_mode old, enum weir_mode new)
{
    static const char *const effects[] = { "", "refuses from now on", "only counts its refusals",
                                           "is not looked at any more" };

    if (old != new)
        weir__diff_say(d, "mode", effects[new], "mode %s -> %s", weir_mode_name(old),
                       weir_mode_name(new));
}

static void put_cost(FILE *to, const void *thing)
{
    const struct weir__rule_draft *rule = thing;

    if (rule->cost_attribute)
        fprintf(to, "{%s}", rule->cost_attribute);
    else
        fprintf(to, "%" PRId64, rule->cost);
}

static void put_ban(FILE *to, const void *ban)
{
    weir__rules_words_ban(to, ban);
}

static void diff_about(struct weir__diff *d, const struct weir__rule_draft *old,
                       const struct weir__rule_draft *new)
{
    if (!same_text(old->about, new->about))
        weir__diff_say(d, "about", "for people only", "about is written anew");
}

/* The part that rules and guards share. */
static void diff_head(struct weir__diff *d, const struct weir__rule_draft *old,
                      const struct weir__rule_draft *new)
{
    diff_mode(d, old->mode, new->mode);
    if (old->loose != new->loose)
        weir__diff_say(d, "paths", "other spellings of its paths match", "paths %s -> %s",
                       old->loose ? "loose" : "strict", new->loose ? "loose" : "strict");
    diff_conditions(d, "match", old->match, old->matches, new->match, new->matches);
    diff_conditions(d, "not", old->except, old->excepts, new->except, new->excepts);
}

static void diff_rule(struct weir__diff *d, const struct weir__rule_draft *old,
                      const struct weir__rule_draft *new)
{
    diff_head(d, old, new);
    weir__diff_words(d, "key", same_parts(old->key, new->key) ? keeps : fresh, put_key, old->key,
                     new->key);
    diff_limits(d, old, new);
    weir__diff_words(d, "cost", "", put_cost, old, new);
    weir__diff_words(d, "ban", "bans in force stay", put_ban, &old->ban, &new->ban);
    weir__diff_words(d, "across", old->fleet == new->fleet ? "" : "its counts begin anew",
                     weir__rules_words_across, old, new);
    if (old->closed != new->closed)
        weir__diff_say(d, "when_full", "", "when_full %s -> %s", old->closed ? "closed" : "open",
                       new->closed ? "closed" : "open");
    diff_about(d, old, new);
}

static void tell_whole(struct weir__diff *d, const struct weir__rule_draft *rule, const char *what,
                       const char *effect)
{
    struct weir__page page;

    if (!weir__page_open(d, &page))
        return;
    fprintf(page.to, "%s: ", what);
    weir__rules_words_limits(page.to, rule);
    if (*rule->key) {
        fputs(" for each ", page.to);
        weir__rules_words_value(page.to, rule->key, strlen(rule->key));
    } else {
        fputs(" for all together", page.to);
    }
    if (rule->mode != WEIR_ENFORCE)
        fprintf(page.to, ", mode %s", weir_mode_name(rule->mode));
    weir__diff_tell_page(d, &page, what, effect);
}

/* ----------------------------------------------------------------- order ---- */

struct named {
    const struct weir__rule_draft *rule;
    size_t place;
};

static int compare_names(const void *left, const void *right)
{
    const struct named *a = left, *b = right;

    return strcmp(a->rule->name, b->rule->name);
}

static struct named *sort_rules(const struct weir__draft *draft)
{
    struct named *all = malloc((draft->n_rules + 1) * sizeof(*all));

    for (size_t i = 0; all && i < draft->n_rules; i++)
        all[i] = (struct named){ &draft->rules[i], i };
    if (all && draft->n_rules > 1)
        qsort(all, draft->n_rules, sizeof(*all), compare_names);
    return all;
}

static struct named *find_rule(struct named *all, size_t n, const struct weir__rule_draft *rule)
{
    struct named key = { rule, 0 };

    return n ? bsearch(&key, all, n, sizeof(*all), compare_names) : NULL;
}

/* Marks in stays[] the rules that keep their order, so that the others have moved: a longest
 * increasing subsequence, by patience sorting.  places[i] is the old place of the i-th rule of the
 * new file, or SIZE_MAX. */
static bool find_order(const size_t *places, size_t n, bool *stays)
{
    size_t *tops = malloc((n + 1) * sizeof(*tops)), *before = malloc((n + 1) * sizeof(*before)),
           piles = 0;

    for (size_t i = 0; tops && before && i < n; i++) {
        if (places[i] == SIZE_MAX)
            continue;
        size_t low = 0, high = piles;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (places[tops[middle]] < places[i])
                low = middle + 1;
            else
                high = middle;
        }
        before[i] = low ? tops[low - 1] : SIZE_MAX;
        tops[low] = i;
        piles += low == piles;
    }
    bool good = tops && before;
    for (size_t i = good && piles ? tops[piles - 1] : SIZE_MAX; i != SIZE_MAX; i = before[i])
        stays[i] = true;
    free(tops);
    free(before);
    return good;
}

static void diff_new_rules(struct weir__diff *d, const struct weir__draft *old,
                           const struct weir__draft *new, const size_t *places, const bool *stays)
{
    for (size_t i = 0; i < new->n_rules; i++) {
        const struct weir__rule_draft *rule = &new->rules[i];
        weir__diff_begin(d, "rule", rule->name, rule);
        if (places[i] == SIZE_MAX) {
            tell_whole(d, rule, "added", "");
            continue;
        }
        diff_rule(d, &old->rules[places[i]], rule);
        if (!stays[i])
            weir__diff_say(d, "moved", "", "moved from place %zu to place %zu", places[i] + 1,
                           i + 1);
    }
}

static void diff_rules(struct weir__diff *d, const struct weir__draft *old,
                       const struct weir__draft *new)
{
    struct named *olds = sort_rules(old), *news = sort_rules(new);
    size_t *places = calloc(new->n_rules + 1, sizeof(*places));
    bool *stays = calloc(new->n_rules + 1, sizeof(*stays));

    for (size_t i = 0; olds && places && i < new->n_rules; i++) {
        const struct named *was = find_rule(olds, old->n_rules, &new->rules[i]);
        places[i] = was ? was->place : SIZE_MAX;
    }
    if (olds && news && places && stays && find_order(places, new->n_rules, stays)) {
        diff_new_rules(d, old, new, places, stays);
        for (size_t i = 0; i < old->n_rules; i++) {
            if (find_rule(news, new->n_rules, &old->rules[i]))
                continue;
            weir__diff_begin(d, "rule", old->rules[i].name, &old->rules[i]);
            tell_whole(d, &old->rules[i], "removed",
                       "its bans and what its keys have used count no more");
        }
    } else {
        d->failed = true;
    }
    free(olds);
    free(news);
    free(places);
    free(stays);
}

/* ---------------------------------------------------------------- guards ---- */

struct part {
    const struct weir__guard_part *part;
    const struct weir__guard_draft *guard;
};

static void put_part(FILE *to, const void *thing)
{
    const struct part *p = thing;

    weir__rules_words_part(to, p->part, p->guard);
}

/* A body may change though its description stays. */
static void diff_body(struct weir__diff *d, const struct weir__fallback_draft *old,
                      const struct weir__fallback_draft *new)
{
    if (old->status && new->status && old->len == new->len && old->len > 0 &&
        memcmp(old->body, new->body, old->len) != 0 && same_text(old->file, new->file) && old->file)
        weir__diff_say(d, "fallback", "", "fallback: another body in the file");
}

static void diff_guard(struct weir__diff *d, const struct weir__guard_draft *old,
                       const struct weir__guard_draft *new)
{
    diff_head(d, &old->rule, &new->rule);
    for (const struct weir__guard_part *part = weir__guard_parts; part->name; part++)
        weir__diff_words(d, part->name, part->effect, put_part, &(struct part){ part, old },
                         &(struct part){ part, new });
    diff_body(d, &old->fallback, &new->fallback);
    diff_about(d, &old->rule, &new->rule);
}

static void tell_guard(struct weir__diff *d, const struct weir__guard_draft *guard,
                       const char *what)
{
    struct weir__page page;

    weir__diff_begin(d, "guard", guard->rule.name, &guard->rule);
    if (!weir__page_open(d, &page))
        return;
    fprintf(page.to, "%s: ", what);
    weir__rules_words_guard(page.to, guard);
    if (guard->rule.mode != WEIR_ENFORCE)
        fprintf(page.to, ", mode %s", weir_mode_name(guard->rule.mode));
    weir__diff_tell_page(d, &page, what, "");
}

static const struct weir__guard_draft *find_guard(const struct weir__draft *draft, const char *name)
{
    for (size_t i = 0; i < draft->n_guards; i++) {
        if (strcmp(draft->guards[i].rule.name, name) == 0)
            return &draft->guards[i];
    }
    return NULL;
}

static void diff_guards(struct weir__diff *d, const struct weir__draft *old,
                        const struct weir__draft *new)
{
    for (size_t i = 0; i < new->n_guards; i++) {
        const struct weir__guard_draft *now = &new->guards[i],
                                       *was = find_guard(old, now->rule.name);
        weir__diff_begin(d, "guard", now->rule.name, &now->rule);
        if (was)
            diff_guard(d, was, now);
        else
            tell_guard(d, now, "added");
    }
    for (size_t i = 0; i < old->n_guards; i++) {
        if (!find_guard(new, old->guards[i].rule.name))
            tell_guard(d, &old->guards[i], "removed");
    }
}

/* ------------------------------------------------------------------ file ---- */

static void put_degradation(FILE *to, const void *level)
{
    if (*(const int *)level != WEIR_DEGRADATION_AUTO)
        fprintf(to, "%d", *(const int *)level);
}

long weir__rules_diff(const struct weir__draft *old, const struct weir__draft *new,
                      void (*each)(void *context, const struct weir__change *change), void *context)
{
    struct weir__diff d = { .each = each, .context = context };

    weir__diff_begin(&d, "file", "", NULL);
    diff_mode(&d, old->mode, new->mode);
    weir__diff_words(&d, "degradation",
                     new->degradation == WEIR_DEGRADATION_AUTO
                         ? "follows by itself"
                         : "guards whose degrade is no higher refuse everybody",
                     put_degradation, &old->degradation, &new->degradation);
    diff_rules(&d, old, new);
    diff_guards(&d, old, new);
    weir__lists_diff(&d, old, new);
    free(d.who);
    return d.failed ? -1 : d.changes;
}
