/* http-admin.c -- answers that are made on another thread: those of the rows of admin.h, and
 * /metrics.
 *
 * Both may wait for somebody who changes the rules, or read files: a loop's thread must not.  A
 * row's parameters come from the query and the JSON body, and are copied, so that the connection's
 * input can be used for something else meanwhile.
 */
#include "server/serve/http/http.h"

#include <stdlib.h>
#include <string.h>

#include "server/serve/admin/admin-errand.h"

/* ------------------------------------------------------------------- away ---- */

/* An answer under way: the first member of what knows more of it. */
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
                          (struct weir__span){ 0 },
                          (struct weir__span){ m->out.bytes, m->out.len });
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

/* -------------------------------------------------- what a row is given ---- */

/* The row's parameters as members; what they point to is the request's, or goes with it. */
struct reading {
    struct weir__admin_errand *errand;
    struct weir__member rows[WEIR__PARAMS_MAX + 1];
    struct weir__span values[WEIR__PARAMS_MAX];
    struct weir__members members;
};

static bool add_inner(struct weir__members *members, struct weir__span name,
                      const struct weir__json_value *value)
{
    struct reading *r = members->target;
    struct weir__span text = { value->text, value->len };
    bool attribute = r->errand->row->rest == WEIR__REST_ATTRIBUTES;

    if (value->kind == WEIR__JSON_NULL)
        return true;
    char *copy = attribute ? weir__admin_errand_rest(r->errand, name) : NULL;
    if (copy)
        weir__attribute_lower(copy, name.len);
    if ((attribute && !copy) || !weir__admin_errand_rest(r->errand, text))
        return weir__members_wrong(members, "out of memory");
    return true;
}

/* All are optional here, for they may come in two ways. */
static void list_members(struct reading *r)
{
    struct weir__members *m = &r->members;
    const struct weir__admin *row = r->errand->row;

    for (m->n = 0; m->n < WEIR__PARAMS_MAX && row->params[m->n].name; m->n++)
        r->rows[m->n] = (struct weir__member){ row->params[m->n].name, WEIR__MEMBER_ANY,
                                               !row->params[m->n].optional,
                                               offsetof(struct reading, values) +
                                                   m->n * sizeof(struct weir__span) };
    if (row->rest == WEIR__REST_ATTRIBUTES)
        r->rows[m->n++] =
            (struct weir__member){ .name = "attributes", .kind = WEIR__MEMBER_OBJECT };
    else if (row->rest == WEIR__REST_ENTRIES)
        r->rows[m->n++] = (struct weir__member){ .name = "entries", .kind = WEIR__MEMBER_ARRAY };
    m->rows = r->rows;
    m->target = r;
    m->inner = add_inner;
}

/* `scratch` has room for the whole query. */
static bool read_query(struct reading *r, struct weir__http_text query, char *scratch)
{
    struct weir__http_text name, value;
    bool bad = false;

    if (scratch == NULL)
        return weir__members_wrong(&r->members, "out of memory");
    while (weir__http_query_next(&query, &scratch, &name, &value, &bad))
        if (!weir__members_set(&r->members, weir__span_of(name), weir__span_of(value)))
            return false;
    return !bad || weir__members_wrong(
                       &r->members, "the query has a broken escape: %% and two hexadecimal digits");
}

static bool copy_values(struct reading *r)
{
    for (size_t i = 0; i < WEIR__PARAMS_MAX; i++)
        if (r->values[i].bytes && !weir__admin_errand_value(r->errand, i, r->values[i]))
            return weir__members_wrong(&r->members, "out of memory");
    return true;
}

static bool read_given(struct reading *r, const struct weir__http_call *call)
{
    struct weir__span body = call->body;
    struct weir__http_text query = call->request->query;
    bool raw = r->errand->row->raw_body;
    char *scratch = malloc(query.len + 1);

    if (raw && body.len)
        weir__members_set(&r->members,
                          (struct weir__span){ r->rows[0].name, strlen(r->rows[0].name) }, body);
    bool good = read_query(r, query, scratch) &&
                (raw || body.len == 0 || weir__members_read(&r->members, body)) &&
                weir__members_whole(&r->members) && copy_values(r);
    free(scratch);
    weir__members_free(&r->members);
    return good;
}

/* ------------------------------------------------------------------- rows ---- */

struct task {
    struct away away;
    struct weir__admin_errand *errand;
};

static void run_task(struct away *away)
{
    weir__admin_errand_run(((struct task *)away)->errand);
}

/* What a failed call has written is an object: the problems of a rule file. */
static void answer_task(struct away *away)
{
    const struct weir__admin_errand *e = ((struct task *)away)->errand;

    if (e->out.failed)
        no_memory(&away->manner);
    else if (e->call.status < 200 || e->call.status > 299)
        weir__http_problem_with(&away->manner, e->call.status, NULL, e->call.message, &e->out);
    else
        weir__http_answer(&away->manner, e->call.status, WEIR__HTTP_JSON, (struct weir__span){ 0 },
                          (struct weir__span){ e->out.bytes, e->out.len });
}

static void free_task(struct away *away)
{
    struct task *task = (struct task *)away;

    weir__admin_errand_destroy(task->errand);
    free(task);
}

void weir__http_admin(struct weir__http_call *call, const struct weir__admin *row)
{
    struct weir__loop *loop = call->conn->loop;
    struct reading r = { .errand =
                             weir__admin_errand_create(row, loop->server, weir__loop_now(loop)) };
    struct task *task = calloc(1, sizeof(*task));

    if (r.errand == NULL || task == NULL) {
        weir__admin_errand_destroy(r.errand);
        free(task);
        no_memory(&call->manner);
        return;
    }
    *task = (struct task){ { .work = run_task, .answer = answer_task, .destroy = free_task },
                           r.errand };
    list_members(&r);
    if (read_given(&r, call)) {
        send_away(call, &task->away);
        return;
    }
    weir__http_problem(&call->manner, 400, NULL, "%s", r.members.problem);
    free_task(&task->away);
}
