/* serve.c -- `weir serve`: the settings, then the server. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/command.h"
#include "server/base/options.h"
#include "server/serve/run.h"

/* serve's options are its settings, which have a table of their own. */
const struct weir__option weir__cmd_serve_options[] = { { .name = NULL } };

/* The command line as it was, for a successor: the words before argv were the program and the
 * command's name. */
static char **whole_line(const struct weir__command *self, int argc, char **argv)
{
    char **line = calloc((size_t)argc + 3, sizeof(*line));
    if (!line)
        return NULL;
    line[0] = strdup(program_invocation_name);
    line[1] = strdup(self->name);
    for (int i = 0; i < argc; i++)
        line[i + 2] = strdup(argv[i]);
    return line;
}

int weir__cmd_serve(const struct weir__command *self, int argc, char **argv)
{
    struct weir__settings settings;
    char **line = whole_line(self, argc, argv);
    int code = weir__settings_read(&settings, argc, argv);
    if (code == WEIR__GO_ON)
        code = weir__serve(&settings, line);
    for (int i = 0; line && line[i]; i++)
        free(line[i]);
    free(line);
    return code;
}
