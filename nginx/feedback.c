/* feedback.c -- what guards learn from a request: how its upstreams did, and for how long.
 *
 * Upstreams are judged by their own answers, whatever the client gets instead: a page by
 * error_page, or what the cache still has.  A client that went away says nothing about them, nor
 * does an answer from the cache without a question.  Slices and renewals of the cache are parts of
 * the request for nginx, and ask its upstream for it.
 *
 * A breaker takes work that is in flight for longer than its `slow` for work that hangs.  But a
 * request may wait for its own client: for its body before it asks an upstream, and until the
 * client has read the answer.  Clients that are slow, on purpose or not, would open the breaker
 * for all (0136). */
#include "module.h"

/* Until the answer began: a slow reader can make the rest as long as it likes.  Without the time
 * that a body took to come while an upstream had the rest of it.  -1: no upstream was asked. */
static weir_time upstream_time(ngx_http_request_t *r, const struct ngx_weir_ruled *ruled)
{
    weir_time sum = -1;

    if (r->upstream_states == NULL)
        return sum;
    ngx_http_upstream_state_t *states = r->upstream_states->elts;
    for (ngx_uint_t i = 0; i < r->upstream_states->nelts; i++) {
        ngx_msec_t ms = states[i].header_time != (ngx_msec_t)-1 ? states[i].header_time
                                                                : states[i].response_time;
        if (states[i].peer != NULL && ms != (ngx_msec_t)-1)
            sum = (sum < 0 ? 0 : sum) + (weir_time)ms * WEIR_MILLISECOND;
    }
    return sum < 0 ? sum : ngx_max(sum - (weir_time)ruled->body_late * WEIR_MILLISECOND, 0);
}

/* Tries of one upstream count by the last of them.  After an error page or X-Accel-Redirect nginx
 * asks another one, behind an entry without a peer: the first that failed counts.  0: none has
 * answered. */
static ngx_uint_t upstream_status(ngx_http_request_t *r)
{
    ngx_http_upstream_state_t *states = r->upstream_states->elts;
    ngx_uint_t status = 0;

    for (ngx_uint_t i = 0; i < r->upstream_states->nelts; i++) {
        if (states[i].peer == NULL && status >= NGX_HTTP_INTERNAL_SERVER_ERROR)
            break;
        if (states[i].peer != NULL)
            status = states[i].status;
    }
    return status;
}

static bool has_failed(ngx_http_request_t *r)
{
    return r->upstream_states != NULL && upstream_status(r) >= NGX_HTTP_INTERNAL_SERVER_ERROR;
}

/* Of the request and its parts: whoever has failed, or else the first that has asked. */
static ngx_http_request_t *find_asker(ngx_http_request_t *r, const struct ngx_weir_ruled *ruled)
{
    ngx_http_request_t *part = ruled->part;

    return part != NULL && (upstream_time(r, ruled) < 0 || (has_failed(part) && !has_failed(r)))
               ? part
               : r;
}

static enum weir_outcome outcome_by(ngx_uint_t status)
{
    return status == NGX_HTTP_CLIENT_CLOSED_REQUEST ? WEIR_IGNORED
           : status == NGX_HTTP_GATEWAY_TIME_OUT    ? WEIR_TIMED_OUT
           : status == NGX_HTTP_SERVICE_UNAVAILABLE ? WEIR_DROPPED
           : status >= 500                          ? WEIR_FAILED
                                                    : WEIR_SUCCEEDED;
}

enum weir_outcome ngx_weir_feedback(ngx_http_request_t *r, const struct ngx_weir_ruled *ruled,
                                    weir_time *took)
{
    ngx_uint_t status = r->err_status != 0 ? r->err_status : r->headers_out.status;
    ngx_http_request_t *asker = find_asker(r, ruled);
    weir_time time = upstream_time(asker, ruled);
    ngx_uint_t said = time < 0 ? 0 : upstream_status(asker);

    *took = time < 0 ? 0 : time;
    if (said > 0)
        return outcome_by(said < NGX_HTTP_INTERNAL_SERVER_ERROR && ruled->broken > 0 ? ruled->broken
                                                                                     : said);
#if (NGX_HTTP_CACHE)
    if (time < 0 && r->cached)
        return WEIR_IGNORED;
#endif
    /* a client that was wrong, slow or gone says nothing about upstreams that did not answer */
    if ((status >= 400 && status < 500) || (time < 0 && r->connection->error))
        return WEIR_IGNORED;
    return outcome_by(status);
}

/* ----------------------------------------------------- waiting for clients ---- */

static bool lacks_body(const ngx_http_request_t *r)
{
    if (r->headers_in.content_length_n <= 0 && !r->headers_in.chunked)
        return false;
    return r->request_body == NULL || r->request_body->rest != 0;
}

/* The body is passed on as it comes, and the upstream does not take it: nginx measures how long. */
static bool is_upstream_slow(const ngx_http_request_t *r)
{
    const ngx_connection_t *peer = r->upstream == NULL ? NULL : r->upstream->peer.connection;

    return peer != NULL && peer->write->timer_set;
}

bool ngx_weir_waits_for_client(const ngx_http_request_t *r, const struct ngx_weir_ruled *ruled)
{
    return ruled->answered || (lacks_body(r) && !is_upstream_slow(r));
}

/* A body that is passed on as it comes. */
static ngx_http_request_body_filter_pt next_body_filter;

static ngx_int_t note_body(ngx_http_request_t *r, ngx_chain_t *in)
{
    struct ngx_weir_ctx *ctx = r == r->main ? ngx_weir_ctx_find(r) : NULL;
    struct ngx_weir_ruled *ruled = ctx == NULL ? NULL : ctx->ruled;
    const ngx_http_upstream_t *u = r->upstream;

    if (ruled != NULL && u != NULL && u->peer.connection != NULL && r->request_body_no_buffering) {
        ngx_msec_t since = (ngx_msec_int_t)(ruled->body_seen - u->start_time) > 0 ? ruled->body_seen
                                                                                  : u->start_time;
        if (!is_upstream_slow(r))
            ruled->body_late += ngx_current_msec - since;
        ruled->body_seen = ngx_current_msec;
    }
    return next_body_filter(r, in);
}

/* ------------------------------------------------------------ the answer ---- */

static ngx_http_output_header_filter_pt next_header_filter;

/* When the answer has begun, nginx forgets how the upstream ended it. */
static void end_upstream(ngx_http_request_t *r, ngx_int_t code)
{
    struct ngx_weir_ruled *ruled = ngx_weir_ctx_find(r)->ruled;

    if (code >= NGX_HTTP_INTERNAL_SERVER_ERROR)
        ruled->broken = (ngx_uint_t)code;
    ruled->end_upstream(r, code);
}

static void watch_upstream(ngx_http_upstream_t *u, struct ngx_weir_ruled *ruled)
{
    if (u == NULL || u->upgrade || u->finalize_request == end_upstream)
        return; /* a WebSocket may end as it likes */
    ruled->end_upstream = u->finalize_request;
    u->finalize_request = end_upstream;
}

/* Mirrors, and most parts of a page, have places of their own. */
static bool asks_the_same(const ngx_http_request_t *r)
{
    const ngx_http_upstream_t *u = r->upstream, *own = r->main->upstream;

    return u != NULL && own != NULL && u->conf == own->conf;
}

void ngx_weir_note_part(ngx_http_request_t *r, struct ngx_weir_ruled *ruled)
{
    if (asks_the_same(r) && upstream_time(r, ruled) >= 0 &&
        (ruled->part == NULL || !has_failed(ruled->part)))
        ruled->part = r;
}

static ngx_int_t note_answer(ngx_http_request_t *r)
{
    struct ngx_weir_ctx *ctx = ngx_weir_ctx_find(r);
    struct ngx_weir_ruled *ruled = ctx == NULL ? NULL : ctx->ruled;

    if (ruled == NULL || ruled->held == NULL)
        return next_header_filter(r);
    if (r != r->main)
        ngx_weir_note_part(r, ruled);
    if (r == r->main || (!r->background && ruled->part == r))
        watch_upstream(r->upstream, ruled);
    if (r == r->main) {
        weir_time now = weir_table_now(ctx->table);
        ruled->answered = true;
        for (ngx_uint_t i = 0; i < ruled->visit.entry.n; i++)
            ngx_weir_hold_look(&ruled->held[i], now);
    }
    return next_header_filter(r);
}

static ngx_int_t add_filter(ngx_conf_t *cf)
{
    (void)cf;
    next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = note_answer;
    next_body_filter = ngx_http_top_request_body_filter;
    ngx_http_top_request_body_filter = note_body;
    return NGX_OK;
}

static ngx_http_module_t context = { .postconfiguration = add_filter };

/* A module of its own: filters are put together after all others. */
ngx_module_t ngx_http_weir_filter_module = { NGX_MODULE_V1, &context, NULL, NGX_HTTP_MODULE,
                                             NULL,          NULL,     NULL, NULL,
                                             NULL,          NULL,     NULL, NGX_MODULE_V1_PADDING };
