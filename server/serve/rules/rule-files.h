/* rule-files.h -- the files that a rule set is read from: the rule file, and those that its lists
 * and its guards' fallbacks name.
 *
 * Two numbers stand for them.  The stamp changes when a file is written, replaced or a link to it
 * turned (inode, size, times): cheap, for a look every second.  The contents tell whether there is
 * really something else in them.
 */
#ifndef WEIR_SERVER_SERVE_RULES_RULE_FILES_H
#define WEIR_SERVER_SERVE_RULES_RULE_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "weir.h"

struct weir__rule_files {
    char **named; /* paths */
    size_t n;
};

/* The whole file, which must be a regular one; the caller frees it. */
int weir__rule_files_read(const char *path, char **text, size_t *len, struct weir_error *error);

/* The reader of the rules names a file.  Without memory it is left out: then a change of it is not
 * seen. */
void weir__rule_files_add(struct weir__rule_files *files, const char *path);
void weir__rule_files_free(struct weir__rule_files *files);

uint64_t weir__rule_files_stamp(const struct weir__rule_files *files, const char *path);
/* Of the text, and with each file in turn. */
uint64_t weir__rule_files_contents(const struct weir__rule_files *files, const char *text,
                                   size_t len);
uint64_t weir__rule_files_more(uint64_t contents, const char *path);

#endif
