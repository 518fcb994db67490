/* status.c -- `weir status`: how a running server is doing. */
#include <stdio.h>
#include <string.h>

#include "server/base/options.h"
#include "server/cli/remote.h"
#include "server/base/text.h"

struct options {
    struct weir__remote_options remote;
};

const struct weir__option weir__cmd_status_options[] = {
    WEIR__REMOTE_JSON(struct options) WEIR__REMOTE_ROWS(struct options){ 0 },
};

static long long number(const struct weir__document *d, const char *path)
{
    return (long long)weir__document_number(d, 0, "%s", path);
}

static void print_text(const struct weir__document *d, const char *path, const char *otherwise)
{
    const char *text = weir__document_text(d, "%s", path);

    weir__print_safely(stdout, text ? text : otherwise);
}

static void print_addresses(const struct weir__document *d)
{
    static const char *const doors[] = { "resp", "http" };
    bool tls = weir__document_true(d, "tls");
    const char *text, *separator = "";

    printf("listens     ");
    for (size_t door = 0; door < 2; door++) {
        for (int i = 0; (text = weir__document_text(d, "addresses.%s.%d", doors[door], i)) != NULL;
             i++) {
            printf("%s%s ", separator, doors[door]);
            weir__print_safely(stdout, text);
            printf("%s", tls && !strchr(text, '/') ? " (TLS)" : ""); /* unix sockets have none */
            separator = ", ";
        }
    }
    putchar('\n');
}

/* Nothing if nothing is switched by hand: who has forgotten it is to see it. */
static void print_modes(const struct weir__document *d)
{
    long long n = number(d, "modes.rules_by_hand");
    bool all = weir__document_find(d, "modes.by_hand");

    if (all) {
        printf("MODE        ");
        print_text(d, "modes.by_hand", "?");
        puts(" for all rules, by hand");
    }
    if (n > 0)
        printf("%-12s%lld %s switched by hand: weir mode\n", all ? "" : "MODE", n,
               n == 1 ? "rule is" : "rules are");
}

static void print_rules(const struct weir__document *d)
{
    printf("rules       ");
    if (!weir__document_find(d, "rules.hash")) {
        puts("none");
    } else {
        printf("%lld rules, %lld limits, %lld list entries; ", number(d, "rules.rules"),
               number(d, "rules.limits"), number(d, "rules.entries"));
        print_text(d, "rules.hash", "?");
        printf(" from ");
        print_text(d, "rules.source", "?");
        printf(" since ");
        print_text(d, "rules.since", "?");
        putchar('\n');
    }
    if (weir__document_find(d, "rules.problem")) {
        printf("            the last reload was refused: ");
        print_text(d, "rules.problem", "?");
        putchar('\n');
    }
}

/* "guards      4: 12 at work, 1 breaker not closed; degradation 2, by hand" */
static void print_guards(const struct weir__document *d)
{
    long long n = number(d, "guards.guards"), open = number(d, "guards.open"),
              forced = number(d, "guards.forced"), degradation = number(d, "guards.degradation");

    if (n == 0 && degradation == 0)
        return;
    printf("guards      %lld: %lld at work", n, number(d, "guards.in_flight"));
    if (open > 0)
        printf(", %lld %s not closed", open, open == 1 ? "breaker" : "breakers");
    if (forced > 0)
        printf(", %lld forced by hand", forced);
    if (degradation > 0)
        printf("; degradation %lld%s", degradation,
               weir__document_true(d, "guards.degradation_by_hand") ? ", by hand" : "");
    putchar('\n');
}

static void print_table(const struct weir__document *d)
{
    int64_t slots = number(d, "table.slots"), keys = number(d, "table.keys");
    char bytes[32];

    weir__text_bytes(bytes, sizeof(bytes), number(d, "table.bytes"));
    printf("table       ");
    print_text(d, "table.file", "in memory");
    printf(": %lld of %lld slots used", (long long)keys, (long long)slots);
    if (slots > 0)
        printf(" (%.1f%%)", 100.0 * (double)keys / (double)slots);
    printf(", %s\n", bytes);
    if (number(d, "table.evicted_early") > 0)
        printf("            %lld keys had to make room before their time\n",
               number(d, "table.evicted_early"));
}

static void print_status(const struct weir__document *d, const char *server)
{
    printf("server      weir ");
    print_text(d, "version", "?");
    printf(" at ");
    weir__print_safely(stdout, server);
    printf(", pid %lld, up %s, threads: %lld, connections: %lld%s\n", number(d, "pid"),
           weir__remote_ms(weir__document_number(d, 0, "uptime_ms")).text, number(d, "threads"),
           number(d, "connections"), weir__document_true(d, "draining") ? ", draining" : "");
    print_addresses(d);
    print_modes(d);
    print_rules(d);
    print_guards(d);
    print_table(d);
    printf("checks      %lld allowed, %lld refused\n", number(d, "totals.check_allowed"),
           number(d, "totals.check_refused"));
    printf("takes       %lld allowed, %lld refused\n", number(d, "totals.take_allowed"),
           number(d, "totals.take_refused"));
}

int weir__cmd_status(const struct weir__command *self, int argc, char **argv)
{
    struct options o = { 0 };
    struct weir__remote r;
    int n, code = weir__options_parse(self, argc, argv, &o, &n);

    if (code != WEIR__GO_ON)
        return code;
    if (n > 0) {
        weir__complain(self->name, "takes no words; found '%s'", argv[0]);
        return WEIR__EXIT_WRONG;
    }
    if (!weir__remote_open(&r, self, &o.remote))
        return WEIR__EXIT_WRONG;
    code = weir__remote_ask_for(&r, "GET", "/v1/status", NULL, "version") ? WEIR__EXIT_OK
                                                                          : WEIR__EXIT_WRONG;
    if (code == WEIR__EXIT_OK && o.remote.json)
        weir__remote_print(&r);
    else if (code == WEIR__EXIT_OK)
        print_status(&r.document, r.options.server);
    weir__remote_close(&r);
    return code;
}
