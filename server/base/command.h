/* command.h -- a command of `weir`: a row with its options, its help and its function.
 *
 * A new command is a file in server/cli that ends in its row, and a line in main.c.  The row prints
 * the help and the shell completion.
 */
#ifndef WEIR_SERVER_BASE_COMMAND_H
#define WEIR_SERVER_BASE_COMMAND_H

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
    WEIR__OPTION_SWITCH,    /* bool: no value */
    WEIR__OPTION_TEXT,      /* const char *, as all up to SECRET */
    WEIR__OPTION_ADDRESSES, /* to listen on */
    WEIR__OPTION_NETWORKS,  /* CIDR */
    WEIR__OPTION_URL,
    WEIR__OPTION_REDIS,  /* a URL of Redis: it may hold a password */
    WEIR__OPTION_SECRET, /* never on the command line */
    WEIR__OPTION_COUNT,  /* int64_t, as all below */
    WEIR__OPTION_SIZE,   /* bytes: 64k, 1m, 1g */
    WEIR__OPTION_MODE,   /* permissions of a file, in octal */
    WEIR__OPTION_TIME,   /* weir_time, as all below */
    WEIR__OPTION_WAIT,   /* or "forever" */
    WEIR__OPTION_MOMENT, /* since 1970; also as ISO 8601 */
};

struct weir__option {
    const char *name; /* without the dashes; NULL ends the rows */
    char letter;      /* the short form, or 0 */
    enum weir__option_kind kind;
    size_t offset;     /* of the member it sets in the command's struct */
    int64_t min, max;  /* of numbers and times; max 0: none, and a time has no min either */
    const char *value; /* the value's name in the help */
    const char *help;
    const char *standard; /* the default, as text; NULL: not shown */
    const char *section;  /* of the help, from this row on; NULL: that of the row before */
};

static inline bool weir__option_is_text(const struct weir__option *option)
{
    return option->kind >= WEIR__OPTION_TEXT && option->kind <= WEIR__OPTION_SECRET;
}

/* Rows of a file whose struct is called `options`. */
#define WEIR__OPTION(in, title, key, of_kind, member, least, written, about)          \
    {                                                                                 \
        .name = title, .letter = key, .kind = WEIR__OPTION_##of_kind,                 \
        .offset = offsetof(in, member), .min = least, .value = written, .help = about \
    }
#define WEIR__SWITCH(name, letter, member, help) \
    WEIR__OPTION(struct options, name, letter, SWITCH, member, 0, NULL, help)
#define WEIR__VALUE(name, letter, kind, member, value, help) \
    WEIR__OPTION(struct options, name, letter, kind, member, 0, value, help)
#define WEIR__TEXT(name, letter, member, value, help) \
    WEIR__VALUE(name, letter, TEXT, member, value, help)
#define WEIR__COUNT(name, letter, member, min, help) \
    WEIR__OPTION(struct options, name, letter, COUNT, member, min, "N", help)
#define WEIR__MODE(title, key, member, about)                                               \
    {                                                                                       \
        .name = title, .letter = key, .kind = WEIR__OPTION_MODE,                            \
        .offset = offsetof(struct options, member), .min = 1, .max = 0777, .value = "MODE", \
        .help = about                                                                       \
    }
#define WEIR__MOMENT "seconds since 1970, or 2026-11-30T23:59:59Z"

struct weir__command;
struct weir__ask_server;

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
    const struct weir__option *options;
    const struct weir__option *shared; /* more rows, or NULL */
    const void *defaults;              /* the options' struct before any word is read */
    size_t size;                       /* of that; 0: the command reads its own words */
    int words_min, words_max;
    bool runs_words; /* the words are a command: options end at the first */
    int (*run)(const struct weir__call *call); /* WEIR__GO_ON, or NULL: ask a server */
    int (*ask)(const struct weir__call *call, struct weir__ask_server *server);
    int no_server;        /* exit code if there is none; 0: WEIR__EXIT_WRONG */
    const char *no_table; /* why there is no --table, and what is done instead; or NULL */
};

#define WEIR__COMMAND_OPTIONS(rows, ...)                                 \
    .options = rows, .defaults = &(const struct options){ __VA_ARGS__ }, \
    .size = sizeof(struct options)
#define WEIR__ANY_WORDS INT_MAX

/* Runs a command (server/cli/command.c).  Returns the exit code. */
int weir__command_run(const struct weir__command *command, int argc, char **argv);

/* The i-th row of main.c, or NULL. */
const struct weir__command *weir__command_row(size_t i);

#endif
