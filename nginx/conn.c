/* conn.c -- weir_conn: requests in progress, by key.
 *
 * A request that was let in holds a permit of each zone until its end (leases.c); with HTTP/2 every
 * stream is a request.  The permits of a worker that dies are taken back within a second. */
#include "module.h"

/* Any spread of the keys will do. */
static struct weir_guard *guard_of(const struct ngx_weir_zone *zone, const ngx_str_t *key)
{
    return zone->guards[ngx_murmur_hash2(key->data, key->len) % NGX_WEIR_GUARDS];
}

bool ngx_weir_enter(const struct ngx_weir_limit *limit, const ngx_str_t *key,
                    struct ngx_weir_held *h, struct weir_decision *d)
{
    struct weir_ask ask = { .key = { key->data, key->len },
                            .cost = 1,
                            .now = weir_table_now(limit->zone->table) };

    h->table = limit->zone->table;
    h->guard = guard_of(limit->zone, key);
    if (!weir_enter_within(h->guard, &ask, limit->max, &h->permit, d))
        return false;
    ngx_weir_hold(h, NULL);
    return true;
}

void ngx_weir_exit(struct ngx_weir_held *h)
{
    ngx_queue_remove(&h->queue);
    (void)weir_exit(h->guard, &h->permit, WEIR_SUCCEEDED, weir_table_now(h->table));
}

static inline void note(ngx_http_request_t *r, enum ngx_weir_status status)
{
    unsigned own = status == NGX_WEIR_PASSED ? 1 : status == NGX_WEIR_REJECTED ? 2 : 3;

    ngx_weir_memo_of(r)->conn = (unsigned)status & 7;
    if (ngx_weir_conf_for(r)->compat)
        r->main->limit_conn_status = own & 3;
}

void ngx_weir_conn_exit(struct ngx_weir_ctx *ctx)
{
    while (ctx->n_held > 0)
        ngx_weir_exit(&ctx->held[--ctx->n_held]);
}

static ngx_int_t refuse(ngx_http_request_t *r, const struct ngx_weir_part *part,
                        const struct ngx_weir_zone *zone, struct ngx_weir_ctx *ctx,
                        const struct weir_decision *d)
{
    ngx_weir_conn_exit(ctx);
    ngx_log_error(part->log_level, r->connection->log, 0, "limiting connections%s by zone \"%V\"",
                  part->dry_run ? ", dry run," : "", &zone->name);
    if (d->reason != WEIR_KEY_BUSY)
        ngx_log_error(NGX_LOG_ALERT, r->connection->log, 0,
                      "weir: zone \"%V\" has no room for another key or connection: %s",
                      &zone->name, weir_reason_name(d->reason));
    ngx_weir_count(zone, part->dry_run ? NGX_WEIR_REJECTED_DRY_RUN : NGX_WEIR_REJECTED);
    if (part->dry_run) {
        note(r, NGX_WEIR_REJECTED_DRY_RUN);
        return NGX_DECLINED;
    }
    note(r, NGX_WEIR_REJECTED);
    ngx_weir_req_give_back(ctx);
    if (!ngx_weir_conf_for(r)->compat && ctx->refused != r)
        ngx_weir_retry_after(r, d->retry);
    ctx->refused = r;
    return (ngx_int_t)part->status;
}

/* NGX_DECLINED: it has its permit, or no key. */
static ngx_int_t enter(ngx_http_request_t *r, const struct ngx_weir_part *part,
                       const struct ngx_weir_limit *limit, struct ngx_weir_ctx *ctx)
{
    struct weir_decision d;
    ngx_str_t key;

    if (ngx_weir_key(r, limit->zone, &key) != NGX_OK) {
        ngx_weir_conn_exit(ctx); /* error_page may bring it here again */
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    if (key.len == 0)
        return NGX_DECLINED;
    if (!ngx_weir_enter(limit, &key, &ctx->held[ctx->n_held], &d))
        return refuse(r, part, limit->zone, ctx, &d);
    ctx->n_held++;
    ngx_weir_count(limit->zone, NGX_WEIR_PASSED);
    return NGX_DECLINED;
}

ngx_int_t ngx_weir_conn_enter(ngx_http_request_t *r, const struct ngx_weir_part *part)
{
    struct ngx_weir_limit **limits = part->limits->elts;
    const struct ngx_weir_memo *memo = ngx_weir_memo_of(r);
    struct ngx_weir_ctx *ctx = ngx_weir_ctx_get(r);
    ngx_uint_t n = part->limits->nelts;
    ngx_int_t code = NGX_DECLINED;

    if (ctx != NULL)
        ctx->held = n == 1 ? &ctx->only : ngx_palloc(r->pool, n * sizeof(*ctx->held));
    if (ctx == NULL || ctx->held == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    for (ngx_uint_t i = 0; i < n; i++) {
        code = enter(r, part, limits[i], ctx);
        if (code != NGX_DECLINED || memo->conn != NGX_WEIR_NONE)
            return code;
    }
    if (ctx->n_held > 0)
        note(r, NGX_WEIR_PASSED);
    return code;
}
