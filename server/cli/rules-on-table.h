/* rules-on-table.h -- the rules of a file on the table of a file, for commands: an engine that
 * changes nothing there but what is changed by hand. */
#ifndef WEIR_SERVER_CLI_RULES_ON_TABLE_H
#define WEIR_SERVER_CLI_RULES_ON_TABLE_H

#include <stdbool.h>

#include "weir.h"

struct weir__rules_on_table {
    struct weir_table *file; /* NULL: the engine has a table of its own */
    struct weir *weir;
};

/* Without a table keys are fresh; `rules` may be NULL too.  Problems of a rule file are said at
 * once: then the error's text is empty.  Close it in any case. */
int weir__rules_on_table_open(struct weir__rules_on_table *out, const char *command,
                              const char *table, const char *rules, struct weir_error *error);
/* The same; every failure is said.  False: there is nothing to close. */
bool weir__rules_on_table_open_or_complain(struct weir__rules_on_table *out, const char *command,
                                           const char *table, const char *rules);
void weir__rules_on_table_close(struct weir__rules_on_table *it);

#endif
