/* rules-doubts-private.h -- shared by the files that doubt rules. */
#ifndef WEIR_SERVER_DESCRIBE_RULES_DOUBTS_PRIVATE_H
#define WEIR_SERVER_DESCRIBE_RULES_DOUBTS_PRIVATE_H

#include "server/describe/rules-doubts.h"

struct weir__doubting {
    const struct weir__draft *draft;
    void (*say)(void *context, const struct weir_problem *doubt);
    void *context;
};

__attribute__((format(printf, 3, 4))) void
weir__doubt(const struct weir__doubting *r, struct weir__mark mark, const char *text, ...);

/* rules-doubts-names.c -- a name of an attribute: a slip, or what others call it. */
void weir__doubt_name(const struct weir__doubting *r, struct weir__mark mark, const char *name);

/* rules-doubts.c -- values that a client may choose anew for each request: each would be a key of
 * its own. */
bool weir__attribute_is_free(const char *attribute);

/* rules-doubts.c -- a rule, or what a guard has of one. */
void weir__doubt_rule(const struct weir__doubting *r, const struct weir__rule_draft *rule);

/* rules-doubts-fleet.c -- how long a rule across the fleet holds a request. */
void weir__doubt_within(const struct weir__doubting *r, const struct weir__rule_draft *rule);

/* rules-doubts-guards.c -- all guards of the draft. */
void weir__doubt_guards(const struct weir__doubting *r);

/* rules-doubts-patterns.c -- patterns that no request is like, or fewer than it seems. */
void weir__doubt_pattern(const struct weir__doubting *r, const struct weir__rule_draft *rule,
                         const struct weir__condition *c, const struct weir__pattern *p);

/* Is it a page that attackers come to: login, password, ...? */
bool weir__path_is_guessed(const struct weir__pattern *p);

/* rules-doubts-tighter.c -- a rule and its limits that never refuse, because others are tighter. */
void weir__doubt_tighter(const struct weir__doubting *r, size_t rule);

/* rules-doubts-lists.c -- one of the draft's lists. */
void weir__doubt_list(const struct weir__doubting *r, size_t list);
/* Is all that the pattern matches in the wide one too, as far as that can be seen? */
bool weir__pattern_is_within(const struct weir__pattern *p, const struct weir__pattern *wide);
/* Has the list an entry that the pattern is within? */
bool weir__list_has_around(const struct weir__list_draft *list, const struct weir__pattern *p);
/* A list's entries of an attribute; NULL: it has none. */
const struct weir__list_draft *weir__list_part(const struct weir__draft *draft, const char *name,
                                               const char *attribute);

#endif
