/* http-admin.c -- the rows of admin.h over HTTP: parameters from the query and the JSON body, and the answer.
 *
 * What a row is given is copied first, so that a slow one can run on another thread while the connection's input is used for something else.
 */
#include "serve/http.h"

#include <stdlib.h>
#include <string.h>

/* A call under way. */
struct task {
    const struct weir__admin *row;
    struct weir__admin_call call;
    struct weir__http_manner manner;
    struct weir__member rows[WEIR__PARAMS_MAX + 1];
    struct weir__members members;
    struct weir__span *rest;
    size_t n_rest, rest_room;
    struct weir__buffer out;
    char *bytes; /* the body, and room for the query's values and for names of attributes */
    char *name;  /* where the next one of those goes */
};

static void free_task(struct task *task)
{
    weir__members_free(&task->members);
    weir__buffer_free(&task->out);
    free(task->rest);
    free(task->bytes);
    free(task);
}

/* ---------------------------------------------------------- what is given ---- */

static bool add_rest(struct weir__members *members, struct weir__span value)
{
    struct task *task = members->target;

    if (task->n_rest == task->rest_room) {
        size_t room = task->rest_room ? task->rest_room * 2 : 64;
        struct weir__span *rest = realloc(task->rest, room * sizeof *rest);
        if (rest == NULL)
            return weir__members_wrong(members, "out of memory");
        task->rest = rest;
        task->rest_room = room;
    }
    task->rest[task->n_rest++] = value;
    return true;
}

static bool add_inner(struct weir__members *members, struct weir__span name, const struct weir__json_value *value)
{
    struct task *task = members->target;
    struct weir__span text = { value->len ? value->text : "", value->len };

    if (value->kind == WEIR__JSON_NULL)
        return true;
    if (task->row->rest == WEIR__REST_ENTRIES)
        return add_rest(members, text);
    memcpy(task->name, name.bytes, name.len);
    weir__attribute_lower(task->name, name.len);
    name.bytes = task->name;
    task->name += name.len;
    return add_rest(members, name) && add_rest(members, text);
}

/* The row's parameters as members; all are optional here, for they may come in two ways. */
static void list_members(struct task *task)
{
    struct weir__members *m = &task->members;
    const struct weir__param *params = task->row->params;

    for (m->n = 0; m->n < WEIR__PARAMS_MAX && params[m->n].name; m->n++)
        task->rows[m->n] = (struct weir__member){ params[m->n].name, WEIR__MEMBER_ANY, !params[m->n].optional,
                                                  offsetof(struct task, call.values) + m->n * sizeof(struct weir__span) };
    if (task->row->rest == WEIR__REST_ATTRIBUTES)
        task->rows[m->n++] = (struct weir__member){ .name = "attributes", .kind = WEIR__MEMBER_OBJECT };
    else if (task->row->rest == WEIR__REST_ENTRIES)
        task->rows[m->n++] = (struct weir__member){ .name = "entries", .kind = WEIR__MEMBER_ARRAY };
    m->rows = task->rows;
    m->target = task;
    m->inner = add_inner;
}

static bool read_query(struct task *task, struct weir__http_text query, char *scratch)
{
    struct weir__http_text name, value;
    bool bad = false;

    while (weir__http_query_next(&query, &scratch, &name, &value, &bad))
        if (!weir__members_set(&task->members, weir__span_of(name), weir__span_of(value)))
            return false;
    return !bad || weir__members_wrong(&task->members, "the query has a broken escape: %% and two hexadecimal digits");
}

static bool read_given(struct task *task, struct weir__http_text query, struct weir__span body)
{
    bool raw = task->row->raw_body;

    if (raw && body.len)
        weir__members_set(&task->members, (struct weir__span){ task->rows[0].name, strlen(task->rows[0].name) }, body);
    if (!read_query(task, query, task->bytes + body.len))
        return false;
    if (!raw && body.len && !weir__members_read(&task->members, body))
        return false;
    return weir__members_whole(&task->members);
}

/* NULL: no memory. */
static struct task *make_task(struct weir__http_call *call, const struct weir__admin *row)
{
    struct weir__server *server = call->conn->loop->server;
    struct task *task = calloc(1, sizeof *task);
    char *bytes = malloc(call->body.len + call->request->query.len + call->body.len + 1);

    if (task == NULL || bytes == NULL) {
        free(task);
        free(bytes);
        return NULL;
    }
    memcpy(bytes, call->body.bytes, call->body.len);
    task->row = row;
    task->manner = call->manner;
    task->bytes = bytes;
    task->name = bytes + call->body.len + call->request->query.len;
    task->call = (struct weir__admin_call){ .server = server, .now = weir__loop_now(call->conn->loop), .status = 200, .out = &task->out };
    list_members(task);
    return task;
}

/* -------------------------------------------------------------- answering ---- */

static void run(void *context)
{
    struct task *task = context;

    task->call.rest = task->rest;
    task->call.n_rest = task->n_rest;
    task->row->run(&task->call);
}

/* What a failed call has written is an object: the problems of a rule file. */
static void answer(struct task *task)
{
    const struct weir__admin_call *call = &task->call;

    if (task->out.failed)
        weir__http_problem(&task->manner, 503, NULL, "out of memory");
    else if (call->status < 200 || call->status > 299)
        weir__http_problem_with(&task->manner, call->status, NULL, call->message, &task->out);
    else
        weir__http_answer(&task->manner, call->status, WEIR__HTTP_JSON, (struct weir__span){ 0 },
                          (struct weir__span){ task->out.bytes, task->out.len });
}

static void done(struct weir__conn *conn, void *context)
{
    struct task *task = context;
    struct weir__buffer out = { 0 };

    if (conn) {
        task->manner.out = &out;
        task->manner.close |= conn->ending; /* the server drains meanwhile */
        answer(task);
        if (!out.failed)
            weir__conn_send(conn, out.bytes, out.len);
        if (out.failed || task->manner.close)
            weir__conn_end(conn);
    }
    weir__buffer_free(&out);
    free_task(task);
}

void weir__http_admin(struct weir__http_call *call, const struct weir__admin *row)
{
    struct task *task = make_task(call, row);

    if (task == NULL) {
        weir__http_problem(&call->manner, 503, NULL, "out of memory");
        return;
    }
    if (!read_given(task, call->request->query, (struct weir__span){ task->bytes, call->body.len })) {
        weir__http_problem(&call->manner, 400, NULL, "%s", task->members.problem);
    } else if (!row->slow) {
        run(task);
        answer(task);
    } else if (weir__conn_offload(call->conn, run, done, task) == WEIR_OK) {
        call->manner.close = false; /* `done` sees to it */
        return;
    } else {
        weir__http_problem(&call->manner, 503, NULL, "out of memory");
    }
    free_task(task);
}
