/* guards.c -- `weir guards`: the guards of a running server or a table file: how they are
 * doing; and their breakers forced by hand. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "guard/guard.h"
#include "server/base/options.h"
#include "server/cli/remote.h"
#include "server/serve/decide/guards.h"
#include "server/base/text.h"

struct options {
    struct weir__remote_options remote;
    const char *force, *table;
    weir_time now; /* < 0: ask the table's clock */
};

const struct weir__option weir__cmd_guards_options[] = {
    { "table", 't', WEIR__OPTION_TEXT, offsetof(struct options, table), 0, "FILE",
      "the table, which must be there, and is only looked at; default: ask a server" },
    { "now", 0, WEIR__OPTION_MOMENT, offsetof(struct options, now), 0, "TIME",
      "with --table: at this time: seconds since 1970, or 2026-11-30T23:59:59Z" },
    { "force", 'f', WEIR__OPTION_TEXT, offsetof(struct options, force), 0, "STATE",
      "of NAME: open (refuse all), closed (whatever happens), none" },
    WEIR__REMOTE_JSON(struct options) WEIR__REMOTE_ROWS(struct options){ 0 },
};

/* ---------------------------------------------------------------- showing ---- */

static long long number(const struct weir__document *d, const char *at, const char *name)
{
    return (long long)weir__document_number(d, 0, "%s%s", at, name);
}

/* "1.2ms"; "-" if it is not known. */
static struct weir__words_of_time time_of(const struct weir__document *d, const char *at,
                                          const char *name)
{
    struct weir__words_of_time words = { "-" };
    int64_t us = weir__document_number(d, -1, "%s%s", at, name);

    if (us >= 0 && us <= INT64_MAX / WEIR_MICROSECOND)
        weir__text_time(words.text, sizeof(words.text), us * WEIR_MICROSECOND);
    return words;
}

struct words {
    char text[64];
};

/* "open, again in 4.2s", "forced closed", "-" */
static struct words breaker_of(const struct weir__document *d, const char *at)
{
    const char *state = weir__document_text(d, "%sbreaker", at),
               *force = weir__document_text(d, "%sforce", at);
    int64_t retry = weir__document_number(d, -1, "%sretry_ms", at);
    struct words w;

    if (force && strcmp(force, "none") != 0)
        snprintf(w.text, sizeof(w.text), "forced %s", force);
    else if (state && retry >= 0)
        snprintf(w.text, sizeof(w.text), "%s, again in %s", state, weir__remote_ms(retry).text);
    else
        snprintf(w.text, sizeof(w.text), "%s", state ? state : "-");
    return w;
}

static const char *const reasons[] = {
    "open", "busy", "limited", "shed", "degraded", "full", "late"
};

#define REASONS (sizeof(reasons) / sizeof(reasons[0]))

static long long refused_for(const struct weir__document *d, const char *at, size_t reason)
{
    return (long long)weir__document_number(d, 0, "%srefused.%s", at, reasons[reason]);
}

static void print_head(void)
{
    printf("%-20s %-7s %11s %7s %-22s %8s %8s %10s %10s %10s %10s %5s\n", "GUARD", "MODE",
           "IN/LIMIT", "WAITING", "BREAKER", "P50", "P99", "GOOD", "BAD", "REFUSED", "SHADOW",
           "LETS");
}

static void print_guard(const struct weir__document *d, const char *at)
{
    static const char *const others[] = { "outcomes.error", "outcomes.timeout",
                                          "outcomes.dropped" };
    const struct weir__scalar *ruled = weir__document_find(d, "%sin_rules", at);
    long long refused = 0, bad = 0;
    char busy[48];

    for (size_t i = 0; i < REASONS; i++)
        refused += refused_for(d, at, i);
    for (size_t i = 0; i < 3; i++)
        bad += number(d, at, others[i]);
    snprintf(busy, sizeof(busy), "%lld/%lld", number(d, at, "in_flight"), number(d, at, "limit"));
    weir__print_padded(weir__document_text(d, "%sguard", at), 20);
    putchar(' ');
    weir__print_padded(weir__document_text(d, "%smode", at), 7);
    printf(" %11s %7lld ", busy, number(d, at, "waiting"));
    weir__print_padded(breaker_of(d, at).text, 22);
    printf(" %8s %8s %10lld %10lld %10lld %10lld %4lld%%%s\n", time_of(d, at, "p50_us").text,
           time_of(d, at, "p99_us").text, number(d, at, "outcomes.ok"), bad, refused,
           number(d, at, "shadow_refused"), number(d, at, "admitted_percent"),
           ruled && !weir__document_true(d, "%sin_rules", at) ? "  not in the rules" : "");
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
    const char *event, *from, *to;

    for (int i = 0; (event = weir__document_text(d, "guards.0.changes.%d.event", i)) != NULL; i++) {
        from = weir__document_text(d, "guards.0.changes.%d.from_state", i);
        to = weir__document_text(d, "guards.0.changes.%d.to_state", i);
        weir__print_padded(weir__document_text(d, "guards.0.changes.%d.time", i), 26);
        putchar(' ');
        weir__print_safely(stdout, event);
        if (from && to) {
            printf(": ");
            weir__print_safely(stdout, from);
            printf(" -> ");
            weir__print_safely(stdout, to);
        } else if (strcmp(event, "permits-reclaimed") == 0) {
            printf(": %lld", (long long)weir__document_number(d, 0, "guards.0.changes.%d.to", i));
        }
        putchar('\n');
    }
}

static void print_guards(const struct weir__document *d, bool one)
{
    char at[32];
    int n = 0;

    for (; weir__document_find(d, "guards.%d.guard", n); n++) {
        if (n == 0)
            print_head();
        snprintf(at, sizeof(at), "guards.%d.", n);
        print_guard(d, at);
    }
    if (n == 0)
        puts("there are no guards");
    if (one)
        print_refused(d);
    if (weir__document_number(d, 0, "degradation") > 0)
        printf("degradation: %lld%s\n", (long long)weir__document_number(d, 0, "degradation"),
               weir__document_true(d, "by_hand") ? ", by hand" : "");
    print_changes(d);
}

/* Names have few bytes that a query may not have. */
static void write_path(const char *name, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "/v1/guards%s", name ? "?guard=" : "");

    for (; name && *name && n + 4 < size; name++)
        n += (size_t)snprintf(out + n, size - n,
                              isalnum((unsigned char)*name) || strchr("-._", *name) ? "%c"
                                                                                    : "%%%02X",
                              (unsigned char)*name);
}

static int show(struct weir__remote *r, const char *name)
{
    char path[256];

    write_path(name, path, sizeof(path));
    if (!weir__remote_ask_for(r, "GET", path, NULL, "guards"))
        return WEIR__EXIT_WRONG;
    if (r->options.json)
        weir__remote_print(r);
    else
        print_guards(&r->document, name != NULL);
    return WEIR__EXIT_OK;
}

/* --------------------------------------------------------------- a table ---- */

/* As a server would say it, but for what only a server knows: the rules, and who waits.  False:
 * there is no guard of this name. */
static bool tell_guards(struct weir_table *table, const char *name, weir_time now,
                        struct weir__buffer *out)
{
    struct weir_guard_info info;
    const char *separator = "";

    weir__buffer_text(out, "{");
    weir__buffer_member_moment(out, "now", now);
    weir__degradation_json(out, table);
    weir__buffer_text(out, ",\"guards\":[");
    for (uint32_t i = 0; i < weir__guards_in(table); i++) {
        struct weir_guard *guard = weir_table_guard(table, i);
        if (guard == NULL || (name && strcmp(guard->name, name) != 0))
            continue;
        weir__guard_peek(guard, now, &info);
        weir__buffer_text(out, separator);
        weir__guard_json(out, &info, &(struct weir__guard_place){ .mode = info.options.mode }, now,
                         name != NULL);
        separator = ",";
    }
    weir__buffer_text(out, "]}");
    return name == NULL || *separator;
}

static int print_told(const struct weir__buffer *told, bool json, bool one)
{
    struct weir__document d = { 0 };
    struct weir_error error = { 0 };

    if (json) {
        printf("%.*s\n", (int)told->len, told->bytes);
    } else if (weir__document_read(&d, told->bytes, told->len, &error) == WEIR_OK) {
        print_guards(&d, one);
        weir__document_free(&d);
    } else {
        weir__complain("guards", "%s", error.text);
        return WEIR__EXIT_WRONG;
    }
    return WEIR__EXIT_OK;
}

static int show_table(const struct options *o, const char *name)
{
    struct weir__buffer told = { 0 };
    struct weir_table *table;
    struct weir_error error = { 0 };
    int code = WEIR__EXIT_WRONG;

    if (weir_table_attach(&table, o->table, &error) != WEIR_OK) {
        weir__complain("guards", "--table: %s", error.text);
        return code;
    }
    bool found = tell_guards(table, name, o->now >= 0 ? o->now : weir_table_now(table), &told);
    if (told.failed)
        weir__complain("guards", "no memory");
    else if (!found)
        weir__complain("guards",
                       "the table has no guard '%s'; without a name all of them are listed", name);
    else
        code = print_told(&told, o->remote.json, name != NULL);
    weir__buffer_free(&told);
    weir_table_destroy(table);
    return code;
}

/* ---------------------------------------------------------------- forcing ---- */

static int force(struct weir__remote *r, const char *name, const char *state)
{
    struct weir__buffer body = { 0 };

    weir__buffer_text(&body, "{");
    weir__buffer_member(&body, "guard", name);
    weir__buffer_member(&body, "force", state);
    weir__buffer_text(&body, "}");
    bool done = weir__remote_ask_for(r, "PUT", "/v1/guards", &body, "force");
    weir__buffer_free(&body);
    if (!done)
        return WEIR__EXIT_WRONG;
    if (r->options.json) {
        weir__remote_print(r);
        return WEIR__EXIT_OK;
    }
    weir__print_safely(stdout, name);
    printf(": ");
    weir__print_safely(stdout, breaker_of(&r->document, "").text);
    putchar('\n');
    return WEIR__EXIT_OK;
}

/* Of a word too many it is said what was meant. */
static bool is_right(const struct weir__command *self, const struct options *o, char **words, int n)
{
    bool forces = n == 3 && strcmp(words[0], "force") == 0;
    const char *mistake = n > 1                          ? "one guard at a time"
                          : n == 0 && o->force           ? "which guard"
                          : o->table && o->force         ? "--force asks a server: without --table"
                          : o->table && o->remote.server ? "--table or --server, not both"
                          : !o->table && o->now >= 0
                              ? "--now needs --table: a server has its own clock"
                              : NULL;

    if (forces)
        weir__complain(self->name, "a breaker is forced by --force: weir guards %s --force %s",
                       words[1], words[2]);
    else if (mistake)
        weir__complain(self->name, "%s; usage: weir %s %s", mistake, self->name, self->arguments);
    return !forces && !mistake;
}

int weir__cmd_guards(const struct weir__command *self, int argc, char **argv)
{
    struct options o = { .now = -1 };
    struct weir__remote r;
    int n, code = weir__options_parse(self, argc, argv, &o, &n);

    if (code != WEIR__GO_ON)
        return code;
    if (!is_right(self, &o, argv, n))
        return WEIR__EXIT_WRONG;
    if (o.table)
        return show_table(&o, n == 1 ? argv[0] : NULL);
    if (!weir__remote_open(&r, self, &o.remote))
        return WEIR__EXIT_WRONG;
    code = o.force ? force(&r, argv[0], o.force) : show(&r, n == 1 ? argv[0] : NULL);
    weir__remote_close(&r);
    return code;
}
