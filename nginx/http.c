/* http.c -- the http module: directives, variables, and a request's way through the limits.
 *
 * Limits are asked before access is checked: the rate, the connections, the rules; once for a
 * request and all its subrequests and redirects.  If one refuses, those before it get back what
 * they gave: a refusal takes nothing.
 *
 * Each directive has the name, the arguments and the meaning of limit_req's or limit_conn's, with
 * weir_ in place of limit_.  With weir_compat it has that name too. */
#include "module.h"

/* ------------------------------------------------------------ the request ---- */

static void end_request(void *data)
{
    struct ngx_weir_ctx *ctx = data;

    ngx_weir_check_exit(ctx, NULL);
    if (ctx->waiter != NULL)
        ngx_weir_req_give_back(ctx);
    if (ctx->timer.timer_set)
        ngx_del_timer(&ctx->timer);
    ngx_weir_conn_exit(ctx);
}

struct ngx_weir_ctx *ngx_weir_ctx_get(ngx_http_request_t *r)
{
    struct ngx_weir_memo *memo = ngx_weir_memo_of(r);
    struct ngx_weir_ctx *ctx = memo->ctx;

    if (ctx != NULL || (ctx = ngx_pcalloc(r->pool, sizeof(*ctx))) == NULL)
        return ctx;
    ctx->table = ngx_weir_conf_for(r)->table;
    ngx_queue_init(&ctx->behind);
    ctx->cleanup = (ngx_pool_cleanup_t){ end_request, ctx, r->pool->cleanup };
    r->pool->cleanup = &ctx->cleanup;
    return memo->ctx = ctx;
}

/* It was refused, and this is the page of the refusal or a part of that page. */
static bool is_page(const ngx_http_request_t *r, const struct ngx_weir_ctx *ctx)
{
    while (r != r->main && r != ctx->refused)
        r = r->parent;
    return r == ctx->refused;
}

/* The rules have not decided yet.  The page of a refusal costs nothing. */
static bool is_unruled(const ngx_http_request_t *r, const struct ngx_weir_ctx *ctx)
{
    return ctx == NULL || (!is_page(r, ctx) && (ctx->ruled == NULL || ctx->ruled->open));
}

/* A part that has back what it gave is asked again where the page has limits of its kind. */
static void forget_given_back(const struct ngx_weir_loc *loc, struct ngx_weir_memo *memo)
{
    struct ngx_weir_ctx *ctx = memo->ctx;

    if (ctx->req_back && loc->req.limits != NULL) {
        memo->req = NGX_WEIR_NONE;
        ctx->req_back = false;
    }
    if (ctx->conn_back && loc->conn.limits != NULL) {
        memo->conn = NGX_WEIR_NONE;
        ctx->conn_back = false;
    }
}

static ngx_int_t ask(ngx_http_request_t *r, const struct ngx_weir_loc *loc,
                     const struct ngx_weir_memo *memo)
{
    ngx_int_t code = NGX_DECLINED;

    if (loc->req.limits != NULL && memo->req == NGX_WEIR_NONE)
        code = ngx_weir_req_ask(r, loc);
    if (code == NGX_DECLINED && loc->conn.limits != NULL && memo->conn == NGX_WEIR_NONE)
        code = ngx_weir_conn_enter(r, &loc->conn);
    if (code == NGX_DECLINED && loc->asks && is_unruled(r, memo->ctx))
        code = ngx_weir_check(r, loc);
    return code;
}

/* Another subrequest was refused: so is this one. */
static ngx_int_t refuse_too(ngx_http_request_t *r, const struct ngx_weir_loc *loc,
                            const struct ngx_weir_memo *memo)
{
    const struct ngx_weir_ctx *ctx = memo->ctx;

    return memo->req == NGX_WEIR_REJECTED ? (ngx_int_t)loc->req.status
           : memo->conn == NGX_WEIR_REJECTED
               ? (ngx_int_t)loc->conn.status
               : ngx_weir_answer(r, ctx->ruled->weir, &ctx->ruled->visit.ruling);
}

/* Without the table. */
static ngx_int_t refuse_blindly(const struct ngx_weir_loc *loc)
{
    return loc->asks || ngx_weir_part_refuses(&loc->req) || ngx_weir_part_refuses(&loc->conn)
               ? NGX_HTTP_SERVICE_UNAVAILABLE
               : NGX_DECLINED;
}

/* A part of the request: it may come from an upstream that failed, and ask another one. */
static void note_redirect(ngx_http_request_t *r)
{
    struct ngx_weir_ctx *ctx = ngx_weir_ctx_find(r);

    if (ctx != NULL && ctx->ruled != NULL)
        ngx_weir_note_part(r, ctx->ruled);
}

static ngx_int_t handle(ngx_http_request_t *r)
{
    struct ngx_weir_loc *loc = ngx_http_get_module_loc_conf(r, ngx_http_weir_module);

    if (r != r->main)
        note_redirect(r);
    if (loc->req.limits == NULL && loc->conn.limits == NULL && !loc->asks)
        return NGX_DECLINED;
    if (ngx_weir_table_gone)
        return refuse_blindly(loc);
    struct ngx_weir_memo *memo = ngx_weir_memo_of(r);
    if (memo->ctx != NULL && memo->ctx->waiter != NULL)
        return memo->ctx->waiter == r ? NGX_AGAIN : ngx_weir_wait_behind(r, memo->ctx);
    if (memo->ctx != NULL && memo->ctx->refused != NULL) {
        if (r != r->main && !is_page(r, memo->ctx)) /* else it goes on without a part */
            return refuse_too(r, loc, memo);
        forget_given_back(loc, memo);
    }
    ngx_int_t code = ask(r, loc, memo);
    if (code == NGX_DECLINED && memo->ctx != NULL) { /* it is in: the units are used */
        memo->ctx->n_taken = 0;
        memo->ctx->in = memo->ctx->n_held > 0;
        if (memo->ctx->ruled != NULL)
            memo->ctx->ruled->taken = NULL;
    }
    return code;
}

/* Every request ends here, however it ends; with log_subrequest its parts too, before it. */
static ngx_int_t log_request(ngx_http_request_t *r)
{
    struct ngx_weir_ctx *ctx = ngx_weir_ctx_find(r);

    if (ctx != NULL && r == r->main)
        ngx_weir_check_exit(ctx, r);
    return NGX_OK;
}

/* -------------------------------------------------------------- variables ---- */

static ngx_int_t show_status(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t kind)
{
    const struct ngx_weir_memo *memo = ngx_weir_memo_of(r);

    ngx_weir_status_show(kind == NGX_WEIR_REQ ? memo->req : memo->conn, v);
    return NGX_OK;
}

enum shown { RULE, OUTCOME, REMAINING, LEVEL, GUARD, SHADOW, WAIT };

static const char *text_of(const struct ngx_weir_ruled *ruled, uintptr_t what, char number[24])
{
    const struct weir_ruling *ruling = &ruled->visit.ruling;
    long long ms = (ruled->waited + WEIR_MILLISECOND - 1) / WEIR_MILLISECOND;

    number[0] = '\0';
    switch (what) {
    case RULE:
        return ruling->rule;
    case OUTCOME:
        return weir_reason_name(ruling->decision.reason);
    case GUARD:
        return ruling->guard;
    case SHADOW:
        return ruling->shadow;
    case REMAINING:
        if (ruling->rule == NULL)
            return NULL;
        *ngx_sprintf((u_char *)number, "%L", ruling->decision.remaining) = '\0';
        return number;
    case WAIT: /* as nginx shows times */
        *ngx_sprintf((u_char *)number, "%L.%03L", ms / 1000, ms % 1000) = '\0';
        return number;
    default:
        *ngx_sprintf((u_char *)number, "%d", (int)ruling->level) = '\0';
        return number;
    }
}

/* Of the ruling. */
static ngx_int_t show_ruling(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t what)
{
    struct ngx_weir_ctx *ctx = ngx_weir_ctx_find(r);
    char number[24];
    const char *text = ctx == NULL || ctx->ruled == NULL ? NULL : text_of(ctx->ruled, what, number);

    v->not_found = text == NULL;
    if (text == NULL)
        return NGX_OK;
    v->len = (unsigned)ngx_strlen(text) & 0xfffffff;
    v->data = ngx_pnalloc(r->pool, v->len);
    if (v->data == NULL)
        return NGX_ERROR;
    ngx_memcpy(v->data, text, v->len);
    v->valid = 1;
    v->no_cacheable = 0;
    return NGX_OK;
}

/* Nobody asks for it. */
static ngx_int_t show_nothing(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data)
{
    (void)r;
    (void)v;
    (void)data;
    return NGX_ERROR;
}

static ngx_int_t add_memo(ngx_conf_t *cf)
{
    struct ngx_weir_main *conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module);
    ngx_str_t name = ngx_string("weir: what is known about a request");
    ngx_http_variable_t *v = ngx_http_add_variable(cf, &name, NGX_HTTP_VAR_NOHASH);

    if (v == NULL)
        return NGX_ERROR;
    v->get_handler = show_nothing;
    conf->memo = ngx_http_get_variable_index(cf, &name);
    return conf->memo == NGX_ERROR ? NGX_ERROR : NGX_OK;
}

static ngx_int_t add_variables(ngx_conf_t *cf)
{
    static struct {
        ngx_str_t name;
        ngx_http_get_variable_pt show;
        uintptr_t what;
    } rows[] = { { ngx_string("weir_req_status"), show_status, NGX_WEIR_REQ },
                 { ngx_string("weir_conn_status"), show_status, NGX_WEIR_CONN },
                 { ngx_string("weir_rule"), show_ruling, RULE },
                 { ngx_string("weir_outcome"), show_ruling, OUTCOME },
                 { ngx_string("weir_remaining"), show_ruling, REMAINING },
                 { ngx_string("weir_level"), show_ruling, LEVEL },
                 { ngx_string("weir_guard"), show_ruling, GUARD },
                 { ngx_string("weir_shadow"), show_ruling, SHADOW },
                 { ngx_string("weir_wait"), show_ruling, WAIT } };

    for (ngx_uint_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        ngx_http_variable_t *v = ngx_http_add_variable(cf, &rows[i].name, NGX_HTTP_VAR_NOCACHEABLE);
        if (v == NULL)
            return NGX_ERROR;
        v->get_handler = rows[i].show;
        v->data = rows[i].what;
    }
    return add_memo(cf);
}

/* ------------------------------------------------------------- directives ---- */

/* weir_req zone=NAME [burst=N] [nodelay | delay=N] */
static char *set_req(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    (void)command;
    return ngx_weir_req_read(cf, &((struct ngx_weir_loc *)data)->req, NGX_WEIR_REQ);
}

/* weir_conn NAME MAX */
static char *set_conn(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    (void)command;
    return ngx_weir_conn_read(cf, &((struct ngx_weir_loc *)data)->conn, NGX_WEIR_CONN);
}

/* weir_wait TIME */
static char *set_wait(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    char *problem = ngx_conf_set_msec_slot(cf, command, data);

    ngx_weir_conf_of(cf->cycle)->waits |= ((struct ngx_weir_loc *)data)->wait > 0;
    return problem;
}

static ngx_conf_num_bounds_t statuses = { ngx_conf_check_num_bounds, 400, 599 };

#define ANYWHERE (NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF)
#define AT(part) NGX_HTTP_LOC_CONF_OFFSET, offsetof(struct ngx_weir_loc, part)
#define OWN_ROWS 10
#define ROW(name)                                      \
    {                                                  \
        ngx_string("limit_" name), 0, NULL, 0, 0, NULL \
    }

static ngx_command_t commands[] = {
    { ngx_string("weir_req_zone"), NGX_HTTP_MAIN_CONF | NGX_CONF_2MORE, ngx_weir_req_zone, 0, 0,
      NULL },
    { ngx_string("weir_req"), ANYWHERE | NGX_CONF_TAKE123, set_req, AT(req), NULL },
    { ngx_string("weir_req_status"), ANYWHERE | NGX_CONF_TAKE1, ngx_conf_set_num_slot,
      AT(req.status), &statuses },
    { ngx_string("weir_req_log_level"), ANYWHERE | NGX_CONF_TAKE1, ngx_conf_set_enum_slot,
      AT(req.log_level), ngx_weir_log_levels },
    { ngx_string("weir_req_dry_run"), ANYWHERE | NGX_CONF_FLAG, ngx_conf_set_flag_slot,
      AT(req.dry_run), NULL },
    { ngx_string("weir_conn_zone"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE2, ngx_weir_conn_zone, 0, 0,
      NULL },
    { ngx_string("weir_conn"), ANYWHERE | NGX_CONF_TAKE2, set_conn, AT(conn), NULL },
    { ngx_string("weir_conn_status"), ANYWHERE | NGX_CONF_TAKE1, ngx_conf_set_num_slot,
      AT(conn.status), &statuses },
    { ngx_string("weir_conn_log_level"), ANYWHERE | NGX_CONF_TAKE1, ngx_conf_set_enum_slot,
      AT(conn.log_level), ngx_weir_log_levels },
    { ngx_string("weir_conn_dry_run"), ANYWHERE | NGX_CONF_FLAG, ngx_conf_set_flag_slot,
      AT(conn.dry_run), NULL },
    /* The same in this order, filled in by ngx_weir_compat_set. */
    ROW("req_zone"),
    ROW("req"),
    ROW("req_status"),
    ROW("req_log_level"),
    ROW("req_dry_run"),
    ROW("conn_zone"),
    ROW("conn"),
    ROW("conn_status"),
    ROW("conn_log_level"),
    ROW("conn_dry_run"),
    { ngx_string("weir_rules"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE12, ngx_weir_rules_set, 0, 0,
      NULL },
    { ngx_string("weir_fleet"), NGX_HTTP_MAIN_CONF | NGX_CONF_1MORE, ngx_weir_fleet_set, 0, 0,
      NULL },
    { ngx_string("weir_attribute"), ANYWHERE | NGX_CONF_TAKE2, ngx_weir_attribute_set,
      NGX_HTTP_LOC_CONF_OFFSET, 0, NULL },
    { ngx_string("weir_check"), ANYWHERE | NGX_CONF_FLAG, ngx_conf_set_flag_slot, AT(check), NULL },
    { ngx_string("weir_wait"), ANYWHERE | NGX_CONF_TAKE1, set_wait, AT(wait), NULL },
    { ngx_string("weir_status"), NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS, ngx_weir_status_set,
      NGX_HTTP_LOC_CONF_OFFSET, 0, NULL },
    { ngx_string("weir_headers"), ANYWHERE | NGX_CONF_FLAG, ngx_conf_set_flag_slot, AT(headers),
      NULL },
    ngx_null_command
};

/* nginx passes over a directive that is allowed nowhere, and finds its own of that name. */
void ngx_weir_compat_set(bool on)
{
    for (ngx_uint_t i = 0; i < OWN_ROWS; i++) {
        ngx_str_t name = commands[OWN_ROWS + i].name;
        commands[OWN_ROWS + i] = commands[i];
        commands[OWN_ROWS + i].name = name;
        if (!on)
            commands[OWN_ROWS + i].type = 0;
    }
}

/* --------------------------------------------------------- configurations ---- */

static void *create_main(ngx_conf_t *cf)
{
    struct ngx_weir_main *conf = ngx_pcalloc(cf->pool, sizeof(*conf));

    if (conf != NULL)
        conf->conf = ngx_weir_conf_of(cf->cycle);
    return conf;
}

static void *create_loc(ngx_conf_t *cf)
{
    struct ngx_weir_loc *loc = ngx_pcalloc(cf->pool, sizeof(*loc));

    if (loc != NULL) {
        ngx_weir_part_unset(&loc->req);
        ngx_weir_part_unset(&loc->conn);
        loc->check = loc->headers = NGX_CONF_UNSET;
        loc->wait = NGX_CONF_UNSET_MSEC;
    }
    return loc;
}

static char *merge_loc(ngx_conf_t *cf, void *parent, void *child)
{
    struct ngx_weir_loc *from = parent, *into = child;
    ngx_uint_t status = ngx_weir_conf_of(cf->cycle)->compat ? NGX_HTTP_SERVICE_UNAVAILABLE
                                                            : NGX_HTTP_TOO_MANY_REQUESTS;

    ngx_weir_part_merge(&from->req, &into->req, status);
    ngx_weir_part_merge(&from->conn, &into->conn, status);
    bool exempt = into->shows_status && into->check == NGX_CONF_UNSET;
    ngx_conf_merge_value(into->check, from->check, 1);
    ngx_conf_merge_value(into->headers, from->headers, 1);
    ngx_conf_merge_msec_value(into->wait, from->wait, 0);
    into->asks = into->check && !exempt && ngx_weir_conf_of(cf->cycle)->rules != NULL;
    return ngx_weir_attributes_merge(cf, from, into) == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR;
}

static ngx_int_t finish(ngx_conf_t *cf)
{
    ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    ngx_http_handler_pt *before = ngx_array_push(&core->phases[NGX_HTTP_PREACCESS_PHASE].handlers),
                        *after = ngx_array_push(&core->phases[NGX_HTTP_LOG_PHASE].handlers);

    if (before == NULL || after == NULL)
        return NGX_ERROR;
    *before = handle;
    *after = log_request;
    return ngx_weir_rules_resolve(cf);
}

static ngx_http_module_t context = {
    .preconfiguration = add_variables,
    .postconfiguration = finish,
    .create_main_conf = create_main,
    .create_loc_conf = create_loc,
    .merge_loc_conf = merge_loc,
};

ngx_module_t ngx_http_weir_module = { NGX_MODULE_V1, &context, commands, NGX_HTTP_MODULE,
                                      NULL,          NULL,     NULL,     NULL,
                                      NULL,          NULL,     NULL,     NGX_MODULE_V1_PADDING };
