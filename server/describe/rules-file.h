/* rules-file.h -- rule files for the commands: read, and everything wrong with one said on
 * stderr. */
#ifndef WEIR_SERVER_RULES_FILE_H
#define WEIR_SERVER_RULES_FILE_H

#include <stdio.h>

#include "server/base/buffer.h"
#include "weir.h"

/* NULL if the file cannot be read or is wrong: that has been said. */
struct weir_rules *weir__rules_file_read(const char *command, const char *path);

/* For `problem` and `context` of struct weir_rules_options. */
struct weir__problems {
    const char *name;          /* of the text */
    FILE *out;                 /* NULL: stderr */
    struct weir__buffer *json; /* into this list instead; NULL: in words */
    long n;                    /* how many there were */
};
void weir__problem_say(void *problems, const struct weir_problem *problem);

/* {"line":..,"column":..,"text":..}, and with `source` the line and its caret. */
void weir__problem_json(struct weir__buffer *out, const struct weir_problem *problem, bool source);

#endif
