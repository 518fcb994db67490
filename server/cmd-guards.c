/* cmd-guards.c -- `weir guards`: the guards of a running server: how they are doing; and their breakers forced by hand. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "options.h"
#include "remote.h"
#include "text.h"

struct options {
    struct weir__remote_options remote;
    const char *force;
};

const struct weir__option weir__cmd_guards_options[] = {
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
static struct weir__words_of_time time_of(const struct weir__document *d, const char *at, const char *name)
{
    struct weir__words_of_time words = { "-" };
    int64_t us = weir__document_number(d, -1, "%s%s", at, name);

    if (us >= 0 && us <= INT64_MAX / WEIR_MICROSECOND)
        weir__text_time(words.text, sizeof words.text, us * WEIR_MICROSECOND);
    return words;
}

/* "open, again in 4.2s", "forced closed", "-" */
static void print_breaker(const struct weir__document *d, const char *at)
{
    const char *state = weir__document_text(d, "%sbreaker", at), *force = weir__document_text(d, "%sforce", at);
    int64_t retry = weir__document_number(d, -1, "%sretry_ms", at);
    char words[64];

    if (force && strcmp(force, "none") != 0)
        snprintf(words, sizeof words, "forced %s", force);
    else if (state && retry >= 0)
        snprintf(words, sizeof words, "%s, again in %s", state, weir__remote_ms(retry).text);
    else
        snprintf(words, sizeof words, "%s", state ? state : "-");
    weir__print_padded(words, 22);
}

static void print_guard(const struct weir__document *d, const char *at)
{
    long long refused = 0, good = number(d, at, "outcomes.ok");
    static const char *const reasons[] = { "refused.open",     "refused.busy", "refused.limited", "refused.shed",
                                           "refused.degraded", "refused.full", "refused.late" };
    static const char *const others[] = { "outcomes.error", "outcomes.timeout", "outcomes.dropped" };
    long long bad = 0;
    char busy[48];

    for (size_t i = 0; i < 4; i++)
        refused += number(d, at, reasons[i]);
    for (size_t i = 0; i < 3; i++)
        bad += number(d, at, others[i]);
    snprintf(busy, sizeof busy, "%lld/%lld", number(d, at, "in_flight"), number(d, at, "limit"));
    weir__print_padded(weir__document_text(d, "%sguard", at), 20);
    printf(" %11s ", busy);
    print_breaker(d, at);
    printf(" %8s %8s %10lld %10lld %10lld %4lld%%\n", time_of(d, at, "p50_us").text, time_of(d, at, "p99_us").text, good, bad, refused,
           number(d, at, "admitted_percent"));
}

static void print_changes(const struct weir__document *d)
{
    const char *event;

    for (int i = 0; (event = weir__document_text(d, "guards.0.changes.%d.event", i)) != NULL; i++) {
        weir__print_padded(weir__document_text(d, "guards.0.changes.%d.time", i), 26);
        putchar(' ');
        weir__print_safely(stdout, event);
        if (strcmp(event, "permits-reclaimed") == 0)
            printf(": %lld", (long long)weir__document_number(d, 0, "guards.0.changes.%d.to", i));
        putchar('\n');
    }
}

static void print_guards(const struct weir__document *d)
{
    char at[32];
    int n = 0;

    for (; weir__document_find(d, "guards.%d.guard", n); n++) {
        if (n == 0)
            printf("%-20s %11s %-22s %8s %8s %10s %10s %10s %5s\n", "GUARD", "IN/LIMIT", "BREAKER", "P50", "P99", "GOOD", "BAD", "REFUSED",
                   "LETS");
        snprintf(at, sizeof at, "guards.%d.", n);
        print_guard(d, at);
    }
    if (n == 0)
        puts("there are no guards");
    if (weir__document_number(d, 0, "level") > 0)
        printf("level of degradation: %lld%s\n", (long long)weir__document_number(d, 0, "level"),
               weir__document_true(d, "by_hand") ? ", by hand" : "");
    print_changes(d);
}

/* Names have few bytes that a query may not have. */
static void write_path(const char *name, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "/v1/guards%s", name ? "?guard=" : "");

    for (; name && *name && n + 4 < size; name++)
        n += (size_t)snprintf(out + n, size - n, isalnum((unsigned char)*name) || strchr("-._", *name) ? "%c" : "%%%02X",
                              (unsigned char)*name);
}

static int show(struct weir__remote *r, const char *name)
{
    char path[256];

    write_path(name, path, sizeof path);
    if (!weir__remote_ask_for(r, "GET", path, NULL, "guards"))
        return WEIR__EXIT_WRONG;
    if (r->options.json)
        weir__remote_print(r);
    else
        print_guards(&r->document);
    return WEIR__EXIT_OK;
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
    print_breaker(&r->document, "");
    putchar('\n');
    return WEIR__EXIT_OK;
}

int weir__cmd_guards(const struct weir__command *self, int argc, char **argv)
{
    struct options o = { 0 };
    struct weir__remote r;
    int n, code = weir__options_parse(self, argc, argv, &o, &n);

    if (code != WEIR__GO_ON)
        return code;
    if (n > 1 || (n == 0 && o.force)) {
        weir__complain(self->name, "%s; usage: weir %s %s", n > 1 ? "one guard at a time" : "which guard", self->name, self->arguments);
        return WEIR__EXIT_WRONG;
    }
    if (!weir__remote_open(&r, self, &o.remote))
        return WEIR__EXIT_WRONG;
    code = o.force ? force(&r, argv[0], o.force) : show(&r, n == 1 ? argv[0] : NULL);
    weir__remote_close(&r);
    return code;
}
