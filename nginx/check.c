/* check.c -- a request and the rules: its attributes, the ruling, the guards it entered.
 *
 * The request leaves its guards once, when nginx logs it: with the status of the answer, and the
 * time that upstreams took if any was asked.  A client that went away says nothing about them, nor
 * does an answer from the cache. */
#include "module.h"

#define ATTRIBUTES_MAX 64 /* that the rules of a file can look at */

/* ------------------------------------------------------------------ enter ---- */

static ngx_int_t fetch(ngx_http_request_t *r, const struct ngx_weir_source *source, ngx_str_t *out)
{
    ngx_str_null(out);
    if (source->given)
        return ngx_http_complex_value(r, (ngx_http_complex_value_t *)&source->value, out);
    if (source->variable < 0)
        return NGX_OK;
    ngx_http_variable_value_t *v = ngx_http_get_indexed_variable(r, (ngx_uint_t)source->variable);
    if (v != NULL && !v->not_found) {
        out->data = v->data;
        out->len = v->len;
    }
    return NGX_OK;
}

static ngx_int_t describe(ngx_http_request_t *r, const struct ngx_weir_rules *rules,
                          struct weir_attr *attrs, size_t *n)
{
    const struct ngx_weir_source *sources = rules->sources.elts;
    ngx_str_t value;

    *n = 0;
    for (ngx_uint_t i = 0; i < rules->sources.nelts && *n < ATTRIBUTES_MAX; i++) {
        if (fetch(r, &sources[i], &value) != NGX_OK)
            return NGX_ERROR;
        if (value.len == 0)
            continue;
        attrs[(*n)++] = (struct weir_attr){ .name = (const char *)sources[i].name.data,
                                            .name_len = sources[i].name.len,
                                            .value = (const char *)value.data,
                                            .value_len = value.len,
                                            .id = sources[i].id };
    }
    return NGX_OK;
}

static void hold(struct ngx_weir_ruled *ruled)
{
    for (ngx_uint_t i = 0; i < ruled->entry.n; i++) {
        ruled->held[i].guard = ruled->entry.entered[i].guard;
        ruled->held[i].permit = ruled->entry.entered[i].permit;
        ngx_weir_hold(&ruled->held[i]);
    }
}

ngx_int_t ngx_weir_check(ngx_http_request_t *r, const struct ngx_weir_loc *loc,
                         struct ngx_weir_ctx **made)
{
    struct ngx_weir_conf *conf = ngx_weir_conf_of((ngx_cycle_t *)ngx_cycle);
    struct ngx_weir_ctx *ctx = *made != NULL ? *made : (*made = ngx_weir_ctx_make(r));
    struct weir_attr attrs[ATTRIBUTES_MAX];
    size_t n;

    if (ctx == NULL || describe(r, conf->rules, attrs, &n) != NGX_OK ||
        (ctx->ruled = ngx_palloc(r->pool, sizeof(*ctx->ruled))) == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    struct weir_ask ask = { .cost = 1, .now = weir_table_now(ctx->table) };
    struct ngx_weir_ruled *ruled = ctx->ruled;
    bool allowed =
        weir_check_enter(conf->rules->weir, attrs, n, &ask, &ruled->entry, &ruled->ruling);
    if (!allowed)
        ruled->entry.n = 0;
    hold(ruled);
    if (loc->headers)
        ngx_weir_ruling_headers(r, &ruled->ruling);
    if (allowed)
        return NGX_DECLINED;
    ngx_weir_req_give_back(ctx);
    ngx_weir_conn_exit(ctx);
    return ngx_weir_answer(r, conf->rules->weir, &ruled->ruling);
}

/* ------------------------------------------------------------------- exit ---- */

static enum weir_outcome outcome_of(ngx_http_request_t *r)
{
    ngx_uint_t status = r->err_status != 0 ? r->err_status : r->headers_out.status;

#if (NGX_HTTP_CACHE)
    if (r->cached)
        return WEIR_IGNORED;
#endif
    return status == NGX_HTTP_CLIENT_CLOSED_REQUEST ? WEIR_IGNORED
           : status == NGX_HTTP_GATEWAY_TIME_OUT    ? WEIR_TIMED_OUT
           : status == NGX_HTTP_SERVICE_UNAVAILABLE ? WEIR_DROPPED
           : status >= 500                          ? WEIR_FAILED
                                                    : WEIR_SUCCEEDED;
}

/* -1: no upstream was asked. */
static weir_time upstream_time(ngx_http_request_t *r)
{
    weir_time sum = -1;

    if (r->upstream_states == NULL)
        return sum;
    ngx_http_upstream_state_t *states = r->upstream_states->elts;
    for (ngx_uint_t i = 0; i < r->upstream_states->nelts; i++)
        if (states[i].peer != NULL && states[i].response_time != (ngx_msec_t)-1)
            sum = (sum < 0 ? 0 : sum) + (weir_time)states[i].response_time * WEIR_MILLISECOND;
    return sum;
}

void ngx_weir_check_exit(struct ngx_weir_ctx *ctx, ngx_http_request_t *r)
{
    struct ngx_weir_ruled *ruled = ctx->ruled;

    if (ruled == NULL || ruled->entry.n == 0)
        return;
    weir_time now = weir_table_now(ctx->table), took = r == NULL ? -1 : upstream_time(r);
    enum weir_outcome outcome = r == NULL ? WEIR_IGNORED : outcome_of(r);
    for (ngx_uint_t i = 0; i < ruled->entry.n; i++) {
        struct ngx_weir_held *h = &ruled->held[i];
        ngx_queue_remove(&h->queue);
        if (took < 0)
            (void)weir_exit(h->guard, &h->permit, outcome, now);
        else
            (void)weir_exit_after(h->guard, &h->permit, outcome, took, now);
    }
    ruled->entry.n = 0;
}
