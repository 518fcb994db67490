/* rules-words.h -- rules in words that a person reads: "requests with uri /login and method
 * POST". */
#ifndef WEIR_SERVER_DESCRIBE_RULES_WORDS_H
#define WEIR_SERVER_DESCRIBE_RULES_WORDS_H

#include <stdio.h>

#include "match/draft.h"

/* A value as it is if it is one plain word, else in quotes; cut if it is long. */
void weir__rules_words_value(FILE *to, const char *text, size_t len);

/* "/api/...", "on the list vips", "any" */
void weir__rules_words_pattern(FILE *to, const struct weir__pattern *pattern);

/* "method POST or PUT"; at most `most` of its patterns, 0: all */
void weir__rules_words_condition(FILE *to, const struct weir__condition *condition, size_t most);

/* "every request", or "requests with ..., but not with ..." */
void weir__rules_words_who(FILE *to, const struct weir__rule_draft *rule);

/* "300/1m and 100/5s" */
void weir__rules_words_limits(FILE *to, const struct weir__rule_draft *rule);

/* "for 10m after 50/1m refusals, each 2 times as long, at most 1d, forgotten after 1d"; "none" */
void weir__rules_words_ban(FILE *to, const struct weir__ban_draft *ban);

/* The parts of a guard, each in words: "errors 50%, slow 500ms".  A part that is not written prints
 * nothing. */
struct weir__guard_part {
    const char *name;
    void (*print)(FILE *to, const struct weir__guard_draft *guard); /* NULL: by its rows */
    const char *effect; /* of a change, "" if it says nothing more */
};
extern const struct weir__guard_part weir__guard_parts[]; /* ended by a name that is NULL */
void weir__rules_words_part(FILE *to, const struct weir__guard_part *part,
                            const struct weir__guard_draft *guard);

/* All of them, with their names before them. */
void weir__rules_words_guard(FILE *to, const struct weir__guard_draft *guard);

/* "host", or "fleet" and the rest; `rule` is a struct weir__rule_draft. */
void weir__rules_words_across(FILE *to, const void *rule);

#endif
