/* top-from-table.h -- a table file as `weir top` sees it: the answers that a server would give. */
#ifndef WEIR_SERVER_CLI_TOP_FROM_TABLE_H
#define WEIR_SERVER_CLI_TOP_FROM_TABLE_H

#include "server/base/buffer.h"
#include "weir.h"

struct weir__top_texts {
    struct weir__buffer status, modes, bans;
};

/* Attaches to the table and reads the rules anew: both may have been replaced since the last look.
 * The caller frees the texts.  A bad rule file has been complained about: then the error is
 * empty. */
int weir__top_table_look(struct weir__top_texts *out, const char *table, const char *rules,
                         struct weir_error *error);

#endif
