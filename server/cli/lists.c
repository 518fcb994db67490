/* lists.c -- `weir lists`: the lists that a running server's rules look at, and what is changed
 * in them by hand. */
#include <stdio.h>
#include <string.h>

#include "server/base/options.h"
#include "server/cli/remote.h"
#include "server/base/text.h"

struct options {
    struct weir__remote_options remote;
    bool add, remove;
};

const struct weir__option weir__cmd_lists_options[] = {
    { "add", 'a', WEIR__OPTION_SWITCH, offsetof(struct options, add), 0, NULL,
      "add entries: LIST ATTRIBUTE ENTRY..." },
    { "remove", 'r', WEIR__OPTION_SWITCH, offsetof(struct options, remove), 0, NULL,
      "remove entries: LIST ATTRIBUTE ENTRY..." },
    WEIR__REMOTE_JSON(struct options) WEIR__REMOTE_ROWS(struct options){ 0 },
};

static void print_column(const char *text)
{
    weir__print_padded(text, 16);
    putchar(' ');
}

static int show(struct weir__remote *r)
{
    const struct weir__document *d = &r->document;
    const char *text;
    int n = 0;

    if (!weir__remote_ask_for(r, "GET", "/v1/lists", NULL, "lists"))
        return WEIR__EXIT_WRONG;
    if (r->options.json) {
        weir__remote_print(r);
        return WEIR__EXIT_OK;
    }
    for (; (text = weir__document_text(d, "lists.%d.list", n)) != NULL; n++) {
        print_column(text);
        print_column(weir__document_text(d, "lists.%d.attribute", n));
        int64_t entries = weir__document_number(d, 0, "lists.%d.entries", n);
        printf("%lld %s\n", (long long)entries, entries == 1 ? "entry" : "entries");
    }
    if (n == 0)
        puts("there are no lists");
    for (int i = 0; (text = weir__document_text(d, "changes.%d.list", i)) != NULL; i++) {
        if (i == 0)
            puts("\nchanged by hand:");
        const char *change = weir__document_text(d, "changes.%d.change", i);
        weir__print_padded(change ? change : "changed", 8);
        putchar(' ');
        print_column(text);
        print_column(weir__document_text(d, "changes.%d.attribute", i));
        weir__print_safely(stdout, weir__document_text(d, "changes.%d.entry", i));
        putchar('\n');
    }
    return WEIR__EXIT_OK;
}

static int edit(struct weir__remote *r, bool add, char **words, int n)
{
    struct weir__buffer body = { 0 };

    weir__buffer_text(&body, "{");
    weir__buffer_member(&body, "list", words[0]);
    weir__buffer_member(&body, "attribute", words[1]);
    weir__buffer_text(&body, ",\"entries\":[");
    for (int i = 2; i < n; i++) {
        weir__buffer_text(&body, i > 2 ? "," : "");
        weir__buffer_json(&body, words[i], strlen(words[i]));
    }
    weir__buffer_text(&body, "]}");
    bool done = weir__remote_ask_for(r, add ? "POST" : "DELETE", "/v1/lists", &body, "changed");
    weir__buffer_free(&body);
    if (!done)
        return WEIR__EXIT_WRONG;
    if (r->options.json)
        weir__remote_print(r);
    else
        printf("%lld %s; %s %s has %lld now\n",
               (long long)weir__document_number(&r->document, 0, "changed"),
               add ? "added" : "removed", words[0], words[1],
               (long long)weir__document_number(&r->document, 0, "entries"));
    return WEIR__EXIT_OK;
}

int weir__cmd_lists(const struct weir__command *self, int argc, char **argv)
{
    struct options o = { 0 };
    struct weir__remote r;
    int n, code = weir__options_parse(self, argc, argv, &o, &n);

    if (code != WEIR__GO_ON)
        return code;
    bool changes = o.add || o.remove;
    const char *mistake = o.add && o.remove  ? "--add or --remove, not both"
                          : changes && n < 3 ? "a list, an attribute and entries are needed"
                          : !changes && n    ? "words are only for --add and --remove"
                                             : NULL;
    if (mistake) {
        weir__complain(self->name, "%s; usage: weir %s %s", mistake, self->name, self->arguments);
        return WEIR__EXIT_WRONG;
    }
    if (!weir__remote_open(&r, self, &o.remote))
        return WEIR__EXIT_WRONG;
    code = changes ? edit(&r, o.add, argv, n) : show(&r);
    weir__remote_close(&r);
    return code;
}
