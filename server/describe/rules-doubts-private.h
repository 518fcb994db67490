/* rules-doubts-private.h -- shared by the files that doubt rules. */
#ifndef WEIR_SERVER_RULES_DOUBTS_PRIVATE_H
#define WEIR_SERVER_RULES_DOUBTS_PRIVATE_H

#include "server/describe/rules-doubts.h"

struct weir__doubting {
    const struct weir__draft *draft;
    void (*say)(void *context, const struct weir_problem *doubt);
    void *context;
};

__attribute__((format(printf, 3, 4))) void
weir__doubt(const struct weir__doubting *r, struct weir__mark mark, const char *text, ...);

/* rules-doubts-patterns.c -- patterns that no request is like, or fewer than it seems. */
void weir__doubt_pattern(const struct weir__doubting *r, const struct weir__rule_draft *rule,
                         const struct weir__condition *c, const struct weir__pattern *p);

/* rules-doubts-limits.c -- rules and limits that never refuse, because others are tighter. */
void weir__doubt_limits(const struct weir__doubting *r, size_t rule);

#endif
