/* jobs.c -- work for a connection on a thread of libuv's pool: what reads files, or waits for a
 * change of rules.  The connection is held until its answer is there. */
#include <stdlib.h>

#include "server/serve/net/conn.h"

#define JOBS_MAX 16 /* of one loop at a time; more are refused */

struct weir__job {
    uv_work_t uv;
    struct weir__loop *loop;
    struct weir__conn *conn; /* NULL: closed meanwhile */
    void (*work)(void *context);
    void (*done)(struct weir__conn *conn, void *context);
    void *context;
};

static void on_work(uv_work_t *uv)
{
    struct weir__job *job = uv->data;

    job->work(job->context);
}

static void on_done(uv_work_t *uv, int status)
{
    struct weir__job *job = uv->data;
    struct weir__conn *conn = job->conn;

    (void)status;
    job->loop->jobs--;
    if (conn)
        conn->job = NULL;
    job->done(conn, job->context);
    if (conn)
        weir__conn_resume(conn);
    free(job);
}

int weir__conn_offload(struct weir__conn *conn, void (*work)(void *context),
                       void (*done)(struct weir__conn *conn, void *context), void *context)
{
    struct weir__job *job = conn->loop->jobs < JOBS_MAX ? calloc(1, sizeof(*job)) : NULL;

    if (!job)
        return WEIR_NO_MEMORY;
    *job = (struct weir__job){
        .loop = conn->loop, .conn = conn, .work = work, .done = done, .context = context
    };
    job->uv.data = job;
    if (uv_queue_work(&conn->loop->uv, &job->uv, on_work, on_done) != 0) {
        free(job);
        return WEIR_NO_MEMORY;
    }
    conn->job = job;
    conn->loop->jobs++;
    conn->held = true;
    return WEIR_OK;
}

void weir__job_abandon(struct weir__job *job)
{
    job->conn = NULL;
    uv_cancel((uv_req_t *)&job->uv); /* if it has not begun */
}
