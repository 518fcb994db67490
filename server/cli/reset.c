/* reset.c -- `weir reset`: a running server forgets what a request's keys have used. */
#include <stdio.h>

#include "server/base/options.h"
#include "server/cli/remote.h"
#include "server/base/text.h"

struct options {
    struct weir__remote_options remote;
    const char *rule;
};

const struct weir__option weir__cmd_reset_options[] = {
    { "rule", 'r', WEIR__OPTION_TEXT, offsetof(struct options, rule), 0, "NAME",
      "only this rule's; default every rule that applies" },
    WEIR__REMOTE_JSON(struct options) WEIR__REMOTE_ROWS(struct options){ 0 },
};

static int reset(struct weir__remote *r, const struct weir__buffer *body)
{
    if (!weir__remote_ask_for(r, "POST", "/v1/reset", body, "reset"))
        return WEIR__EXIT_WRONG;
    int64_t n = weir__document_number(&r->document, 0, "reset");
    if (r->options.json)
        weir__remote_print(r);
    else if (n == 0)
        puts("nothing to forget: no rule that applies has a key for this request");
    else
        printf("%lld rule%s forgotten what this request has used\n", (long long)n,
               n == 1 ? " has" : "s have");
    return WEIR__EXIT_OK;
}

int weir__cmd_reset(const struct weir__command *self, int argc, char **argv)
{
    struct options o = { 0 };
    struct weir__remote r;
    struct weir__buffer body = { 0 };
    int n, code = weir__options_parse(self, argc, argv, &o, &n);

    if (code != WEIR__GO_ON)
        return code;
    code = WEIR__EXIT_WRONG;
    weir__buffer_text(&body, "{");
    weir__buffer_member(&body, "rule", o.rule ? o.rule : "*");
    if (n == 0) {
        weir__complain(self->name, "which request? usage: weir %s %s", self->name, self->arguments);
    } else if (weir__remote_attributes(self->name, &body, argv, n) &&
               weir__remote_open(&r, self, &o.remote)) {
        weir__buffer_text(&body, "}");
        code = reset(&r, &body);
        weir__remote_close(&r);
    }
    weir__buffer_free(&body);
    return code;
}
