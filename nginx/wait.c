/* wait.c -- requests that wait: for their turn, in a timer of their connection; or in the queue of
 * a guard.  No worker is blocked, and a client that leaves meanwhile gives back what it had.
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

static void start_timer(ngx_http_request_t *r, weir_time wait)
{
    weir_time ms = wait / WEIR_MILLISECOND + (wait % WEIR_MILLISECOND != 0);

    r->connection->write->delayed = 1;
    ngx_add_timer(r->connection->write, (ngx_msec_t)ngx_min(ms, (weir_time)NGX_MAX_INT32_VALUE));
}

/* nginx's timers count from a time that lies some milliseconds back: a client that was let in
 * early, and asks again, would be refused although it kept to its turns. */
static void go_on(ngx_http_request_t *r)
{
    ngx_event_t *write = r->connection->write;
    struct ngx_weir_ctx *ctx = ngx_http_get_module_ctx(r->main, ngx_http_weir_module);

    if (!write->delayed && weir_table_now(ctx->table) < ctx->turn)
        start_timer(r, ctx->turn - weir_table_now(ctx->table));
    if (write->delayed) {
        if (ngx_handle_write_event(write, 0) != NGX_OK)
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }
    ctx->waits = false;
    run(r);
}

ngx_int_t ngx_weir_wait_turn(ngx_http_request_t *r, struct ngx_weir_ctx *ctx, weir_time wait)
{
    if (ngx_handle_read_event(r->connection->read, 0) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    ctx->waits = true;
    ctx->turn = weir_table_now(ctx->table) + wait;
    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = go_on;
    start_timer(r, wait);
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
    ngx_http_request_t *r = event->data;
    ngx_connection_t *c = r->connection;

    run(r);
    ngx_http_run_posted_requests(c);
}

ngx_int_t ngx_weir_wait_open(ngx_http_request_t *r, struct ngx_weir_ruled *ruled)
{
    ruled->open = true; /* from now on the end of the request takes it out */
    if (ngx_handle_read_event(r->connection->read, 0) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    ngx_memzero(&ruled->event, sizeof(ruled->event));
    ruled->event.data = r;
    ruled->event.handler = resume;
    ruled->event.log = r->connection->log;
    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_request_empty_handler;
    return NGX_AGAIN;
}

ngx_int_t ngx_weir_wait_queued(ngx_http_request_t *r, struct ngx_weir_ruled *ruled,
                               struct weir *weir)
{
    poll_event.data = weir;
    poll_event.handler = poll_queues;
    poll_event.log = ngx_cycle->log;
    ngx_log_error(NGX_LOG_INFO, r->connection->log, 0, "queueing request, by guard \"%s\"",
                  ruled->visit.ruling.guard);
    waiting++;
    if (!poll_event.timer_set) /* a worker that is to end stays for them */
        ngx_add_timer(&poll_event, POLL_EVERY);
    return ngx_weir_wait_open(r, ruled);
}

void ngx_weir_wait_leave(struct ngx_weir_ruled *ruled, struct weir *weir, weir_time now)
{
    if (!ruled->open)
        return;
    ngx_weir_fleet_leave(ruled);
    if (ruled->event.posted) { /* a macro of several statements */
        ngx_delete_posted_event(&ruled->event);
    }
    if (weir_check_cancel(weir, &ruled->visit, now))
        waiting--;
    ruled->open = false;
}
