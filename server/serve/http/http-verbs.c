/* http-verbs.c -- verbs whose row says all: query and body to values, values to an answer; enter,
 * and metrics.
 *
 * The operator's verbs and /metrics may wait for a change of rules, or read files: that is done on
 * another thread.  A call's values are copied first, so that the connection's input can be used for
 * something else meanwhile.
 */
#include "server/serve/http/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/serve/decide/decide.h"

/* ------------------------------------------------------------------- away ---- */

/* An answer under way: the first member of a struct that has the rest. */
struct away {
    struct weir__http_manner manner;
    void (*work)(struct away *away);   /* elsewhere */
    void (*answer)(struct away *away); /* on the loop's thread, by the manner */
    void (*destroy)(struct away *away);
};

static void work(void *context)
{
    struct away *away = context;

    away->work(away);
}

static void done(struct weir__conn *conn, void *context)
{
    struct away *away = context;
    struct weir__buffer out = { 0 };

    if (conn) {
        away->manner.out = &out;
        away->manner.close |= conn->ending; /* the server drains meanwhile */
        away->answer(away);
        if (!out.failed)
            weir__conn_send(conn, out.bytes, out.len);
        if (out.failed || away->manner.close)
            weir__conn_end(conn);
    }
    weir__buffer_free(&out);
    away->destroy(away);
}

static void no_memory(const struct weir__http_manner *manner)
{
    weir__http_problem(manner, 503, NULL, "out of memory");
}

/* It looks after itself from here on. */
static void send_away(struct weir__http_call *call, struct away *away)
{
    away->manner = call->manner;
    if (weir__conn_offload(call->conn, work, done, away) == WEIR_OK) {
        call->manner.close = false; /* `done` sees to it */
        return;
    }
    no_memory(&call->manner);
    away->destroy(away);
}

/* ---------------------------------------------------------------- metrics ---- */

struct metrics {
    struct away away;
    struct weir__server *server;
    weir_time now;
    struct weir__buffer out;
};

static void print_metrics(struct away *away)
{
    struct metrics *m = (struct metrics *)away;

    weir__metrics_print(m->server, m->now, &m->out);
}

static void answer_metrics(struct away *away)
{
    const struct metrics *m = (struct metrics *)away;

    if (m->out.failed)
        no_memory(&away->manner);
    else
        weir__http_answer(&away->manner, 200, "text/plain; version=0.0.4; charset=utf-8",
                          (struct weir__text){ 0 },
                          (struct weir__text){ m->out.bytes, m->out.len });
}

static void free_metrics(struct away *away)
{
    struct metrics *m = (struct metrics *)away;

    weir__buffer_free(&m->out);
    free(m);
}

void weir__http_metrics(struct weir__http_call *call)
{
    struct weir__loop *loop = call->conn->loop;
    struct metrics *m = calloc(1, sizeof(*m));

    if (m == NULL) {
        no_memory(&call->manner);
        return;
    }
    m->away =
        (struct away){ .work = print_metrics, .answer = answer_metrics, .destroy = free_metrics };
    m->server = loop->server;
    m->now = weir__loop_now(loop);
    send_away(call, &m->away);
}

/* -------------------------------------------------------------- reading ---- */

/* `scratch` has room for the whole query. */
static bool read_query(struct weir__verb_call *c, struct weir__text query, char *scratch)
{
    struct weir__text name, value;
    bool bad = false;

    while (weir__http_query_next(&query, &scratch, &name, &value, &bad))
        if (!weir__call_member(c, name, value))
            return false;
    return !bad ||
           weir__call_fail(c, 400, "the query has a broken escape: %% and two hexadecimal digits");
}

static bool has_body_as_it_is(const struct weir__verb *verb)
{
    return verb->args[0].name && verb->args[0].kind == WEIR__ARG_BODY;
}

/* The operator's may come without a body, or all in the query. */
static bool read_away(struct weir__http_call *call, struct weir__verb_call *c)
{
    struct weir__text query = call->request->query;
    const char *first = c->verb->args[0].name;
    bool raw = has_body_as_it_is(c->verb);
    char *scratch = malloc(query.len + 1);

    if (scratch == NULL)
        return weir__call_no_memory(c);
    bool good = !(raw && call->body.len) ||
                weir__call_member(c, (struct weir__text){ first, strlen(first) }, call->body);
    good = good && read_query(c, query, scratch) &&
           (raw || call->body.len == 0 || weir__call_json(c, call->body)) && weir__call_whole(c) &&
           weir__call_keep(c);
    free(scratch);
    return good;
}

/* -------------------------------------------------------------- answers ---- */

static void answer_renewed(const struct weir__http_manner *manner,
                           const struct weir__verb_call *call)
{
    char token[WEIR__PERMIT_TOKEN_MAX], text[WEIR__PERMIT_TOKEN_MAX + 64];

    weir__ask_token(manner->loop, &call->renewed.permits, token);
    if (token[0])
        snprintf(text, sizeof(text), "{\"permit\":\"%s\",\"lease_ms\":%lld}", token,
                 (long long)weir__ask_ms(call->renewed.lease));
    weir__http_json(manner, 200, token[0] ? text : "{\"permit\":null,\"lease_ms\":null}");
}

/* {"settled":true}: the schema's only member. */
static void answer_member(const struct weir__http_manner *manner,
                          const struct weir__verb_call *call)
{
    const struct weir__schema *s = weir__schemas;
    char text[96], number[24];

    while (strcmp(s->name, call->verb->answer) != 0)
        s++;
    snprintf(number, sizeof(number), "%lld", (long long)call->number);
    snprintf(text, sizeof(text), "{\"%s\":%s}", s->fields[0].name,
             call->answer == WEIR__ANSWER_NUMBER               ? number
             : call->answer == WEIR__ANSWER_OK || call->number ? "true"
                                                               : "false");
    weir__http_json(manner, 200, text);
}

/* A failed call may have written an object: the problems of a rule file. */
static void answer_call(const struct weir__http_manner *manner, const struct weir__verb_call *call)
{
    if (call->out.failed)
        no_memory(manner);
    else if (call->status / 100 != 2)
        weir__http_problem_with(manner, call->status, NULL, call->message, &call->out);
    else if (call->answer == WEIR__ANSWER_JSON)
        weir__http_answer(manner, call->status, WEIR__HTTP_JSON, (struct weir__text){ 0 },
                          (struct weir__text){ call->out.bytes, call->out.len });
    else if (call->answer == WEIR__ANSWER_TAKEN)
        weir__http_decision(manner, call);
    else if (call->answer == WEIR__ANSWER_RENEWED)
        answer_renewed(manner, call);
    else
        answer_member(manner, call);
}

/* -------------------------------------------------------------- running ---- */

struct task {
    struct away away;
    struct weir__verb_call call;
};

static void run_task(struct away *away)
{
    struct weir__verb_call *call = &((struct task *)away)->call;

    call->verb->run(call);
}

static void answer_task(struct away *away)
{
    answer_call(&away->manner, &((struct task *)away)->call);
}

static void free_task(struct away *away)
{
    weir__call_end(&((struct task *)away)->call);
    free(away);
}

static void run_away(struct weir__http_call *call)
{
    struct task *task = malloc(sizeof(*task));

    if (task == NULL) {
        no_memory(&call->manner);
        return;
    }
    task->away = (struct away){ .work = run_task, .answer = answer_task, .destroy = free_task };
    weir__call_begin(&task->call, call->verb, call->conn->loop, true);
    if (read_away(call, &task->call)) {
        send_away(call, &task->away);
        return;
    }
    answer_call(&call->manner, &task->call);
    free_task(&task->away);
}

void weir__http_verb(struct weir__http_call *call)
{
    struct weir__verb_call c;

    if (call->verb->how == WEIR__VERB_AWAY) {
        run_away(call);
        return;
    }
    weir__call_begin(&c, call->verb, call->conn->loop, true);
    if (weir__call_json(&c, call->body) && weir__call_whole(&c))
        c.verb->run(&c);
    answer_call(&call->manner, &c);
    weir__call_end(&c);
}

/* ---------------------------------------------------------------- enter ---- */

/* Answers with the rules' fallback; false: they have none. */
static bool answer_fallback(const struct weir__http_manner *manner, const struct weir_ruling *r)
{
    struct weir_fallback fallback;
    char headers[192], body[WEIR_FALLBACK_MAX];

    if (!weir_fallback_get(manner->loop->server->engine, r->guard, &fallback, body, sizeof(body)))
        return false;
    int n = snprintf(headers, sizeof(headers), "Weir-Fallback: %.63s\r\n", r->guard);
    if (r->decision.retry != WEIR_NEVER)
        n += snprintf(headers + n, sizeof(headers) - (size_t)n, "Retry-After: %lld\r\n",
                      (long long)weir__http_retry_seconds(r->decision.retry));
    weir__http_answer(manner, fallback.status, fallback.type,
                      (struct weir__text){ headers, (size_t)n },
                      (struct weir__text){ body, fallback.len });
    return true;
}

static void answer(const struct weir__http_manner *manner, const struct weir__entered *entered)
{
    const struct weir_ruling *r = &entered->ruling;

    if (r->decision.allowed || r->guard == NULL || !answer_fallback(manner, r))
        weir__http_entered(manner, entered);
}

/* It has waited: the connection is held until this is sent. */
static void answer_later(struct weir__conn *conn, const struct weir__entered *entered,
                         const void *context)
{
    struct weir__http_manner manner = *(const struct weir__http_manner *)context;
    struct weir__buffer out = { 0 };

    manner.out = &out;
    manner.close |= conn->ending; /* the server drains meanwhile */
    answer(&manner, entered);
    if (!out.failed)
        weir__conn_send(conn, out.bytes, out.len);
    if (out.failed || manner.close)
        weir__conn_end(conn);
    weir__buffer_free(&out);
}

void weir__http_enter(struct weir__http_call *call)
{
    struct weir__entered entered;
    struct weir__verb_call c;
    const struct weir__later later = { answer_later, &call->manner, sizeof(call->manner) };
    int status = 400;

    weir__call_begin(&c, call->verb, call->conn->loop, true);
    if (weir__call_json(&c, call->body) && weir__call_whole(&c))
        status = weir__decide_enter(&c, call->conn, &later, &entered);
    if (status == 200)
        answer(&call->manner, &entered);
    else if (status == 202)
        call->manner.close = false; /* answer_later sees to it */
    else
        answer_call(&call->manner, &c);
    weir__call_end(&c);
}
