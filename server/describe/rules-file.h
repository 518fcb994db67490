/* rules-file.h -- rule files for the commands: read, and everything wrong with one said on
 * stderr. */
#ifndef WEIR_SERVER_DESCRIBE_RULES_FILE_H
#define WEIR_SERVER_DESCRIBE_RULES_FILE_H

#include <stdio.h>

#include "match/draft.h"
#include "server/base/buffer.h"
#include "weir.h"
#include "wire/text.h"

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

/* The rules of a fleet as a draft, if they are right: they may name no files, which would be one
 * host's.  NULL: they are not, and every problem was said; said->n 0: `error` is the only one. */
struct weir__draft *weir__rules_text_read(struct weir__text text, struct weir__problems *said,
                                          struct weir_error *error);

/* {"line":..,"column":..,"text":..}, and with `source` the line and its caret. */
void weir__problem_json(struct weir__buffer *out, const struct weir_problem *problem, bool source);

#endif
