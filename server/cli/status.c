/* status.c -- `weir status`: how a running server is doing. */
#include <string.h>

#include "server/base/human-numbers.h"
#include "server/cli/ask-server.h"

struct options {
    struct weir__ask_server_options remote;
};

static const struct weir__option rows[] = { { 0 } };

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

static void print_rules(const struct weir__document *d)
{
    weir__show(d, "",
               "[MODE        {modes.by_hand} for all rules, by hand\n]"
               "[MODE        {modes.rules_by_hand#rule} switched by hand: weir mode\n]"
               "rules       ");
    const char *cause = weir__document_text(d, "rules.cause");
    if (weir__document_find(d, "rules.hash")) {
        weir__show(d, "",
                   "{rules.rules#rule}, {rules.limits#limit}, {rules.entries#list entry}; "
                   "{rules.hash} from ");
        weir__show(d, "",
                   cause && strcmp(cause, "fleet") == 0 ? "the fleet since {rules.since}\n"
                                                        : "{rules.source} since {rules.since}\n");
    } else {
        puts(weir__document_find(d, "fleet.name") ? "none yet: everything passes" : "none");
    }
    weir__show(d, "", "[            the last reload was refused: {rules.problem}\n]");
}

static void print_fleet(const struct weir__document *d)
{
    double part = (double)weir__document_number(d, 0, "fleet.part") / 10000; /* 0: not known */

    if (!weir__document_find(d, "fleet.name"))
        return;
    weir__show(d, "", "fleet       {fleet.name}, node {fleet.node}, {fleet.members#member}");
    if (part > 0)
        printf(", part %.1f %%; ", part);
    else
        printf(", part not known yet: share lets nothing pass; ");
    if (!weir__document_true(d, "fleet.alone"))
        weir__show(d, "", "Redis answers[, but: {fleet.why}]\n");
    else if (!weir__document_true(d, "fleet.connected"))
        weir__show(d, "", "ALONE, REDIS DOES NOT ANSWER[: {fleet.why}]\n");
    else
        weir__show(d, "", "ALONE: rules go by when_alone[; {fleet.why}]\n");
}

static void print_table(const struct weir__document *d)
{
    int64_t slots = weir__document_number(d, 0, "table.slots"),
            keys = weir__document_number(d, 0, "table.keys");
    int64_t on_disk = weir__document_number(d, 0, "table.bytes_on_disk");
    char most[32], now[32];

    weir__human_bytes(most, sizeof(most), weir__document_number(d, 0, "table.bytes"));
    weir__human_bytes(now, sizeof(now), on_disk);
    weir__show(d, "",
               "table       {table.file|in memory}: {table.keys} of {table.slots} slots used");
    if (slots > 0)
        printf(" (%.1f%%)", 100.0 * (double)keys / (double)slots);
    if (on_disk > 0)
        printf(", %s on disk", now);
    printf(", %s at most\n", most);
    if (weir__document_number(d, 0, "table.no_disk") == 0)
        weir__show(d, "", "[            {table.evicted_early#key} evicted early, to make room\n]");
    else
        weir__show(
            d, "",
            "            THE DISK OF THE TABLE WAS FULL: {table.no_disk#time} a window, log or "
            "ban found no space[, {table.evicted_early#key} evicted early]\n");
}

static void show(struct weir__ask_server *r)
{
    const struct weir__document *d = &r->document;

    weir__show(d, "", "server      weir {version} at ");
    weir__print_safely(stdout, r->options.server);
    weir__show(d, "",
               ", pid {pid}, up {uptime_ms:ms}, threads: {threads}, connections: "
               "{connections}[{draining?}, draining]\n");
    print_addresses(d);
    print_rules(d);
    print_fleet(d);
    if (weir__document_number(d, 0, "guards.guards") > 0 ||
        weir__document_number(d, 0, "guards.degradation") > 0)
        weir__show(d, "",
                   "guards      {guards.guards}: {guards.in_flight} at work"
                   "[, {guards.open#breaker} not closed][, {guards.forced} forced by hand]"
                   "[; degradation {guards.degradation}]"
                   "[{guards.degradation_by_hand?}, by hand]\n");
    print_table(d);
    weir__show(d, "",
               "checks      {totals.check_allowed} allowed, {totals.check_refused} refused"
               "[; no rule applied to {checks.unmatched} of them: weir explain]\n"
               "takes       {totals.take_allowed} allowed, {totals.take_refused} refused\n");
}

static int ask(const struct weir__call *call, struct weir__ask_server *r)
{
    (void)call;
    return weir__ask_server_show(r, "GET /v1/status", "version", show);
}

const struct weir__command weir__cmd_status = {
    .name = "status",
    .summary = "show how a server is doing",
    .arguments = "[options]",
    .help = "Its addresses, rules, fleet, guards, table and totals. MODE appears when someone has "
            "switched rules by hand.\n"
            "\n"
            "  weir status --server 192.0.2.1:7380\n"
            "\n"
            "Exit codes: 0 done, 2 wrong use or no server.",
    WEIR__ASK_SERVER(rows, .remote = { 0 }),
    .ask = ask,
};
