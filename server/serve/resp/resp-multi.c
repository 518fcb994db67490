/* resp-multi.c -- MULTI, EXEC, DISCARD: commands that are kept and run together.
 *
 * EXEC has its turns like all else.  Until all is done it stays the next command, and nothing else
 * of its connection comes between; other clients' commands may.
 */
#include "server/serve/resp/resp.h"

#define QUEUE_MAX (64 * 1024) /* bytes of commands between MULTI and EXEC */

static bool is_multi_word(struct weir__text name)
{
    return weir__resp_is(name, "EXEC") || weir__resp_is(name, "DISCARD") ||
           weir__resp_is(name, "MULTI") || weir__resp_is(name, "QUIT") ||
           weir__resp_is(name, "RESET");
}

bool weir__resp_is_queueing(const struct weir__resp_call *call)
{
    const struct weir__resp_session *s = call->conn->session;

    return s && s->multi && !is_multi_word(call->args[0]);
}

void weir__resp_queue(struct weir__resp_call *call, bool good, const char *bytes, size_t len)
{
    struct weir__conn *conn = call->conn;
    struct weir__resp_session *s = conn->session;
    enum weir__verb_how how = good ? call->verb->how : WEIR__VERB_NOW;

    if (how == WEIR__VERB_AWAY || how == WEIR__VERB_WAITS || how == WEIR__VERB_MANY) {
        /* It may take long, or answers often: EXEC answers all at once, in one list. */
        weir__reply_error(conn, "ERR %s cannot be run between MULTI and EXEC", call->verb->command);
        good = false;
    }
    /* All or nothing: a wrong number of arguments must show now, not when half of it is done. */
    if (good && how == WEIR__VERB_NOW &&
        !weir__resp_has_arity(weir__verb_arity(call->verb), call->n))
        good = weir__resp_say_usage(call);
    if (!good) {
        s->multi_failed = true;
        return;
    }
    if (s->queue.len + len > QUEUE_MAX) {
        weir__reply_error(conn, "ERR commands between MULTI and EXEC may have %d KiB",
                          QUEUE_MAX / 1024);
        s->multi_failed = true;
        return;
    }
    weir__buffer_add(&s->queue, bytes, len);
    s->queued++;
    weir__reply_simple(conn, "QUEUED");
}

void weir__resp_multi(struct weir__resp_call *call)
{
    struct weir__resp_session *s = weir__resp_session(call->conn);

    if (!s || s->multi) {
        weir__reply_error(call->conn,
                          "ERR this MULTI is inside another, which EXEC or DISCARD would end");
        return;
    }
    s->multi = true;
    s->multi_failed = false;
    s->queued = 0;
    weir__reply_simple(call->conn, "OK");
}

static void end_multi(struct weir__resp_session *s)
{
    s->multi = s->multi_failed = s->executing = false;
    s->queued = s->executed = 0;
    weir__buffer_free(&s->queue);
}

void weir__resp_discard(struct weir__resp_call *call)
{
    struct weir__resp_session *s = call->conn->session;

    if (!s || !s->multi) {
        weir__reply_error(call->conn, "ERR there is nothing to DISCARD: there was no MULTI");
        return;
    }
    end_multi(s);
    weir__reply_simple(call->conn, "OK");
}

static void run_kept(struct weir__resp_call *call)
{
    if (!call->conn->ending) {
        weir__resp_run(call);
        return;
    }
    weir__resp_flush(call->conn);
    weir__reply_error(call->conn, "ERR not run: this connection ends");
}

/* Answers the kept commands, one after the other, as far as the turn goes.  True: all of them. */
static bool run_queue(struct weir__conn *conn, struct weir__resp_session *s)
{
    struct weir__text args[WEIR__RESP_ARGS];
    const struct weir__resp_limits limits = { WEIR__RESP_ARGS, s->queue.len };
    struct weir__resp_call call = { .conn = conn, .args = args };
    const char *what;
    ptrdiff_t used = 1;
    bool over = false;

    while (s->executed < s->queue.len && used > 0 && !over) {
        used = weir__resp_command(s->queue.bytes + s->executed, s->queue.len - s->executed, &limits,
                                  args, &call.n, &what);
        if (used > 0 && call.n)
            run_kept(&call);
        s->executed += used > 0 ? (size_t)used : 0;
        over = !conn->ending && weir__turn_is_over(conn);
    }
    weir__resp_flush(conn);
    return used <= 0 || s->executed == s->queue.len;
}

void weir__resp_exec(struct weir__resp_call *call)
{
    struct weir__resp_session *s = call->conn->session;

    if (!s || !s->multi) {
        weir__reply_error(call->conn, "ERR there is nothing to EXEC: there was no MULTI");
        return;
    }
    if (s->multi_failed || s->queue.failed) {
        end_multi(s);
        weir__reply_error(call->conn,
                          "EXECABORT nothing was run: a command since MULTI was refused");
        return;
    }
    if (!s->executing)
        weir__reply_header(call->conn, '*', (int64_t)s->queued);
    s->executing = true;
    call->put_off = !run_queue(call->conn, s);
    if (!call->put_off)
        end_multi(s);
}

void weir__resp_watch(struct weir__resp_call *call)
{
    weir__reply_simple(call->conn, "OK");
}
