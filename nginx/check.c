/* check.c -- a request and the rules: the ruling, the guards it entered.
 *
 * The request leaves its guards once, when nginx logs it; feedback.c says with what result. */
#include "module.h"

#define DRAWS_MAX   8  /* with waits for guards in between */
#define BANS_LOGGED 10 /* in a second, by a worker: an attack has many keys */

/* ----------------------------------------------------------------- decide ---- */

static ngx_int_t hold(ngx_http_request_t *r, struct ngx_weir_ruled *ruled)
{
    struct weir_entry *entry = &ruled->visit.entry;

    if (entry->n == 0)
        return NGX_OK;
    ruled->held = ngx_palloc(r->pool, entry->n * sizeof(*ruled->held));
    if (ruled->held == NULL)
        return NGX_ERROR; /* the end of the request gives the permits back */
    for (ngx_uint_t i = 0; i < entry->n; i++) {
        ruled->held[i].table = weir_table_of(ruled->weir);
        ruled->held[i].guard = entry->entered[i].guard;
        ruled->held[i].permit = entry->entered[i].permit;
        ngx_weir_hold(&ruled->held[i], r->main);
        ngx_weir_hold_look(&ruled->held[i], ruled->visit.ask.now);
    }
    return NGX_OK;
}

static char refused_key[WEIR_KEY_TEXT]; /* of a request that is decided at once */

/* Its refusal bans the key. */
static void log_ban(ngx_http_request_t *r, ngx_uint_t level, const struct weir_ruling *ruling,
                    const struct weir_visit *visit)
{
    static ngx_uint_t logged, left_out;
    static time_t second;
    weir_time length = ruling->banned_until - visit->ask.now;

    if (second != ngx_time()) {
        if (left_out > 0)
            ngx_log_error(level, r->connection->log, 0, "banning %ui more keys a while ago",
                          left_out);
        second = ngx_time();
        logged = left_out = 0;
    }
    if (logged == BANS_LOGGED) {
        left_out++;
        return;
    }
    logged++;
    ngx_log_error(level, r->connection->log, 0, "banning key \"%s\" for %Ls, by rule \"%s\"",
                  visit->key, (length + WEIR_SECOND - 1) / WEIR_SECOND, ruling->rule);
}

/* It has a turn, and enters its guards then: others need the permits meanwhile. */
static ngx_int_t delay(ngx_http_request_t *r, struct ngx_weir_ctx *ctx)
{
    struct ngx_weir_ruled *ruled = ctx->ruled;
    struct weir_visit *visit = &ruled->visit;

    ngx_log_error(NGX_LOG_INFO, r->connection->log, 0, "delaying request, by rule \"%s\"",
                  visit->ruling.rule);
    ruled->open = visit->in_turn = visit->entry.n > 0;
    ruled->granted = visit->ruling;
    visit->taken = NULL;
    visit->ask.wait_max = 0;
    weir_check_undo_enter(&visit->entry);
    ngx_weir_wait_poll();
    return ngx_weir_wait_turn(r, ctx, visit->ruling.decision.wait);
}

/* The rules have decided. */
static ngx_int_t conclude(ngx_http_request_t *r, const struct ngx_weir_loc *loc,
                          struct ngx_weir_ctx *ctx)
{
    struct ngx_weir_ruled *ruled = ctx->ruled;
    struct weir_ruling *ruling = &ruled->visit.ruling;

    ngx_weir_counts_soon(ruled->weir);
    if (ruling->decision.allowed && ruled->visit.in_turn) {
        *ruling = ruled->granted;
        ruling->decision.wait = 0;
    }
    ruled->waited = ruled->visit.ask.now - ruled->since + ruling->decision.wait;
    bool waits = ruling->decision.allowed && ruling->decision.wait > 0;
    if (loc->headers && !(waits && ruled->visit.entry.n > 0))
        ngx_weir_ruling_headers(r, ruling);
    if (waits)
        return delay(r, ctx);
    if (hold(r, ruled) != NGX_OK)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    ruled->open = false;
    if (ruling->decision.allowed)
        return NGX_DECLINED;
    if (!ruled->drawn) /* else the fleet knows */
        ngx_weir_fleet_refused(ruling, ruled->visit.key);
    if (ruling->banned_until != 0 && ruling->decision.reason != WEIR_BANNED)
        log_ban(r, loc->req.log_level, ruling, &ruled->visit);
    if (ruled->taken != NULL)
        weir_check_undo(ruled->weir, ruled->taken, ruled->visit.ask.now);
    ruled->taken = NULL;
    ngx_weir_req_give_back(ctx);
    ctx->conn_back = !ctx->in && ctx->n_held > 0;
    if (!ctx->in)
        ngx_weir_conn_exit(ctx);
    ctx->refused = r;
    return ngx_weir_answer(r, ruled->weir, ruling);
}

/* What lies on the stack must stay while the request waits; and others are decided meanwhile, so it
 * gets room for a key of its own. */
static ngx_int_t keep(ngx_http_request_t *r, struct weir_visit *visit)
{
    size_t attrs = visit->n * sizeof(*visit->attrs),
           taken = visit->taken == NULL ? 0 : sizeof(*visit->taken);
    u_char *copy = ngx_palloc(r->pool, attrs + taken + WEIR_KEY_TEXT);

    if (copy == NULL)
        return NGX_ERROR;
    ngx_memcpy(copy + attrs + taken, visit->key, WEIR_KEY_TEXT);
    visit->key = (char *)copy + attrs + taken;
    ngx_memcpy(copy, visit->attrs, attrs);
    visit->attrs = (struct weir_attr *)(void *)copy;
    if (taken > 0) {
        ngx_memcpy(copy + attrs, visit->taken, taken);
        visit->taken = (struct weir_taken *)(void *)(copy + attrs);
    }
    return NGX_OK;
}

static bool is_dry(const struct weir_ruling *ruling)
{
    return ruling->decision.reason == WEIR_DRY && !ruling->decision.allowed;
}

static bool is_busy(const struct weir_ruling *ruling)
{
    return ruling->decision.reason == WEIR_BUSY && !ruling->decision.allowed &&
           ruling->guard != NULL;
}

static ngx_int_t decide(ngx_http_request_t *r, const struct ngx_weir_loc *loc,
                        struct ngx_weir_ctx *ctx);

/* It is decided, unless a purse is dry; or the guard that was busy when there were units has a
 * queue. */
static ngx_int_t go_on(ngx_http_request_t *r, const struct ngx_weir_loc *loc,
                       struct ngx_weir_ctx *ctx)
{
    struct ngx_weir_ruled *ruled = ctx->ruled;

    if (is_dry(&ruled->visit.ruling) && ruled->draws < DRAWS_MAX) {
        ruled->draws++;
        ruled->drawn = true;
        ngx_int_t code = ngx_weir_fleet_ask(r, ruled, ruled->weir);
        if (code != NGX_DECLINED)
            return code;
    }
    if (!ruled->drawn || !is_busy(&ruled->visit.ruling))
        return conclude(r, loc, ctx);
    ruled->visit.ask.now = weir_table_now(ctx->table);
    return decide(r, loc, ctx);
}

static ngx_int_t decide(ngx_http_request_t *r, const struct ngx_weir_loc *loc,
                        struct ngx_weir_ctx *ctx)
{
    struct ngx_weir_ruled *ruled = ctx->ruled;
    struct weir_visit *visit = &ruled->visit;

    ruled->drawn = false;
    bool decided = weir_check_later(ruled->weir, visit);
    bool waits = visit->ruling.decision.wait > 0 && visit->ruling.decision.allowed,
         dry = is_dry(&visit->ruling);

    if ((!decided || waits || dry) && keep(r, visit) != NGX_OK) {
        if (!decided)
            (void)weir_check_cancel(ruled->weir, visit, visit->ask.now);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    if (!visit->in_turn)
        ruled->taken = decided && !waits ? NULL : visit->taken;
    if (decided && !waits)
        visit->taken = NULL;
    return decided ? go_on(r, loc, ctx) : ngx_weir_wait_queued(r, ruled);
}

static ngx_int_t begin(ngx_http_request_t *r, const struct ngx_weir_loc *loc,
                       const struct ngx_weir_rules *rules, struct ngx_weir_ctx *ctx)
{
    struct weir_attr attrs[NGX_WEIR_ATTRIBUTES_MAX];
    struct weir_taken taken;
    ngx_msec_t wait = ngx_min(loc->wait, (ngx_msec_t)(WEIR_FOREVER / WEIR_MILLISECOND));
    size_t n;

    ngx_int_t code = ngx_weir_describe(r, rules, attrs, &n);
    if (code != NGX_OK)
        return code;
    struct ngx_weir_ruled *ruled = ctx->ruled = ngx_pcalloc(r->pool, sizeof(*ruled));
    if (ruled == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    struct weir_visit *visit = &ruled->visit;
    ruled->weir = rules->weir;
    ruled->since = weir_table_now(ctx->table);
    visit->attrs = attrs;
    visit->n = n;
    visit->ask = (struct weir_ask){ .cost = 1,
                                    .wait_max = (weir_time)wait * WEIR_MILLISECOND,
                                    .now = ruled->since };
    visit->queue_max = WEIR_FOREVER;
    visit->taken = loc->wait > 0 ? &taken : NULL;
    visit->key = refused_key;
    visit->turn = ngx_weir_wait_over;
    visit->context = ruled;
    return decide(r, loc, ctx);
}

ngx_int_t ngx_weir_check(ngx_http_request_t *r, const struct ngx_weir_loc *loc)
{
    struct ngx_weir_conf *conf = ngx_weir_conf_for(r);
    struct ngx_weir_ctx *ctx = ngx_weir_ctx_get(r);

    if (ctx == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    if (ctx->ruled == NULL)
        return begin(r, loc, conf->rules, ctx);
    if (ctx->ruled->visit.in_turn && !ctx->ruled->entering) {
        ctx->ruled->entering = true;
        ctx->ruled->visit.ask.now = weir_table_now(ctx->table);
        return decide(r, loc, ctx);
    }
    return go_on(r, loc, ctx);
}

/* ------------------------------------------------------------------- exit ---- */

/* To give back: guards, units, a place in a queue. */
static bool has_something(const struct ngx_weir_ruled *ruled)
{
    return ruled->visit.entry.n > 0 || ruled->taken != NULL || ruled->open;
}

/* It left before the rules had decided, or before its turn. */
static void undo(struct ngx_weir_ctx *ctx, weir_time now)
{
    struct ngx_weir_ruled *ruled = ctx->ruled;
    bool open = ruled->open;

    ngx_weir_wait_leave(ruled, now);
    if (ruled->taken != NULL)
        weir_check_undo(ruled->weir, ruled->taken, now);
    if (open)
        ngx_weir_req_give_back(ctx);
    ruled->taken = NULL;
    if (ruled->held == NULL)
        (void)weir_check_exit(ruled->weir, &ruled->visit.entry, WEIR_IGNORED, now);
}

static __attribute__((noinline)) void leave(struct ngx_weir_ctx *ctx, ngx_http_request_t *r)
{
    struct ngx_weir_ruled *ruled = ctx->ruled;
    weir_time now = weir_table_now(ctx->table), took = 0;
    enum weir_outcome outcome = r == NULL ? WEIR_IGNORED : ngx_weir_feedback(r, ruled, &took);
    bool entered = ruled->visit.entry.n > 0;

    ngx_weir_counts_soon(ruled->weir);
    undo(ctx, now);
    for (ngx_uint_t i = 0; i < ruled->visit.entry.n; i++) {
        struct ngx_weir_held *h = &ruled->held[i];
        ngx_queue_remove(&h->queue);
        (void)weir_exit_after(h->guard, &h->permit, outcome, took, now);
    }
    ruled->visit.entry.n = 0;
    if (entered)
        ngx_weir_wait_poll();
}

void ngx_weir_check_exit(struct ngx_weir_ctx *ctx, ngx_http_request_t *r)
{
    if (ctx->ruled != NULL && has_something(ctx->ruled))
        leave(ctx, r);
}
