/* req.c -- weir_req: the rate of requests.
 *
 * All limits of a location are asked at once, all or nothing.  A request that is ahead of its turn
 * waits in a timer of its connection; a client that leaves meanwhile gives back what it had. */
#include "module.h"

/* The limits that a request has keys for, and their answers. */
struct asked {
    ngx_uint_t n;
    const struct ngx_weir_limit *limits[WEIR_ALL_MAX];
    struct weir_item items[WEIR_ALL_MAX];
    struct weir_decision all, each[WEIR_ALL_MAX];
};

static ngx_int_t find_keys(ngx_http_request_t *r, const struct ngx_weir_part *part, weir_time now,
                           struct asked *asked)
{
    struct ngx_weir_limit **limits = part->limits->elts, **end = limits + part->limits->nelts;
    ngx_uint_t n = 0;
    ngx_str_t key;

    for (; limits < end; limits++) {
        const struct ngx_weir_limit *limit = *limits;
        if (ngx_weir_key(r, limit->zone, &key) != NGX_OK)
            return NGX_ERROR;
        if (key.len == 0)
            continue;
        asked->limits[n] = limit;
        asked->items[n++] = (struct weir_item){
            limit->zone->limiter,
            { .key = { key.data, key.len }, .cost = 1, .wait_max = limit->wait_max, .now = now }
        };
    }
    asked->n = n;
    return NGX_OK;
}

/* The longest wait that is left after the limits' `delay`; *which has it. */
static weir_time wait_of(const struct asked *asked, ngx_uint_t *which)
{
    weir_time longest = 0;

    *which = 0;
    for (ngx_uint_t i = 0; i < asked->n; i++) {
        weir_time wait = asked->each[i].wait - asked->limits[i]->free;
        if (wait >= longest) { /* of two the last: nginx names that one */
            longest = wait;
            *which = i;
        }
    }
    return longest;
}

/* ------------------------------------------------------------------- log ---- */

/* How far a key is ahead of its rate, in thousandths of a request. */
static ngx_uint_t excess_of(const struct ngx_weir_zone *zone, weir_time ahead)
{
    if (!zone->paced || ahead == WEIR_NEVER)
        return 0;
    return (ngx_uint_t)((double)ahead * (double)zone->limit.count * 1000 /
                        (double)zone->limit.period);
}

static void log_delay(ngx_http_request_t *r, const struct ngx_weir_part *part,
                      const struct ngx_weir_zone *zone, weir_time ahead)
{
    ngx_uint_t level = part->log_level == NGX_LOG_INFO ? NGX_LOG_INFO : part->log_level + 1,
               excess = excess_of(zone, ahead);

    ngx_log_error(level, r->connection->log, 0,
                  "delaying request%s, excess: %ui.%03ui, by zone \"%V\"",
                  part->dry_run ? ", dry run" : "", excess / 1000, excess % 1000, &zone->name);
}

static void log_refusal(ngx_http_request_t *r, const struct ngx_weir_part *part,
                        const struct ngx_weir_limit *limit, weir_time retry)
{
    ngx_uint_t excess =
        excess_of(limit->zone, retry == WEIR_NEVER ? WEIR_NEVER : limit->wait_max + retry);

    ngx_log_error(part->log_level, r->connection->log, 0,
                  "limiting requests%s, excess: %ui.%03ui by zone \"%V\"",
                  part->dry_run ? ", dry run" : "", excess / 1000, excess % 1000,
                  &limit->zone->name);
}

/* ------------------------------------------------------------------- ask ---- */

static inline void note(ngx_http_request_t *r, enum ngx_weir_status status)
{
    ngx_weir_memo_of(r)->req = (unsigned)status & 7;
    if (ngx_weir_conf_for(r)->compat)
        r->main->limit_req_status = (unsigned)status & 7;
}

/* The same headers as of a rule. */
static void tell_refusal(ngx_http_request_t *r, const struct ngx_weir_zone *zone,
                         const struct weir_decision *d)
{
    const struct ngx_weir_loc *loc = ngx_http_get_module_loc_conf(r, ngx_http_weir_module);
    struct weir_ruling ruling = { .decision = *d };
    char name[64];

    ngx_weir_retry_after(r, d->retry);
    if (!loc->headers)
        return;
    *ngx_snprintf((u_char *)name, sizeof(name) - 1, "%V", &zone->name) = '\0';
    ruling.rule = name;
    ruling.count = zone->limit.calendar == WEIR_NO_CALENDAR ? zone->limit.count : 0;
    ruling.window = zone->limit.period;
    ngx_weir_ruling_headers(r, &ruling);
}

static ngx_int_t refuse(ngx_http_request_t *r, const struct ngx_weir_part *part,
                        const struct asked *asked)
{
    struct ngx_weir_ctx *ctx = ngx_weir_ctx_get(r);

    if (ctx == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    log_refusal(r, part, asked->limits[asked->all.item], asked->each[asked->all.item].retry);
    ngx_weir_count(asked->limits[asked->all.item]->zone,
                   part->dry_run ? NGX_WEIR_REJECTED_DRY_RUN : NGX_WEIR_REJECTED);
    if (part->dry_run) {
        note(r, NGX_WEIR_REJECTED_DRY_RUN);
        return NGX_DECLINED;
    }
    note(r, NGX_WEIR_REJECTED);
    if (!ngx_weir_conf_for(r)->compat && ctx->refused != r)
        tell_refusal(r, asked->limits[asked->all.item]->zone, &asked->all);
    ctx->refused = r;
    return (ngx_int_t)part->status;
}

static ngx_int_t keep_taken(ngx_http_request_t *r, const struct asked *asked,
                            struct ngx_weir_ctx *ctx)
{
    ctx->taken = ngx_palloc(r->pool, asked->n * sizeof(*ctx->taken));
    if (ctx->taken == NULL)
        return NGX_ERROR;
    for (ngx_uint_t i = 0; i < asked->n; i++) {
        const struct weir_item *item = &asked->items[i];
        ctx->taken[i] = (struct weir_reservation){ .limiter = item->limiter,
                                                   .key = item->ask.key,
                                                   .cost = item->ask.cost,
                                                   .turn = item->ask.now + asked->each[i].wait,
                                                   .expires = INT64_MAX };
    }
    ctx->n_taken = asked->n;
    return NGX_OK;
}

/* It must wait, or other limits may refuse it yet. */
static ngx_int_t grant_openly(ngx_http_request_t *r, const struct ngx_weir_part *part,
                              const struct asked *asked, weir_time wait, ngx_uint_t which)
{
    struct ngx_weir_ctx *ctx = ngx_weir_ctx_get(r);

    if (ctx == NULL || keep_taken(r, asked, ctx) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    if (wait == 0)
        return NGX_DECLINED;
    log_delay(r, part, asked->limits[which]->zone, asked->each[which].wait);
    note(r, part->dry_run ? NGX_WEIR_DELAYED_DRY_RUN : NGX_WEIR_DELAYED);
    return part->dry_run ? NGX_DECLINED : ngx_weir_wait_turn(r, ctx, wait);
}

static ngx_int_t grant(ngx_http_request_t *r, const struct ngx_weir_loc *loc,
                       const struct asked *asked)
{
    const struct ngx_weir_part *part = &loc->req;
    ngx_uint_t which;
    weir_time wait = wait_of(asked, &which);

    note(r, NGX_WEIR_PASSED);
    for (ngx_uint_t i = 0; i < asked->n; i++)
        ngx_weir_count(asked->limits[i]->zone, wait == 0 || i != which ? NGX_WEIR_PASSED
                                               : part->dry_run         ? NGX_WEIR_DELAYED_DRY_RUN
                                                                       : NGX_WEIR_DELAYED);
    return wait > 0 || loc->conn.limits != NULL || loc->asks
               ? grant_openly(r, part, asked, wait, which)
               : NGX_DECLINED;
}

static bool take(struct asked *asked)
{
    if (asked->n > 1)
        return weir_take_all_each(asked->items, asked->n, &asked->all, asked->each);
    bool taken = weir_take(asked->items[0].limiter, &asked->items[0].ask, asked->each);
    if (!taken)
        asked->all = asked->each[0];
    return taken;
}

ngx_int_t ngx_weir_req_ask(ngx_http_request_t *r, const struct ngx_weir_loc *loc)
{
    struct weir_table *table = ngx_weir_conf_for(r)->table;
    struct asked asked;

    if (find_keys(r, &loc->req, weir_table_now(table), &asked) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    if (asked.n == 0)
        return NGX_DECLINED;
    return take(&asked) ? grant(r, loc, &asked) : refuse(r, &loc->req, &asked);
}

void ngx_weir_req_give_back(struct ngx_weir_ctx *ctx)
{
    weir_time now = weir_table_now(ctx->table);

    ctx->req_back = ctx->req_back || ctx->n_taken > 0;
    for (ngx_uint_t i = 0; i < ctx->n_taken; i++)
        (void)weir_settle(&ctx->taken[i], 0, now); /* what time has not given back */
    ctx->n_taken = 0;
}
