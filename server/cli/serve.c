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
    int code = weir__settings_read(call->self, &settings, call->n, call->words);
    if (code == WEIR__GO_ON)
        code = weir__serve(&settings, line);
    free(line);
    return code;
}

const struct weir__command weir__cmd_serve = {
    .name = "serve",
    .summary = "answer Redis clients, HTTP clients and proxies",
    .arguments = "[options]",
    .help = "A setting is --NAME here, WEIR_NAME in the environment (WEIR_TRUSTED_PROXIES) or a "
            "line NAME: VALUE in the --config file; the first of these counts.  [..] is "
            "the default.\n"
            "\n"
            "SIGHUP reloads the rules, SIGTERM answers open requests and exits, SIGUSR2 hands the "
            "sockets over to a new process.",
    .options = weir__settings_rows,
    .run = run,
};
