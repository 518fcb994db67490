/* rules-doubts.h -- rules that are valid, but probably not meant so. */
#ifndef WEIR_SERVER_DESCRIBE_RULES_DOUBTS_H
#define WEIR_SERVER_DESCRIBE_RULES_DOUBTS_H

#include "match/draft.h"
#include "weir.h"

/* Line 0 is the whole file. */
void weir__rules_doubts(const struct weir__draft *draft,
                        void (*say)(void *context, const struct weir_problem *doubt),
                        void *context);
/* Of rules across the fleet, where nobody knows whether there is one: a server does. */
void weir__rules_doubts_fleet(const struct weir__draft *draft,
                              void (*say)(void *context, const struct weir_problem *doubt),
                              void *context);
/* One for them: a line on stderr.  `name` is the text's, a const char *. */
void weir__rules_doubt_print(void *name, const struct weir_problem *doubt);

#endif
