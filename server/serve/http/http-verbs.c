/* http-verbs.c -- verbs whose row says all: query and body to values, values to an answer.
 *
 * The operator's verbs may wait for a change of rules, or read files: that is done on
 * another thread.  A call's values are copied first, so that the connection's input can be used for
 * something else meanwhile.
 */
#include "server/serve/http/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/serve/decide/bound-permits.h"
#include "server/serve/decide/decide-verbs.h"

#define METRICS "text/plain; version=0.0.4; charset=utf-8"

static void no_memory(const struct weir__http_manner *manner)
{
    weir__http_problem(manner, 503, NULL, "no memory");
}

/* -------------------------------------------------------------- reading ---- */

bool weir__http_query(struct weir__verb_call *c, struct weir__text query)
{
    char *scratch = c->kept = malloc(query.len + 1);
    struct weir__text name, value;
    bool bad = false;

    if (scratch == NULL)
        return weir__call_no_memory(c);
    while (weir__http_query_next(&query, &scratch, &name, &value, &bad))
        if (!weir__call_member(c, name, value))
            return false;
    return !bad ||
           weir__call_fail(c, 400, "the query has a broken escape: %% and two hexadecimal digits");
}

static bool is_metrics(const struct weir__verb *verb)
{
    return strcmp(verb->answer, "text/plain") == 0;
}

/* The operator's may come without a body, or all in the query. */
static bool read_away(struct weir__http_call *call, struct weir__verb_call *c)
{
    const struct weir__arg *first = c->verb->args;
    bool raw = first->name && first->kind == WEIR__ARG_BODY;

    if (is_metrics(c->verb)) /* monitors may add parameters of their own */
        return true;
    if (raw && call->body.len &&
        !weir__call_member(c, (struct weir__text){ first->name, strlen(first->name) }, call->body))
        return false;
    return weir__http_query(c, call->request->query) &&
           (raw || call->body.len == 0 || weir__call_json(c, call->body)) && weir__call_whole(c) &&
           weir__call_keep(c);
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
void weir__http_answer_call(const struct weir__http_manner *manner,
                            const struct weir__verb_call *call)
{
    if (call->out.failed)
        no_memory(manner);
    else if (call->status >= 400)
        weir__http_problem_with(manner, call->status, NULL, call->message, &call->out);
    else if (call->answer == WEIR__ANSWER_JSON)
        weir__http_answer(manner, call->status, is_metrics(call->verb) ? METRICS : WEIR__HTTP_JSON,
                          (struct weir__text){ 0 },
                          (struct weir__text){ call->out.bytes, call->out.len });
    else if (call->answer == WEIR__ANSWER_TAKEN)
        weir__http_decision(manner, call);
    else if (call->answer == WEIR__ANSWER_RENEWED)
        answer_renewed(manner, call);
    else
        answer_member(manner, call);
}

/* -------------------------------------------------------------- running ---- */

/* An answer that is made on another thread. */
struct task {
    struct weir__http_manner manner;
    struct weir__verb_call call;
};

static void work(void *context)
{
    struct weir__verb_call *call = &((struct task *)context)->call;

    call->verb->run(call);
}

static void free_task(struct task *task)
{
    weir__call_end(&task->call);
    free(task);
}

struct weir__http_manner weir__http_held(const struct weir__conn *conn,
                                         const struct weir__http_manner *manner,
                                         struct weir__buffer *out)
{
    struct weir__http_manner held = *manner;

    held.out = out;
    held.close |= conn->ending; /* the server drains meanwhile */
    return held;
}

void weir__http_send_held(struct weir__conn *conn, const struct weir__http_manner *manner)
{
    if (!manner->out->failed)
        weir__conn_send(conn, manner->out->bytes, manner->out->len);
    if (manner->out->failed || manner->close)
        weir__conn_end(conn);
    weir__buffer_free(manner->out);
}

static void done(struct weir__conn *conn, void *context)
{
    struct task *task = context;
    struct weir__buffer out = { 0 };

    if (conn) {
        task->manner = weir__http_held(conn, &task->manner, &out);
        weir__http_answer_call(&task->manner, &task->call);
        weir__http_send_held(conn, &task->manner);
    }
    free_task(task);
}

static bool begin(struct weir__conn *conn, struct task *task)
{
    struct weir__verb_call *c = &task->call;

    if (c->verb->begin)
        return c->verb->begin(conn, c, done, task) == WEIR_OK;
    return weir__conn_offload(conn, work, done, task, c->verb->role) ||
           weir__call_fail(c, 503, WEIR__TOO_MANY_JOBS);
}

static void run_away(struct weir__http_call *call)
{
    struct task *task = malloc(sizeof(*task));

    if (task == NULL) {
        no_memory(&call->manner);
        return;
    }
    task->manner = call->manner;
    weir__call_begin(&task->call, call->verb, call->conn->loop, true);
    if (read_away(call, &task->call) && begin(call->conn, task)) {
        call->manner.close = false; /* `done` sees to it */
        return;
    }
    weir__http_answer_call(&call->manner, &task->call);
    free_task(task);
}

/* A permit was given back or renewed: if it is bound to this connection, that is noted. */
static void note_permits(struct weir__conn *conn, const struct weir__verb_call *c)
{
    if (c->verb->run == weir__decide_exit && c->number)
        weir__bound_drop(conn, &c->permits);
    else if (c->verb->run == weir__decide_renew)
        weir__bound_renew(conn, &c->permits, &c->renewed.permits, c->renewed.lease);
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
    if (call->conn->bound && c.status == 200)
        note_permits(call->conn, &c);
    weir__http_answer_call(&call->manner, &c);
    weir__call_end(&c);
}
