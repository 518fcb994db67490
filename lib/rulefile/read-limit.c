/* read-limit.c -- the limits of a rule.
 *
 * Each limit is tried by making a plan, so that an impossible one is found here, where its place is
 * known.
 */
#include "rulefile/read.h"

#include <string.h>

#include "algo/algo.h"

static const char limit_like[] = "text such as 300/60 or a list of those";

const char *weir__read_algorithm(struct weir__reader *r, const struct weir__node *node)
{
    const char *const *names = weir_algorithms();
    const char *text =
        weir__read_text(r, node, "algorithm", "the name of one, such as sliding-window");
    size_t n = 0;

    for (; text && names[n]; n++) {
        if (strcmp(names[n], text) == 0)
            return names[n];
    }
    if (text && strcmp(text, weir__purse.name) == 0)
        weir__say(r, node, "%s", weir__no_choice());
    else if (text)
        weir__say(r, node, "unknown algorithm %s; %s", weir__quote(text, node->n).text,
                  weir__hint(text, node->n, names, n).text);
    return NULL;
}

static void fill_in(struct weir_limit *limit, const struct weir__limit_defaults *defaults)
{
    if (limit->calendar != WEIR_NO_CALENDAR) {
        if (limit->zone[0] == '\0' && defaults->zone)
            strncpy(limit->zone, defaults->zone, sizeof(limit->zone) - 1);
    } else if (limit->algorithm == NULL) {
        limit->algorithm = defaults->algorithm;
    }
}

bool weir__read_limit(struct weir__reader *r, const struct weir__node *node, const char *what,
                      const struct weir__limit_defaults *defaults, struct weir_limit *out)
{
    struct weir_error error = { 0 };
    struct weir_plan *plan;
    struct weir_limit limit;
    int code = weir_limit_parse(&limit, node->text, &error);

    if (code == WEIR_OK) {
        fill_in(&limit, defaults);
        code = weir_plan_create(&plan, &limit, &error);
    }
    if (code != WEIR_OK && error.column > 0 && node->text[error.column - 1] == ',')
        weir__fail_at(&error, error.column,
                      "unexpected ','; several limits are a list: [5/1m, 100/1h], and options "
                      "follow a space: 5/1m burst 10");
    if (code != WEIR_OK) {
        weir__say_error(r, node, what, &error);
        return false;
    }
    weir_plan_destroy(plan);
    *out = limit;
    return true;
}

static void read_one(struct weir__reader *r, const struct weir__node *node,
                     const struct weir__limit_defaults *defaults, struct weir__rule_draft *rule)
{
    if (!weir__read_text(r, node, "limit", limit_like))
        return;
    if (rule->n_limits == WEIR__RULE_LIMITS) {
        weir__say(r, node, "one limit too many; a rule has at most %d", WEIR__RULE_LIMITS);
        return;
    }
    if (weir__read_limit(r, node, "limit", defaults, &rule->limits[rule->n_limits]))
        rule->n_limits++;
}

void weir__read_limits(struct weir__reader *r, const struct weir__node *node,
                       const struct weir__limit_defaults *defaults, struct weir__rule_draft *rule)
{
    if (node->kind != WEIR__NODE_LIST) {
        read_one(r, node, defaults, rule);
        return;
    }
    if (node->n == 0)
        weir__say(r, node, "the list of limits is empty; write at least one, as in [300/60]");
    for (size_t i = 0; i < node->n && i <= WEIR__RULE_LIMITS; i++)
        read_one(r, node->items[i], defaults, rule);
}
