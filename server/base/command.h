/* command.h -- what a command of `weir` is: a row, the options it takes, and the codes it ends
 * with.
 *
 * The rows are in main.c.  A new command is a file cmd-x.c (its options and its function) and one
 * row there; the row and the options also print the help, so neither can drift from the other.
 */
#ifndef WEIR_SERVER_COMMAND_H
#define WEIR_SERVER_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir.h"

enum weir__exit {
    WEIR__EXIT_OK = 0,    /* granted; all passed */
    WEIR__EXIT_NO = 1,    /* refused; some failed */
    WEIR__EXIT_WRONG = 2, /* wrong use, or something that is needed cannot be had */
};

enum weir__option_kind {
    WEIR__OPTION_SWITCH, /* bool: no value */
    WEIR__OPTION_TEXT,   /* const char * */
    WEIR__OPTION_COUNT,  /* int64_t, from `min` up */
    WEIR__OPTION_TIME,   /* weir_time */
    WEIR__OPTION_WAIT,   /* weir_time, or "forever" */
    WEIR__OPTION_MOMENT, /* weir_time, since 1970; also as ISO 8601 */
};

struct weir__option {
    const char *name; /* without the two dashes; NULL ends the rows */
    char letter;      /* of the short form, or 0 */
    enum weir__option_kind kind;
    size_t offset;     /* of the member it sets in the command's own struct */
    int64_t min;       /* of a count */
    const char *value; /* what the help calls its value */
    const char *help;
};

struct weir__command {
    const char *name; /* one word, or two: "rules check" */
    const char *summary;
    const char *arguments; /* the usage, after the name */
    const char *notes;     /* more lines for --help, or NULL */
    const struct weir__option *options;
    int (*run)(const struct weir__command *self, int argc,
               char **argv); /* argv[0] is the first word after the name */
};

extern const struct weir__option weir__cmd_take_options[], weir__cmd_peek_options[],
    weir__cmd_give_options[];
extern const struct weir__option weir__cmd_table_options[], weir__cmd_demo_options[],
    weir__cmd_limits_options[];
extern const struct weir__option weir__cmd_rules_check_options[], weir__cmd_rules_diff_options[],
    weir__cmd_rules_schema_options[];

int weir__cmd_take(const struct weir__command *self, int argc, char **argv);
int weir__cmd_peek(const struct weir__command *self, int argc, char **argv);
int weir__cmd_give(const struct weir__command *self, int argc, char **argv);
int weir__cmd_table(const struct weir__command *self, int argc, char **argv);
int weir__cmd_demo(const struct weir__command *self, int argc, char **argv);
int weir__cmd_limits(const struct weir__command *self, int argc, char **argv);

extern const struct weir__option weir__cmd_bans_options[];
int weir__cmd_bans(const struct weir__command *self, int argc, char **argv);

extern const struct weir__option weir__cmd_serve_options[];
int weir__cmd_serve(const struct weir__command *self, int argc, char **argv);

extern const struct weir__option weir__cmd_explain_options[];
extern const struct weir__option weir__cmd_replay_options[];
int weir__cmd_explain(const struct weir__command *self, int argc, char **argv);
int weir__cmd_replay(const struct weir__command *self, int argc, char **argv);
int weir__cmd_rules_check(const struct weir__command *self, int argc, char **argv);
int weir__cmd_rules_diff(const struct weir__command *self, int argc, char **argv);
int weir__cmd_rules_schema(const struct weir__command *self, int argc, char **argv);

extern const struct weir__option weir__cmd_check_options[], weir__cmd_mode_options[],
    weir__cmd_reset_options[], weir__cmd_lists_options[], weir__cmd_status_options[],
    weir__cmd_events_options[], weir__cmd_top_options[], weir__cmd_completion_options[];
extern const struct weir__option weir__cmd_guards_options[], weir__cmd_degrade_options[];
extern const struct weir__option weir__cmd_rules_get_options[], weir__cmd_rules_set_options[],
    weir__cmd_rules_reload_options[];
int weir__cmd_check(const struct weir__command *self, int argc, char **argv);
int weir__cmd_mode(const struct weir__command *self, int argc, char **argv);
int weir__cmd_guards(const struct weir__command *self, int argc, char **argv);
int weir__cmd_degrade(const struct weir__command *self, int argc, char **argv);
int weir__cmd_reset(const struct weir__command *self, int argc, char **argv);
int weir__cmd_lists(const struct weir__command *self, int argc, char **argv);
int weir__cmd_status(const struct weir__command *self, int argc, char **argv);
int weir__cmd_events(const struct weir__command *self, int argc, char **argv);
int weir__cmd_top(const struct weir__command *self, int argc, char **argv);
int weir__cmd_completion(const struct weir__command *self, int argc, char **argv);
int weir__cmd_rules_get(const struct weir__command *self, int argc, char **argv);
int weir__cmd_rules_set(const struct weir__command *self, int argc, char **argv);
int weir__cmd_rules_reload(const struct weir__command *self, int argc, char **argv);

extern const struct weir__option weir__cmd_sim_options[];
int weir__cmd_sim(const struct weir__command *self, int argc, char **argv);

/* main.c -- the i-th row; NULL: there are no more. */
const struct weir__command *weir__command_row(size_t i);

#endif
