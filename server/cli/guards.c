/* guards.c -- `weir guards`: shows the guards of a running server or a table file, and forces
 * breakers. */
#include <stdio.h>
#include <string.h>

#include "guard/guard.h"
#include "server/cli/ask-server.h"
#include "server/serve/decide/guard-lookup.h"
#include "server/base/complain.h"
#include "server/base/table-file.h"
#include "server/base/human-numbers.h"
#include "server/base/terminal.h"

struct options {
    struct weir__ask_server_options remote;
    const char *force, *table;
    weir_time now; /* < 0: ask the table's clock */
    int64_t keys;
};

static const struct weir__option rows[] = {
    WEIR__TEXT("table", 't', table, "FILE", "an existing table file; default a running server"),
    WEIR__VALUE("now", 0, MOMENT, now, "TIME", "with --table: as of this time: " WEIR__MOMENT),
    WEIR__TEXT("force", 'f', force, "STATE", "force NAME's breaker: open, closed or none"),
    WEIR__VALUE("keys", 0, COUNT, keys, "N",
                "of a guard by key, show the N keys with most permits"),
    { 0 },
};

/* ---------------------------------------------------------------- showing ---- */

static long long number(const struct weir__document *d, const char *at, const char *name)
{
    return (long long)weir__document_number(d, 0, "%s%s", at, name);
}

/* "1.2ms"; "-" if it is not known. */
static struct weir__shown_time time_of(const struct weir__document *d, const char *at,
                                       const char *name)
{
    struct weir__shown_time words = { "-" };
    int64_t us = weir__document_number(d, -1, "%s%s", at, name);

    if (us >= 0 && us <= INT64_MAX / WEIR_MICROSECOND)
        weir__human_duration(words.text, us * WEIR_MICROSECOND);
    return words;
}

struct words {
    char text[64];
};

/* "open for 4.2s", "to be tried" (its open time is over), "forced closed", "-" */
static struct words breaker_of(const struct weir__document *d, const char *at)
{
    const char *state = weir__document_text(d, "%sbreaker", at),
               *force = weir__document_text(d, "%sforce", at);
    int64_t retry = weir__document_number(d, -1, "%sretry_ms", at);
    struct words w;

    if (force && strcmp(force, "none") != 0)
        snprintf(w.text, sizeof(w.text), "forced %s", force);
    else if (state && retry >= 0)
        snprintf(w.text, sizeof(w.text), "%s for %s", state, weir__show_ms(retry).text);
    else if (state && strcmp(state, "open") == 0)
        snprintf(w.text, sizeof(w.text), "to be tried");
    else
        snprintf(w.text, sizeof(w.text), "%s", state ? state : "-");
    return w;
}

static const char *const reasons[] = { "open",     "busy", "limited", "shed",
                                       "degraded", "full", "late",    "key_busy" };

#define REASONS (sizeof(reasons) / sizeof(reasons[0]))

static long long refused_for(const struct weir__document *d, const char *at, size_t reason)
{
    return (long long)weir__document_number(d, 0, "%srefused.%s", at, reasons[reason]);
}

/* "1234567", "12.3M": at most seven characters. */
static struct words count_of(long long n)
{
    static const char units[] = "kMGTPE";
    struct words w;
    double value = (double)n;
    size_t unit = 0;

    if (n < 10000000) {
        snprintf(w.text, sizeof(w.text), "%lld", n);
        return w;
    }
    for (value /= 1000; value >= 999.5; value /= 1000)
        unit++;
    snprintf(w.text, sizeof(w.text), "%.3g%c", value, units[unit]);
    return w;
}

enum { ROW = 80, NAME = 12 }; /* columns */

/* Names have room where the terminal has. */
static int name_columns(const struct weir__document *d)
{
    int most = NAME, room = NAME + weir__terminal_columns(ROW) - ROW;
    const char *name;

    for (int i = 0; (name = weir__document_text(d, "guards.%d.guard", i)) != NULL; i++) {
        int len = (int)strlen(name);
        most = len > most && len <= room ? len : most;
    }
    return most;
}

static void print_head(int width)
{
    printf("%-*s %11s %4s %-13s %7s %7s %5s %7s %s\n", width, "GUARD", "IN/LIMIT", "WAIT",
           "BREAKER", "P99", "GOOD", "BAD", "REFUSED", "ADMITS");
}

/* A long one has a line of its own. */
static void print_name(const char *name, int width)
{
    if (name && strlen(name) > (size_t)width) {
        weir__print_safely(stdout, name);
        putchar('\n');
        name = "";
    }
    weir__print_padded(name, width);
}

static long long bad_of(const struct weir__document *d, const char *at)
{
    return number(d, at, "outcomes.error") + number(d, at, "outcomes.timeout") +
           number(d, at, "outcomes.dropped");
}

/* "-": it is off, and lets in everybody without looking. */
static struct words admits_of(const struct weir__document *d, const char *at, const char *mode)
{
    struct words w = { "-" };

    if (mode == NULL || strcmp(mode, "off") != 0)
        snprintf(w.text, sizeof(w.text), "%lld%%", number(d, at, "admitted_percent"));
    return w;
}

/* "  5 per key, shadow: 3 would have been refused, not in the rules", in a line of its own; nothing if there is none. */
static void print_notes(const struct weir__document *d, const char *at, const char *mode)
{
    long long per_key = number(d, at, "options.max_per_key");
    const char *separator = "  ";

    if (per_key > 0) {
        printf("%s%lld per key", separator, per_key);
        separator = ", ";
    }
    if (mode && strcmp(mode, "enforce") != 0) {
        printf("%s%s", separator, mode);
        separator = ", ";
        if (strcmp(mode, "shadow") == 0)
            printf(": %s would have been refused", count_of(number(d, at, "shadow_refused")).text);
    }
    if (weir__document_find(d, "%sin_rules", at) && !weir__document_true(d, "%sin_rules", at)) {
        printf("%snot in the rules", separator);
        separator = ", ";
    }
    if (*separator == ',')
        putchar('\n');
}

static void print_guard(const struct weir__document *d, const char *at, int width)
{
    const char *mode = weir__document_text(d, "%smode", at);
    long long refused = 0;
    char busy[48];

    for (size_t i = 0; i < REASONS; i++)
        refused += refused_for(d, at, i);
    snprintf(busy, sizeof(busy), "%lld/%lld", number(d, at, "in_flight"), number(d, at, "limit"));
    print_name(weir__document_text(d, "%sguard", at), width);
    printf(" %11s %4lld ", busy, number(d, at, "waiting"));
    weir__print_padded(breaker_of(d, at).text, 13);
    printf(" %7s %7s %5s %7s %6s\n", time_of(d, at, "p99_us").text,
           count_of(number(d, at, "outcomes.ok")).text, count_of(bad_of(d, at)).text,
           count_of(refused).text, admits_of(d, at, mode).text);
    print_notes(d, at, mode);
}

/* Of one guard, there is room for more. */
static void print_more(const struct weir__document *d)
{
    printf("times: p50 %s, p90 %s, p99 %s\n", time_of(d, "guards.0.", "p50_us").text,
           time_of(d, "guards.0.", "p90_us").text, time_of(d, "guards.0.", "p99_us").text);
    if (number(d, "guards.0.", "shadow_refused") > 0)
        printf("let in, but refused if the mode were enforce: %lld\n",
               number(d, "guards.0.", "shadow_refused"));
}

/* "keys with permits: 12", and a line for each of those with most. */
static void print_keys(const struct weir__document *d)
{
    if (weir__document_find(d, "guards.0.keys_in_flight") == NULL)
        return;
    printf("keys with permits: %lld\n", number(d, "guards.0.", "keys_in_flight"));
    for (int i = 0; weir__document_find(d, "guards.0.keys.%d.in_flight", i); i++) {
        const char *key = weir__document_text(d, "guards.0.keys.%d.key", i);
        printf("%7lld  ", (long long)weir__document_number(d, 0, "guards.0.keys.%d.in_flight", i));
        weir__print_safely(stdout, key ? key : "(entered elsewhere)");
        putchar('\n');
    }
}

/* "refused: 3 open, 1 late"; nothing if nobody was. */
static void print_refused(const struct weir__document *d)
{
    const char *separator = "refused: ";

    for (size_t i = 0; i < REASONS; i++) {
        long long n = refused_for(d, "guards.0.", i);
        if (n == 0)
            continue;
        printf("%s%lld %s", separator, n, reasons[i]);
        separator = ", ";
    }
    if (*separator == ',')
        putchar('\n');
}

/* "2026-11-30T23:59:59.000Z breaker-opened: closed -> open", "... permits-reclaimed: 3" */
static void print_changes(const struct weir__document *d)
{
    const char *event;
    char at[48];

    for (int i = 0; (event = weir__document_text(d, "guards.0.changes.%d.event", i)) != NULL; i++) {
        snprintf(at, sizeof(at), "guards.0.changes.%d.", i);
        weir__show(d, at, "{time:26} {event}[: {from_state} -> {to_state}]");
        if (strcmp(event, "permits-reclaimed") == 0)
            weir__show(d, at, ": {to}");
        putchar('\n');
    }
}

static void print_guards(const struct weir__document *d, bool one)
{
    char at[32];
    int n = 0, width = name_columns(d);

    for (; weir__document_find(d, "guards.%d.guard", n); n++) {
        if (n == 0)
            print_head(width);
        snprintf(at, sizeof(at), "guards.%d.", n);
        print_guard(d, at, width);
    }
    if (n == 0)
        puts("there are no guards");
    if (one && n > 0) {
        print_more(d);
        print_refused(d);
        print_keys(d);
    }
    if (weir__document_number(d, 0, "degradation") > 0)
        weir__show(d, "", "degradation: {degradation}[{by_hand?}, by hand]\n");
    print_changes(d);
}

static void show(struct weir__ask_server *r)
{
    print_guards(&r->document, r->call->n > 0);
}

/* --------------------------------------------------------------- a table ---- */

/* A server's answer without the things only a server knows: rules and waiters.  False: there is no
 * guard of this name. */
static bool tell_guards(struct weir_table *table, const char *name, weir_time now,
                        struct weir__buffer *out)
{
    struct weir_guard_info info;
    struct weir_guard *guard;
    bool found = name == NULL;

    weir__buffer_open(out, NULL, '{');
    weir__buffer_member_moment(out, "now", weir_table_real(table, now));
    weir__degradation_json(out, table);
    weir__buffer_open(out, "guards", '[');
    for (int64_t at = 0; weir_guard_next(table, &at, &guard);) {
        if (name && strcmp(weir__guard_name(guard), name) != 0)
            continue;
        weir__guard_peek(guard, now, &info);
        weir__guard_json(out, &info,
                         &(struct weir__guard_place){ .mode = info.options.mode, .table = table },
                         now, name != NULL);
        found = true;
    }
    weir__buffer_close(out, "]}");
    return found;
}

static int print_told(const struct weir__buffer *told, bool json, bool one)
{
    struct weir__document d = { 0 };
    struct weir_error error = { 0 };

    if (json) {
        printf("%.*s\n", (int)told->len, told->bytes);
        return WEIR__EXIT_OK;
    }
    if (weir__document_read(&d, told->bytes, told->len, &error) != WEIR_OK)
        return weir__complain("guards", "%s", error.text);
    print_guards(&d, one);
    weir__document_free(&d);
    return WEIR__EXIT_OK;
}

static int show_table(const struct options *o, const char *name)
{
    struct weir__buffer told = { 0 };
    struct weir_table *table;
    struct weir_error error = { 0 };
    int code = WEIR__EXIT_WRONG;

    if (weir__table_attach("guards", &table, o->table, &error) != WEIR_OK)
        return weir__complain("guards", "--table: %s", error.text);
    bool found = tell_guards(table, name, o->now >= 0 ? o->now : weir_table_now(table), &told);
    if (told.failed)
        weir__complain("guards", "no memory");
    else if (!found)
        weir__table_no_guard("guards", table, name);
    else
        code = print_told(&told, o->remote.json, name != NULL);
    weir__buffer_free(&told);
    weir_table_destroy(table);
    return code;
}

/* ---------------------------------------------------------------- the command ---- */

static void show_forced(struct weir__ask_server *r)
{
    struct words breaker = breaker_of(&r->document, "");

    weir__print_safely(stdout, r->call->words[0]);
    printf(": ");
    weir__print_safely(stdout, strcmp(breaker.text, "-") == 0 ? "no longer forced" : breaker.text);
    putchar('\n');
}

static int ask(const struct weir__call *call, struct weir__ask_server *r)
{
    const struct options *o = call->options;
    char path[256], request[300], keys[32] = "";

    if (o->force) {
        weir__buffer_member(weir__ask_server_body(r), "guard", call->words[0]);
        weir__buffer_member(&r->body, "force", o->force);
        return weir__ask_server_show(r, "PUT /v1/guards", "force", show_forced);
    }
    if (o->keys >= 0)
        snprintf(keys, sizeof(keys), "&keys=%lld", (long long)o->keys);
    snprintf(request, sizeof(request), "GET %s%s",
             weir__ask_server_path(path, "/v1/guards", "guard", call->words[0]), keys);
    return weir__ask_server_show(r, request, "guards", show);
}

static int run(const struct weir__call *call)
{
    const struct options *o = call->options;
    const char *mistake =
        call->n == 0 && o->force ? "which guard?"
        : o->table && o->force
            ? "--force asks a server: start weir serve --table FILE, which needs no "
              "rules"
        : o->table && o->remote.server ? "--table or --server, not both"
        : !o->table && o->now >= 0     ? "--now needs --table: a server has its own clock"
        : o->keys >= 0 && call->n == 0 ? "--keys: of which guard?"
        : o->keys >= 0 && o->table     ? "--keys asks a server: a table has only hashes of keys"
                                       : NULL;

    if (call->n == 3 && strcmp(call->words[0], "force") == 0)
        return weir__complain(call->self->name, "to force a breaker: weir guards %s --force %s",
                              call->words[1], call->words[2]);
    if (o->force && strcmp(o->force, "open") != 0 && strcmp(o->force, "closed") != 0 &&
        strcmp(o->force, "none") != 0)
        return weir__complain(call->self->name, "--force must be open, closed or none, not '%s'",
                              o->force);
    if (mistake || call->n > 1)
        return weir__command_wrong(call->self, "%s", mistake ? mistake : "one guard at a time");
    return o->table ? show_table(o, call->words[0]) : WEIR__GO_ON;
}

const struct weir__command weir__cmd_guards = {
    .name = "guards",
    .summary = "show the bounds of work in progress, or force a breaker",
    .arguments = "[NAME] [--keys N | --force open|closed|none] [--server ADDRESS | --table FILE]",
    .help =
        "Without a NAME, lists all guards; with one, also its latest changes and, for a guard by "
        "key, the keys with most permits (ten, or --keys N). --force open refuses everything, "
        "closed ignores failures, none lets the breaker decide again, starting closed. "
        "It takes effect at once, in every process that shares the table. weir mode --rule NAME "
        "switches a guard's mode.\n"
        "\n"
        "  IN/LIMIT  permits in use, of how many; below, N per key: no key has more\n"
        "  WAIT      asks in its queue at this server\n"
        "  P99       latency of work that succeeded, in about the last 10 s; with a NAME,\n"
        "            also p50 and p90\n"
        "  GOOD      work that succeeded\n"
        "  BAD       work that failed, timed out or was dropped\n"
        "  ADMITS    share of asks that shedding, breaker and degradation let in now;\n"
        "            those refused for lack of a permit do not count. -: it is off\n"
        "\n"
        "  weir guards database --force open\n"
        "\n"
        "Exit codes: 0 done, 2 wrong use or no server.",
    WEIR__ASK_SERVER(rows, .now = -1, .keys = -1),
    .words_max = WEIR__ANY_WORDS,
    .run = run,
    .ask = ask,
};
