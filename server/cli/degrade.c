/* degrade.c -- `weir degrade`: shows or sets the degradation of a running server. */
#include "server/cli/ask-server.h"

struct options {
    struct weir__ask_server_options remote;
};

static const struct weir__option rows[] = { { 0 } };

static void show(struct weir__ask_server *r)
{
    bool by_hand = weir__document_true(&r->document, "by_hand");

    int64_t degradation = weir__document_number(&r->document, 0, "degradation");

    weir__show(&r->document, "", by_hand ? "{degradation} (by hand)" : "{degradation} (auto)");
    if (r->call->n > 0 && degradation > 0)
        printf(degradation > 1 ? ": guards with degrade: 1 to %d refuse"
                               : ": guards with degrade: %d refuse",
               (int)degradation);
    putchar('\n');
}

static int ask(const struct weir__call *call, struct weir__ask_server *r)
{
    if (call->n > 0)
        weir__buffer_member(weir__ask_server_body(r), "degradation", call->words[0]);
    return weir__ask_server_show(r, call->n > 0 ? "PUT /v1/degradation" : "GET /v1/degradation",
                                 "degradation", show);
}

const struct weir__command weir__cmd_degrade = {
    .name = "degrade",
    .summary = "show or set the degradation",
    .arguments = "[0..9|auto] [options]",
    .help =
        "Guards with `degrade: N` refuse everything while the degradation is N or more: raise it "
        "to switch off less important work step by step. 0 switches off nothing. With auto, it "
        "follows the guards' breakers and system protection.\n"
        "\n"
        "  weir degrade 3\n"
        "\n"
        "Exit codes: 0 done, 2 wrong use or no server.",
    WEIR__ASK_SERVER(rows, .remote = { 0 }),
    .words_max = 1,
    .no_table = "it asks a server: start weir serve --table FILE, which needs no rules",
    .ask = ask,
};
