/* resp-multi.c -- MULTI, EXEC, DISCARD: commands that are kept and run together. */
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
    s->multi = s->multi_failed = false;
    s->queued = 0;
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

/* All answers go out in one piece, which a few bytes of COMMAND could make very large. */
static bool is_too_much(const struct weir__conn *conn, size_t begin)
{
    return conn->loop->out.len - begin > (size_t)conn->loop->server->settings->output_max;
}

/* Answers the kept commands, one after the other; clients on other threads may come between. */
static void run_queue(struct weir__conn *conn, const struct weir__buffer *queue, size_t n)
{
    struct weir__text args[WEIR__RESP_ARGS];
    const struct weir__resp_limits limits = { WEIR__RESP_ARGS, queue->len };
    struct weir__resp_call call = { .conn = conn, .args = args };
    size_t at = 0, begin = conn->loop->out.len;
    const char *what;

    weir__reply_header(conn, '*', (int64_t)n);
    while (at < queue->len && !is_too_much(conn, begin)) {
        ptrdiff_t used =
            weir__resp_command(queue->bytes + at, queue->len - at, &limits, args, &call.n, &what);
        if (used <= 0)
            break;
        at += (size_t)used;
        if (call.n)
            weir__resp_run(&call);
    }
    weir__resp_flush(conn);
    if (is_too_much(conn, begin)) {
        conn->loop->out.len = begin;
        weir__reply_error(conn, "ERR the answers are larger than output-max; only the beginning of "
                                "the transaction was run");
    }
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
    struct weir__buffer queue = s->queue;
    size_t n = s->queued;
    s->queue = (struct weir__buffer){ 0 };
    end_multi(s);
    s->executing = true;
    run_queue(call->conn, &queue, n);
    s->executing = false;
    weir__buffer_free(&queue);
}

void weir__resp_watch(struct weir__resp_call *call)
{
    weir__reply_simple(call->conn, "OK");
}
