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
#include "server/cli/fleet-document.h"
#include "wire/decimal.h"

struct options {
    struct weir__shared_options common;
    const char *note;
};

static const struct weir__option rows[] = {
    WEIR__SHARED_ROWS(struct options),
    { 0 },
};
static const struct weir__option note_rows[] = {
    WEIR__SHARED_ROWS(struct options),
    WEIR__TEXT("note", 'n', note, "TEXT", "why, for the history"),
    { 0 },
};

/* From the first word of a reply's list to its last. */
struct walk {
    const char *at;
    size_t left;
};

static int64_t next_number(struct walk *w)
{
    struct weir__resp_value v = { 0 };

    if (w->left > 0) {
        w->left--;
        w->at = weir__resp_value(w->at, &v);
    }
    return v.kind == ':' ? v.integer : 0;
}

static struct weir__text next_text(struct walk *w)
{
    struct weir__resp_value v = { 0 };

    if (w->left > 0) {
        w->left--;
        w->at = weir__resp_value(w->at, &v);
    }
    return v.kind == '$' ? v.text : (struct weir__text){ "", 0 };
}

static int ask(struct weir__shared *f, const char *verb, struct walk *out)
{
    struct weir__text word = { verb, strlen(verb) };
    struct weir__resp_value head;
    int code = weir__shared_ask(f, &word, 1, &head, &out->at);

    out->left = code == WEIR__GO_ON ? head.n : 0;
    return code;
}

static void put_text(struct weir__text text)
{
    weir__safe_put(stdout, WEIR__SAFE_TERMINAL, text.bytes, text.len);
}

static void member_text(struct weir__buffer *json, const char *name, struct weir__text text)
{
    char copy[256];

    snprintf(copy, sizeof(copy), "%.*s", (int)(text.len < 255 ? text.len : 255), text.bytes);
    weir__buffer_member(json, name, copy);
}

/* --------------------------------------------------------------- history ---- */

static void show_version(struct walk *w, int64_t all, struct weir__buffer *json)
{
    int64_t version = next_number(w), time = next_number(w), origin = next_number(w);
    struct weir__text author = next_text(w), note = next_text(w);
    int64_t bytes = next_number(w);
    char when[WEIR__HUMAN];

    if (json) {
        weir__buffer_open(json, NULL, '{');
        weir__buffer_member_number(json, "version", version);
        weir__buffer_member_number(json, "time_us", time);
        weir__buffer_member_number(json, "origin", origin);
        member_text(json, "author", author);
        member_text(json, "note", note);
        weir__buffer_member_number(json, "bytes", bytes);
        weir__buffer_close(json, "}");
        return;
    }
    printf("%5" PRId64 "  %s  %7" PRId64 " bytes  ", version,
           weir__human_time(when, time * WEIR_MICROSECOND, false), bytes);
    put_text(author);
    if (origin)
        printf("  (as version %" PRId64 ")", origin);
    if (note.len > 0) {
        printf("  ");
        put_text(note);
    }
    printf("%s\n", version == all ? "  <- all nodes" : "");
}

static int run_history(const struct weir__call *call)
{
    const struct options *o = call->options;
    struct weir__shared f;
    struct weir__buffer json = { 0 };
    struct walk w;
    int code = weir__shared_open(&f, call->self->name, &o->common);

    if (code == WEIR__GO_ON)
        code = ask(&f, "list", &w);
    if (code == WEIR__GO_ON) {
        next_number(&w);
        next_text(&w);
        int64_t all = next_number(&w);
        weir__buffer_open(&json, NULL, '[');
        while (w.left >= 6)
            show_version(&w, all, o->common.json ? &json : NULL);
        weir__buffer_close(&json, "]\n");
        code = weir__buffer_print(&json, o->common.json ? stdout : NULL);
    }
    weir__shared_close(&f);
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
            "Exit codes: 0 done, 2 wrong use or no Redis.",
    WEIR__COMMAND_OPTIONS(rows, .common = { 0 }),
    .run = run_history,
};

/* -------------------------------------------------------------- rollback ---- */

static int roll_back(struct weir__shared *f, const struct weir__call *call, int64_t to)
{
    const struct options *o = call->options;
    struct weir__version newest, old;
    int code = weir__shared_get(f, 0, &newest);
    int64_t base = newest.number, made_by = newest.edit;

    if (code == WEIR__GO_ON)
        code = weir__shared_get(f, to ? to : base - 1, &old);
    if (code != WEIR__GO_ON)
        return code;
    if (old.number == 0 || base == 0) {
        weir__complain(call->self->name, "there is no such version");
        return WEIR__EXIT_NO;
    }
    char *copy = malloc(old.text.len + 1);
    if (!copy)
        return weir__complain(call->self->name, "no memory");
    memcpy(copy, old.text.bytes, old.text.len); /* the next answer takes its place */
    struct weir__edit edit = { .base = base,
                               .base_edit = made_by,
                               .origin = old.number,
                               .note = o->note,
                               .stage = "",
                               .text = { copy, old.text.len } };
    code = weir__shared_put(f, &edit);
    free(copy);
    return code;
}

static int run_rollback(const struct weir__call *call)
{
    const struct options *o = call->options;
    struct weir__shared f;
    int64_t to = 0;

    if (call->n > 0 && (!weir__count_parse(call->words[0], strlen(call->words[0]), &to) || to < 1))
        return weir__command_wrong(call->self, "a version is a number from 1 on");
    int code = weir__shared_open(&f, call->self->name, &o->common);
    if (code == WEIR__GO_ON)
        code = roll_back(&f, call, to);
    weir__shared_close(&f);
    return code;
}

const struct weir__command weir__cmd_fleet_rollback = {
    .name = "fleet rollback",
    .summary = "bring an older version of the rules back to all nodes",
    .arguments = "[VERSION] [--note TEXT] [--redis URL]",
    .help = "Makes a new version with the text of an older one, by default of the one before the "
            "newest. It is for all nodes at once.\n"
            "\n" WEIR__REDIS_URL_HELP "\n"
            "\n"
            "Exit codes: 0 done, 1 no such version or somebody else was faster, 2 wrong use or no "
            "Redis.",
    WEIR__COMMAND_OPTIONS(note_rows, .common = { 0 }),
    .words_max = 1,
    .run = run_rollback,
};

/* ----------------------------------------------------------------- nodes ---- */

/* A node that has not been heard for this long polls no more. */
#define SILENT_US 10000000

struct report {
    struct weir__text node, why;
    int64_t time; /* 0: its rules are its own, and it has never reported */
    int64_t runs, refused;
    int64_t weight, part; /* -1: it is no member now */
};

static bool is_silent(const struct report *r, int64_t now)
{
    return r->time > 0 && now - r->time > SILENT_US;
}

static bool next_report(struct walk *w, struct report *out)
{
    if (w->left < 7)
        return false;
    out->node = next_text(w);
    out->time = next_number(w);
    out->runs = next_number(w);
    out->refused = next_number(w);
    out->why = next_text(w);
    out->weight = next_number(w);
    out->part = next_number(w);
    return true;
}

static void member_known(struct weir__buffer *json, const char *name, bool known, int64_t value)
{
    if (known)
        weir__buffer_member_number(json, name, value);
    else
        weir__buffer_member_or_null(json, name, NULL);
}

static void show_member(const struct report *r)
{
    if (r->part < 0)
        printf(", AWAY");
    else
        printf(", part %.1f %% (weight %" PRId64 ")", (double)r->part / 10000, r->weight);
}

static void show_report(const struct report *r, int64_t now, struct weir__buffer *json)
{
    char age[WEIR__DURATION];

    if (json) {
        weir__buffer_open(json, NULL, '{');
        member_text(json, "node", r->node);
        member_known(json, "runs", r->time > 0, r->runs);
        weir__buffer_member_number(json, "refused", r->refused);
        member_text(json, "why", r->why);
        member_known(json, "heard_us_ago", r->time > 0, now - r->time);
        member_known(json, "part", r->part >= 0, r->part);
        member_known(json, "weight", r->part >= 0, r->weight);
        weir__buffer_close(json, "}");
        return;
    }
    weir__human_duration(age, (now - r->time) * WEIR_MICROSECOND);
    put_text(r->node);
    if (r->time > 0)
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
    struct weir__shared f;
    struct weir__buffer json = { 0 };
    struct walk w;
    struct report r;
    bool refused = false;
    int code = weir__shared_open(&f, call->self->name, &o->common);

    if (code == WEIR__GO_ON)
        code = ask(&f, "nodes", &w);
    if (code == WEIR__GO_ON) {
        int64_t now = next_number(&w);
        weir__buffer_open(&json, NULL, '[');
        if (w.left == 0 && !o->common.json)
            puts("the fleet has no nodes");
        while (next_report(&w, &r)) {
            show_report(&r, now, o->common.json ? &json : NULL);
            refused = refused || (r.refused > 0 && !is_silent(&r, now));
        }
        weir__buffer_close(&json, "]\n");
        code = weir__buffer_print(&json, o->common.json ? stdout : NULL);
        code = code == WEIR__EXIT_OK && refused ? WEIR__EXIT_NO : code;
    }
    weir__shared_close(&f);
    return code;
}

const struct weir__command weir__cmd_fleet_nodes = {
    .name = "fleet nodes",
    .summary = "show the nodes of a fleet, their parts, and which version of the rules each runs",
    .arguments = "[--fleet NAME] [--redis URL]",
    .help = "One line for each member of the fleet, and for each node that has reported within a "
            "day: the version it runs (a node with --rules has rules of its own), when it reported "
            "that, its part of every limit while Redis is away, and if it refused a version, which "
            "one and why. AWAY: it is no member now.\n"
            "\n" WEIR__REDIS_URL_HELP "\n"
            "\n"
            "Exit codes: 0 done, 1 a node refuses a version, 2 wrong use or no Redis.",
    WEIR__COMMAND_OPTIONS(rows, .common = { 0 }),
    .run = run_nodes,
};

/* ---------------------------------------------------------------- status ---- */

struct status {
    int64_t newest, all, nodes, current, refused, silent;
    char stage[80];
};

static int look(struct weir__shared *f, struct status *d)
{
    struct walk w;
    struct report r;

    *d = (struct status){ 0 };
    int code = ask(f, "list", &w);
    if (code != WEIR__GO_ON)
        return code;
    d->newest = next_number(&w);
    struct weir__text stage = next_text(&w);
    snprintf(d->stage, sizeof(d->stage), "%.*s", (int)stage.len, stage.bytes);
    d->all = next_number(&w);
    code = ask(f, "nodes", &w);
    int64_t now = next_number(&w);
    while (code == WEIR__GO_ON && next_report(&w, &r)) {
        d->silent += is_silent(&r, now);
        if (r.time == 0 || is_silent(&r, now))
            continue;
        bool staged =
            r.node.len == strlen(d->stage) && memcmp(r.node.bytes, d->stage, r.node.len) == 0;
        d->nodes++;
        d->current += r.runs == (staged ? d->newest : d->all);
        d->refused += r.refused > 0;
    }
    return code;
}

static void show_status(const struct status *d, struct weir__buffer *json)
{
    if (json) {
        weir__buffer_open(json, "rules", '{');
        weir__buffer_member_number(json, "newest", d->newest);
        weir__buffer_member_number(json, "all", d->all);
        weir__buffer_member_or_null(json, "stage", d->stage[0] ? d->stage : NULL);
        weir__buffer_member_number(json, "nodes", d->nodes);
        weir__buffer_member_number(json, "current", d->current);
        weir__buffer_member_number(json, "refused", d->refused);
        weir__buffer_member_number(json, "silent", d->silent);
        weir__buffer_close(json, "}");
        return;
    }
    if (d->newest == 0) {
        printf("the fleet has no rules yet\n");
        return;
    }
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
    putchar('\n');
}

static int run_status(const struct weir__call *call)
{
    const struct options *o = call->options;
    struct weir__shared f;
    struct weir__buffer json = { 0 };
    struct status status;
    int code = weir__shared_open(&f, call->self->name, &o->common);

    if (code == WEIR__GO_ON)
        code = look(&f, &status);
    if (code == WEIR__GO_ON) {
        weir__buffer_open(&json, NULL, '{');
        show_status(&status, o->common.json ? &json : NULL);
        weir__buffer_close(&json, "}\n");
        code = weir__buffer_print(&json, o->common.json ? stdout : NULL);
        code = code == WEIR__EXIT_OK && status.current < status.nodes ? WEIR__EXIT_NO : code;
    }
    weir__shared_close(&f);
    return code;
}

const struct weir__command weir__cmd_fleet_status = {
    .name = "fleet status",
    .summary = "show which rules a fleet has, and whether all nodes run them",
    .arguments = "[--fleet NAME] [--redis URL]",
    .help = "The version of the rules, a newer one that one node tries first, and how many of the "
            "nodes that follow them run the version meant for them. Nodes that have not reported "
            "for 10 s are silent.\n"
            "\n" WEIR__REDIS_URL_HELP "\n"
            "\n"
            "Exit codes: 0 all do, 1 some do not, 2 wrong use or no Redis.",
    WEIR__COMMAND_OPTIONS(rows, .common = { 0 }),
    .run = run_status,
};
