/* run.c -- `weir run`: runs a command under a guard.
 *
 * Enters, runs the command, and exits with its outcome.  The permit is renewed while the command
 * runs.  It belongs to this process (a table) or to its connection (a server), so it comes back if
 * this process is killed; the command then ends too, by SIGTERM.  A server may restart meanwhile.
 */
#include <string.h>

#include "weir-queue.h"
#include "base/base.h"
#include "server/base/complain.h"
#include "server/base/human-numbers.h"
#include "server/base/table-file.h"
#include "server/cli/ask-server.h"
#include "server/cli/run-while-held.h"

#define WAIT_ONCE (20 * WEIR_SECOND)
#define PAUSE_MIN (20 * WEIR_MILLISECOND) /* between two tries */
#define PAUSE_MAX (250 * WEIR_MILLISECOND)

struct options {
    struct weir__ask_server_options remote;
    const char *guard, *user, *table;
    weir_time wait;
    bool quiet;
};

static const struct weir__option rows[] = {
    WEIR__TEXT("guard", 'g', guard, "NAME", "the guard to enter"),
    WEIR__TEXT("user", 'u', user, "KEY", "whose permits these are, at a guard by key"),
    WEIR__VALUE("wait", 'w', TIME, wait, "TIME", "wait for a permit, at most this long (0s)"),
    WEIR__TEXT("table", 't', table, "FILE", "an existing table file; default a running server"),
    WEIR__SWITCH("quiet", 'q', quiet, "do not say why it was refused"),
    { 0 },
};

/* The permit, wherever it is from. */
struct held {
    struct weir__keeper keeper; /* first: see held_of */
    const struct options *options;
    struct weir__ask_server *server;
    struct weir_table *table;
    struct weir_guard *guard;
    struct weir_permit permit;
    char token[1024];
};

static struct held *held_of(struct weir__keeper *keeper)
{
    return (struct held *)keeper;
}

/* A command that somebody has stopped, or that could not be run, says nothing about the work. */
static enum weir_outcome outcome_of(const struct weir__keeper *k)
{
    int code = k->code;

    return !k->has_run                                                   ? WEIR_IGNORED
           : code == 0                                                   ? WEIR_SUCCEEDED
           : k->was_stopped && code > WEIR__RUN_KILLED                   ? WEIR_IGNORED
           : code == WEIR__RUN_CANNOT_RUN || code == WEIR__RUN_NOT_FOUND ? WEIR_IGNORED
           : code == WEIR__RUN_TIMED_OUT                                 ? WEIR_TIMED_OUT
                                                                         : WEIR_FAILED;
}

/* ---------------------------------------------------------------- a table ---- */

static bool renew_in_table(struct weir__keeper *keeper)
{
    struct held *held = held_of(keeper);

    if (weir_permit_renew(held->guard, &held->permit, weir_table_now(held->table)))
        return true;
    keeper->until = 0;
    return false;
}

static struct weir_ask ask_in_table(const struct options *o)
{
    return (struct weir_ask){ .key = { o->user, o->user ? strlen(o->user) : 0 }, .cost = 1 };
}

static bool enter_again_in_table(struct weir__keeper *keeper)
{
    struct held *held = held_of(keeper);
    struct weir_ask ask = ask_in_table(held->options);
    struct weir_decision d;

    ask.now = weir_table_now(held->table);
    return weir_enter(held->guard, &ask, &held->permit, &d);
}

static bool exit_in_table(struct weir__keeper *keeper)
{
    struct held *held = held_of(keeper);

    weir_exit(held->guard, &held->permit, outcome_of(keeper), weir_table_now(held->table));
    return true;
}

static int refused(const struct options *o, const char *reason, weir_time retry)
{
    char text[WEIR__DURATION];

    if (o->quiet)
        return WEIR__RUN_REFUSED;
    if (retry == WEIR_NEVER || retry < 0)
        weir__complain("run", "refused by guard %s: %s", o->guard, reason);
    else
        weir__complain("run", "refused by guard %s: %s; try again in %s", o->guard, reason,
                       (weir__human_duration(text, retry), text));
    return WEIR__RUN_REFUSED;
}

static weir_time time_left(const struct options *o, weir_time begun)
{
    weir_time left = o->wait - (weir__clock_monotonic() - begun);

    return left < 0 ? 0 : left;
}

/* Other work ends these refusals, and time that of a breaker.  A guard may have no queue, or one
 * that waits for less time than ours, so the rest of the time goes by in tries.  False: it is over,
 * or waiting does not help. */
static bool try_again(const struct options *o, weir_time begun, enum weir_reason reason,
                      weir_time retry)
{
    weir_time left = time_left(o, begun);
    bool tried = reason == WEIR_OPEN && retry >= 0 && retry <= left;
    bool passes = tried || reason == WEIR_BUSY || reason == WEIR_KEY_BUSY ||
                  reason == WEIR_LIMITED || reason == WEIR_FULL || reason == WEIR_LATE;
    weir_time pause = retry < PAUSE_MIN ? PAUSE_MIN : retry > PAUSE_MAX ? PAUSE_MAX : retry;

    if (!passes || left <= 0)
        return false;
    weir__clock_sleep(pause < left ? pause : left);
    return true;
}

static bool enter_in_table(const struct options *o, struct held *held, struct weir_queue *queue,
                           struct weir_decision *d)
{
    struct weir_ask ask = ask_in_table(o);
    weir_time begun = weir__clock_monotonic();

    do {
        ask.wait_max = time_left(o, begun);
        if (weir_enter_wait(held->guard, queue, &ask, NULL, &held->permit, d))
            return true;
    } while (try_again(o, begun, d->reason, d->retry));
    return false;
}

static int run_in_table(const struct weir__call *call, struct weir_table *table)
{
    const struct options *o = call->options;
    struct weir_guard_info info;
    struct weir_queue *queue;
    struct weir_decision d;
    struct weir_error error = { 0 };
    struct held held = { .options = o,
                         .table = table,
                         .guard = weir_guard_find(table, o->guard),
                         .keeper = { .command = "run",
                                     .thing = "permit",
                                     .renew = renew_in_table,
                                     .enter = enter_again_in_table,
                                     .exit = exit_in_table } };

    if (held.guard == NULL) {
        weir__table_no_guard("run", table, o->guard);
        return WEIR__RUN_FAILED;
    }
    if (weir_queue_create(&queue, &(struct weir_queue_options){ .max = 1 }, &error) != WEIR_OK) {
        weir__complain("run", "%s", error.text);
        return WEIR__RUN_FAILED;
    }
    bool entered = enter_in_table(o, &held, queue, &d);
    weir_queue_destroy(queue);
    if (!entered)
        return refused(o, weir_reason_name(d.reason), d.retry);
    weir_guard_get(held.guard, weir_table_now(table), &info);
    held.keeper.lease = info.options.lease;
    return weir__keeper_run(&held.keeper, call->words);
}

static int use_table(const struct weir__call *call)
{
    const struct options *o = call->options;
    struct weir_table *table;
    struct weir_error error = { 0 };

    if (weir__table_attach("run", &table, o->table, &error) != WEIR_OK) {
        weir__complain("run", "--table: %s", error.text);
        return WEIR__RUN_FAILED;
    }
    int code = run_in_table(call, table);
    weir_table_destroy(table);
    return code;
}

/* --------------------------------------------------------------- a server ---- */

static weir_time retry_of(const struct weir__document *d)
{
    int64_t ms = weir__document_number(d, -1, "retry_ms");

    return ms < 0 ? -1 : ms * WEIR_MILLISECOND;
}

/* WEIR_GRANTED: one that this program does not know. */
static enum weir_reason reason_of(const struct weir__document *d)
{
    const char *name = weir__document_text(d, "reason");
    enum weir_reason reason = WEIR_DRY; /* the last */

    while (reason > WEIR_GRANTED && (!name || strcmp(name, weir_reason_name(reason)) != 0))
        reason--;
    return reason;
}

/* A server that is silent for long counts as gone, so a long wait is made of shorter ones. */
static bool enter_at_server(const struct options *o, struct weir__ask_server *r)
{
    weir_time begun = weir__clock_monotonic();

    do {
        weir_time left = time_left(o, begun), wait = left < WAIT_ONCE ? left : WAIT_ONCE;
        weir__buffer_member(weir__ask_server_body(r), "guard", o->guard);
        weir__buffer_member_bool(&r->body, "bound", true);
        if (o->user)
            weir__buffer_member(&r->body, "user", o->user);
        if (wait > 0)
            weir__buffer_member_number(&r->body, "wait_ms", weir__in_unit(wait, WEIR_MILLISECOND));
        if (!weir__ask_server_call(r, "POST /v1/enter"))
            return false;
        if (!weir__document_find(&r->document, "allowed")) {
            weir__ask_server_complain(r);
            return false;
        }
    } while (!weir__document_true(&r->document, "allowed") &&
             try_again(o, begun, reason_of(&r->document), retry_of(&r->document)));
    return true;
}

/* False: the answer has no permit. */
static bool take_token(struct held *held)
{
    const char *token = weir__document_text(&held->server->document, "permit");

    if (token == NULL || !*token || strlen(token) >= sizeof(held->token))
        return false;
    strcpy(held->token, token);
    return true;
}

static bool renew_at_server(struct weir__keeper *keeper)
{
    struct held *held = held_of(keeper);
    struct weir__ask_server *r = held->server;

    weir__buffer_member(weir__ask_server_body(r), "permit", held->token);
    if (!weir__ask_server_call(r, "POST /v1/renew"))
        return false;
    if (take_token(held))
        return true;
    if (r->status == 200 || r->status == 400) /* it has none, or is another server */
        keeper->until = 0;
    return false;
}

static bool enter_again_at_server(struct weir__keeper *keeper)
{
    struct held *held = held_of(keeper);
    struct options at_once = *held->options;

    at_once.wait = 0;
    return enter_at_server(&at_once, held->server) &&
           weir__document_true(&held->server->document, "allowed") && take_token(held);
}

/* A server that drains answers 503. */
static bool exit_at_server(struct weir__keeper *keeper)
{
    struct held *held = held_of(keeper);
    struct weir__ask_server *r = held->server;

    weir__buffer_member(weir__ask_server_body(r), "permit", held->token);
    weir__buffer_member(&r->body, "outcome", weir_outcome_name(outcome_of(keeper)));
    return weir__ask_server_call(r, "POST /v1/exit") && r->status != 503;
}

static int ask(const struct weir__call *call, struct weir__ask_server *r)
{
    const struct options *o = call->options;
    const struct weir__document *d = &r->document;
    struct held held = { .options = o,
                         .server = r,
                         .keeper = { .command = "run",
                                     .thing = "permit",
                                     .enter = enter_again_at_server,
                                     .exit = exit_at_server } };

    if (!enter_at_server(o, r))
        return WEIR__RUN_FAILED;
    const char *reason = weir__document_text(d, "reason");
    if (!weir__document_true(d, "allowed"))
        return refused(o, reason ? reason : "?", retry_of(d));
    held.keeper.lease = weir__document_number(d, 60000, "lease_ms") * WEIR_MILLISECOND;
    if (take_token(&held)) /* otherwise the guard is off */
        held.keeper.renew = renew_at_server;
    r->silent = true; /* the end of the lease decides */
    return weir__keeper_run(&held.keeper, call->words);
}

static int run(const struct weir__call *call)
{
    const struct options *o = call->options;

    if (o->guard == NULL)
        return weir__command_wrong(call->self, "which guard? write --guard NAME");
    if (o->table && o->remote.server)
        return weir__command_wrong(call->self, "--table or --server, not both");
    return o->table ? use_table(call) : WEIR__GO_ON;
}

const struct weir__command weir__cmd_run = {
    .name = "run",
    .summary = "run a command under a guard",
    .arguments =
        "--guard NAME [--user KEY] [--wait TIME] [--server ADDRESS | --table FILE] -- COMMAND...",
    .help =
        "Enters the guard, runs the command, and exits with its outcome: 0 is a success, 124 a "
        "time-out (as timeout says), anything else an error. Signals are passed on. If this "
        "process is killed, the permit comes back within a second, and the command gets SIGTERM.\n"
        "\n"
        "  weir run --guard database --wait 2s -- pg_dump shop\n"
        "  weir run --guard per-account --user ann -- ./export ann\n"
        "  weir run --table /dev/shm/jobs --guard nightly -- timeout 1h ./report\n"
        "\n"
        "--wait waits at every guard: in its queue if it has one, otherwise by asking again, and "
        "until an open breaker is tried again.\n"
        "\n"
        "Guards are written in a rule file. One without `match` is entered by every request too; "
        "this one only by name, as no request has the attribute `job`:\n"
        "\n"
        "  guards:\n"
        "    - { name: nightly, match: { job: nightly }, concurrency: 1 }\n"
        "\n"
        "weir serve --rules jobs.yaml --table /dev/shm/jobs makes a table with the guards of its "
        "rules. They stay in it when the server ends.\n"
        "\n"
        "Exit codes: 0 and others are the command's, or 128 and the signal that ended it; 75 "
        "refused, 125 no server or no such guard, 126 the command cannot be run, 127 it is not "
        "found, 2 wrong use.",
    WEIR__COMMAND_OPTIONS(rows, .wait = 0),
    .shared = weir__ask_server_rows + 2, /* without --json and --timeout: the output is the
                                            command's, and a wait is as long as it is */
    .runs_words = true,
    .words_min = 1,
    .words_max = WEIR__ANY_WORDS,
    .run = run,
    .ask = ask,
    .no_server = WEIR__RUN_FAILED,
};
