/* options.h -- the words after a command's name, sorted into options and the rest. */
#ifndef WEIR_SERVER_OPTIONS_H
#define WEIR_SERVER_OPTIONS_H

#include "server/base/command.h"

#define WEIR__GO_ON (-1)

/* Sets the members of `into` that the words name.  The words that are no options are moved to the
 * front of argv and counted in *rest. Returns WEIR__GO_ON, or the code to end with: the help was
 * asked for and printed, or a word was wrong and that was said. */
int weir__options_parse(const struct weir__command *command, int argc, char **argv, void *into,
                        int *rest);

void weir__options_help(const struct weir__command *command);

#endif
