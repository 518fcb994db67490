/* lists.c -- `weir lists`: shows and changes the lists of a running server's rules. */
#include "server/cli/ask-server.h"

struct options {
    struct weir__ask_server_options remote;
    bool add, remove;
};

static const struct weir__option rows[] = {
    WEIR__SWITCH("add", 'a', add, "add entries: LIST ATTRIBUTE ENTRY..."),
    WEIR__SWITCH("remove", 'r', remove, "remove entries: LIST ATTRIBUTE ENTRY..."),
    { 0 },
};

static void show_all(struct weir__ask_server *r)
{
    const struct weir__document *d = &r->document;

    if (weir__show_each(d, "lists", "list", "{list:16} {attribute:16} {entries#entry}\n") == 0)
        puts("there are no lists");
    if (weir__document_find(d, "changes.0.list"))
        puts("\nchanged by hand:");
    weir__show_each(d, "changes", "list", "{change:8} {list:16} {attribute:16} {entry}\n");
}

/* The entries of one list, a line each, for grep and other tools. */
static void show_one(struct weir__ask_server *r)
{
    const struct weir__document *d = &r->document;
    const char *name;
    char values[32];

    for (int i = 0; (name = weir__document_text(d, "lists.%d.attribute", i)) != NULL; i++) {
        int n = 0;
        for (const char *v; (v = weir__document_text(d, "lists.%d.values.%d", i, n)); n++) {
            weir__print_padded(name, 16);
            putchar(' ');
            weir__print_safely(stdout, v);
            putchar('\n');
        }
        snprintf(values, sizeof(values), "lists.%d.", i);
        if (weir__document_number(d, 0, "lists.%d.entries", i) > n)
            weir__show(d, values, "{attribute:16} has {entries} in all\n");
    }
    if (!weir__document_find(d, "lists.0.values.0"))
        puts("it has no entries");
}

static void show_change(struct weir__ask_server *r)
{
    const struct options *o = r->call->options;

    bool none = weir__document_number(&r->document, 0, "changed") == 0;
    const char *why = none ? o->add ? ": already on the list" : ": not on the list" : "";

    weir__show(&r->document, "", o->add ? "{changed} added" : "{changed} removed");
    printf("%s; ", why);
    printf("%s %s", r->call->words[0], r->call->words[1]);
    weir__show(&r->document, "", " now has {entries}\n");
    weir__ask_server_note_fleet(r);
}

/* A misspelt attribute matches nothing. */
static void doubt_attribute(struct weir__ask_server *r, const char *name, const char *entry)
{
    struct weir__buffer *body = weir__ask_server_body(r);

    weir__buffer_open(body, "attributes", '{');
    weir__buffer_member(body, name, entry);
    weir__buffer_close(body, "}");
    r->silent = true;
    if (weir__ask_server_for(r, "POST /v1/explain", "unused") &&
        weir__document_find(&r->document, "unused.0"))
        weir__show(&r->document, "",
                   "no rule or list looked at {unused.0} before[; did you mean {meant.0}?]\n");
    r->silent = false;
}

static int ask(const struct weir__call *call, struct weir__ask_server *r)
{
    const struct options *o = call->options;

    char path[256], request[272];

    snprintf(request, sizeof(request), "GET %s",
             weir__ask_server_path(path, "/v1/lists", "list", call->n ? call->words[0] : NULL));
    if (!o->add && !o->remove)
        return weir__ask_server_show(r, request, "lists", call->n ? show_one : show_all);
    if (o->add && !o->remote.json)
        doubt_attribute(r, call->words[1], call->words[2]);
    struct weir__buffer *body = weir__ask_server_body(r);
    weir__buffer_member(body, "list", call->words[0]);
    weir__buffer_member(body, "attribute", call->words[1]);
    weir__buffer_open(body, "entries", '[');
    for (int i = 2; i < call->n; i++)
        weir__buffer_member(body, NULL, call->words[i]);
    weir__buffer_close(body, "]");
    return weir__ask_server_show(r, o->add ? "POST /v1/lists" : "DELETE /v1/lists", "changed",
                                 show_change);
}

static int run(const struct weir__call *call)
{
    const struct options *o = call->options;
    bool changes = o->add || o->remove;
    const char *mistake = o->add && o->remove       ? "--add or --remove, not both"
                          : changes && call->n < 3  ? "a list, an attribute and entries are needed"
                          : !changes && call->n > 1 ? "one list is shown at a time"
                                                    : NULL;

    return mistake ? weir__command_wrong(call->self, "%s", mistake) : WEIR__GO_ON;
}

const struct weir__command weir__cmd_lists = {
    .name = "lists",
    .summary = "show or change the lists of the rules",
    .arguments = "[options] [LIST | --add|--remove LIST ATTRIBUTE ENTRY...]",
    .help =
        "Shows the lists, or the first 1000 entries of one. Changes take effect at once and are "
        "kept with the table file; in a fleet they are this node's alone. nginx reads its lists "
        "from its own rule file.\n"
        "\n"
        "  weir lists deny\n"
        "  weir lists --add deny ip 203.0.113.0/24 198.51.100.7\n"
        "\n"
        "Exit codes: 0 done, 2 wrong use or no server.",
    WEIR__ASK_SERVER(rows, .add = false),
    .words_max = WEIR__ANY_WORDS,
    .no_table =
        "nginx has its lists from its rule file: write lists: { deny: { ip: [...] } } there, "
        "and reload it",
    .run = run,
    .ask = ask,
};
