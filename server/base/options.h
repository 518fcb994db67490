/* options.h -- sorts the words after a command's name into options and the rest. */
#ifndef WEIR_SERVER_OPTIONS_H
#define WEIR_SERVER_OPTIONS_H

#include "server/base/command.h"

/* Sets the members of `into` that the words name, and moves the other words to the front of argv,
 * *rest of them.  Returns WEIR__GO_ON, or an exit code: the help was printed, or a complaint. */
int weir__options_parse(const struct weir__command *command, int argc, char **argv, void *into,
                        int *rest);

/* The i-th option of a command; NULL: there are no more. */
const struct weir__option *weir__options_row(const struct weir__command *command, size_t i);

/* Complains, shows the usage, returns WEIR__EXIT_WRONG. */
__attribute__((format(printf, 2, 3))) int weir__command_wrong(const struct weir__command *command,
                                                              const char *format, ...);

#endif
