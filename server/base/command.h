/* command.h -- a command of `weir`: a row with its options, its help and its function.
 *
 * A new command is a file in server/cli that ends in its row, and a line in main.c.  The row prints
 * the help and the shell completion.
 */
#ifndef WEIR_SERVER_COMMAND_H
#define WEIR_SERVER_COMMAND_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir.h"

enum weir__exit {
    WEIR__EXIT_OK = 0,    /* granted; all passed */
    WEIR__EXIT_NO = 1,    /* refused; some failed */
    WEIR__EXIT_WRONG = 2, /* wrong use, or something needed is missing */
};

#define WEIR__GO_ON (-1) /* no exit code: the command is not finished */

enum weir__option_kind {
    WEIR__OPTION_SWITCH, /* bool: no value */
    WEIR__OPTION_TEXT,   /* const char * */
    WEIR__OPTION_COUNT,  /* int64_t, at least `min` */
    WEIR__OPTION_TIME,   /* weir_time */
    WEIR__OPTION_WAIT,   /* weir_time, or "forever" */
    WEIR__OPTION_MOMENT, /* weir_time since 1970; also as ISO 8601 */
};

struct weir__option {
    const char *name; /* without the dashes; NULL ends the rows */
    char letter;      /* the short form, or 0 */
    enum weir__option_kind kind;
    size_t offset;     /* of the member it sets in the command's struct */
    int64_t min;       /* of a count */
    const char *value; /* the value's name in the help */
    const char *help;
};

/* Rows of a file whose struct is called `options`. */
#define WEIR__SWITCH(name, letter, member, help)                                           \
    {                                                                                      \
        name, letter, WEIR__OPTION_SWITCH, offsetof(struct options, member), 0, NULL, help \
    }
#define WEIR__VALUE(name, letter, kind, member, value, help)                                \
    {                                                                                       \
        name, letter, WEIR__OPTION_##kind, offsetof(struct options, member), 0, value, help \
    }
#define WEIR__TEXT(name, letter, member, value, help) \
    WEIR__VALUE(name, letter, TEXT, member, value, help)
#define WEIR__COUNT(name, letter, member, min, help)                                       \
    {                                                                                      \
        name, letter, WEIR__OPTION_COUNT, offsetof(struct options, member), min, "N", help \
    }
#define WEIR__MOMENT "seconds since 1970, or 2026-11-30T23:59:59Z"

struct weir__command;
struct weir__remote;

/* One run of a command. */
struct weir__call {
    const struct weir__command *self;
    const void *options; /* the command's struct */
    char **words;        /* the rest, ended by NULL */
    int n;
};

struct weir__command {
    const char *name; /* one word, or two: "rules check" */
    const char *summary;
    const char *arguments; /* the usage after the name */
    const char *help; /* paragraphs; wrapped when printed, except lines that begin with spaces */
    const struct weir__option *options; /* NULL: the command reads its own words */
    const struct weir__option *shared;  /* more rows, or NULL */
    const void *defaults;               /* the options' struct before any word is read */
    size_t size;                        /* of that */
    int words_min, words_max;
    int (*run)(const struct weir__call *call); /* WEIR__GO_ON, or NULL: ask a server */
    int (*ask)(const struct weir__call *call, struct weir__remote *server);
};

#define WEIR__COMMAND_OPTIONS(rows, ...)                                 \
    .options = rows, .defaults = &(const struct options){ __VA_ARGS__ }, \
    .size = sizeof(struct options)
#define WEIR__ANY_WORDS INT_MAX

/* The i-th row of main.c, or NULL. */
const struct weir__command *weir__command_row(size_t i);

#endif
