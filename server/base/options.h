/* options.h -- sorts the words after a command's name into options and the rest. */
#ifndef WEIR_SERVER_BASE_OPTIONS_H
#define WEIR_SERVER_BASE_OPTIONS_H

#include "server/base/command.h"

#define WEIR__OPTIONS_MAX 64 /* rows of a command */

/* Sets the members of `into` that the words name, and moves the other words to the front of argv,
 * *rest of them; the row says how many there may be.  Returns WEIR__GO_ON, or an exit code: the
 * help was printed, or a complaint. */
int weir__options_parse(const struct weir__command *command, int argc, char **argv, void *into,
                        int *rest);

/* The two halves of parsing: the text of each row (NULL: not given), then its value.  A text other
 * than a number, time or switch is not copied.  `place` is how complaints name it: "--keys". */
int weir__options_find(const struct weir__command *command, int argc, char **argv,
                       const char **texts, int *rest);
bool weir__option_read(const char *command, const struct weir__option *option, const char *place,
                       const char *text, void *into);

/* A number or time as it can be read again. */
void weir__option_print(char *out, size_t size, const struct weir__option *option, int64_t n);

/* WEIR_TRUSTED_PROXIES for trusted-proxies */
struct weir__environment {
    char name[64];
};
struct weir__environment weir__option_environment(const struct weir__option *option);

/* The i-th option of a command; NULL: there are no more. */
const struct weir__option *weir__options_row(const struct weir__command *command, size_t i);

/* Complains, shows the usage, returns WEIR__EXIT_WRONG. */
__attribute__((format(printf, 2, 3))) int weir__command_wrong(const struct weir__command *command,
                                                              const char *format, ...);

#endif
