/* read-rule.c -- the rules of a rule file.
 *
 *     - name: per-ip
 *       about: nobody needs more
 *       match: { uri: "/login" }     read-match.c
 *       paths: loose
 *       not: { ip: 10.0.0.0/8 }
 *       key: "{ip/24}"                      key-template.c
 *       limit: [300/60, 100/5]              read-limit.c
 *       algorithm: sliding-window
 *       cost: 5
 *       mode: shadow
 *       ban: { refusals: 50/60s, for: 10m }
 *       zone: Europe/Berlin
 *       when_full: closed
 *       across: fleet
 *       within: 20ms
 *       when_alone: share
 */
#include "rulefile/read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "algo/algo.h"
#include "match/key-template.h"

/* clang-format off */
static const char *const *alone_words(void)
{
    static const char *const words[] = { "share", "open", "closed", NULL };

    return words;
}

static const struct weir__row row_list[] = {
    { "within", WEIR__ROW(struct weir__rule_draft, within), WEIR__ROW_TIME, WEIR_MILLISECOND,
      10 * WEIR_SECOND, .text = "How long a request waits for units of the fleet" },
    { "when_alone", WEIR__ROW(struct weir__rule_draft, when_alone), WEIR__ROW_WORD, 0, 0,
      .words = alone_words, .text = "While the fleet's accounts cannot be asked" },
    { "keys", WEIR__ROW(struct weir__rule_draft, keys), WEIR__ROW_COUNT, 1, INT64_MAX,
      .text = "Has no effect" },
};
/* clang-format on */

static const struct weir__rows rule_rows = { "a rule", 0, row_list,
                                             sizeof(row_list) / sizeof(row_list[0]) };

/* ------------------------------------------------------------ templates ---- */

const char *weir__read_braces(struct weir__reader *r, const struct weir__node *node,
                              const char *what, const char *like)
{
    if (node->kind == WEIR__NODE_MAPPING && node->n > 0)
        weir__say(r, node,
                  "%s must be in quotes, because braces mean a mapping to YAML: %s: \"{%s}\"", what,
                  what, node->items[0]->n < 40 ? node->items[0]->text : "...");
    else
        return weir__read_text(r, node, what, like);
    return NULL;
}

/* "ip" for "{ip}": everybody would share one key.  Suggests the text without the signs of other
 * kinds of template. */
static void say_no_attribute(struct weir__reader *r, const struct weir__node *node,
                             const char *text)
{
    static const char *const nginx[][2] = {
        { "remote_addr", "ip" },          { "binary_remote_addr", "ip" },
        { "http_x_forwarded_for", "ip" }, { "proxy_add_x_forwarded_for", "ip" },
        { "request_uri", "uri" },         { "request_method", "method" },
        { "remote_user", "user" }
    };
    const char *name = text + strspn(text, "${<:%([ ");

    for (size_t i = 0; *text == '$' && i < sizeof(nginx) / sizeof(nginx[0]); i++)
        if (strcmp(name, nginx[i][0]) == 0)
            name = nginx[i][1];
    size_t len = weir__attribute_length(name);
    bool meant = len > 0 && len <= 40 && name[len + strspn(name + len, "}>)] ")] == '\0';

    weir__say(r, node,
              "a key without an attribute counts everybody together; %s%.*s%sfor one count for all "
              "leave out key",
              meant ? "did you mean \"{" : "", meant ? (int)len : 0, name, meant ? "}\"? " : "");
}

/* The set uses the attributes of the key. */
static void read_key(struct weir__reader *r, const struct weir__node *node,
                     struct weir__rule_draft *rule)
{
    struct weir__template t;
    struct weir_error error = { 0 };
    const char *text = weir__read_braces(r, node, "key", "text such as \"{ip}\"");

    if (text == NULL)
        return;
    int code = weir__template_parse(&t, text, &error);
    if (code == WEIR_NO_MEMORY)
        r->arena->failed = true;
    if (code != WEIR_OK) {
        weir__say_error(r, node, "key", &error);
        return;
    }
    if (t.n == 0 && *text != '\0')
        say_no_attribute(r, node, text);
    for (size_t i = 0; i < t.n; i++)
        weir__read_attribute(r, node, t.parts[i].attribute, strlen(t.parts[i].attribute));
    weir__template_free(&t);
    char *copy = weir__arena_copy(r->arena, text, node->n);
    rule->key = copy ? copy : rule->key;
}

/* A number, or "{attribute}". */
static void read_cost(struct weir__reader *r, const struct weir__node *node,
                      struct weir__rule_draft *rule)
{
    const char *text =
        weir__read_braces(r, node, "cost", "a number, or an attribute such as \"{bytes}\"");

    if (text == NULL)
        return;
    if (text[0] != '{') {
        weir__read_count(r, node, "cost", 0, INT64_MAX, &rule->cost);
        return;
    }
    size_t len = weir__attribute_length(text + 1);
    if (len > 0 && len + 2 == node->n && text[len + 1] == '}')
        rule->cost_attribute = weir__read_attribute(r, node, text + 1, len);
    else
        weir__say(r, node,
                  "cost must be a number, or one attribute in braces such as \"{bytes}\"; found %s",
                  weir__quote(text, node->n).text);
}

static bool has_burst(const struct weir_limit *limit)
{
    static const char *const names[] = { "token-bucket", "gcra", "leaky-bucket" };

    for (size_t i = 0; limit->algorithm && i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(limit->algorithm, names[i]) == 0)
            return true;
    }
    return limit->algorithm == NULL;
}

/* A rule that no request can ever pass is a mistake. */
static void check_cost(struct weir__reader *r, const struct weir__node *node,
                       const struct weir__rule_draft *rule)
{
    char text[128];
    struct weir_plan plan;

    for (size_t i = 0; rule->cost_attribute == NULL && i < rule->n_limits; i++) {
        const struct weir_limit *limit = &rule->limits[i];
        if (weir__plan_make(&plan, limit, NULL) != WEIR_OK || plan.algo->borrows ||
            rule->cost <= plan.most)
            continue;
        weir_limit_print(text, sizeof(text), limit);
        weir__say(r, node,
                  "cost %" PRId64 " is more than %.60s can ever pass at once (%" PRId64
                  "): every request would be refused for ever; write a limit %s %" PRId64
                  " or more",
                  rule->cost, text, plan.most, has_burst(limit) ? "with burst" : "of", rule->cost);
        return;
    }
}

/* ---------------------------------------------------------------- rules ---- */

void weir__read_head(struct weir__reader *r, const struct weir__node *node, const char *what,
                     const struct weir__mapping *m, struct weir__rule_draft *rule)
{
    const struct weir__member *name = weir__member_of(m, "name"),
                              *about = weir__member_of(m, "about"),
                              *match = weir__member_of(m, "match"),
                              *not = weir__member_of(m, "not"), *mode = weir__member_of(m, "mode");
    char named[40];

    snprintf(named, sizeof(named), "a %s's name", what);
    if (name->key == NULL)
        weir__say(r, node, "the %s has no name; give it one, such as name: search", what);
    if (name->value)
        rule->name = weir__read_name(r, name->value, named);
    if (about->value && weir__read_text(r, about->value, "about", "a sentence"))
        rule->about = weir__arena_copy(r->arena, about->value->text, about->value->n);
    if (match->value)
        weir__read_match(r, match->value, "match", &rule->match, &rule->matches);
    if (not ->value)
        weir__read_match(r, not ->value, "not", &rule->except, &rule->excepts);
    if (mode->value)
        weir__read_mode(r, mode->value, &rule->mode);
    rule->moded = mode->value != NULL;
    rule->loose = r->loose;
    rule->strict = r->strict;
    weir__read_paths(r, weir__member_of(m, "paths"), &rule->loose, &rule->strict);
}

void weir__read_paths(struct weir__reader *r, const struct weir__member *m, bool *loose,
                      bool *strict)
{
    static const char *const words[] = { "strict", "loose", NULL };
    int word = weir__read_word(r, m, words);

    if (word < 0)
        return;
    *loose = word == 1;
    *strict = word == 0;
}

static bool are_calendar(const struct weir__rule_draft *rule)
{
    size_t n = 0;

    for (size_t i = 0; i < rule->n_limits; i++)
        n += rule->limits[i].calendar != WEIR_NO_CALENDAR;
    return n > 0 && n == rule->n_limits;
}

/* Each limit names another algorithm than the rule. */
static bool are_others(const struct weir__rule_draft *rule, const char *algorithm)
{
    for (size_t i = 0; i < rule->n_limits; i++)
        if (rule->limits[i].calendar == WEIR_NO_CALENDAR &&
            (rule->limits[i].algorithm == NULL ||
             strcmp(rule->limits[i].algorithm, algorithm) == 0))
            return false;
    return rule->n_limits > 0;
}

static bool has_calendar(const struct weir__rule_draft *rule)
{
    for (size_t i = 0; i < rule->n_limits; i++)
        if (rule->limits[i].calendar != WEIR_NO_CALENDAR)
            return true;
    return rule->ban.set && rule->ban.refusals.calendar != WEIR_NO_CALENDAR;
}

/* A wrong algorithm or zone is reported once, not again by every limit. */
static void read_how_much(struct weir__reader *r, const struct weir__mapping *m,
                          struct weir__rule_draft *rule)
{
    struct weir__limit_defaults defaults = { .zone = r->zone };
    const struct weir__member *algorithm = weir__member_of(m, "algorithm"),
                              *zone = weir__member_of(m, "zone"),
                              *limit = weir__member_of(m, "limit"),
                              *cost = weir__member_of(m, "cost"), *ban = weir__member_of(m, "ban");

    if (algorithm->value)
        defaults.algorithm = weir__read_algorithm(r, algorithm->value);
    if (zone->value)
        defaults.zone = weir__read_zone(r, zone->value);
    if (limit->value)
        weir__read_limits(r, limit->value, &defaults, rule);
    rule->no_algorithm =
        defaults.algorithm && strcmp(defaults.algorithm, "calendar") != 0 && are_calendar(rule);
    rule->own_algorithms = defaults.algorithm && are_others(rule, defaults.algorithm);
    if (cost->value) {
        read_cost(r, cost->value, rule);
        check_cost(r, cost->value, rule);
    }
    if (ban->value)
        weir__read_ban(r, ban->value, &defaults, &rule->ban);
    rule->no_zone = zone->value && !has_calendar(rule);
}

static void read_when_full(struct weir__reader *r, const struct weir__member *m,
                           struct weir__rule_draft *rule)
{
    static const char *const words[] = { "open", "closed", NULL };

    rule->closed = weir__read_word(r, m, words) == 1;
}

/* Each ask in Redis reads and writes the whole state. */
static void check_size(struct weir__reader *r, const struct weir__node *node,
                       const struct weir_limit *limit)
{
    struct weir_plan plan;
    struct weir_error error;

    if (weir__plan_make(&plan, limit, NULL) == WEIR_OK &&
        weir__plan_check_redis(&plan, &error) != WEIR_OK)
        weir__say(r, node, "across the fleet: %s", error.text);
}

/* What a purse cannot do: hold more than it counts, and tell an ask to wait for its turn. */
static void check_purses(struct weir__reader *r, const struct weir__node *node,
                         const struct weir__rule_draft *rule)
{
    for (size_t i = 0; i < rule->n_limits; i++) {
        const struct weir_limit *l = &rule->limits[i];
        const char *algorithm = weir__limit_algorithm(l);
        if (l->count > UINT32_MAX || l->burst > UINT32_MAX)
            weir__say(r, node, "a limit across the fleet has at most %" PRIu32 " units",
                      UINT32_MAX);
        check_size(r, node, l);
        if (l->queue != 0)
            weir__say(r, node,
                      "a limit with a queue cannot be across the fleet: its turns are "
                      "given by one host");
        else if (strcmp(algorithm, "smooth") == 0 || strcmp(algorithm, "warm-up") == 0)
            weir__say(r, node,
                      "%s cannot be across the fleet: it gives each ask its turn, and units that "
                      "were drawn have none; take gcra",
                      algorithm);
    }
}

static void read_across(struct weir__reader *r, const struct weir__mapping *m,
                        struct weir__rule_draft *rule)
{
    static const char *const words[] = { "host", "fleet", NULL };
    const struct weir__member *across = weir__member_of(m, "across"),
                              *within = weir__member_of(m, "within"),
                              *alone = weir__member_of(m, "when_alone");

    rule->fleet = weir__read_word(r, across, words) == 1;
    if (rule->fleet)
        check_purses(r, across->value, rule);
    else if (within->value || alone->value)
        weir__say(r, within->value ? within->value : alone->value,
                  "%s means nothing without across: fleet",
                  within->value ? "within" : "when_alone");
}

static void read_rule(struct weir__reader *r, const struct weir__node *node,
                      struct weir__rule_draft *rule)
{
    static const char *const others[] = { "name",  "about",     "match",     "not",    "key",
                                          "limit", "algorithm", "cost",      "mode",   "ban",
                                          "zone",  "paths",     "when_full", "across", NULL };
    struct weir__mapping m = { .others = others };

    rule->key = r->empty;
    rule->cost = 1;
    rule->mode = WEIR_ENFORCE;
    rule->mark = weir__mark_of(r, node);
    if (!weir__read_rows(r, node, &rule_rows, &m, rule))
        return;
    weir__read_head(r, node, "rule", &m, rule);
    if (weir__member_of(&m, "limit")->key == NULL)
        weir__say(r, node, "%s%s%s has no limit; write one, such as limit: 300/60",
                  rule->name ? "the rule '" : "the rule", rule->name ? rule->name : "",
                  rule->name ? "'" : "");
    if (weir__member_of(&m, "key")->value)
        read_key(r, weir__member_of(&m, "key")->value, rule);
    read_when_full(r, weir__member_of(&m, "when_full"), rule);
    read_how_much(r, &m, rule);
    read_across(r, &m, rule);
}

void weir__read_rules(struct weir__reader *r, const struct weir__node *node)
{
    struct weir__draft *draft = r->draft;

    if (node->kind != WEIR__NODE_LIST) {
        weir__say(
            r, node,
            "rules must be a list: each rule begins with a dash, as in - name: per-ip; found %s",
            weir__node_word(node));
        return;
    }
    if (node->n > WEIR__RULES_MAX) {
        weir__say(r, node->items[WEIR__RULES_MAX], "there are %zu rules; the most is %d", node->n,
                  WEIR__RULES_MAX);
        return;
    }
    draft->rules = weir__arena_take(r->arena, node->n, sizeof(*draft->rules));
    r->empty = weir__arena_copy(r->arena, "", 0);
    if (draft->rules == NULL || r->empty == NULL)
        return;
    draft->n_rules = node->n;
    for (size_t i = 0; i < node->n; i++)
        read_rule(r, node->items[i], &draft->rules[i]);
}
