/* fleet.c -- `weir fleet status`, `nodes`, `history` and `rollback`: what the nodes of a fleet run,
 * and what they ran before. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "server/base/buffer.h"
#include "server/base/complain.h"
#include "server/base/human-numbers.h"
#include "server/base/options.h"
#include "server/base/safe-text.h"
#include "server/cli/fleet-rules.h"
#include "server/describe/fleet-json.h"
#include "wire/decimal.h"

struct options {
    struct weir__fleet_rules_options common;
    const char *note;
};

static const struct weir__option rows[] = {
    WEIR__FLEET_RULES_ROWS(struct options),
    { 0 },
};
static const struct weir__option note_rows[] = {
    WEIR__FLEET_RULES_ROWS(struct options),
    WEIR__TEXT("note", 'n', note, "TEXT", "why, for the history"),
    { 0 },
};

static int ask(struct weir__fleet_rules *f, const char *verb, struct weir__versions_list *out)
{
    *out = (struct weir__versions_list){ 0 };
    return weir__fleet_rules_ask(f, &WEIR__VERSIONS_TEXT(verb), 1, out);
}

static void put_text(struct weir__text text)
{
    weir__safe_put(stdout, WEIR__SAFE_TERMINAL, text.bytes, text.len);
}

/* --------------------------------------------------------------- history ---- */

static void show_version(const struct weir__version *v, int64_t all)
{
    char when[WEIR__HUMAN];

    printf("%5" PRId64 "  %s  %7" PRId64 " bytes  ", v->number,
           weir__human_time(when, weir__reply_time(v->time_us), false), v->bytes);
    put_text(v->author);
    if (v->origin)
        printf("  (as version %" PRId64 ")", v->origin);
    if (v->note.len > 0) {
        printf("  ");
        put_text(v->note);
    }
    printf("%s\n", v->number == all ? "  <- all nodes" : "");
}

static int run_history(const struct weir__call *call)
{
    const struct options *o = call->options;
    struct weir__fleet_rules f;
    struct weir__buffer json = { 0 };
    struct weir__versions_list list;
    struct weir__version v;
    int code = weir__fleet_rules_open(&f, call->self->name, &o->common);

    if (code == WEIR__GO_ON)
        code = ask(&f, "list", &list);
    if (code == WEIR__GO_ON) {
        bool none = weir__versions_number(&list) == 0;
        if (none && !o->common.json)
            printf("the fleet '%s' has no rules yet, or Redis has lost them: weir fleet status\n",
                   (const char *)f.fleet.bytes);
        weir__versions_text(&list);
        int64_t all = weir__versions_number(&list);
        weir__buffer_open(&json, NULL, '[');
        while (weir__versions_next(&list, &v))
            if (o->common.json)
                weir__fleet_version_json(&json, &v);
            else
                show_version(&v, all);
        weir__buffer_close(&json, "]\n");
        code = weir__buffer_print(&json, o->common.json ? stdout : NULL);
        code = code == WEIR__EXIT_OK && none ? WEIR__EXIT_NO : code;
    }
    weir__fleet_rules_close(&f);
    return code;
}

const struct weir__command weir__cmd_fleet_history = {
    .name = "fleet history",
    .summary = "show the versions of the rules of a fleet",
    .arguments = "[--fleet NAME] [--redis URL]",
    .help = "One line for each of the last 50 versions, the newest first: its number, when it was "
            "made, by whom, and why.\n"
            "\n" WEIR__REDIS_URL_HELP "\n"
            "\n"
            "Exit codes: 0 done, 1 there are none, 2 wrong use or no Redis.",
    WEIR__COMMAND_OPTIONS(rows, .common = { 0 }),
    .run = run_history,
};

/* -------------------------------------------------------------- rollback ---- */

static bool same_text(struct weir__text a, struct weir__text b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.bytes, b.bytes, a.len) == 0);
}

/* A version that is the text of an older one stands for that: what came between the two was rolled
 * back, and is not gone back to.  A version of a stage was never in force on all nodes: back from
 * it is what they run. */
static int find_older(struct weir__fleet_rules *f, const struct weir__version *newest,
                      struct weir__version *old)
{
    int64_t at = newest->origin ? newest->origin : newest->number;
    int code = weir__fleet_rules_get(f, -1, old);

    if (code != WEIR__GO_ON || (old->number > 0 && old->number != newest->number))
        return code;
    do {
        *old = (struct weir__version){ .number = 0 };
        if (at == 1)
            return code;
        code = weir__fleet_rules_get(f, at - 1, old);
        if (code == WEIR__GO_ON && old->origin) /* which may be forgotten: this text is the same */
            at = old->origin;
        else
            at--;
    } while (code == WEIR__GO_ON && old->number > 0 && same_text(old->text, newest->text));
    return code;
}

static int find_version(struct weir__fleet_rules *f, const struct weir__call *call, int64_t to,
                        const struct weir__version *newest, struct weir__version *old)
{
    int code = to ? weir__fleet_rules_get(f, to, old) : find_older(f, newest, old);

    if (code != WEIR__GO_ON || old->number > 0)
        return code;
    if (to)
        weir__complain(call->self->name, "there is no such version");
    else if (newest->origin)
        weir__complain(call->self->name,
                       "version %" PRId64 " is as version %" PRId64
                       ", and there is no older one with another text: name a version, see weir "
                       "fleet history",
                       newest->number, newest->origin);
    else
        weir__complain(call->self->name, "there is no version before %" PRId64 " with another text",
                       newest->number);
    return WEIR__EXIT_NO;
}

/* The next answer takes the place of a text. */
static bool keep_text(struct weir__version *v, char **copy)
{
    *copy = malloc(v->text.len + 1);
    if (*copy && v->text.len > 0)
        memcpy(*copy, v->text.bytes, v->text.len);
    v->text.bytes = *copy;
    return *copy != NULL;
}

static int roll_back(struct weir__fleet_rules *f, const struct weir__call *call, int64_t to)
{
    const struct options *o = call->options;
    struct weir__version newest, old;
    char *newest_text = NULL, *old_text = NULL;
    int code = weir__fleet_rules_get(f, 0, &newest);

    if (code == WEIR__GO_ON && newest.number == 0)
        return weir__fleet_rules_missing(f);
    if (code == WEIR__GO_ON && !keep_text(&newest, &newest_text))
        code = weir__complain(call->self->name, "no memory");
    if (code == WEIR__GO_ON)
        code = find_version(f, call, to, &newest, &old);
    if (code == WEIR__GO_ON && !keep_text(&old, &old_text))
        code = weir__complain(call->self->name, "no memory");
    if (code == WEIR__GO_ON)
        code = weir__fleet_rules_put(
            f, &(struct weir__versions_edit){ .base = newest.number,
                                              .base_edit = newest.edit,
                                              .origin = old.origin ? old.origin : old.number,
                                              .note = o->note,
                                              .stage = "",
                                              .text = old.text });
    free(newest_text);
    free(old_text);
    return code;
}

static int run_rollback(const struct weir__call *call)
{
    const struct options *o = call->options;
    struct weir__fleet_rules f;
    int64_t to = 0;

    if (call->n > 0 && (!weir__count_parse(call->words[0], strlen(call->words[0]), &to) || to < 1))
        return weir__command_wrong(call->self, "a version is a number from 1 on");
    int code = weir__fleet_rules_open(&f, call->self->name, &o->common);
    if (code == WEIR__GO_ON)
        code = roll_back(&f, call, to);
    weir__fleet_rules_close(&f);
    return code;
}

const struct weir__command weir__cmd_fleet_rollback = {
    .name = "fleet rollback",
    .summary = "bring an older version of the rules back to all nodes",
    .arguments = "[VERSION] [--note TEXT] [--redis URL]",
    .help =
        "Makes a new version with the text of an older one, for all nodes at once, and says which "
        "it is. By default that is the one before the newest; again, it goes further back: "
        "versions that were rolled back are passed over, and so are those with the same text. "
        "Back from a version on one node alone (--stage) is what all others run.\n"
        "\n" WEIR__REDIS_URL_HELP "\n"
        "\n"
        "Exit codes: 0 done, 1 no such version, none before, or somebody else was faster, 2 wrong "
        "use or no Redis.",
    WEIR__COMMAND_OPTIONS(note_rows, .common = { 0 }),
    .words_max = 1,
    .run = run_rollback,
};

/* ----------------------------------------------------------------- nodes ---- */

static void show_member(const struct weir__node_report *r)
{
    if (r->part < 0)
        printf(", AWAY");
    else
        printf(", part %.1f %% (weight %" PRId64 ")", (double)r->part / 10000, r->weight);
    if (r->shares_name)
        printf(", TWO HOSTS have this name");
}

static void show_report(const struct weir__node_report *r, int64_t now)
{
    char age[WEIR__DURATION];

    weir__human_duration(age, weir__node_report_age(r, now));
    put_text(r->node);
    if (r->time_us > 0)
        printf("  version %" PRId64 ", heard %s ago", r->runs, age);
    else
        printf("  rules of its own");
    show_member(r);
    if (r->refused) {
        printf(", REFUSED %" PRId64 ": ", r->refused);
        put_text(r->why);
    }
    putchar('\n');
}

static int run_nodes(const struct weir__call *call)
{
    const struct options *o = call->options;
    struct weir__fleet_rules f;
    struct weir__buffer json = { 0 };
    struct weir__versions_list list;
    struct weir__node_report r;
    bool wrong = false;
    int code = weir__fleet_rules_open(&f, call->self->name, &o->common);

    if (code == WEIR__GO_ON)
        code = ask(&f, "nodes", &list);
    if (code == WEIR__GO_ON) {
        int64_t now = weir__versions_number(&list);
        weir__buffer_open(&json, NULL, '[');
        wrong = list.left == 0;
        if (wrong && !o->common.json)
            printf("the fleet '%s' has no nodes\n", (const char *)f.fleet.bytes);
        while (weir__node_report_next(&list, &r)) {
            if (o->common.json)
                weir__fleet_report_json(&json, &r, now);
            else
                show_report(&r, now);
            wrong =
                wrong || r.shares_name || (r.refused > 0 && !weir__node_report_is_silent(&r, now));
        }
        weir__buffer_close(&json, "]\n");
        code = weir__buffer_print(&json, o->common.json ? stdout : NULL);
        code = code == WEIR__EXIT_OK && wrong ? WEIR__EXIT_NO : code;
    }
    weir__fleet_rules_close(&f);
    return code;
}

const struct weir__command weir__cmd_fleet_nodes = {
    .name = "fleet nodes",
    .summary = "show the nodes of a fleet, their parts, and which version of the rules each runs",
    .arguments = "[--fleet NAME] [--redis URL]",
    .help =
        "One line for each member of the fleet, and for each node that has reported within a "
        "day: the version it runs (a node with --rules has rules of its own), when it reported "
        "that, its part of every limit while Redis is away, and if it refused a version, which "
        "one and why. AWAY: it is not a member now. TWO HOSTS have this name: they are one member, "
        "and both use its part; give each a --fleet-node of its own.\n"
        "\n" WEIR__REDIS_URL_HELP "\n"
        "\n"
        "Exit codes: 0 done, 1 there are none, a node refuses a version or two have one name, 2 "
        "wrong use or no Redis.",
    WEIR__COMMAND_OPTIONS(rows, .common = { 0 }),
    .run = run_nodes,
};

/* ---------------------------------------------------------------- status ---- */

static void show_versions(const struct weir_fleet_status *d)
{
    printf("rules version %" PRId64, d->all);
    if (d->stage[0]) {
        printf(" (%" PRId64 " on ", d->newest);
        weir__safe_text(stdout, WEIR__SAFE_TERMINAL, d->stage);
        printf(")");
    }
    printf(": %" PRId64 " of %" PRId64 " nodes run it", d->current, d->nodes);
    if (d->refused)
        printf(", %" PRId64 " REFUSED one", d->refused);
    if (d->silent)
        printf("; %" PRId64 " silent", d->silent);
}

/* Most likely the name of another fleet was meant. */
static bool is_nobody(const struct weir_fleet_status *d)
{
    return d->newest == 0 && d->nodes + d->own + d->silent == 0;
}

static void show_status(const struct weir__fleet_rules *f, const struct weir_fleet_status *d)
{
    char own[WEIR__HUMAN];

    if (d->newest > 0)
        show_versions(d);
    else
        weir__fleet_rules_say_why_none(stdout, f, d);
    if (is_nobody(d))
        printf(", and no nodes");
    if (d->own > 0)
        printf("; %s %s rules of %s own (--rules)", weir__human_counted(own, d->own, "node"),
               d->own == 1 ? "has" : "have", d->own == 1 ? "its" : "their");
    if (d->shared_names > 0)
        printf("; TWO HOSTS have one name: weir fleet nodes");
    putchar('\n');
    if (d->own > 0 && d->own + d->nodes > 1)
        puts("rules across: fleet share limits and bans by name: give each service a --fleet-name "
             "of its own");
}

static int run_status(const struct weir__call *call)
{
    const struct options *o = call->options;
    struct weir__fleet_rules f;
    struct weir__buffer json = { 0 };
    struct weir_fleet_status status;
    int code = weir__fleet_rules_open(&f, call->self->name, &o->common);

    if (code == WEIR__GO_ON)
        code = weir__fleet_rules_status(&f, &status);
    if (code == WEIR__GO_ON) {
        weir__buffer_open(&json, NULL, '{');
        if (o->common.json)
            weir__fleet_status_json(&json, &status);
        else
            show_status(&f, &status);
        weir__buffer_close(&json, "}\n");
        code = weir__buffer_print(&json, o->common.json ? stdout : NULL);
        code = code == WEIR__EXIT_OK && (status.current < status.nodes || status.shared_names > 0 ||
                                         is_nobody(&status))
                   ? WEIR__EXIT_NO
                   : code;
    }
    weir__fleet_rules_close(&f);
    return code;
}

const struct weir__command weir__cmd_fleet_status = {
    .name = "fleet status",
    .summary = "show which rules a fleet has, and whether all nodes run them",
    .arguments = "[--fleet NAME] [--redis URL]",
    .help =
        "The version of the rules, a newer one that one node tries first, and how many of the "
        "nodes that follow them run the version meant for them. Nodes that have not reported "
        "for 10 s are silent. Nodes with rules of their own (--rules) follow none, but share "
        "the limits and bans of rules across the fleet with all others by the rule's name: "
        "each service needs a fleet of its own (--fleet-name) or names of its own.\n"
        "\n" WEIR__REDIS_URL_HELP "\n"
        "\n"
        "Exit codes: 0 all do, 1 some do not, two have one name, or there are neither rules nor "
        "nodes, 2 wrong use or no Redis.",
    WEIR__COMMAND_OPTIONS(rows, .common = { 0 }),
    .run = run_status,
};
