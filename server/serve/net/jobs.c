/* jobs.c -- work for a connection on a thread of libuv's pool: what reads files, or waits for a
 * change of rules.  The connection is held until its answer is there. */
#include <stdlib.h>

#include "server/serve/decide/fair-use-per-client.h"
#include "server/serve/net/conn.h"

#define JOBS_MAX 16 /* of one loop at a time; more are refused */
#define SHARED   8  /* of all loops, for all but operators, who always get some */

struct weir__job {
    uv_work_t uv;
    struct weir__loop *loop;
    struct weir__conn *conn; /* NULL: closed meanwhile */
    bool shared;
    struct weir__fair_user fair_user; /* if so */
    void (*work)(void *context);
    void (*done)(struct weir__conn *conn, void *context);
    void *context;
};

static void give_back(const struct weir__job *job)
{
    job->loop->jobs--;
    if (job->shared)
        weir__fair_use_give_place(job->loop->server->fair_use, WEIR__POOL_JOBS, job->fair_user);
}

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
    give_back(job);
    if (conn)
        conn->job = NULL;
    job->done(conn, job->context);
    if (conn)
        weir__conn_resume(conn);
    free(job);
}

bool weir__conn_offload(struct weir__conn *conn, void (*work)(void *context),
                        void (*done)(struct weir__conn *conn, void *context), void *context,
                        enum weir__role role)
{
    struct weir__loop *loop = conn->loop;
    struct weir__job *job = loop->jobs < JOBS_MAX ? malloc(sizeof(*job)) : NULL;
    bool shared = role < WEIR__ROLE_ADMIN;

    if (!job || (shared && !weir__fair_use_take_place(loop->server->fair_use, WEIR__POOL_JOBS, conn,
                                                      SHARED, weir__loop_now(loop)))) {
        free(job);
        return false;
    }
    *job = (struct weir__job){ .loop = loop,
                               .conn = conn,
                               .shared = shared,
                               .fair_user = conn->fair_user,
                               .work = work,
                               .done = done,
                               .context = context };
    job->uv.data = job;
    loop->jobs++;
    if (uv_queue_work(&loop->uv, &job->uv, on_work, on_done) != 0) {
        give_back(job);
        free(job);
        return false;
    }
    conn->job = job;
    conn->held = true;
    return true;
}

void weir__job_abandon(struct weir__job *job)
{
    job->conn = NULL;
    uv_cancel((uv_req_t *)&job->uv); /* if it has not begun */
}
