/* bans.c -- `weir bans`: lists, adds and lifts bans, of a running server or a table file.
 *
 * A table file needs no rules: a ban is known by its rule's name and its key's text, and the table
 * holds both.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "server/base/date.h"
#include "server/cli/ask-server.h"
#include "server/cli/rules-on-table.h"
#include "server/describe/ban-json.h"
#include "server/describe/rules-words.h"
#include "match/draft.h"
#include "weir-admin.h"
#include "server/base/complain.h"
#include "server/base/human-numbers.h"

struct options {
    struct weir__ask_server_options remote;
    const char *table, *rules, *rule, *length;
    weir_time now; /* < 0: ask the table's clock */
    bool lift, add;
};

static const struct weir__option rows[] = {
    WEIR__TEXT("table", 't', table, "FILE", "an existing table file; default a running server"),
    WEIR__TEXT("rules", 0, rules, "FILE", "with --table: mark bans of rules that are not in it"),
    WEIR__SWITCH("add", 0, add, "ban KEY (servers only)"),
    WEIR__TEXT("for", 0, length, "TIME", "with --add: how long"),
    WEIR__SWITCH("lift", 0, lift, "end the ban of KEY, and forget its earlier bans"),
    WEIR__TEXT("rule", 'r', rule, "NAME", "the rule; without --add and --lift: list only its bans"),
    WEIR__VALUE("now", 0, MOMENT, now, "TIME", "with --table: as of this time: " WEIR__MOMENT),
    { 0 },
};

/* ------------------------------------------------------ rules in force ---- */

/* Rules of the server or file and their modes in force, if they are known. */
struct modes {
    bool known;
    const char *missing; /* in words: another rule is not there */
    size_t n;
    struct mode {
        char rule[64], mode[16];
    } * all;
};

/* Why a ban of this rule keeps nobody out; NULL: it does, or that is not known. */
static const char *why_idle(const struct modes *modes, const char *rule, char words[64])
{
    size_t i = 0;

    while (i < modes->n && strcmp(modes->all[i].rule, rule) != 0)
        i++;
    if (!modes->known || (i < modes->n && strcmp(modes->all[i].mode, "enforce") == 0))
        return NULL;
    if (i == modes->n)
        return modes->missing;
    snprintf(words, 64, "the rule's mode is %s", modes->all[i].mode);
    return words;
}

static void read_modes(struct weir__ask_server *r, struct modes *out)
{
    const struct weir__document *d = &r->document;
    size_t n = 0;

    r->silent = true;
    out->missing = "the server has no such rule";
    if (!weir__ask_server_for(r, "GET /v1/modes", "in_force"))
        return;
    while (weir__document_find(d, "rules.%zu.rule", n))
        n++;
    if ((out->all = calloc(n + 1, sizeof(*out->all))) == NULL)
        return;
    out->known = true;
    for (; out->n < n; out->n++) {
        const char *mode = weir__document_text(d, "rules.%zu.in_force", out->n);
        snprintf(out->all[out->n].rule, sizeof(out->all->rule), "%s",
                 weir__document_text(d, "rules.%zu.rule", out->n));
        snprintf(out->all[out->n].mode, sizeof(out->all->mode), "%s", mode ? mode : "enforce");
    }
}

static bool add_mode(struct modes *modes, const struct weir_rule_info *info)
{
    struct mode *more = realloc(modes->all, (modes->n + 1) * sizeof(*more));

    if (more == NULL)
        return false;
    modes->all = more;
    snprintf(more[modes->n].rule, sizeof(more->rule), "%s", info->name);
    snprintf(more[modes->n++].mode, sizeof(more->mode), "%s", weir_mode_name(info->mode));
    return true;
}

static void modes_of_file(struct weir *weir, struct modes *out)
{
    struct weir_rule_info info;

    out->missing = "the rules have no such rule";
    out->known = true;
    for (int64_t at = 0; out->known && weir_rule_next(weir, &at, &info);)
        out->known = add_mode(out, &info);
}

/* -------------------------------------------------------------- listing ---- */

/* Whole if a terminal can show it, so that it can be copied to --lift. */
static void print_key(const char *key)
{
    size_t len = strlen(key), plain = 0;

    while (plain < len && (unsigned char)key[plain] > ' ' && key[plain] != 0x7f &&
           (unsigned char)key[plain] < 0x80)
        plain++;
    if (len > 0 && plain == len)
        printf("%-32s", key);
    else if (len == 0)
        printf("%-32s", "(everybody)");
    else
        weir__rules_words_value(stdout, key, len);
}

static void print_ban(const struct weir_ban *ban, weir_time now, const struct modes *modes)
{
    char since[32], until[32], words[64];
    const char *why = why_idle(modes, ban->rule, words);

    weir__human_duration(since, ban->since < now ? now - ban->since : 0);
    weir__human_duration(until, ban->until - now);
    weir__rules_words_value(stdout, ban->rule, strlen(ban->rule));
    printf("%*s ", strlen(ban->rule) < 24 ? (int)(24 - strlen(ban->rule)) : 0, "");
    print_key(ban->key);
    printf(" banned %s ago, for another %s; strike %" PRId32, since, until, ban->strikes);
    if (why) {
        printf("; not in force: ");
        weir__print_safely(stdout, why);
    }
    putchar('\n');
}

/* Bans to print, as of `now`. */
struct pile {
    weir_time now;
    struct weir_ban *bans;
    size_t n, room;
    struct modes modes;
};

static void pile_add(struct pile *pile, const struct weir_ban *ban)
{
    if (pile->n == pile->room) {
        size_t room = pile->room ? 2 * pile->room : 64;
        struct weir_ban *more = realloc(pile->bans, room * sizeof(*more));
        if (more == NULL) { /* out of order, but not lost */
            print_ban(ban, pile->now, &pile->modes);
            return;
        }
        pile->bans = more;
        pile->room = room;
    }
    pile->bans[pile->n++] = *ban;
}

static int newer_first(const void *left, const void *right)
{
    const struct weir_ban *a = left, *b = right;

    return a->since != b->since ? (a->since > b->since ? -1 : 1) : strcmp(a->key, b->key);
}

static void print_pile(struct pile *pile)
{
    if (pile->n == 0)
        puts("nobody is banned");
    else
        qsort(pile->bans, pile->n, sizeof(*pile->bans), newer_first);
    for (size_t i = 0; i < pile->n; i++)
        print_ban(&pile->bans[i], pile->now, &pile->modes);
    free(pile->bans);
    free(pile->modes.all);
}

static int list(const struct options *o, struct weir *weir, const struct weir_table *table,
                weir_time now)
{
    struct weir__buffer json = { 0 };
    struct pile pile = { .now = now };
    struct weir_ban ban;

    if (o->rules)
        modes_of_file(weir, &pile.modes);
    weir__buffer_open(&json, NULL, '{');
    weir__buffer_member_moment(&json, "now", weir_table_real(table, now));
    weir__buffer_open(&json, "bans", '[');
    for (int64_t at = 0; weir_ban_next(weir, now, &at, &ban);) {
        if (o->rule && strcmp(ban.rule, o->rule) != 0)
            continue;
        if (o->remote.json)
            weir__ban_json(&json, table, &ban, now);
        else
            pile_add(&pile, &ban);
    }
    if (!o->remote.json)
        print_pile(&pile);
    weir__buffer_close(&json, "]}\n");
    return weir__buffer_print(&json, o->remote.json ? stdout : NULL);
}

/* ------------------------------------------------------------- lifting ---- */

/* Rules of the table: those with a place for a mode set by hand. */
struct known {
    char (*texts)[96];
    const char **names; /* of the texts; ended by NULL */
    size_t n;
};

static bool is_guard(struct weir_table *table, const char *name)
{
    struct weir_guard_info info;
    struct weir_guard *guard;

    for (int64_t at = 0; weir_guard_next(table, &at, &guard);) {
        weir_guard_get(guard, 0, &info);
        if (strcmp(info.name, name) == 0)
            return true;
    }
    return false;
}

static bool list_rules(struct known *known, struct weir_table *table)
{
    struct weir_limiter_info info;
    struct weir_table_stats stats;

    weir_table_stats(table, -1, &stats);
    size_t room = (size_t)stats.limiters;
    known->texts = calloc(room + 1, sizeof(*known->texts));
    known->names = calloc(room + 1, sizeof(*known->names));
    if (known->texts == NULL || known->names == NULL)
        return false;
    for (int64_t at = 0; known->n < room && weir_limiter_next(table, &at, &info);) {
        char *text = known->texts[known->n];
        if (!weir_limiter_words(&info, text) && !is_guard(table, text))
            known->names[known->n++] = text;
    }
    return true;
}

/* False after a complaint.  A rule that is gone may have bans. */
static bool is_known(const struct options *o, struct weir *weir, struct weir_table *table,
                     weir_time now)
{
    struct known known = { 0 };
    struct weir_ban ban;
    bool found = false;

    for (int64_t at = 0; !found && weir_ban_next(weir, now, &at, &ban);)
        found = strcmp(ban.rule, o->rule) == 0;
    if (!found && !list_rules(&known, table))
        weir__complain("bans", "no memory");
    for (size_t i = 0; !found && i < known.n; i++)
        found = strcmp(known.names[i], o->rule) == 0;
    if (!found && known.names != NULL)
        weir__complain("bans", "there is no rule %s in the table; %s",
                       weir__quote(o->rule, strlen(o->rule)).text,
                       weir__hint(o->rule, strlen(o->rule), known.names, WEIR__TO_NULL).text);
    free(known.names);
    free(known.texts);
    return found;
}

static int lift(const struct options *o, struct weir *weir, const char *key, weir_time now)
{
    bool lifted = weir_ban_lift(weir, o->rule, key, now);

    if (o->remote.json)
        printf("{\"lifted\":%s}\n", lifted ? "true" : "false");
    else
        puts(lifted ? "lifted" : "not banned");
    return lifted ? WEIR__EXIT_OK : WEIR__EXIT_NO;
}

static int run_table(const struct options *o, const char *key)
{
    struct weir__rules_on_table on;

    if (!weir__rules_on_table_open_or_complain(&on, "bans", o->table, o->rules))
        return WEIR__EXIT_WRONG;
    weir_time now = o->now >= 0 ? o->now : weir_table_now(on.file);
    int code = !o->lift                             ? list(o, on.weir, on.file, now)
               : is_known(o, on.weir, on.file, now) ? lift(o, on.weir, key, now)
                                                    : WEIR__EXIT_WRONG;
    weir__rules_on_table_close(&on);
    return code;
}

/* ----------------------------------------------------- a running server ---- */

static weir_time moment(const struct weir__document *d, const char *path)
{
    const struct weir__scalar *text = weir__document_find(d, "%s", path);
    weir_time t = 0;

    if (text)
        weir__date_parse(text->text, text->len, &t);
    return t;
}

static struct weir_ban read_ban(const struct weir__document *d, const char *at, weir_time now)
{
    struct weir_ban ban = { .strikes = (int32_t)weir__document_number(d, 0, "%sstrikes", at) };
    const char *rule = weir__document_text(d, "%srule", at),
               *key = weir__document_text(d, "%skey", at);
    char path[48];

    snprintf(path, sizeof(path), "%ssince", at);
    ban.since = moment(d, path);
    weir_time left = weir__document_number(d, 0, "%sleft_ms", at);
    if (__builtin_mul_overflow(left, WEIR_MILLISECOND, &left) ||
        __builtin_add_overflow(now, left, &ban.until))
        ban.until = WEIR_NEVER;
    snprintf(ban.rule, sizeof(ban.rule), "%s", rule ? rule : "");
    snprintf(ban.key, sizeof(ban.key), "%s", key ? key : "");
    return ban;
}

static void show_bans(struct weir__ask_server *r)
{
    const struct weir__document *d = &r->document;
    struct pile pile = { .now = moment(d, "now") };
    char at[32];

    for (int i = 0; weir__document_find(d, "bans.%d.rule", i); i++) {
        snprintf(at, sizeof(at), "bans.%d.", i);
        struct weir_ban ban = read_ban(d, at, pile.now);
        pile_add(&pile, &ban);
    }
    if (pile.n > 0)
        read_modes(r, &pile.modes);
    print_pile(&pile);
}

static void show_added(const struct weir__document *d)
{
    weir_time now = moment(d, "since");
    struct weir_ban ban = read_ban(d, "", now);

    print_ban(&ban, now, &(struct modes){ 0 });
}

/* Lifting a ban that is not there is "no", not wrong use, unless there is no such rule. */
static int refused_lift(struct weir__ask_server *r, const char *rule)
{
    char path[256], request[272];

    weir__ask_server_complain(r);
    snprintf(request, sizeof(request), "GET %s",
             weir__ask_server_path(path, "/v1/bans", "rule", rule));
    return weir__ask_server_call(r, request) && r->status == 200 ? WEIR__EXIT_NO : WEIR__EXIT_WRONG;
}

static int ask(const struct weir__call *call, struct weir__ask_server *r)
{
    const struct options *o = call->options;
    char path[256], request[272];

    if (o->add || o->lift) {
        struct weir__buffer *body = weir__ask_server_body(r);
        weir__buffer_member(body, "rule", o->rule);
        weir__buffer_member(body, "key", call->words[0]);
        if (o->add)
            weir__buffer_member(body, "for", o->length);
    }
    snprintf(request, sizeof(request), "%s %s",
             o->add    ? "POST"
             : o->lift ? "DELETE"
                       : "GET",
             weir__ask_server_path(path, "/v1/bans", "rule", o->add || o->lift ? NULL : o->rule));
    if (!weir__ask_server_call(r, request))
        return WEIR__EXIT_WRONG;
    if (o->lift && r->status == 404)
        return refused_lift(r, o->rule);
    if (r->status / 100 != 2)
        return weir__ask_server_complain(r);
    if (!weir__ask_server_expect(r, o->add ? "until" : o->lift ? "banned" : "bans"))
        return WEIR__EXIT_WRONG;
    if (o->remote.json)
        weir__ask_server_print(r);
    else if (o->add)
        show_added(&r->document);
    else if (o->lift)
        puts("lifted");
    else
        show_bans(r);
    return WEIR__EXIT_OK;
}

/* -------------------------------------------------------------- command ---- */

static const char *find_mistake(const struct options *o, int words)
{
    bool one = o->lift || o->add;

    return o->table && o->remote.server ? "--table or --server, not both"
           : o->table && o->add         ? "--add asks a server: start weir serve --table FILE"
           : !o->table && o->rules      ? "--rules needs --table FILE: a server has its own"
           : o->rules && (o->lift || o->remote.json) ? "--rules is only for the list in words"
           : !o->table && o->now >= 0 ? "--now needs --table: a server has its own clock"
           : o->lift && o->add        ? "--add or --lift, not both"
           : o->add && !o->length     ? "--add needs --for TIME, as in --for 10m"
           : !o->add && o->length     ? "--for is only for --add"
           : o->lift && !o->rule      ? "--lift needs --rule NAME: bans are a rule's"
           : o->add && !o->rule       ? "--add needs --rule NAME: bans are a rule's"
           : o->lift && words != 1    ? "--lift needs one KEY, as the list shows it"
           : o->add && words != 1     ? "--add needs one KEY, as refusals name it"
           : !one && words > 0        ? "a KEY is only for --add and --lift"
                                      : NULL;
}

static int run(const struct weir__call *call)
{
    const struct options *o = call->options;
    const char *command = call->self->name, *mistake = find_mistake(o, call->n);
    struct weir_error error = { 0 };
    weir_time length;

    if (mistake)
        return weir__command_wrong(call->self, "%s", mistake);
    if (o->length && weir_time_parse(&length, o->length, &error) != WEIR_OK)
        return weir__complain(command, "--for must be a time such as 10m, not '%s'", o->length);
    if (o->rule && strlen(o->rule) > WEIR__RULE_NAME_MAX)
        return weir__complain(command, "--rule: a rule's name has at most %d bytes, this has %zu",
                              WEIR__RULE_NAME_MAX, strlen(o->rule));
    return o->table ? run_table(o, call->words[0]) : WEIR__GO_ON;
}

const struct weir__command weir__cmd_bans = {
    .name = "bans",
    .summary = "list bans, ban a key, or lift a ban",
    .arguments =
        "[--server ADDRESS | --table FILE] [--rule NAME] [--add --for TIME KEY | --lift KEY]",
    .help =
        "Shows the keys that rules keep out: since when, for how much longer, and how often "
        "before; the newest first. Write rule names and keys as listed. A lifted ban leaves "
        "the limit as it is; weir reset returns it. A ban belongs to its rule's name: if a server "
        "has no such rule, or it does not enforce, the ban is listed as not in force; for a table "
        "--rules says which rules there are.\n"
        "\n"
        "  weir bans --add --rule login --for 10m 192.0.2.7\n"
        "  weir bans --lift --rule login 192.0.2.7\n"
        "\n"
        "Exit codes: 0 done, 1 that key is not banned, 2 wrong use, no such rule or no server.",
    WEIR__ASK_SERVER(rows, .now = -1),
    .words_max = WEIR__ANY_WORDS,
    .run = run,
    .ask = ask,
};
