/* wait.c -- requests that wait: for their turn, in a timer; or in the queue of a guard.  No worker
 * is blocked, and a client that leaves meanwhile gives back what it had.
 *
 * Of a request and its subrequests one waits, and the others wait for it: what is decided is
 * decided for all of them.
 *
 * The queues are those of this worker.  Permits come free in others too, so while somebody waits
 * they are looked at every 5 ms. */
#include "module.h"

#define POLL_EVERY 5 /* ms */

/* ------------------------------------------------------------------ turns ---- */

static void run(ngx_http_request_t *r)
{
    if (ngx_handle_read_event(r->connection->read, 0) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }
    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_core_run_phases;
    ngx_http_core_run_phases(r);
}

struct behind {
    ngx_queue_t queue;
    ngx_http_request_t *request;
};

/* The request goes on, and then those behind it; all of them may wait again. */
static void wake(struct ngx_weir_ctx *ctx)
{
    ngx_http_request_t *r = ctx->waiter;
    ngx_connection_t *c = r->connection;

    ctx->waiter = NULL;
    while (!ngx_queue_empty(&ctx->behind)) {
        ngx_queue_t *q = ngx_queue_head(&ctx->behind);
        struct behind *b = ngx_queue_data(q, struct behind, queue);
        ngx_queue_remove(q);
        (void)ngx_http_post_request(b->request, NULL);
    }
    run(r);
    ngx_http_run_posted_requests(c);
}

/* A client that leaves is noticed, whichever of its subrequests is the connection's; also one that
 * has left already, for which no event will come. */
static ngx_int_t stand_by(ngx_http_request_t *r, ngx_http_event_handler_pt go_on)
{
    ngx_event_t *read = r->connection->read;

    if (read->ready) {
        ngx_post_event(read, &ngx_posted_events);
    } else if (ngx_handle_read_event(read, 0) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = go_on;
    return NGX_AGAIN;
}

static void go_on_behind(ngx_http_request_t *r)
{
    if (ngx_weir_ctx_find(r)->waiter == NULL)
        run(r);
}

ngx_int_t ngx_weir_wait_behind(ngx_http_request_t *r, struct ngx_weir_ctx *ctx)
{
    struct behind *b = ngx_palloc(r->pool, sizeof(*b));

    if (b == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    b->request = r;
    ngx_queue_insert_tail(&ctx->behind, &b->queue);
    return stand_by(r, go_on_behind);
}

static void start_timer(ngx_event_t *timer, weir_time wait)
{
    weir_time ms = wait / WEIR_MILLISECOND + (wait % WEIR_MILLISECOND != 0);

    ngx_add_timer(timer, (ngx_msec_t)ngx_min(ms, (weir_time)NGX_MAX_INT32_VALUE));
}

/* nginx's timers count from a time that lies some milliseconds back: a client that was let in
 * early, and asks again, would be refused although it kept to its turns. */
static void come_up(ngx_event_t *timer)
{
    struct ngx_weir_ctx *ctx = timer->data;
    weir_time now = weir_table_now(ctx->table);

    if (now < ctx->turn)
        start_timer(timer, ctx->turn - now);
    else
        wake(ctx);
}

ngx_int_t ngx_weir_wait_turn(ngx_http_request_t *r, struct ngx_weir_ctx *ctx, weir_time wait)
{
    if (stand_by(r, ngx_http_request_empty_handler) != NGX_AGAIN)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    ctx->waiter = r;
    ctx->turn = weir_table_now(ctx->table) + wait;
    ctx->timer.data = ctx;
    ctx->timer.handler = come_up;
    ctx->timer.log = r->connection->log;
    start_timer(&ctx->timer, wait);
    return NGX_AGAIN;
}

/* ----------------------------------------------------------------- queues ---- */

static ngx_uint_t waiting; /* requests of this worker, in all queues */
static ngx_event_t poll_event;

static void poll_queues(ngx_event_t *event)
{
    struct weir *weir = event->data;

    (void)weir_check_poll(weir, weir_table_now(weir_table_of(weir)));
    if (waiting > 0 && !event->timer_set)
        ngx_add_timer(event, POLL_EVERY);
}

void ngx_weir_wait_poll(void)
{
    if (waiting > 0) {
        ngx_post_event(&poll_event, &ngx_posted_events);
    }
}

/* It is decided.  Not here: a queue may be at work. */
void ngx_weir_wait_over(struct weir_visit *visit)
{
    struct ngx_weir_ruled *ruled = visit->context;

    waiting--;
    ngx_post_event(&ruled->event, &ngx_posted_events);
}

static void resume(ngx_event_t *event)
{
    wake(event->data);
}

ngx_int_t ngx_weir_wait_open(ngx_http_request_t *r, struct ngx_weir_ruled *ruled)
{
    struct ngx_weir_ctx *ctx = ngx_weir_ctx_find(r);

    ngx_memzero(&ruled->event, sizeof(ruled->event));
    ruled->open = true; /* from now on the end of the request takes it out */
    if (stand_by(r, ngx_http_request_empty_handler) != NGX_AGAIN) {
        ngx_weir_wait_leave(ruled, weir_table_now(ctx->table));
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    ctx->waiter = r;
    ruled->event.data = ctx;
    ruled->event.handler = resume;
    ruled->event.log = r->connection->log;
    return NGX_AGAIN;
}

ngx_int_t ngx_weir_wait_queued(ngx_http_request_t *r, struct ngx_weir_ruled *ruled)
{
    poll_event.data = ruled->weir;
    poll_event.handler = poll_queues;
    poll_event.log = ngx_cycle->log;
    ngx_log_error(NGX_LOG_INFO, r->connection->log, 0, "queueing request, by guard \"%s\"",
                  ruled->visit.ruling.guard);
    ruled->visit.ruling.decision.reason = WEIR_BUSY; /* as the log has it, if the client leaves */
    waiting++;
    if (!poll_event.timer_set) /* a worker that is to end stays for them */
        ngx_add_timer(&poll_event, POLL_EVERY);
    return ngx_weir_wait_open(r, ruled);
}

void ngx_weir_wait_leave(struct ngx_weir_ruled *ruled, weir_time now)
{
    if (!ruled->open)
        return;
    ngx_weir_fleet_leave(ruled);
    if (ruled->event.posted) { /* a macro of several statements */
        ngx_delete_posted_event(&ruled->event);
    }
    if (weir_check_cancel(ruled->weir, &ruled->visit, now))
        waiting--;
    ruled->open = false;
}
