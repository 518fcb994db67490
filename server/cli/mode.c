/* mode.c -- `weir mode`: switches rules and guards of a running server by hand, and shows their
 * modes; or of a table file, which knows only the switches. */
#include <string.h>

#include "base/base.h"
#include "server/base/complain.h"
#include "server/base/table-file.h"
#include "server/cli/ask-server.h"
#include "table/table.h"
#include "weir-admin.h"

struct options {
    struct weir__ask_server_options remote;
    const char *rule, *table;
};

static const struct weir__option rows[] = {
    WEIR__TEXT("rule", 'r', rule, "NAME", "this rule or guard; default all"),
    WEIR__TEXT("table", 't', table, "FILE", "an existing table file; default a running server"),
    { 0 },
};

static const struct {
    const char *array, *name;
} kinds[] = { { "rules", "rule" }, { "guards", "guard" } };

/* ---------------------------------------------------------------- showing ---- */

/* "shadow (by hand; written: enforce)" */
static void print_mode(const struct weir__document *d, const char *at)
{
    const char *now = weir__document_text(d, "%sin_force", at),
               *by_hand = weir__document_text(d, "%sby_hand", at),
               *written = weir__document_text(d, "%sas_written", at);
    char words[96];

    if (by_hand)
        snprintf(words, sizeof(words), "%s (by hand; written: %s)", now ? now : "?",
                 written ? written : "?");
    else if (now && written && strcmp(now, written) != 0)
        snprintf(words, sizeof(words), "%s (as all are; written: %s)", now, written);
    else
        snprintf(words, sizeof(words), "%s", now ? now : "?");
    weir__print_padded(words, 40);
}

static void print_one(const struct weir__document *d, const char *at, const char *name)
{
    weir__print_padded(name, 24);
    putchar(' ');
    print_mode(d, at);
    if (weir__document_find(d, "%sallowed", at))
        weir__show(d, at, "{allowed} allowed, ");
    weir__show(d, at, "{refused|0} refused[, {banned} by bans][, {shadow_refused} in shadow]\n");
}

static void show(struct weir__ask_server *r)
{
    const struct weir__document *d = &r->document;
    const char *name;
    char at[32];

    printf("%-24s ", "all rules");
    print_mode(d, "");
    putchar('\n');
    for (size_t k = 0; k < 2; k++) {
        for (int i = 0; snprintf(at, sizeof(at), "%s.%d.", kinds[k].array, i) &&
                        (name = weir__document_text(d, "%s%s", at, kinds[k].name)) != NULL;
             i++)
            print_one(d, at, name);
    }
}

/* -------------------------------------------------------------- switching ---- */

/* as-written ends only the switch for all: rules switched by themselves stay so, and are named. */
static void show_still_switched(struct weir__ask_server *r)
{
    const struct weir__document *d = &r->document;
    const char *name, *mode, *separator = "still switched by hand: ";

    if (!weir__ask_server_for(r, "GET /v1/modes", "in_force"))
        return;
    for (size_t k = 0; k < 2; k++) {
        for (int i = 0;
             (name = weir__document_text(d, "%s.%d.%s", kinds[k].array, i, kinds[k].name)) != NULL;
             i++) {
            mode = weir__document_text(d, "%s.%d.by_hand", kinds[k].array, i);
            if (!mode)
                continue;
            printf("%s%s ", separator, kinds[k].name);
            weir__print_safely(stdout, name);
            printf(" (");
            weir__print_safely(stdout, mode);
            printf(")");
            separator = ", ";
        }
    }
    if (*separator == ',')
        puts("; --rule NAME as-written ends one");
}

static void show_switched(struct weir__ask_server *r)
{
    const struct options *o = r->call->options;

    bool as_written = strcmp(r->call->words[0], weir_mode_name(WEIR_AS_WRITTEN)) == 0;

    weir__print_safely(stdout, o->rule ? o->rule : "all rules");
    weir__show(&r->document, "", as_written ? ": as-written ({in_force})\n" : ": {in_force}\n");
    if (!o->rule && as_written)
        show_still_switched(r);
    weir__ask_server_note_fleet(r);
}

static int ask(const struct weir__call *call, struct weir__ask_server *r)
{
    const struct options *o = call->options;

    if (call->n == 0)
        return weir__ask_server_show(r, "GET /v1/modes", "in_force", show);
    weir__buffer_member(weir__ask_server_body(r), "mode", call->words[0]);
    if (o->rule)
        weir__buffer_member(&r->body, "rule", o->rule);
    return weir__ask_server_show(r, "PUT /v1/modes", "in_force", show_switched);
}

/* ---------------------------------------------------------- a table file ---- */

/* The limiter of the table that holds the mode of this rule or guard; NULL: there is none. */
static struct weir_limiter *find_lever(struct weir_table *table, const char *rule)
{
    struct weir_limiter_info info;
    char words[96];

    for (int64_t at = 0; weir_limiter_next(table, &at, &info);)
        if (!weir_limiter_words(&info, words) && strcmp(words, rule) == 0)
            return weir_limiter_find(table, info.name);
    return NULL;
}

static void show_switches(struct weir_table *table)
{
    enum weir_mode mode = weir__table_mode(table);
    struct weir_limiter_info info;
    char words[96];

    printf("all rules: %s%s\n", weir_mode_name(mode), mode == WEIR_AS_WRITTEN ? "" : " by hand");
    for (int64_t at = 0; weir_limiter_next(table, &at, &info);) {
        const struct weir_limiter *lever =
            weir_limiter_words(&info, words) ? NULL : weir_limiter_find(table, info.name);
        mode = lever ? weir__limiter_mode(lever) : WEIR_AS_WRITTEN;
        if (mode == WEIR_AS_WRITTEN)
            continue;
        weir__print_safely(stdout, words);
        printf(": %s by hand\n", weir_mode_name(mode));
    }
}

static int switch_in(const struct weir__call *call, struct weir_table *table, enum weir_mode mode)
{
    const struct options *o = call->options;
    struct weir_limiter *lever = o->rule ? find_lever(table, o->rule) : NULL;

    if (o->rule && !lever)
        return weir__complain(call->self->name, "there is no rule or guard %s in the table",
                              weir__quote(o->rule, strlen(o->rule)).text);
    if (lever)
        weir__limiter_set_mode(lever, mode);
    else
        weir__table_set_mode(table, mode);
    weir__print_safely(stdout, o->rule ? o->rule : "all rules");
    printf(": %s\n", weir_mode_name(mode));
    return WEIR__EXIT_OK;
}

static int run_table(const struct weir__call *call)
{
    const struct options *o = call->options;
    struct weir_table *table;
    struct weir_error error = { 0 };
    int code = WEIR__EXIT_OK, mode = 0;

    if (o->remote.json || o->remote.server)
        return weir__command_wrong(call->self, "--table or %s, not both",
                                   o->remote.json ? "--json" : "--server");
    if (weir__table_attach(call->self->name, &table, o->table, &error) != WEIR_OK)
        return weir__complain(call->self->name, "--table: %s", error.text);
    while (call->n > 0 && strcmp(weir_mode_name((enum weir_mode)mode), call->words[0]) != 0)
        mode++;
    if (call->n > 0)
        code = switch_in(call, table, (enum weir_mode)mode);
    else
        show_switches(table);
    weir_table_destroy(table);
    return code;
}

/* --------------------------------------------------------------- command ---- */

static bool is_mode(const char *word)
{
    for (int m = 0; m <= WEIR_OFF; m++) {
        if (strcmp(weir_mode_name((enum weir_mode)m), word) == 0)
            return true;
    }
    return false;
}

static int run(const struct weir__call *call)
{
    const struct options *o = call->options;
    const char *modes[WEIR_OFF + 2] = { 0 }, *word = call->words[0];

    if (call->n == 0)
        return o->rule    ? weir__command_wrong(call->self, "which mode?")
               : o->table ? run_table(call)
                          : WEIR__GO_ON;
    if (call->n == 2) {
        bool last = is_mode(call->words[1]);
        return weir__complain(call->self->name, "to switch one rule: weir mode %s --rule %s",
                              last ? call->words[1] : word, last ? word : call->words[1]);
    }
    if (is_mode(word))
        return o->table ? run_table(call) : WEIR__GO_ON;
    for (int m = 0; m <= WEIR_OFF; m++)
        modes[m] = weir_mode_name((enum weir_mode)m);
    return weir__command_wrong(call->self, "there is no mode '%s'; %s", word,
                               weir__hint(word, strlen(word), modes, WEIR__TO_NULL).text);
}

const struct weir__command weir__cmd_mode = {
    .name = "mode",
    .summary = "show the modes of rules, or switch them",
    .arguments = "[--server ADDRESS | --table FILE] [enforce|shadow|off|as-written] [--rule NAME]",
    .help = "Without a mode, shows the mode of every rule and guard and how often it has refused. "
            "enforce refuses; shadow only counts its refusals; off does nothing; "
            "as-written ends the switch, and the rule file decides again. A switch takes effect at "
            "once, in every process that shares the table; not on other nodes of a fleet. With "
            "--table it needs no server, as for "
            "nginx alone, and shows the switches only.\n"
            "\n"
            "  weir mode shadow --rule login\n"
            "\n"
            "Exit codes: 0 done, 2 wrong use or no server.",
    WEIR__ASK_SERVER(rows, .rule = NULL),
    .words_max = 2,
    .run = run,
    .ask = ask,
};
