/* limits.c -- `weir limits`: the algorithms, and what each is for. */
#include <stdio.h>

#include "server/base/command.h"
#include "server/base/options.h"
#include "server/base/text.h"

struct options {
    bool json;
};

const struct weir__option weir__cmd_limits_options[] = {
    { "json", 0, WEIR__OPTION_SWITCH, offsetof(struct options, json), 0, NULL,
      "as one JSON array" },
    { 0 },
};

static void print_json(void)
{
    const char *comma = "";

    putchar('[');
    for (const char *const *name = weir_algorithms(); *name; name++, comma = ",") {
        printf("%s{\"name\":", comma);
        weir__json_string(*name);
        printf(",\"summary\":");
        weir__json_string(weir_algorithm_summary(*name));
        putchar('}');
    }
    puts("]");
}

int weir__cmd_limits(const struct weir__command *self, int argc, char **argv)
{
    struct options o = { 0 };
    int rest;
    int code = weir__options_parse(self, argc, argv, &o, &rest);

    if (code != WEIR__GO_ON)
        return code;
    if (rest) {
        weir__complain(self->name, "'%s' is too much: this command takes no words", argv[0]);
        return WEIR__EXIT_WRONG;
    }
    if (o.json)
        print_json();
    for (const char *const *name = weir_algorithms(); !o.json && *name; name++)
        printf("%-16s %s\n", *name, weir_algorithm_summary(*name));
    return WEIR__EXIT_OK;
}
