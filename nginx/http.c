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
    if (ctx->waits)
        ngx_weir_req_give_back(ctx);
    ngx_weir_conn_exit(ctx);
}

struct ngx_weir_ctx *ngx_weir_ctx_make(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(r->pool, sizeof(struct ngx_weir_ctx));
    struct ngx_weir_conf *conf = ngx_weir_conf_of((ngx_cycle_t *)ngx_cycle);

    if (cleanup == NULL)
        return NULL;
    struct ngx_weir_ctx *ctx = cleanup->data;
    *ctx = (struct ngx_weir_ctx){ .table = conf->table, .compat = conf->compat };
    cleanup->handler = end_request;
    ngx_http_set_ctx(r->main, ctx, ngx_http_weir_module);
    return ctx;
}

/* A redirect inside nginx forgets the contexts, but not what is to be done at the end. */
static struct ngx_weir_ctx *find_ctx(ngx_http_request_t *r)
{
    struct ngx_weir_ctx *ctx = ngx_http_get_module_ctx(r->main, ngx_http_weir_module);

    if (ctx != NULL || !(r->internal || r->main->internal || r->filter_finalize))
        return ctx;
    for (ngx_pool_cleanup_t *c = r->pool->cleanup; c != NULL && ctx == NULL; c = c->next)
        if (c->handler == end_request)
            ctx = c->data;
    ngx_http_set_ctx(r->main, ctx, ngx_http_weir_module);
    return ctx;
}

static ngx_int_t ask(ngx_http_request_t *r, const struct ngx_weir_loc *loc,
                     struct ngx_weir_ctx **ctx)
{
    ngx_int_t code = NGX_DECLINED;

    if (loc->req.limits != NULL && (*ctx == NULL || (*ctx)->req == NGX_WEIR_NONE))
        code = ngx_weir_req_ask(r, &loc->req, ctx);
    if (code == NGX_DECLINED && loc->conn.limits != NULL &&
        (*ctx == NULL || (*ctx)->conn == NGX_WEIR_NONE))
        code = ngx_weir_conn_enter(r, &loc->conn, ctx);
    if (code == NGX_DECLINED && loc->check &&
        (*ctx == NULL || (*ctx)->ruled == NULL || (*ctx)->ruled->open))
        code = ngx_weir_check(r, loc, ctx);
    return code;
}

static ngx_int_t handle(ngx_http_request_t *r)
{
    struct ngx_weir_loc *loc = ngx_http_get_module_loc_conf(r, ngx_http_weir_module);

    if (loc->req.limits == NULL && loc->conn.limits == NULL && !loc->check)
        return NGX_DECLINED;
    struct ngx_weir_ctx *ctx = find_ctx(r);
    ngx_int_t code = ask(r, loc, &ctx);
    if (code == NGX_DECLINED && ctx != NULL) { /* it is in: the units are used */
        ctx->n_taken = 0;
        if (ctx->ruled != NULL)
            ctx->ruled->visit.taken = NULL;
    }
    return code;
}

/* Every request ends here, however it ends. */
static ngx_int_t log_request(ngx_http_request_t *r)
{
    struct ngx_weir_ctx *ctx = find_ctx(r);

    if (ctx != NULL)
        ngx_weir_check_exit(ctx, r);
    return NGX_OK;
}

/* -------------------------------------------------------------- variables ---- */

static ngx_int_t show_status(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t kind)
{
    static const char *const names[] = { "",         "PASSED",          "DELAYED",
                                         "REJECTED", "DELAYED_DRY_RUN", "REJECTED_DRY_RUN" };
    struct ngx_weir_ctx *ctx = find_ctx(r);
    enum ngx_weir_status status = ctx == NULL            ? NGX_WEIR_NONE
                                  : kind == NGX_WEIR_REQ ? ctx->req
                                                         : ctx->conn;

    v->not_found = status == NGX_WEIR_NONE;
    v->valid = !v->not_found;
    v->no_cacheable = 0;
    v->data = (u_char *)names[status];
    v->len = (unsigned)ngx_strlen(names[status]) & 0xfffffff;
    return NGX_OK;
}

enum shown { RULE, OUTCOME, REMAINING, LEVEL, GUARD, WAIT };

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
    struct ngx_weir_ctx *ctx = find_ctx(r);
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
                 { ngx_string("weir_wait"), show_ruling, WAIT } };

    for (ngx_uint_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        ngx_http_variable_t *v = ngx_http_add_variable(cf, &rows[i].name, NGX_HTTP_VAR_NOCACHEABLE);
        if (v == NULL)
            return NGX_ERROR;
        v->get_handler = rows[i].show;
        v->data = rows[i].what;
    }
    return NGX_OK;
}

/* ------------------------------------------------------------- directives ---- */

static struct ngx_weir_limit *add_limit(ngx_conf_t *cf, struct ngx_weir_part *part,
                                        enum ngx_weir_kind kind, const ngx_str_t *name)
{
    struct ngx_weir_conf *conf = ngx_weir_conf_of(cf->cycle);
    struct ngx_weir_limit **place, **all, *limit = ngx_pcalloc(cf->pool, sizeof(*limit));

    if (part->limits == NULL)
        part->limits = ngx_array_create(cf->pool, 2, sizeof(limit));
    if (limit == NULL || part->limits == NULL ||
        (limit->zone = ngx_weir_zone_get(cf->cycle, kind, name)) == NULL ||
        (place = ngx_array_push(part->limits)) == NULL ||
        (all = ngx_array_push(&conf->limits)) == NULL)
        return NULL;
    *place = *all = limit;
    limit->file = cf->conf_file->file.name.data;
    limit->line = cf->conf_file->line;
    return limit;
}

static char *check_place(const struct ngx_weir_part *part, const struct ngx_weir_limit *limit)
{
    struct ngx_weir_limit **limits = part->limits->elts;

    if (part->limits->nelts > WEIR_ALL_MAX)
        return "stands here more than 64 times";
    for (ngx_uint_t i = 0; limits[i] != limit; i++)
        if (limits[i]->zone == limit->zone)
            return "is duplicate";
    return NGX_CONF_OK;
}

/* Of NAME=N; 0: it is not that word, -1: N is not above 0. */
static ngx_int_t number_after(const ngx_str_t *word, const char *name)
{
    size_t len = ngx_strlen(name);

    if (word->len < len || ngx_strncmp(word->data, name, len) != 0)
        return 0;
    ngx_int_t n = ngx_atoi(word->data + len, word->len - len);
    return n > 0 ? n : -1;
}

/* False: it makes no sense. */
static bool read_req_word(const ngx_str_t *word, ngx_str_t *name, int64_t *burst, int64_t *delay)
{
    ngx_int_t n;

    if (ngx_strncmp(word->data, "zone=", 5) == 0)
        *name = (ngx_str_t){ word->len - 5, word->data + 5 };
    else if ((n = number_after(word, "burst=")) > 0)
        *burst = n;
    else if (n == 0 && (n = number_after(word, "delay=")) > 0)
        *delay = n;
    else if (ngx_strcmp(word->data, "nodelay") == 0)
        *delay = -1;
    else
        return false;
    return true;
}

/* weir_req zone=NAME [burst=N] [nodelay | delay=N] */
static char *set_req(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct ngx_weir_part *part = &((struct ngx_weir_loc *)data)->req;
    ngx_str_t *words = cf->args->elts, name = ngx_null_string;
    int64_t burst = 0, delay = 0;

    (void)command;
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++)
        if (!read_req_word(&words[i], &name, &burst, &delay)) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid parameter \"%V\"", &words[i]);
            return NGX_CONF_ERROR;
        }
    if (name.len == 0)
        return "needs zone=NAME";
    struct ngx_weir_limit *limit = add_limit(cf, part, NGX_WEIR_REQ, &name);
    if (limit == NULL)
        return NGX_CONF_ERROR;
    limit->burst = burst;
    limit->delay = delay;
    return check_place(part, limit);
}

/* weir_conn NAME MAX */
static char *set_conn(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct ngx_weir_part *part = &((struct ngx_weir_loc *)data)->conn;
    ngx_str_t *words = cf->args->elts;
    ngx_int_t max = ngx_atoi(words[2].data, words[2].len);

    (void)command;
    if (max <= 0 || max > 65535)
        return "needs a number of connections from 1 to 65535";
    if (max > NGX_WEIR_CONN_MAX)
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0, "%i connections become %d, the most there are", max,
                           NGX_WEIR_CONN_MAX);
    struct ngx_weir_limit *limit = add_limit(cf, part, NGX_WEIR_CONN, &words[1]);
    if (limit == NULL)
        return NGX_CONF_ERROR;
    limit->max = max;
    return check_place(part, limit);
}

static ngx_conf_enum_t log_levels[] = { { ngx_string("info"), NGX_LOG_INFO },
                                        { ngx_string("notice"), NGX_LOG_NOTICE },
                                        { ngx_string("warn"), NGX_LOG_WARN },
                                        { ngx_string("error"), NGX_LOG_ERR },
                                        { ngx_null_string, 0 } };
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
      AT(req.log_level), log_levels },
    { ngx_string("weir_req_dry_run"), ANYWHERE | NGX_CONF_FLAG, ngx_conf_set_flag_slot,
      AT(req.dry_run), NULL },
    { ngx_string("weir_conn_zone"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE2, ngx_weir_conn_zone, 0, 0,
      NULL },
    { ngx_string("weir_conn"), ANYWHERE | NGX_CONF_TAKE2, set_conn, AT(conn), NULL },
    { ngx_string("weir_conn_status"), ANYWHERE | NGX_CONF_TAKE1, ngx_conf_set_num_slot,
      AT(conn.status), &statuses },
    { ngx_string("weir_conn_log_level"), ANYWHERE | NGX_CONF_TAKE1, ngx_conf_set_enum_slot,
      AT(conn.log_level), log_levels },
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
    { ngx_string("weir_attribute"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE2, ngx_weir_attribute_set, 0,
      0, NULL },
    { ngx_string("weir_check"), ANYWHERE | NGX_CONF_FLAG, ngx_conf_set_flag_slot, AT(check), NULL },
    { ngx_string("weir_wait"), ANYWHERE | NGX_CONF_TAKE1, ngx_conf_set_msec_slot, AT(wait), NULL },
    { ngx_string("weir_status"), NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS, ngx_weir_status_set, 0, 0,
      NULL },
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

static void unset(struct ngx_weir_part *part)
{
    part->status = NGX_CONF_UNSET_UINT;
    part->log_level = NGX_CONF_UNSET_UINT;
    part->dry_run = NGX_CONF_UNSET;
}

static void *create_loc(ngx_conf_t *cf)
{
    struct ngx_weir_loc *loc = ngx_pcalloc(cf->pool, sizeof(*loc));

    if (loc != NULL) {
        unset(&loc->req);
        unset(&loc->conn);
        loc->check = loc->headers = NGX_CONF_UNSET;
        loc->wait = NGX_CONF_UNSET_MSEC;
    }
    return loc;
}

static void merge(struct ngx_weir_part *from, struct ngx_weir_part *into, ngx_uint_t status)
{
    if (into->limits == NULL)
        into->limits = from->limits;
    ngx_conf_merge_uint_value(into->status, from->status, status);
    ngx_conf_merge_uint_value(into->log_level, from->log_level, NGX_LOG_ERR);
    ngx_conf_merge_value(into->dry_run, from->dry_run, 0);
}

static char *merge_loc(ngx_conf_t *cf, void *parent, void *child)
{
    struct ngx_weir_loc *from = parent, *into = child;
    ngx_uint_t status = ngx_weir_conf_of(cf->cycle)->compat ? NGX_HTTP_SERVICE_UNAVAILABLE
                                                            : NGX_HTTP_TOO_MANY_REQUESTS;

    merge(&from->req, &into->req, status);
    merge(&from->conn, &into->conn, status);
    ngx_conf_merge_value(into->check, from->check, 1);
    ngx_conf_merge_value(into->headers, from->headers, 1);
    ngx_conf_merge_msec_value(into->wait, from->wait, 0);
    if (ngx_weir_conf_of(cf->cycle)->rules == NULL)
        into->check = 0;
    return NGX_CONF_OK;
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
    .create_loc_conf = create_loc,
    .merge_loc_conf = merge_loc,
};

ngx_module_t ngx_http_weir_module = { NGX_MODULE_V1, &context, commands, NGX_HTTP_MODULE,
                                      NULL,          NULL,     NULL,     NULL,
                                      NULL,          NULL,     NULL,     NGX_MODULE_V1_PADDING };
