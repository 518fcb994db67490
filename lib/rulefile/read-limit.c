/* read-limit.c -- the limits of a rule, and what a key is banned for.
 *
 * Each limit is tried: a plan is made of it and thrown away, so that what no plan can do is found
 * here, where its place is known.
 */
#include "rulefile/read.h"

#include <inttypes.h>
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

static bool read_time(struct weir__reader *r, const struct weir__member *m, weir_time least,
                      const char *why_least, weir_time *out)
{
    struct weir_error error = { 0 };
    weir_time time;

    if (m->value == NULL || !weir__read_text(r, m->value, m->name, "a time such as 10m"))
        return false;
    if (weir_time_parse(&time, m->value->text, &error) != WEIR_OK) {
        weir__say_error(r, m->value, m->name, &error);
        return false;
    }
    if (time < least || time > BAN_MOST) {
        weir__say(r, m->value, "%s must be %s and at most 3650d", m->name, why_least);
        return false;
    }
    *out = time;
    return true;
}

static weir_time most(weir_time a, weir_time b)
{
    return a > b ? a : b;
}

static void read_escalation(struct weir__reader *r, const struct weir__member *escalate,
                            const struct weir__member *longest, struct weir__ban_draft *ban)
{
    int64_t factor = 1;

    if (escalate->value)
        weir__read_count(r, escalate->value, "escalate", 1, 1000, &factor);
    ban->factor = (int32_t)factor;
    ban->longest = factor > 1 ? most(30 * DAY, ban->length) : ban->length;
    if (longest->value)
        read_time(r, longest, most(ban->length, 1), "at least as long as for", &ban->longest);
}

enum { REFUSALS, FOR, ESCALATE, LONGEST, FORGET, MEMBERS };

void weir__read_ban(struct weir__reader *r, const struct weir__node *node,
                    const struct weir__limit_defaults *defaults, struct weir__ban_draft *ban)
{
    struct weir__member m[MEMBERS] = { { .name = "refusals" },
                                       { .name = "for" },
                                       { .name = "escalate" },
                                       { .name = "longest" },
                                       { .name = "forget" } };
    struct weir__limit_defaults window = { "sliding-window", defaults->zone };

    if (node->kind != WEIR__NODE_MAPPING) {
        weir_time length;
        bool time = node->kind == WEIR__NODE_TEXT && node->n < 40 &&
                    weir_time_parse(&length, node->text, NULL) == WEIR_OK;
        weir__say(r, node,
                  "a ban says for how many refusals and how long: { refusals: 50/60s, for: %s }; "
                  "found %s",
                  time ? node->text : "10m", weir__node_word(node));
        return;
    }
    if (!weir__read_members(r, node, "a ban", m, MEMBERS))
        return;
    if (m[REFUSALS].key == NULL)
        weir__say(r, node,
                  "the ban has no refusals; write how many bring it, such as refusals: 50/60s");
    if (m[FOR].key == NULL)
        weir__say(r, node, "the ban has no length; write one, such as for: 10m");
    ban->set = true;
    ban->mark = weir__mark_of(r, node);
    if (m[REFUSALS].value &&
        weir__read_text(r, m[REFUSALS].value, "refusals", "a limit such as 50/60s"))
        read_limit(r, m[REFUSALS].value, "refusals", &window, &ban->refusals);
    read_time(r, &m[FOR], 1, "more than 0", &ban->length);
    read_escalation(r, &m[ESCALATE], &m[LONGEST], ban);
    ban->forget = ban->length > BAN_MOST / 10 ? BAN_MOST : most(10 * ban->length, HOUR);
    read_time(r, &m[FORGET], 1, "more than 0", &ban->forget);
}
