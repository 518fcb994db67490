/* rules-file.h -- rule files for the commands: read, and everything wrong with one said on
 * stderr. */
#ifndef WEIR_SERVER_RULES_FILE_H
#define WEIR_SERVER_RULES_FILE_H

#include "weir.h"

/* NULL if the file cannot be read or is wrong: that has been said. */
struct weir_rules *weir__rules_file_read(const char *command, const char *path);

/* For readers of other files like rules: `problem` of struct weir_rules_options, its context a
 * struct weir__file_problems. */
struct weir__file_problems {
    const char *path;
    int said;
};
void weir__file_problem_say(void *context, const struct weir_problem *problem);

#endif
