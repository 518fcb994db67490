/* reset.c -- `weir reset`: the usage of a request's keys is forgotten, by a running server or in a
 * table file.
 *
 * In a table file the rules say which keys a request has.  They are only looked for in the table:
 * nothing is changed but the states of these keys, whatever the file says of limits.
 */
#include <string.h>

#include "engine/explain.h"
#include "server/base/complain.h"
#include "server/cli/ask-server.h"
#include "server/cli/rules-on-table.h"
#include "weir-admin.h"

struct options {
    struct weir__ask_server_options remote;
    const char *rule, *table, *rules;
};

static const struct weir__option rows[] = {
    WEIR__TEXT("rule", 'r', rule, "NAME", "only this rule; default every rule that applies"),
    WEIR__TEXT("table", 't', table, "FILE",
               "with --rules: an existing table file; default a "
               "running server"),
    WEIR__TEXT("rules", 0, rules, "FILE", "with --table: the rule file of those who use the table"),
    { 0 },
};

static bool is_one(const struct options *o)
{
    return strcmp(o->rule, "*") != 0;
}

/* ------------------------------------------------------ a running server ---- */

/* "per-ip, nets"; false: there are none. */
static bool print_names(const struct weir__document *d, const char *list)
{
    const char *name;
    int i = 0;

    for (; (name = weir__document_text(d, "%s.%d", list, i)) != NULL; i++) {
        printf("%s", i > 0 ? ", " : "");
        weir__print_safely(stdout, name);
    }
    return i > 0;
}

static void show(struct weir__ask_server *r)
{
    const struct options *o = r->call->options;
    const struct weir__document *d = &r->document;
    bool one = is_one(o);

    if (weir__document_number(d, 0, "reset") == 0)
        printf("nothing to forget: %s%s to this request; weir explain says why\n",
               one ? o->rule : "no rule", one ? " does not apply" : " applies");
    else if (print_names(d, "rules"))
        puts(": usage and bans of this request's keys forgotten");
    else /* other rules have come meanwhile, or the server is of an older version */
        weir__show(d, "", "{reset#rule}: usage and bans of this request's keys forgotten\n");
    if (weir__document_text(d, "still_banned.0") == NULL)
        return;
    printf("still banned by ");
    print_names(d, "still_banned");
    puts(", not applied to this request: name the attributes that are looked at (weir explain), or "
         "weir bans --lift");
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

/* ---------------------------------------------------------- a table file ---- */

/* The rules may name no rule of the table: then none of them has a key there. */
static bool is_in_table(struct weir_table *table, const char *rule)
{
    struct weir_limiter_info info;
    char words[96];
    bool found = false;

    for (int64_t at = 0; !found && weir_limiter_next(table, &at, &info);)
        found = !weir_limiter_words(&info, words) && strcmp(words, rule) == 0;
    return found;
}

static int say(const struct options *o, struct weir_table *table, int64_t reset)
{
    bool one = is_one(o), there = !one || is_in_table(table, o->rule);

    if (o->remote.json) {
        struct weir__buffer json = { 0 };
        weir__buffer_open(&json, NULL, '{');
        weir__buffer_member_or_null(&json, "rule", one ? o->rule : NULL);
        weir__buffer_member_number(&json, "reset", reset);
        weir__buffer_close(&json, "}\n");
        weir__buffer_print(&json, stdout);
    } else if (reset > 0) {
        printf("%lld rule%s: usage and bans of this request's keys forgotten\n", (long long)reset,
               reset == 1 ? "" : "s");
    } else {
        printf("nothing to forget: %s%s\n", one ? o->rule : "no rule",
               !there ? ": the table has no such rule: another rule file is in force there"
               : one  ? " does not apply to this request, or has another key in the table"
                      : " of the table applies to this request with the key of these rules");
    }
    return reset > 0 ? WEIR__EXIT_OK : WEIR__EXIT_NO;
}

static int reset_in(const struct weir__call *call, struct weir *weir,
                    const struct weir_attr attrs[WEIR__ATTRS_MAX])
{
    const struct options *o = call->options;
    struct weir_table *table = weir_table_of(weir);
    struct weir_error error = { 0 };
    size_t n;

    if (weir__lonely_rule(weir, &n) != NULL)
        weir__complain(call->self->name, "warning: of rules across the fleet only what this host "
                                         "has drawn is forgotten: ask a server of the fleet");
    int64_t reset = weir_reset(weir, is_one(o) ? o->rule : NULL, attrs, (size_t)call->n,
                               weir_table_now(table), &error);
    return reset < 0 ? weir__complain(call->self->name, "%s", error.text) : say(o, table, reset);
}

static int run_table(const struct weir__call *call)
{
    const struct options *o = call->options;
    struct weir_attr attrs[WEIR__ATTRS_MAX];
    struct weir__rules_on_table on;

    if (!weir__read_attributes(call, attrs) ||
        !weir__rules_on_table_open_or_complain(&on, call->self->name, o->table, o->rules))
        return WEIR__EXIT_WRONG;
    int code = reset_in(call, on.weir, attrs);
    weir__rules_on_table_close(&on);
    return code;
}

static int run(const struct weir__call *call)
{
    const struct options *o = call->options;
    const char *mistake =
        o->table && o->remote.server ? "--table or --server, not both"
        : o->table && !o->rules ? "--table needs --rules FILE: they say which keys a request has"
        : o->rules && !o->table ? "--rules needs --table FILE: a server has its own"
                                : NULL;

    if (mistake)
        return weir__command_wrong(call->self, "%s", mistake);
    return o->table ? run_table(call) : WEIR__GO_ON;
}

const struct weir__command weir__cmd_reset = {
    .name = "reset",
    .summary = "forget the usage of a request's keys",
    .arguments = "[--server ADDRESS | --table FILE --rules FILE] [--rule NAME] NAME=VALUE...",
    .help = "Gives the keys of this request their whole limits back and lifts their bans, in every "
            "rule that applies or in one.\n"
            "\n"
            "  weir reset --rule login ip=192.0.2.7 uri=/login method=POST\n"
            "\n"
            "With --table and --rules it does without a server, as for nginx alone.\n"
            "\n"
            "Exit codes: 0 done, 1 nothing to forget: no rule applies, 2 wrong use or no server.",
    WEIR__ASK_SERVER(rows, .rule = "*"),
    .words_min = 1,
    .words_max = WEIR__ANY_WORDS,
    .run = run,
    .ask = ask,
};
