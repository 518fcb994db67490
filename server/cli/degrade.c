/* degrade.c -- `weir degrade`: shows the degradation of a running server, or sets it by
 * hand. */
#include <stdio.h>
#include <string.h>

#include "server/base/options.h"
#include "server/cli/remote.h"
#include "server/base/text.h"

struct options {
    struct weir__remote_options remote;
};

const struct weir__option weir__cmd_degrade_options[] = {
    WEIR__REMOTE_JSON(struct options) WEIR__REMOTE_ROWS(struct options){ 0 },
};

static int run(struct weir__remote *r, const char *degradation)
{
    struct weir__buffer body = { 0 };

    weir__buffer_text(&body, "{");
    if (degradation)
        weir__buffer_member(&body, "degradation", degradation);
    weir__buffer_text(&body, "}");
    bool done = weir__remote_ask_for(r, degradation ? "PUT" : "GET", "/v1/degradation",
                                     degradation ? &body : NULL, "degradation");
    weir__buffer_free(&body);
    if (!done)
        return WEIR__EXIT_WRONG;
    if (r->options.json)
        weir__remote_print(r);
    else
        printf("%lld (%s)\n", (long long)weir__document_number(&r->document, 0, "degradation"),
               weir__document_true(&r->document, "by_hand") ? "by hand" : "auto");
    return WEIR__EXIT_OK;
}

int weir__cmd_degrade(const struct weir__command *self, int argc, char **argv)
{
    struct options o = { 0 };
    struct weir__remote r;
    int n, code = weir__options_parse(self, argc, argv, &o, &n);

    if (code != WEIR__GO_ON)
        return code;
    if (n > 1) {
        weir__complain(self->name, "one degradation at a time; usage: weir %s %s", self->name,
                       self->arguments);
        return WEIR__EXIT_WRONG;
    }
    if (!weir__remote_open(&r, self, &o.remote))
        return WEIR__EXIT_WRONG;
    code = run(&r, n == 1 ? argv[0] : NULL);
    weir__remote_close(&r);
    return code;
}
