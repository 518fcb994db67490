/* reset.c -- `weir reset`: a running server forgets the usage of a request's keys. */
#include <string.h>

#include "server/cli/ask-server.h"

struct options {
    struct weir__ask_server_options remote;
    const char *rule;
};

static const struct weir__option rows[] = {
    WEIR__TEXT("rule", 'r', rule, "NAME", "only this rule; default every rule that applies"),
    { 0 },
};

static void show(struct weir__ask_server *r)
{
    const struct options *o = r->call->options;
    bool one = strcmp(o->rule, "*") != 0;

    if (weir__document_number(&r->document, 0, "reset") == 0)
        printf("nothing to forget: %s%s to this request; weir explain says why\n",
               one ? o->rule : "no rule", one ? " does not apply" : " applies");
    else
        weir__show(&r->document, "", "{reset#rule}: usage of this request's keys forgotten\n");
}

static int ask(const struct weir__call *call, struct weir__ask_server *r)
{
    const struct options *o = call->options;

    if (!weir__ask_server_attributes(r))
        return WEIR__EXIT_WRONG;
    weir__buffer_member(&r->body, "rule", o->rule);
    int code = weir__ask_server_show(r, "POST /v1/reset", "reset", show);
    return code == WEIR__EXIT_OK && weir__document_number(&r->document, 0, "reset") == 0
               ? WEIR__EXIT_NO
               : code;
}

const struct weir__command weir__cmd_reset = {
    .name = "reset",
    .summary = "forget the usage of a request's keys",
    .arguments = "[--rule NAME] [options] NAME=VALUE...",
    .help = "Gives the keys of this request their whole limits back and lifts their bans, in every "
            "rule that applies or in one.\n"
            "\n"
            "  weir reset --rule login ip=192.0.2.7 uri=/login method=POST\n"
            "\n"
            "Exit codes: 0 done, 1 nothing to forget: no rule applies, 2 wrong use or no server.",
    WEIR__ASK_SERVER(rows, .rule = "*"),
    .words_min = 1,
    .words_max = WEIR__ANY_WORDS,
    .ask = ask,
};
