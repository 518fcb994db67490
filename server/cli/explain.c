/* explain.c -- `weir explain`: the rules' answer to one request, and why.
 *
 * Asks a running server, or reads a rule file.  Nothing is taken or written: --table only shows the
 * states that are there, and a limit that the table does not have as fresh.  Either way the
 * explanation is first one JSON object; the words are made from it.
 */
#include <stdio.h>
#include <string.h>

#include "engine/level.h"
#include "server/describe/explain-json.h"
#include "server/cli/ask-server.h"
#include "server/cli/rules-on-table.h"
#include "server/describe/rules-words.h"
#include "server/base/complain.h"
#include "server/base/human-numbers.h"
#include "server/base/terminal.h"

#define BAR_WIDTH 20

struct options {
    struct weir__ask_server_options remote;
    const char *rules, *table;
    int64_t cost; /* < 0: not given */
    weir_time now;
    bool applying;
};

static const struct weir__option rows[] = {
    WEIR__TEXT("rules", 'r', rules, "FILE", "a rule file; default a running server"),
    WEIR__TEXT("table", 't', table, "FILE", "with --rules: the states; without it keys are fresh"),
    WEIR__COUNT("cost", 'c', cost, 0, "with --rules: the cost of the request; default 1"),
    WEIR__VALUE("now", 0, MOMENT, now, "TIME", "with --rules: as of this time: " WEIR__MOMENT),
    WEIR__SWITCH("applying", 'a', applying, "leave out the rules that do not apply"),
    { 0 },
};

struct show {
    struct weir__colours c;
    const struct weir__document *d;
    const char *list, *mode; /* of the whole set */
    bool applying;
    int width;                    /* of the limits' texts */
    size_t hidden, hidden_guards; /* by --applying */
};

static bool is(const char *text, const char *word)
{
    return text != NULL && strcmp(text, word) == 0;
}

static struct weir_decision read_decision(const struct weir__document *d, const char *at)
{
    return (struct weir_decision){
        .allowed = weir__document_true(d, "%sallowed", at),
        .limit = weir__document_number(d, 0, "%slimit", at),
        .remaining = weir__document_number(d, 0, "%sremaining", at),
        .retry = weir__document_ms(d, "%sretry_ms", at),
        .reset = weir__document_ms(d, "%sreset_ms", at),
    };
}

/* ------------------------------------------------------------- a rule ---- */

static void print_bar(const struct show *s, const struct weir_decision *d)
{
    int64_t left = d->remaining < 0 ? 0 : d->remaining > d->limit ? d->limit : d->remaining;
    bool low = weir__level_of(d) > 0;

    printf("%s", !d->allowed ? s->c.bad : low ? s->c.mild : s->c.good);
    int width = weir__human_bar(stdout, (double)left, (double)d->limit, BAR_WIDTH);
    printf("%s", s->c.dim);
    for (; width < BAR_WIDTH; width++)
        fputs("·", stdout);
    printf("%s", s->c.off);
}

static bool is_dry(const struct show *s, const char *at)
{
    return is(weir__document_text(s->d, "%sreason", at), "dry");
}

static void print_left(const struct show *s, const char *at, const char *written)
{
    struct weir_decision d = read_decision(s->d, at);
    char wait[32];

    printf("    ");
    weir__print_padded(written, s->width);
    putchar(' ');
    print_bar(s, &d);
    if (is_dry(s, at)) {
        printf(" none drawn: the fleet's account is asked\n");
        return;
    }
    printf(" %lld of %lld left", (long long)d.remaining, (long long)d.limit);
    weir__human_duration(wait, d.allowed ? d.reset : d.retry);
    if (!d.allowed)
        printf(d.retry == WEIR_NEVER ? ", %srefuses: it can never pass at once%s"
                                     : ", %srefuses, free in %s%s",
               s->c.bad, d.retry == WEIR_NEVER ? s->c.off : wait, s->c.off);
    else if (d.reset > 0)
        printf(", all again in %s", wait);
    putchar('\n');
}

static void print_limit(const struct show *s, const char *at)
{
    const char *present = weir__document_text(s->d, "%sin_table", at);

    print_left(s, at, weir__document_text(s->d, "%swritten", at));
    if (present != NULL) {
        printf("%s", s->c.dim);
        weir__show(s->d, at,
                   "    (the table has it as {in_table}: another rule file is in force there)");
        printf("%s\n", s->c.off);
    }
}

static void print_across(const struct show *s, const char *how)
{
    static const char *const words[][2] = {
        { "purse", "units that were drawn for this host" },
        { "share", "this host's part of the limit" },
        { "open", "the fleet cannot be asked: all pass" },
        { "closed", "the fleet cannot be asked, or this host's part is nothing: none passes" },
        { "none", "this host is in no fleet, and counts alone" },
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (is(how, words[i][0]))
            printf("    %sacross the fleet: %s%s\n", s->c.dim, words[i][1], s->c.off);
}

/* What the fleet has left, which no node has drawn: only a server can ask. */
static void print_accounts(const struct show *s, const char *rule)
{
    const char *why = weir__document_text(s->d, "accounts_why"), *of;
    char at[64];

    if (why) {
        printf("    %sthe fleet's account: ", s->c.dim);
        weir__print_safely(stdout, why);
        printf("%s\n", s->c.off);
    }
    for (int i = 0; (of = weir__document_text(s->d, "accounts.%d.rule", i)) != NULL; i++) {
        snprintf(at, sizeof(at), "accounts.%d.", i);
        if (is(of, rule))
            print_left(s, at, "the fleet's account");
    }
}

static void print_limits(const struct show *s, int rule, const char *name)
{
    char at[64];
    const char *across = weir__document_text(s->d, "rules.%d.fleet", rule);
    weir_time banned = weir__document_find(s->d, "rules.%d.banned_for_ms", rule)
                           ? weir__document_ms(s->d, "rules.%d.banned_for_ms", rule)
                           : 0;

    if (banned != 0) {
        char wait[32];
        weir__human_duration(wait, banned);
        printf("    %sbanned for another %s%s\n", s->c.bad, wait, s->c.off);
    }
    print_across(s, across);
    for (int i = 0; weir__document_find(s->d, "rules.%d.limits.%d.limit", rule, i); i++) {
        snprintf(at, sizeof(at), "rules.%d.limits.%d.", rule, i);
        print_limit(s, at);
    }
    if (is(across, "purse"))
        print_accounts(s, name);
}

static void print_idle(const struct show *s, const char *name, const char *what, const char *why)
{
    printf("%s○ ", s->c.dim);
    weir__print_padded(name, 24);
    printf(" %s", what);
    weir__print_safely(stdout, why);
    printf("%s\n", s->c.off);
}

static void print_asked(const struct show *s, int i, const char *name)
{
    bool no = weir__document_true(s->d, "rules.%d.refuses", i),
         shadow = is(weir__document_text(s->d, "rules.%d.mode", i), "shadow");
    const char *key = weir__document_text(s->d, "rules.%d.key", i), *colour = no && shadow
                                                                                  ? s->c.mild
                                                                              : no ? s->c.bad
                                                                                   : s->c.good;
    int64_t cost = weir__document_number(s->d, 1, "rules.%d.cost", i);

    printf("%s%s%s %s", colour, no ? "✗" : "●", s->c.off, s->c.bold);
    weir__print_padded(name, 24);
    printf("%s", s->c.off);
    if (key != NULL && *key) {
        printf(" key ");
        weir__rules_words_value(stdout, key, strlen(key));
    }
    if (shadow)
        printf("  %sin shadow: %s%s", s->c.mild,
               no ? "would refuse, but lets through" : "counts only", s->c.off);
    if (cost != 1)
        printf("  costs %lld", (long long)cost);
    putchar('\n');
    print_limits(s, i, name);
}

static void print_rule(struct show *s, int i, const char *name)
{
    const char *because = weir__document_text(s->d, "rules.%d.because", i);
    bool applies = is(weir__document_text(s->d, "rules.%d.why", i), "applies");

    if (s->applying && !applies)
        s->hidden++;
    else if (!applies)
        print_idle(s, name, "does not apply: ", because ? because : "");
    else if (!weir__document_true(s->d, "rules.%d.asked", i))
        print_idle(s, name, "not asked: it would apply", "");
    else
        print_asked(s, i, name);
}

/* ------------------------------------------------------------ a guard ---- */

static const char *guard_text(const struct show *s, int i, const char *member)
{
    const char *text = weir__document_text(s->d, "guards.%d.%s", i, member);

    return text ? text : "";
}

static void print_seen(const struct show *s, int i)
{
    const char *user = guard_text(s, i, "user"), *class = guard_text(s, i, "class"),
               *key = guard_text(s, i, "key");
    int64_t priority = weir__document_number(s->d, 0, "guards.%d.priority", i);

    if (*key) {
        printf(", key ");
        weir__rules_words_value(stdout, key, strlen(key));
        printf(" %lld of %lld",
               (long long)weir__document_number(s->d, 0, "guards.%d.key_in_flight", i),
               (long long)weir__document_number(s->d, 0, "guards.%d.max_per_key", i));
    }
    if (*user) {
        printf(", user ");
        weir__rules_words_value(stdout, user, strlen(user));
    }
    if (*class) {
        printf(", class ");
        weir__print_safely(stdout, class);
    }
    if (priority != 0)
        printf(", priority %lld", (long long)priority);
}

static void print_entered(const struct show *s, int i, const char *name)
{
    bool no = weir__document_true(s->d, "guards.%d.refuses", i),
         shadow = is(guard_text(s, i, "mode"), "shadow");
    int64_t admitted = weir__document_number(s->d, 100, "guards.%d.admitted_percent", i);

    printf("%s%s%s %s",
           no && shadow ? s->c.mild
           : no         ? s->c.bad
                        : s->c.good,
           no ? "✗" : "●", s->c.off, s->c.bold);
    weir__print_padded(name, 24);
    printf("%s guard: %lld of %lld at work", s->c.off,
           (long long)weir__document_number(s->d, 0, "guards.%d.in_flight", i),
           (long long)weir__document_number(s->d, 0, "guards.%d.limit", i));
    if (!is(guard_text(s, i, "breaker"), "closed"))
        printf(", breaker %s%s", guard_text(s, i, "breaker"),
               is(guard_text(s, i, "breaker"), "open") && !is(guard_text(s, i, "reason"), "open")
                   ? ": would be tried"
                   : "");
    if (admitted < 100)
        printf(", lets in %lld%%", (long long)admitted);
    print_seen(s, i);
    if (shadow)
        printf("  %sin shadow: %s%s", s->c.mild,
               no ? "would refuse, but lets through" : "counts only", s->c.off);
    putchar('\n');
}

static void print_guard(struct show *s, int i, const char *name)
{
    if (is(guard_text(s, i, "why"), "applies"))
        print_entered(s, i, name);
    else if (s->applying)
        s->hidden_guards++;
    else
        print_idle(s, name, "guard, does not apply: ", guard_text(s, i, "because"));
}

/* ---------------------------------------------------------- the whole ---- */

/* "ip is on the deny list" */
static void print_listed(const struct show *s)
{
    weir__show(s->d, "ruling.", "{list_attribute|an attribute} is on the {list} list");
}

static void print_list(const struct show *s)
{
    bool deny = is(s->list, "deny"), shadow = deny && is(s->mode, "shadow");

    printf("%s%s%s ", deny ? s->c.bad : s->c.good, deny ? "✗" : "●", s->c.off);
    print_listed(s);
    printf(": %s\n", shadow ? "it would be refused, but all rules are in shadow"
                     : deny ? "refused, and no rule is asked"
                            : "let through, and no rule is asked");
}

static const char *refusal_of(const struct show *s, const struct weir_decision *d)
{
    const char *reason = weir__document_text(s->d, "ruling.reason");

    return is(reason, "too-many")   ? " by {rule}: more limits apply than can be asked at once"
           : d->retry != WEIR_NEVER ? " by {rule} ({reason}); free in {retry_ms:ms}"
           : is(reason, "too-big")  ? " by {rule}, for ever: it asks for more than can pass at once"
                                    : " by {rule} ({reason})";
}

/* Whether one has too few units for a draw. */
static bool refusing_account(const struct weir__document *d)
{
    for (int i = 0; weir__document_find(d, "accounts.%d.allowed", i); i++)
        if (!weir__document_true(d, "accounts.%d.allowed", i))
            return true;
    return false;
}

/* A check of a dry purse asks the account. */
static int exit_code(const struct weir__document *d)
{
    bool dry = is(weir__document_text(d, "ruling.reason"), "dry");

    return weir__document_true(d, "ruling.allowed") || (dry && !refusing_account(d))
               ? WEIR__EXIT_OK
               : WEIR__EXIT_NO;
}

static void print_verdict(const struct show *s, const struct weir_decision *d)
{
    if (is(s->mode, "off")) {
        printf(": all rules are switched off");
    } else if (s->list != NULL) {
        printf(": ");
        print_listed(s);
        printf("%s", is(s->mode, "shadow") ? " (all rules are in shadow)" : "");
    } else if (is_dry(s, "ruling.")) {
        weir__show(s->d, "ruling.", ": {rule} draws units from the fleet first");
        printf("%s", refusing_account(s->d) ? ", which has too few" : "");
    } else if (!d->allowed) {
        weir__show(s->d, "ruling.", refusal_of(s, d));
    } else if (weir__document_find(s->d, "ruling.rule")) {
        weir__show(s->d, "ruling.", "; the tightest is {rule}: {remaining} of {limit} left");
    } else {
        printf(": %s", weir__document_number(s->d, 0, "ruling.applied") > 0
                           ? "no rule that applies enforces"
                           : "no rule applies");
    }
}

static bool has_guards(const struct weir__document *d)
{
    const char *why;

    for (int i = 0; (why = weir__document_text(d, "guards.%d.why", i)) != NULL; i++)
        if (is(why, "applies"))
            return true;
    return false;
}

/* The verdict is that of a check; entering also asks the guards. */
static void print_entering(const struct show *s)
{
    bool allowed = weir__document_true(s->d, "enter.allowed");

    if (!has_guards(s->d) || weir__document_find(s->d, "enter.allowed") == NULL)
        return;
    printf("entering: %s%s%s", allowed ? s->c.good : s->c.bad, allowed ? "allowed" : "refused",
           s->c.off);
    weir__show(s->d, "enter.", allowed ? "\n" : "[ by guard {guard}]: {reason}\n");
}

static void print_ruling(const struct show *s)
{
    struct weir_decision d = read_decision(s->d, "ruling.");

    bool dry = is_dry(s, "ruling.");
    printf("\n%s%s%s%s", s->c.bold,
           d.allowed ? s->c.good
           : dry     ? s->c.mild
                     : s->c.bad,
           d.allowed ? "allowed"
           : dry     ? "undecided"
                     : "refused",
           s->c.off);
    print_verdict(s, &d);
    weir__show(s->d, "ruling.", "[; {shadow}, in shadow, would refuse]\n");
    print_entering(s);
    if (s->hidden + s->hidden_guards > 0)
        printf("%sleft out, since they do not apply: %zu of the rules, %zu of the guards%s\n",
               s->c.dim, s->hidden, s->hidden_guards, s->c.off);
}

/* A misspelt attribute matches nothing, and is hard to see. */
static void print_unused(const struct show *s)
{
    const char *name, *near;

    for (int i = 0; (name = weir__document_text(s->d, "unused.%d", i)) != NULL; i++) {
        printf("%sno rule looks at ", s->c.mild);
        weir__rules_words_value(stdout, name, strlen(name));
        near = weir__document_text(s->d, "meant.%d", i);
        if (near) {
            printf("; did you mean ");
            weir__print_safely(stdout, near);
            putchar('?');
        }
        printf("%s\n", s->c.off);
    }
}

/* Aligns the bars of all rules, unless a text is very long. */
static int width_of_limits(const struct weir__document *d)
{
    int width = 28;

    for (int i = 0; weir__document_find(d, "rules.%d.rule", i); i++) {
        const char *text;
        for (int k = 0; (text = weir__document_text(d, "rules.%d.limits.%d.written", i, k)) != NULL;
             k++) {
            int len = (int)strlen(text);
            width = len > width && len <= 64 ? len : width;
        }
    }
    return width;
}

static int explain_to_people(const struct options *o, const struct weir__document *d)
{
    struct show s = { .c = weir__colours(weir__wants_colours()),
                      .d = d,
                      .applying = o->applying,
                      .width = width_of_limits(d) };
    const char *name;

    s.list = weir__document_text(d, "ruling.list");
    s.mode = weir__document_text(d, "ruling.mode");
    if (s.list != NULL && !is(s.mode, "off"))
        print_list(&s);
    for (int i = 0; (name = weir__document_text(d, "rules.%d.rule", i)) != NULL; i++)
        print_rule(&s, i, name);
    for (int i = 0; (name = weir__document_text(d, "guards.%d.guard", i)) != NULL; i++)
        print_guard(&s, i, name);
    print_ruling(&s);
    print_unused(&s);
    return exit_code(d);
}

/* ------------------------------------------------------- by a rule file ---- */

static int print_explanation(const struct weir__command *self, const struct options *o,
                             const struct weir__buffer *json, bool allowed)
{
    struct weir__document d = { 0 };
    struct weir_error error = { 0 };

    if (json->failed)
        return weir__complain(self->name, "no memory");
    if (o->remote.json) {
        printf("%.*s\n", (int)json->len, json->bytes);
        return allowed ? WEIR__EXIT_OK : WEIR__EXIT_NO;
    }
    if (weir__document_read(&d, json->bytes, json->len, &error) != WEIR_OK)
        return weir__complain(self->name, "%s", error.text);
    int code = explain_to_people(o, &d);
    weir__document_free(&d);
    return code;
}

static int explain(const struct weir__command *self, const struct options *o, struct weir *weir,
                   const struct weir_attr *attrs, size_t n)
{
    struct weir_ask ask = { .cost = o->cost >= 0 ? o->cost : 1,
                            .now = o->now >= 0 ? o->now : weir_table_now(weir_table_of(weir)) };
    struct weir__buffer json = { 0 };

    bool allowed = weir__explain_json(weir, attrs, n, &ask, o->applying && o->remote.json, &json);
    int code = print_explanation(self, o, &json, allowed);
    weir__buffer_free(&json);
    return code;
}

static int explain_locally(const struct weir__call *call)
{
    const struct options *o = call->options;
    struct weir_attr attrs[WEIR__ATTRS_MAX];
    struct weir__rules_on_table on;

    if (!weir__read_attributes(call, attrs) ||
        !weir__rules_on_table_open_or_complain(&on, call->self->name, o->table, o->rules))
        return WEIR__EXIT_WRONG;
    int code = explain(call->self, o, on.weir, attrs, (size_t)call->n);
    weir__rules_on_table_close(&on);
    return code;
}

/* -------------------------------------------------------- by a server ---- */

static int ask(const struct weir__call *call, struct weir__ask_server *r)
{
    const struct options *o = call->options;

    if (!weir__ask_server_attributes(r) || !weir__ask_server_for(r, "POST /v1/explain", "ruling"))
        return WEIR__EXIT_WRONG;
    if (!o->remote.json)
        return explain_to_people(o, &r->document);
    weir__ask_server_print(r);
    return exit_code(&r->document);
}

/* ----------------------------------------------------------- command ---- */

static const char *find_mistake(const struct options *o)
{
    if (o->rules)
        return o->remote.server ? "--rules or --server, not both" : NULL;
    return o->table ? "--table needs --rules FILE: a server has its own table"
           : o->cost >= 0
               ? "--cost needs --rules FILE: a server is asked about a request that costs 1"
           : o->now >= 0 ? "--now needs --rules FILE: a server has its own clock"
           : o->applying && o->remote.json
               ? "--applying with --json needs --rules FILE: a server's JSON is printed as it is"
               : NULL;
}

static int run(const struct weir__call *call)
{
    const struct options *o = call->options;
    const char *mistake = find_mistake(o);

    if (mistake)
        return weir__command_wrong(call->self, "%s", mistake);
    if (!o->remote.json)
        weir__doubt_addresses(call);
    return o->rules ? explain_locally(call) : WEIR__GO_ON;
}

const struct weir__command weir__cmd_explain = {
    .name = "explain",
    .summary = "show how the rules decide a request, and why",
    .arguments = "[--server ADDRESS | --rules FILE] [options] NAME=VALUE...",
    .help = "Shows which rules apply and why the others do not, which would refuse, what is left "
            "of each limit and when it is free again. Takes nothing. The verdict is that of weir "
            "check; if guards apply, another line says whether work could enter them.\n"
            "\n"
            "  weir explain --rules rules.yaml ip=192.0.2.7 uri=/login method=POST\n"
            "\n"
            "Across a fleet it is undecided while no units are drawn for the host: a check asks "
            "the fleet's account, which is shown.\n"
            "\n"
            "Exit codes: 0 a check would be allowed, or is undecided and the account has enough; 1 "
            "refused; 2 wrong use or no server.",
    WEIR__ASK_SERVER(rows, .cost = -1, .now = -1),
    .words_max = WEIR__ANY_WORDS,
    .run = run,
    .ask = ask,
};
