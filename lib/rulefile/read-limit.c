/* read-limit.c -- the limits of a rule, and what a key is banned for.
 *
 * Each limit is tried: a plan is made of it and thrown away, so that what no plan can do is found
 * here, where its place is known.
 */
#include "rulefile/read.h"

#include <string.h>

#define HOUR     (3600 * WEIR_SECOND)
#define DAY      (24 * HOUR)
#define BAN_MOST (3650 * DAY) /* no sum of a point in time and two bans overflows */

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
    if (text)
        weir__say(r, node, "unknown algorithm %s; %s", weir__quote(text, node->n).text,
                  weir__hint(text, node->n, names, n).text);
    return NULL;
}

/* --------------------------------------------------------------- limits ---- */

static void fill_in(struct weir_limit *limit, const struct weir__limit_defaults *defaults)
{
    if (limit->calendar != WEIR_NO_CALENDAR) {
        if (limit->zone[0] == '\0' && defaults->zone)
            strncpy(limit->zone, defaults->zone, sizeof(limit->zone) - 1);
    } else if (limit->algorithm == NULL) {
        limit->algorithm = defaults->algorithm;
    }
}

static bool read_limit(struct weir__reader *r, const struct weir__node *node, const char *what,
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
    if (read_limit(r, node, "limit", defaults, &rule->limits[rule->n_limits]))
        rule->limit_marks[rule->n_limits++] = weir__mark_of(r, node);
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

/* ----------------------------------------------------------------- bans ---- */

#define DRAFT(member) WEIR__ROW(struct weir__ban_draft, member)

/* clang-format off */
static const struct weir__row ban_rows[] = {
    { "for", DRAFT(length), WEIR__ROW_TIME, 1, BAN_MOST, .text = "How long the first ban lasts" },
    { "escalate", DRAFT(factor), WEIR__ROW_COUNT, 1, 1000, 1,
      .text = "Repeat offenders: each ban is this many times as long as the last ..." },
    { "longest", DRAFT(longest), WEIR__ROW_TIME, 1, BAN_MOST,
      .text = "... up to this; default 30d" },
    { "forget", DRAFT(forget), WEIR__ROW_TIME, 1, BAN_MOST,
      .text = "Earlier bans are forgotten this long after a ban ends; default ten times for, at least "
              "1h" },
};
/* clang-format on */

const struct weir__rows weir__ban_rows = { "ban", 0, ban_rows, 4 };

static weir_time most(weir_time a, weir_time b)
{
    return a > b ? a : b;
}

static void fill_in_ban(struct weir__ban_draft *ban)
{
    weir__rows_fill(&weir__ban_rows, ban);
    if (ban->longest == 0)
        ban->longest = ban->factor > 1 ? most(30 * DAY, ban->length) : ban->length;
    if (ban->forget == 0)
        ban->forget = ban->length > BAN_MOST / 10 ? BAN_MOST : most(10 * ban->length, HOUR);
}

/* "ban: 10m" is short of half of it. */
static void say_no_ban(struct weir__reader *r, const struct weir__node *node)
{
    weir_time length;
    bool time = node->kind == WEIR__NODE_TEXT && node->n < 40 &&
                weir_time_parse(&length, node->text, NULL) == WEIR_OK;

    weir__say(r, node,
              "a ban says for how many refusals and how long: { refusals: 50/60s, for: %s }; "
              "found %s",
              time ? node->text : "10m", weir__node_word(node));
}

void weir__read_ban(struct weir__reader *r, const struct weir__node *node,
                    const struct weir__limit_defaults *defaults, struct weir__ban_draft *ban)
{
    static const char *const others[] = { "refusals", NULL };
    struct weir__mapping m = { .others = others };
    struct weir__limit_defaults window = { "sliding-window", defaults->zone };

    if (node->kind != WEIR__NODE_MAPPING) {
        say_no_ban(r, node);
        return;
    }
    weir__read_rows(r, node, &weir__ban_rows, &m, ban);
    const struct weir__member *refusals = weir__member_of(&m, "refusals"),
                              *longest = weir__member_of(&m, "longest");
    if (refusals->key == NULL)
        weir__say(r, node,
                  "the ban has no refusals; write how many bring it, such as refusals: 50/60s");
    if (weir__member_of(&m, "for")->key == NULL)
        weir__say(r, node, "the ban has no length; write one, such as for: 10m");
    if (ban->longest && ban->longest < ban->length)
        weir__say(r, longest->value, "longest must be at least as long as for");
    ban->set = true;
    ban->mark = weir__mark_of(r, node);
    if (refusals->value &&
        weir__read_text(r, refusals->value, "refusals", "a limit such as 50/60s"))
        read_limit(r, refusals->value, "refusals", &window, &ban->refusals);
    fill_in_ban(ban);
}
