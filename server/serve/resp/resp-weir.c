/* resp-weir.c -- Weir's own commands over RESP: asks by a limit of one's own, the operator's
 * commands, the clock of tests. */

#include "server/serve/admin/admin-errand.h"
#include "server/serve/decide/ask.h"
#include "server/serve/resp/resp.h"
#include "server/base/text.h"

static struct weir__span span(struct weir__resp_arg arg)
{
    return (struct weir__span){ arg.bytes, arg.len };
}

/* ----------------------------------------------- asks by a limit of one's own ---- */

struct asked {
    struct weir__adhoc_ask ask;
    weir_time unit; /* of all times in this command and its reply: a millisecond, or a nanosecond */
};

/* The words behind key and limit, in pairs, but for NS.  NULL, or what is wrong. */
static const char *read_words(const struct weir__resp_call *call, struct asked *a)
{
    int64_t wait = 0, lifetime = -1;
    for (size_t i = 3; i < call->n; i++) {
        struct weir__resp_arg word = call->args[i];
        bool more = i + 1 < call->n;
        if (weir__resp_is(word, "NS")) {
            a->unit = 1;
        } else if (weir__resp_is(word, "COST") && more) {
            if (!weir__resp_int(call->args[++i], &a->ask.cost) || a->ask.cost < 0)
                return "COST must be a whole number from 0 up";
        } else if (weir__resp_is(word, "WAIT") && more) {
            if (weir__resp_is(call->args[++i], "FOREVER"))
                wait = INT64_MAX;
            else if (!weir__resp_int(call->args[i], &wait) || wait < 0)
                return "WAIT must be a whole number from 0 up, or FOREVER";
        } else if (weir__resp_is(word, "LIFETIME") && more) {
            if (!weir__resp_int(call->args[++i], &lifetime) || lifetime < 1)
                return "LIFETIME must be a whole number from 1 up";
        } else if (weir__resp_is(word, "NAME") && more) {
            a->ask.name = span(call->args[++i]);
        } else {
            return "there are COST n, WAIT time, LIFETIME time, NAME name and NS";
        }
    }
    if (__builtin_mul_overflow(wait, a->unit, &a->ask.wait_max))
        a->ask.wait_max = WEIR_FOREVER;
    if (lifetime > 0 && __builtin_mul_overflow(lifetime, a->unit, &a->ask.lifetime))
        a->ask.lifetime = WEIR_FOREVER;
    return NULL;
}

static void reply_answer(struct weir__conn *conn, const struct asked *a,
                         const struct weir__adhoc_answer *answer)
{
    const struct weir_decision *d = &answer->decision;
    bool reserved = a->ask.verb == WEIR__RESERVE;
    weir__reply_header(conn, '*', reserved ? 7 : 6);
    weir__reply_integer(conn, d->allowed);
    weir__reply_integer(conn, d->limit);
    weir__reply_integer(conn, d->remaining);
    weir__reply_integer(conn, d->allowed ? -1 : weir__in_unit(d->retry, a->unit));
    weir__reply_integer(conn, weir__in_unit(d->reset, a->unit));
    weir__reply_integer(conn, weir__in_unit(d->wait, a->unit));
    if (reserved)
        weir__reply_text(conn, d->allowed ? answer->reservation : NULL);
}

static void run_ask(struct weir__resp_call *call, enum weir__ask_verb verb)
{
    struct asked a = { .ask = { .verb = verb,
                                .key = span(call->args[1]),
                                .limit = span(call->args[2]),
                                .cost = 1 },
                       .unit = WEIR_MILLISECOND };
    struct weir__adhoc_answer answer = { 0 };
    struct weir_error error = { 0 };
    const char *wrong = read_words(call, &a);
    if (!wrong && weir__ask_adhoc(call->conn->loop, &a.ask, &answer, &error) != WEIR_OK)
        wrong = error.text;
    if (wrong)
        weir__reply_error(call->conn, "ERR %s", wrong);
    else if (verb == WEIR__GIVE)
        weir__reply_simple(call->conn, "OK");
    else
        reply_answer(call->conn, &a, &answer);
}

void weir__resp_take(struct weir__resp_call *call)
{
    run_ask(call, WEIR__TAKE);
}

void weir__resp_peek(struct weir__resp_call *call)
{
    run_ask(call, WEIR__PEEK);
}

void weir__resp_give(struct weir__resp_call *call)
{
    run_ask(call, WEIR__GIVE);
}

void weir__resp_reserve(struct weir__resp_call *call)
{
    run_ask(call, WEIR__RESERVE);
}

void weir__resp_settle(struct weir__resp_call *call)
{
    int64_t cost;
    if (!weir__resp_int(call->args[2], &cost) || cost < 0)
        weir__reply_error(call->conn, "ERR the cost must be a whole number from 0 up");
    else
        weir__reply_integer(call->conn,
                            weir__ask_settle(call->conn->loop, span(call->args[1]), cost));
}

/* WEIR.FORGET key limit [NAME name] */
void weir__resp_forget(struct weir__resp_call *call)
{
    struct weir_error error = { 0 };
    struct weir__span name = { 0 };
    bool found = false;
    if (call->n == 5 && weir__resp_is(call->args[3], "NAME"))
        name = span(call->args[4]);
    else if (call->n != 3) {
        weir__reply_wrong_number(call);
        return;
    }
    if (weir__ask_forget(call->conn->loop, span(call->args[1]), span(call->args[2]), name, &found,
                         &error) != WEIR_OK)
        weir__reply_error(call->conn, "ERR %s", error.text);
    else
        weir__reply_integer(call->conn, found);
}

/* DEL key ...: as users of redis-cell reset a key. */
void weir__resp_del(struct weir__resp_call *call)
{
    int64_t n = 0;
    for (size_t i = 1; i < call->n; i++) {
        bool found = false;
        weir__ask_forget(call->conn->loop, span(call->args[i]), (struct weir__span){ 0 },
                         (struct weir__span){ 0 }, &found, NULL);
        n += found;
    }
    weir__reply_integer(call->conn, n);
}

/* WEIR.CLOCK [ns] */
void weir__resp_clock(struct weir__resp_call *call)
{
    struct weir__loop *loop = call->conn->loop;
    struct weir__server *server = loop->server;
    int64_t now;
    if (call->n == 1) {
        weir__reply_integer(call->conn, weir__loop_now(loop));
    } else if (!server->test_clock) {
        weir__reply_error(
            call->conn,
            "ERR the clock can only be set if the server was started with --test-clock");
    } else if (call->n > 2 || !weir__resp_int(call->args[1], &now) || now < 0) {
        weir__reply_error(call->conn, "ERR the time is a whole number of nanoseconds from 0 up");
    } else {
        weir__server_set_clock(server, now);
        loop->now_is_old = true;
        weir__reply_simple(call->conn, "OK");
    }
}

/* ------------------------------------------------ the operator's commands ---- */

/* Copies the arguments to where the row wants them.  NULL, or what is wrong with their number. */
static const char *place(struct weir__admin_errand *e, const struct weir__resp_call *call,
                         bool *kept)
{
    const struct weir__admin *row = e->row;
    size_t at = 1;
    *kept = true;
    for (size_t i = 0; row->params[i].name; i++) {
        if (at < call->n)
            *kept &= weir__admin_errand_value(e, i, span(call->args[at++])) != NULL;
        else if (!row->params[i].optional)
            return row->params[i].name;
    }
    if (row->rest == WEIR__REST_NONE && at < call->n)
        return "no more arguments";
    if (row->rest == WEIR__REST_ATTRIBUTES && (call->n - at) % 2)
        return "attributes in pairs: name value [name value ...]";
    for (; at < call->n; at++)
        *kept &= weir__admin_errand_rest(e, span(call->args[at])) != NULL;
    return NULL;
}

static void reply_document(struct weir__conn *conn, const struct weir__admin_call *call)
{
    if (call->status / 100 != 2)
        weir__reply_error(conn, "ERR %s", call->message);
    else if (call->out->failed)
        weir__reply_error(conn, "ERR no memory");
    else
        weir__reply_bulk(conn, call->out->bytes ? call->out->bytes : "", call->out->len);
}

static void work(void *context)
{
    weir__admin_errand_run(context);
}

static void done(struct weir__conn *conn, void *context)
{
    struct weir__admin_errand *e = context;
    if (conn) {
        reply_document(conn, &e->call);
        weir__conn_send_out(conn);
    }
    weir__admin_errand_destroy(e);
}

void weir__resp_admin(struct weir__resp_call *call)
{
    struct weir__loop *loop = call->conn->loop;
    const struct weir__admin *row = weir__admin_by_command(call->args[0].bytes, call->args[0].len);
    struct weir__admin_errand *e =
        weir__admin_errand_create(row, loop->server, weir__loop_now(loop));
    bool kept = false;
    const char *missing = e ? place(e, call, &kept) : NULL;
    if (!missing && kept && weir__conn_offload(call->conn, work, done, e) == WEIR_OK)
        return;
    if (missing)
        weir__reply_error(
            call->conn,
            "ERR wrong number of arguments for '%s' command: it wants %s; see WEIR.HELP %s",
            row->command, missing, row->command);
    else
        weir__reply_error(
            call->conn, "ERR too many commands of this kind are under way; try again in a moment");
    weir__admin_errand_destroy(e);
}
