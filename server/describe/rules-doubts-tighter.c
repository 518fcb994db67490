/* rules-doubts-tighter.c -- limits that never refuse, because another one on the same requests is
 * tighter.  A ban on such a rule never comes.
 *
 * Only what is certain is said: limits of the same algorithm, and of rules with the same key, cost
 * and conditions, or of one whose conditions are wider.  An ask that costs more than 1 may still be
 * refused by the earlier of two. */
#include "server/describe/rules-doubts-private.h"

#include <string.h>

#include "base/base.h"

/* ----------------------------------------------------------------- limits ---- */

static const char *algorithm_of(const struct weir_limit *limit)
{
    return limit->algorithm ? limit->algorithm : "token-bucket";
}

static bool is_bucket(const struct weir_limit *limit)
{
    const char *name = algorithm_of(limit);

    return limit->queue == 0 && (strcmp(name, "token-bucket") == 0 || strcmp(name, "gcra") == 0 ||
                                 strcmp(name, "leaky-bucket") == 0);
}

/* But for count and burst: in words, so that no option is forgotten. */
static bool is_same_window(const struct weir_limit *a, const struct weir_limit *b)
{
    struct weir_limit other = *b;
    char one[128], two[128];

    if (strcmp(algorithm_of(a), algorithm_of(b)) != 0 || a->period != b->period)
        return false;
    other.algorithm = a->algorithm;
    other.count = a->count;
    other.burst = a->burst;
    weir_limit_print(one, sizeof(one), a);
    weir_limit_print(two, sizeof(two), &other);
    return strcmp(one, two) == 0;
}

static int64_t burst_of(const struct weir_limit *limit)
{
    return limit->burst ? limit->burst : limit->count;
}

/* Whether all that a passes, b passes too. */
static bool is_tighter(const struct weir_limit *a, const struct weir_limit *b)
{
    if (burst_of(a) > burst_of(b))
        return false;
    if (is_bucket(a) && is_bucket(b))
        return (weir__i128)a->count * b->period <= (weir__i128)b->count * a->period;
    return is_same_window(a, b) && a->count <= b->count;
}

/* ------------------------------------------------------------------ rules ---- */

static bool is_same_condition(const struct weir__condition *a, const struct weir__condition *b)
{
    if (strcmp(a->attribute, b->attribute) != 0 || a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->patterns[i].kind != b->patterns[i].kind ||
            strcmp(a->patterns[i].text, b->patterns[i].text) != 0)
            return false;
    return true;
}

static bool are_same(const struct weir__condition *a, size_t n, const struct weir__condition *b,
                     size_t m)
{
    for (size_t i = 0; n == m && i < n; i++)
        if (!is_same_condition(&a[i], &b[i]))
            return false;
    return n == m;
}

#define PAIRS_MAX 1000 /* of patterns: more would be work */

/* Whether all that the second one names is named by the first one too. */
static bool is_around(const struct weir__condition *wide, const struct weir__condition *c)
{
    if (c->n * wide->n > PAIRS_MAX)
        return false;
    for (size_t i = 0; i < c->n; i++) {
        size_t w = 0;
        while (w < wide->n && !weir__pattern_is_within(&c->patterns[i], &wide->patterns[w]))
            w++;
        if (w == wide->n)
            return false;
    }
    return true;
}

/* Whether all that b names in match, a names too, as far as that can be seen. */
static bool is_wider(const struct weir__rule_draft *a, const struct weir__rule_draft *b)
{
    for (size_t i = 0; i < a->matches; i++) {
        const struct weir__condition *wide = &a->match[i], *c = b->match;
        while (c < b->match + b->matches && strcmp(c->attribute, wide->attribute) != 0)
            c++;
        if (c == b->match + b->matches || !is_around(wide, c))
            return false;
    }
    return true;
}

/* Whether b refuses for other reasons than its limits too: when the table is full, or while its
 * fleet's Redis is away. */
static bool is_stricter(const struct weir__rule_draft *b, const struct weir__rule_draft *a)
{
    return (b->closed && !a->closed) ||
           (b->fleet && (a->when_alone != b->when_alone || a->within != b->within));
}

static bool has_path(const struct weir__condition *c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (weir__attribute_is_path(c[i].attribute))
            return true;
    return false;
}

/* Whether paths: loose changes nothing about it. */
static bool is_without_path(const struct weir__rule_draft *a)
{
    return !has_path(a->match, a->matches) && !has_path(a->except, a->excepts) &&
           strstr(a->key, "{uri") == NULL;
}

/* Whether a applies to all that b applies to, and counts it alike. */
static bool covers(const struct weir__rule_draft *a, const struct weir__rule_draft *b)
{
    return a->mode == WEIR_ENFORCE && b->mode == WEIR_ENFORCE && strcmp(a->key, b->key) == 0 &&
           a->cost == 1 && b->cost == 1 && !a->cost_attribute && !b->cost_attribute &&
           a->fleet == b->fleet && (a->loose == b->loose || is_without_path(a)) &&
           !is_stricter(b, a) &&
           ((a->excepts == 0 && is_wider(a, b)) ||
            (are_same(a->match, a->matches, b->match, b->matches) &&
             are_same(a->except, a->excepts, b->except, b->excepts)));
}

/* A later rule must be out of units first: where both refuse, the earlier one is named. */
static bool has_tighter(const struct weir__rule_draft *a, const struct weir_limit *than, bool later)
{
    for (size_t i = 0; i < a->n_limits; i++)
        if (is_tighter(&a->limits[i], than) && (!later || burst_of(&a->limits[i]) < burst_of(than)))
            return true;
    return false;
}

#define NEAR 200 /* rules: the rest would be work for a file of thousands */

static void doubt_behind(const struct weir__doubting *r, size_t at)
{
    const struct weir__rule_draft *rule = &r->draft->rules[at];

    for (size_t i = at > NEAR ? at - NEAR : 0; i < r->draft->n_rules && i < at + NEAR; i++) {
        const struct weir__rule_draft *other = &r->draft->rules[i];
        bool all = i != at;
        for (size_t k = 0; all && k < rule->n_limits; k++)
            all = has_tighter(other, &rule->limits[k], i > at);
        if (!all || !covers(other, rule))
            continue;
        weir__doubt(r, rule->mark,
                    "it never refuses%s: the rule %s applies to the same requests, with the same "
                    "key, and is as tight or tighter",
                    rule->ban.set ? ", and never bans" : "",
                    weir__quote(other->name, strlen(other->name)).text);
        return;
    }
}

/* Whether a applies to all that b applies to, as another rule may. */
static bool applies_too(const struct weir__rule_draft *a, const struct weir__rule_draft *b)
{
    return a->mode == WEIR_ENFORCE && a->excepts == 0 && strcmp(a->key, b->key) == 0 &&
           (a->loose == b->loose || is_without_path(a)) && is_wider(a, b);
}

/* Limits of one key.  Too many for every request, with or without a key, are an error already. */
static void doubt_together(const struct weir__doubting *r, size_t at)
{
    const struct weir__rule_draft *rule = &r->draft->rules[at];
    size_t before = 0;

    for (size_t i = at > NEAR ? at - NEAR : 0; i < at; i++)
        before += applies_too(&r->draft->rules[i], rule) ? r->draft->rules[i].n_limits : 0;
    if (rule->mode == WEIR_ENFORCE && r->draft->mode == WEIR_ENFORCE && before <= WEIR_ALL_MAX &&
        before + rule->n_limits > WEIR_ALL_MAX)
        weir__doubt(r, rule->mark,
                    "with the rules before it %zu limits apply to all of its requests, and at "
                    "most %d can be asked together: they would be refused",
                    before + rule->n_limits, WEIR_ALL_MAX);
}

static void doubt_beside(const struct weir__doubting *r, const struct weir__rule_draft *rule)
{
    char text[128], tight[128];

    for (size_t i = 0; i < rule->n_limits; i++)
        for (size_t k = 0; k < rule->n_limits; k++) {
            const struct weir_limit *a = &rule->limits[k], *b = &rule->limits[i];
            if (k == i || !is_tighter(a, b) || (is_tighter(b, a) && i < k))
                continue;
            weir_limit_print(text, sizeof(text), b);
            weir_limit_print(tight, sizeof(tight), a);
            weir__doubt(r, rule->mark,
                        "the limit %.60s never refuses: %.60s is as tight or tighter", text, tight);
            break;
        }
}

void weir__doubt_tighter(const struct weir__doubting *r, size_t rule)
{
    doubt_beside(r, &r->draft->rules[rule]);
    doubt_behind(r, rule);
    doubt_together(r, rule);
}
