/* command.c -- runs a command from its row: reads its options and words, calls its function, and
 * asks a server if it has one to ask. */
#include "server/base/command.h"

#include <assert.h>
#include <string.h>

#include "server/base/options.h"
#include "server/cli/ask-server.h"

int weir__command_run(const struct weir__command *command, int argc, char **argv)
{
    _Alignas(max_align_t) char options[256] = { 0 };
    struct weir__call call = { .self = command, .options = options, .words = argv, .n = argc };

    if (command->size == 0)
        return command->run(&call);
    assert(command->size <= sizeof(options));
    memcpy(options, command->defaults, command->size);
    int code = weir__options_parse(command, argc, argv, options, &call.n);
    argv[call.n] = NULL;
    if (code == WEIR__GO_ON && command->run)
        code = command->run(&call);
    return code == WEIR__GO_ON ? weir__ask_server_run(&call) : code;
}
