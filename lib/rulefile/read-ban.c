/* read-ban.c -- the ban of a rule. */
#include "rulefile/read.h"
#include "table/bans.h"

#define DRAFT(member) WEIR__ROW(struct weir__ban_draft, member)

/* clang-format off */
static const struct weir__row ban_rows[] = {
    { "for", DRAFT(length), WEIR__ROW_TIME, 1, WEIR__BAN_MOST, .text = "How long the first ban lasts" },
    { "escalate", DRAFT(factor), WEIR__ROW_COUNT, 1, 1000, 1,
      .text = "Repeat offenders: each ban is this many times as long as the last ..." },
    { "longest", DRAFT(longest), WEIR__ROW_TIME, 1, WEIR__BAN_MOST,
      .text = "... up to this; default 30d" },
    { "forget", DRAFT(forget), WEIR__ROW_TIME, 1, WEIR__BAN_MOST,
      .text = "Earlier bans are forgotten this long after a ban ends; default ten times for, at least "
              "1h" },
};
/* clang-format on */

const struct weir__rows weir__ban_rows = { "ban", 0, ban_rows, 4 };

static void fill_in_ban(struct weir__ban_draft *ban)
{
    weir__rows_fill(&weir__ban_rows, ban);
    struct weir__ban_terms terms = { ban->length, ban->factor, ban->longest, ban->forget };
    weir__ban_terms_fill(&terms);
    ban->longest = terms.longest;
    ban->forget = terms.forget;
}

/* "ban: 10m" lacks the refusals. */
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
                              *longest = weir__member_of(&m, "longest"),
                              *length = weir__member_of(&m, "for");
    if (refusals->key == NULL)
        weir__say(r, node,
                  "the ban has no refusals; write how many bring it, such as refusals: 50/60s");
    if (length->key == NULL)
        weir__say(r, node, "the ban has no length; write one, such as for: 10m");
    ban->bare = weir__is_bare_number(length->value);
    ban->forgets = ban->forget > 0;
    if (ban->longest && ban->longest < ban->length)
        weir__say(r, longest->value, "longest must be at least as long as for");
    ban->set = true;
    if (refusals->value &&
        weir__read_text(r, refusals->value, "refusals", "a limit such as 50/60s"))
        weir__read_limit(r, refusals->value, "refusals", &window, &ban->refusals);
    fill_in_ban(ban);
}
