/* serve.c -- `weir serve`: reads the settings, then runs the server. */
#include <errno.h>
#include <stdlib.h>

#include "server/base/command.h"
#include "server/serve/run.h"

static int run(const struct weir__call *call)
{
    struct weir__settings settings;
    char **line = calloc((size_t)call->n + 3, sizeof(*line)); /* for a successor */

    if (line) {
        line[0] = program_invocation_name;
        line[1] = (char *)(uintptr_t)call->self->name;
        for (int i = 0; i < call->n; i++)
            line[i + 2] = call->words[i];
    }
    int code = weir__settings_read(&settings, call->n, call->words);
    if (code == WEIR__GO_ON)
        code = weir__serve(&settings, line);
    free(line);
    return code;
}

const struct weir__command weir__cmd_serve = {
    .name = "serve",
    .summary = "answer Redis clients, HTTP clients and proxies",
    .arguments = "[settings]",
    .run = run,
};
