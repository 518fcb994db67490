/* limits.c -- `weir limits`: the algorithms. */
#include <stdio.h>

#include "server/base/buffer.h"
#include "server/base/command.h"

struct options {
    bool json;
};

static const struct weir__option rows[] = {
    WEIR__SWITCH("json", 0, json, "print a JSON array"),
    { 0 },
};

static int run(const struct weir__call *call)
{
    const struct options *o = call->options;
    struct weir__buffer json = { 0 };

    weir__buffer_open(&json, NULL, '[');
    for (const char *const *name = weir_algorithms(); *name; name++) {
        if (!o->json)
            printf("%-16s %s\n", *name, weir_algorithm_summary(*name));
        weir__buffer_open(&json, NULL, '{');
        weir__buffer_member(&json, "name", *name);
        weir__buffer_member(&json, "summary", weir_algorithm_summary(*name));
        weir__buffer_close(&json, "}");
    }
    weir__buffer_close(&json, "]\n");
    return weir__buffer_print(&json, o->json ? stdout : NULL);
}

const struct weir__command weir__cmd_limits = {
    .name = "limits",
    .summary = "list the algorithms",
    .arguments = "[--json]",
    .help = "A limit names one of them: --limit 'gcra 10/1m'. Without a name it is token-bucket.\n"
            "\n"
            "Exit codes: 0 done, 2 wrong use.",
    WEIR__COMMAND_OPTIONS(rows, .json = false),
    .run = run,
};
