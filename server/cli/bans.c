/* bans.c -- `weir bans`: the keys that rules keep out, as a running server or a table file has
 * them; one more, and the lifting of one.
 *
 * With a table file the rules themselves are not needed: a ban is known by its rule's name and its
 * key's text, and both are in the table.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/base/command.h"
#include "server/base/date.h"
#include "server/base/options.h"
#include "server/cli/remote.h"
#include "server/describe/rules-words.h"
#include "match/draft.h"
#include "server/base/text.h"

struct options {
    struct weir__remote_options remote;
    const char *table, *rule, *length;
    weir_time now; /* < 0: ask the table's clock */
    bool lift, add;
};

const struct weir__option weir__cmd_bans_options[] = {
    { "table", 't', WEIR__OPTION_TEXT, offsetof(struct options, table), 0, "FILE",
      "the table, which must be there; default: ask a server" },
    { "add", 0, WEIR__OPTION_SWITCH, offsetof(struct options, add), 0, NULL,
      "keep KEY out; a server only" },
    { "for", 0, WEIR__OPTION_TEXT, offsetof(struct options, length), 0, "TIME",
      "with --add: how long" },
    { "lift", 0, WEIR__OPTION_SWITCH, offsetof(struct options, lift), 0, NULL,
      "end the ban of KEY, and forget those before it" },
    { "rule", 'r', WEIR__OPTION_TEXT, offsetof(struct options, rule), 0, "NAME",
      "with --add and --lift: whose ban; else list those of this rule" },
    { "now", 0, WEIR__OPTION_MOMENT, offsetof(struct options, now), 0, "TIME",
      "with --table: at this time: seconds since 1970, or 2026-11-30T23:59:59Z" },
    { "json", 0, WEIR__OPTION_SWITCH, offsetof(struct options, remote.json), 0, NULL,
      "as one JSON object" },
    WEIR__REMOTE_ROWS(struct options){ 0 },
};

/* -------------------------------------------------------------- listing ---- */

/* Whole if a terminal may have it, so that it can be given to --lift. */
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
        weir__words_value(stdout, key, len);
}

static void print_ban(const struct weir_ban *ban, weir_time now)
{
    char since[32], until[32];

    weir__text_time(since, sizeof(since), ban->since < now ? now - ban->since : 0);
    weir__text_time(until, sizeof(until), ban->until - now);
    weir__words_value(stdout, ban->rule, strlen(ban->rule));
    printf("%*s ", strlen(ban->rule) < 24 ? (int)(24 - strlen(ban->rule)) : 0, "");
    print_key(ban->key);
    printf(" banned %s ago, for another %s; strike %" PRId32 "\n", since, until, ban->strikes);
}

static void print_json(const struct weir_ban *ban, bool first)
{
    printf("%s{\"rule\":", first ? "" : ",");
    weir__json_string(ban->rule);
    printf(",\"key\":");
    weir__json_string(ban->key);
    printf(",\"since_ns\":%" PRId64 ",\"until_ns\":%" PRId64 ",\"strikes\":%" PRId32 "}",
           ban->since, ban->until, ban->strikes);
}

struct listing {
    const struct options *o;
    weir_time now;
    size_t n;
};

static bool print_listed(void *context, const struct weir_ban *ban)
{
    struct listing *l = context;

    if (l->o->rule && strcmp(ban->rule, l->o->rule) != 0)
        return true;
    if (l->o->remote.json)
        print_json(ban, l->n == 0);
    else
        print_ban(ban, l->now);
    l->n++;
    return true;
}

static int list(const struct options *o, struct weir *weir, weir_time now)
{
    struct listing l = { o, now, 0 };

    if (o->remote.json)
        printf("{\"now_ns\":%" PRId64 ",\"bans\":[", now);
    weir_ban_list(weir, now, print_listed, &l);
    if (o->remote.json || l.n == 0)
        puts(o->remote.json ? "]}" : "nobody is banned");
    return WEIR__EXIT_OK;
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

/* An engine without rules. */
static int run_table(const struct options *o, struct weir_table *table, const char *key)
{
    struct weir_options on = { .table = table };
    weir_time now = o->now >= 0 ? o->now : weir_table_now(table);
    struct weir *weir;

    if (weir_create(&weir, &on, NULL) != WEIR_OK)
        return WEIR__EXIT_WRONG;
    int code = o->lift ? lift(o, weir, key, now) : list(o, weir, now);
    weir_destroy(weir);
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

/* The ban whose members are `at`... */
static void show_ban(const struct weir__document *d, const char *at, weir_time now)
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
    print_ban(&ban, now);
}

static void show_bans(const struct weir__document *d)
{
    char at[32];
    int i = 0;

    for (; weir__document_find(d, "bans.%d.rule", i); i++) {
        snprintf(at, sizeof(at), "bans.%d.", i);
        show_ban(d, at, moment(d, "now"));
    }
    if (i == 0)
        puts("nobody is banned");
}

/* All of them, or a rule's; names have few bytes that a query may not have. */
static void write_path(const char *rule, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "/v1/bans%s", rule ? "?rule=" : "");

    for (; rule && *rule && n + 4 < size; rule++)
        n += (size_t)snprintf(out + n, size - n,
                              isalnum((unsigned char)*rule) || strchr("-._", *rule) ? "%c"
                                                                                    : "%%%02X",
                              (unsigned char)*rule);
}

/* A key that is not banned cannot be let in: that is no, and not wrong use. */
static int ask_server(struct weir__remote *r, const struct options *o, const char *key)
{
    struct weir__buffer body = { 0 };
    const char *method = o->add ? "POST" : o->lift ? "DELETE" : "GET";
    char path[256];

    weir__buffer_text(&body, "{");
    if (o->rule && key)
        weir__buffer_member(&body, "rule", o->rule);
    if (key)
        weir__buffer_member(&body, "key", key);
    if (o->add)
        weir__buffer_member(&body, "for", o->length);
    weir__buffer_text(&body, "}");
    write_path(key ? NULL : o->rule, path, sizeof(path));
    bool answered = weir__remote_call(r, method, path, key ? &body : NULL);
    weir__buffer_free(&body);
    if (!answered)
        return WEIR__EXIT_WRONG;
    if (r->status / 100 != 2) {
        weir__remote_complain(r);
        return o->lift && r->status == 404 ? WEIR__EXIT_NO : WEIR__EXIT_WRONG;
    }
    if (!weir__remote_expect(r, o->add ? "until" : o->lift ? "banned" : "bans"))
        return WEIR__EXIT_WRONG;
    if (o->remote.json)
        weir__remote_print(r);
    else if (o->add)
        show_ban(&r->document, "", moment(&r->document, "since"));
    else if (o->lift)
        puts("lifted");
    else
        show_bans(&r->document);
    return WEIR__EXIT_OK;
}

static int run_remote(const struct weir__command *self, const struct options *o, const char *key)
{
    struct weir__remote r;

    if (!weir__remote_open(&r, self, &o->remote))
        return WEIR__EXIT_WRONG;
    int code = ask_server(&r, o, key);
    weir__remote_close(&r);
    return code;
}

/* -------------------------------------------------------------- command ---- */

static const char *find_mistake(const struct options *o, int words)
{
    bool one = o->lift || o->add;

    return o->table && o->remote.server ? "--table or --server, not both"
           : o->table && o->add         ? "--add asks a server: without --table"
           : !o->table && o->now >= 0   ? "--now needs --table: a server has its own clock"
           : o->lift && o->add          ? "--add or --lift, not both"
           : o->add && !o->length       ? "--add needs --for TIME, as in --for 10m"
           : !o->add && o->length       ? "--for is only for --add"
           : o->lift && !o->rule        ? "--lift needs --rule NAME: bans are a rule's"
           : o->add && !o->rule         ? "--add needs --rule NAME: bans are a rule's"
           : o->lift && words != 1      ? "--lift needs one KEY, as the list shows it"
           : o->add && words != 1       ? "--add needs one KEY, as refusals name it"
           : !one && words > 0          ? "a KEY is only for --add and --lift"
                                        : NULL;
}

int weir__cmd_bans(const struct weir__command *self, int argc, char **argv)
{
    struct options o = { .now = -1 };
    struct weir_table *table;
    struct weir_error error = { 0 };
    int words, code = weir__options_parse(self, argc, argv, &o, &words);

    if (code != WEIR__GO_ON)
        return code;
    const char *mistake = find_mistake(&o, words);
    if (mistake) {
        weir__complain(self->name, "%s; usage: weir %s %s", mistake, self->name, self->arguments);
        return WEIR__EXIT_WRONG;
    }
    if (o.rule && strlen(o.rule) > WEIR__RULE_NAME_MAX) {
        weir__complain(self->name, "--rule: a rule's name has at most %d bytes, and this has %zu",
                       WEIR__RULE_NAME_MAX, strlen(o.rule));
        return WEIR__EXIT_WRONG;
    }
    if (!o.table)
        return run_remote(self, &o, words ? argv[0] : NULL);
    if (weir_table_attach(&table, o.table, &error) != WEIR_OK) {
        weir__complain(self->name, "--table: %s", error.text);
        return WEIR__EXIT_WRONG;
    }
    code = run_table(&o, table, argv[0]);
    weir_table_destroy(table);
    return code;
}
