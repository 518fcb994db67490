/* stream.c -- ngx_stream_weir_module.so: the same zones and limits for stream {}.
 *
 * weir_req limits the rate of new connections and never makes them wait; weir_conn limits those
 * that are open.  Both are asked before access is checked, as limit_conn is.  With weir_compat
 * limit_conn is weir_conn.
 *
 * This file has no copy of the library: the table and all that decides is in
 * ngx_http_weir_module.so, which must be loaded before. */
#include <ngx_stream.h>

#include "shared.h"

extern ngx_module_t ngx_stream_weir_module;

struct conf {
    struct ngx_weir_part req, conn;
};

/* A session, from the first limit to its end. */
struct ctx {
    enum ngx_weir_status req, conn;
    ngx_uint_t n;
    struct ngx_weir_held held[];
};

/* -------------------------------------------------------------- the session ---- */

static void end_session(void *data)
{
    struct ctx *ctx = data;

    while (ctx->n > 0)
        ngx_weir_exit(&ctx->held[--ctx->n]);
}

static struct ctx *make_ctx(ngx_stream_session_t *s, const struct conf *conf)
{
    ngx_uint_t n = conf->conn.limits == NULL ? 0 : conf->conn.limits->nelts;
    size_t size = sizeof(struct ctx) + n * sizeof(struct ngx_weir_held);
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(s->connection->pool, size);

    if (cleanup == NULL)
        return NULL;
    ngx_memzero(cleanup->data, size);
    cleanup->handler = end_session;
    ngx_stream_set_ctx(s, cleanup->data, ngx_stream_weir_module);
    return cleanup->data;
}

/* NGX_DECLINED: it passes. */
static ngx_int_t refuse(ngx_stream_session_t *s, const struct ngx_weir_part *part,
                        const struct ngx_weir_zone *zone, const char *what,
                        enum ngx_weir_status *status)
{
    *status = part->dry_run ? NGX_WEIR_REJECTED_DRY_RUN : NGX_WEIR_REJECTED;
    ngx_weir_count(zone, *status);
    ngx_log_error(part->log_level, s->connection->log, 0, "limiting %s%s by zone \"%V\"", what,
                  part->dry_run ? ", dry run," : "", &zone->name);
    return part->dry_run ? NGX_DECLINED : NGX_STREAM_SERVICE_UNAVAILABLE;
}

static ngx_int_t ask_rates(ngx_stream_session_t *s, const struct ngx_weir_part *part,
                           struct ctx *ctx)
{
    struct ngx_weir_limit **limits = part->limits->elts;
    const struct ngx_weir_limit *asked[WEIR_ALL_MAX];
    struct weir_key keys[WEIR_ALL_MAX];
    ngx_uint_t n = 0, which;
    ngx_str_t key;

    for (ngx_uint_t i = 0; i < part->limits->nelts; i++) {
        if (ngx_stream_complex_value(s, limits[i]->zone->stream_key, &key) != NGX_OK)
            return NGX_STREAM_INTERNAL_SERVER_ERROR;
        if (key.len == 0)
            continue;
        keys[n] = (struct weir_key){ key.data, key.len };
        asked[n++] = limits[i];
    }
    if (n == 0)
        return NGX_DECLINED;
    ctx->req = NGX_WEIR_PASSED;
    bool taken = ngx_weir_take(asked, keys, n, &which);
    for (ngx_uint_t i = 0; taken && i < n; i++)
        ngx_weir_count(asked[i]->zone, NGX_WEIR_PASSED);
    if (taken)
        return NGX_DECLINED;
    return refuse(s, part, asked[which]->zone, "requests", &ctx->req);
}

/* For $limit_conn_status, which is nginx's own. */
static void note(ngx_stream_session_t *s, enum ngx_weir_status status)
{
    unsigned own = status == NGX_WEIR_NONE       ? 0
                   : status == NGX_WEIR_PASSED   ? 1
                   : status == NGX_WEIR_REJECTED ? 2
                                                 : 3;

    s->limit_conn_status = own & 3;
}

static ngx_int_t enter_all(ngx_stream_session_t *s, const struct ngx_weir_part *part,
                           struct ctx *ctx)
{
    struct ngx_weir_limit **limits = part->limits->elts;
    struct weir_decision d;
    ngx_str_t key;

    for (ngx_uint_t i = 0; i < part->limits->nelts; i++) {
        if (ngx_stream_complex_value(s, limits[i]->zone->stream_key, &key) != NGX_OK)
            return NGX_STREAM_INTERNAL_SERVER_ERROR;
        if (key.len == 0)
            continue;
        ctx->conn = NGX_WEIR_PASSED;
        if (ngx_weir_enter(limits[i], &key, &ctx->held[ctx->n], &d)) {
            ctx->n++;
            ngx_weir_count(limits[i]->zone, NGX_WEIR_PASSED);
            continue;
        }
        end_session(ctx);
        if (d.reason != WEIR_KEY_BUSY)
            ngx_log_error(NGX_LOG_ALERT, s->connection->log, 0,
                          "weir: zone \"%V\" has no room for another key or connection",
                          &limits[i]->zone->name);
        return refuse(s, part, limits[i]->zone, "connections", &ctx->conn);
    }
    return NGX_DECLINED;
}

static ngx_int_t handle(ngx_stream_session_t *s)
{
    const struct conf *conf = ngx_stream_get_module_srv_conf(s, ngx_stream_weir_module);

    if ((conf->req.limits == NULL && conf->conn.limits == NULL) ||
        ngx_stream_get_module_ctx(s, ngx_stream_weir_module) != NULL)
        return NGX_DECLINED;
    if (ngx_weir_table_gone)
        return ngx_weir_part_refuses(&conf->req) || ngx_weir_part_refuses(&conf->conn)
                   ? NGX_STREAM_SERVICE_UNAVAILABLE
                   : NGX_DECLINED;
    struct ctx *ctx = make_ctx(s, conf);
    if (ctx == NULL)
        return NGX_STREAM_INTERNAL_SERVER_ERROR;
    ngx_int_t code = NGX_DECLINED;
    if (conf->conn.limits != NULL)
        code = enter_all(s, &conf->conn, ctx);
    if (ngx_weir_is_compat((ngx_cycle_t *)ngx_cycle))
        note(s, ctx->conn);
    if (code == NGX_DECLINED && conf->req.limits != NULL)
        code = ask_rates(s, &conf->req, ctx);
    return code;
}

/* ---------------------------------------------------------------- variables ---- */

static ngx_int_t show_status(ngx_stream_session_t *s, ngx_stream_variable_value_t *v,
                             uintptr_t kind)
{
    const struct ctx *ctx = ngx_stream_get_module_ctx(s, ngx_stream_weir_module);
    enum ngx_weir_status status = ctx == NULL                   ? NGX_WEIR_NONE
                                  : kind == NGX_WEIR_STREAM_REQ ? ctx->req
                                                                : ctx->conn;

    ngx_weir_status_show(status, v);
    return NGX_OK;
}

static ngx_int_t add_variables(ngx_conf_t *cf)
{
    static struct {
        ngx_str_t name;
        uintptr_t kind;
    } rows[] = { { ngx_string("weir_req_status"), NGX_WEIR_STREAM_REQ },
                 { ngx_string("weir_conn_status"), NGX_WEIR_STREAM_CONN } };

    for (ngx_uint_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        ngx_stream_variable_t *v =
            ngx_stream_add_variable(cf, &rows[i].name, NGX_STREAM_VAR_NOCACHEABLE);
        if (v == NULL)
            return NGX_ERROR;
        v->get_handler = show_status;
        v->data = rows[i].kind;
    }
    return NGX_OK;
}

/* --------------------------------------------------------------- directives ---- */

static char *set_zone(ngx_conf_t *cf, enum ngx_weir_kind kind)
{
    ngx_stream_complex_value_t *key = ngx_pcalloc(cf->pool, sizeof(*key));
    ngx_str_t *words = cf->args->elts;
    ngx_stream_compile_complex_value_t compile = { .cf = cf,
                                                   .value = &words[1],
                                                   .complex_value = key };
    struct ngx_weir_zone *zone;

    if (key == NULL)
        return NGX_CONF_ERROR;
    char *problem = ngx_weir_zone_read(cf, kind, &zone);
    if (problem != NGX_CONF_OK)
        return problem;
    zone->stream_key = key;
    return ngx_stream_compile_complex_value(&compile) == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR;
}

static char *set_req_zone(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    (void)command;
    (void)data;
    return set_zone(cf, NGX_WEIR_STREAM_REQ);
}

static char *set_conn_zone(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    (void)command;
    (void)data;
    return set_zone(cf, NGX_WEIR_STREAM_CONN);
}

/* weir_req zone=NAME [burst=N] */
static char *set_req(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    (void)command;
    return ngx_weir_req_read(cf, &((struct conf *)data)->req, NGX_WEIR_STREAM_REQ);
}

static char *set_conn(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    (void)command;
    return ngx_weir_conn_read(cf, &((struct conf *)data)->conn, NGX_WEIR_STREAM_CONN);
}

#define ANYWHERE  (NGX_STREAM_MAIN_CONF | NGX_STREAM_SRV_CONF)
#define AT(part)  NGX_STREAM_SRV_CONF_OFFSET, offsetof(struct conf, part)
#define CONN_ROWS 4

static ngx_command_t commands[] = {
    { ngx_string("weir_req_zone"), NGX_STREAM_MAIN_CONF | NGX_CONF_2MORE, set_req_zone, 0, 0,
      NULL },
    { ngx_string("weir_req"), ANYWHERE | NGX_CONF_TAKE123, set_req, AT(req), NULL },
    { ngx_string("weir_req_log_level"), ANYWHERE | NGX_CONF_TAKE1, ngx_conf_set_enum_slot,
      AT(req.log_level), ngx_weir_log_levels },
    { ngx_string("weir_req_dry_run"), ANYWHERE | NGX_CONF_FLAG, ngx_conf_set_flag_slot,
      AT(req.dry_run), NULL },
    { ngx_string("weir_conn_zone"), NGX_STREAM_MAIN_CONF | NGX_CONF_TAKE2, set_conn_zone, 0, 0,
      NULL },
    { ngx_string("weir_conn"), ANYWHERE | NGX_CONF_TAKE2, set_conn, AT(conn), NULL },
    { ngx_string("weir_conn_log_level"), ANYWHERE | NGX_CONF_TAKE1, ngx_conf_set_enum_slot,
      AT(conn.log_level), ngx_weir_log_levels },
    { ngx_string("weir_conn_dry_run"), ANYWHERE | NGX_CONF_FLAG, ngx_conf_set_flag_slot,
      AT(conn.dry_run), NULL },
    /* The last four in this order, filled in by set_names. */
    { ngx_string("limit_conn_zone"), 0, NULL, 0, 0, NULL },
    { ngx_string("limit_conn"), 0, NULL, 0, 0, NULL },
    { ngx_string("limit_conn_log_level"), 0, NULL, 0, 0, NULL },
    { ngx_string("limit_conn_dry_run"), 0, NULL, 0, 0, NULL },
    ngx_null_command
};

/* nginx passes over a directive that is allowed nowhere, and finds its own of that name. */
static void *set_names(ngx_conf_t *cf)
{
    bool compat = ngx_weir_is_compat(cf->cycle);

    ngx_weir_stream_begins(cf->cycle);
    for (ngx_uint_t i = CONN_ROWS; i < 2 * CONN_ROWS; i++) {
        ngx_str_t name = commands[CONN_ROWS + i].name;
        commands[CONN_ROWS + i] = commands[i];
        commands[CONN_ROWS + i].name = name;
        if (!compat)
            commands[CONN_ROWS + i].type = 0;
    }
    return commands; /* there is nothing to be kept */
}

static void *create_conf(ngx_conf_t *cf)
{
    struct conf *conf = ngx_pcalloc(cf->pool, sizeof(*conf));

    if (conf != NULL) {
        ngx_weir_part_unset(&conf->req);
        ngx_weir_part_unset(&conf->conn);
    }
    return conf;
}

static char *merge_conf(ngx_conf_t *cf, void *parent, void *child)
{
    struct conf *from = parent, *into = child;

    (void)cf;
    ngx_weir_part_merge(&from->req, &into->req, 0);
    ngx_weir_part_merge(&from->conn, &into->conn, 0);
    return NGX_CONF_OK;
}

static ngx_int_t finish(ngx_conf_t *cf)
{
    ngx_stream_core_main_conf_t *core =
        ngx_stream_conf_get_module_main_conf(cf, ngx_stream_core_module);
    ngx_stream_handler_pt *handler =
        ngx_array_push(&core->phases[NGX_STREAM_PREACCESS_PHASE].handlers);

    if (handler == NULL)
        return NGX_ERROR;
    *handler = handle;
    return NGX_OK;
}

static ngx_stream_module_t context = {
    .preconfiguration = add_variables,
    .postconfiguration = finish,
    .create_main_conf = set_names,
    .create_srv_conf = create_conf,
    .merge_srv_conf = merge_conf,
};

ngx_module_t ngx_stream_weir_module = { NGX_MODULE_V1, &context, commands, NGX_STREAM_MODULE,
                                        NULL,          NULL,     NULL,     NULL,
                                        NULL,          NULL,     NULL,     NGX_MODULE_V1_PADDING };

extern ngx_module_t *ngx_modules[];
extern char *ngx_module_names[], *ngx_module_order[];
NGX_WEIR_SHOWN ngx_module_t *ngx_modules[] = { &ngx_stream_weir_module, NULL };
NGX_WEIR_SHOWN char *ngx_module_names[] = { "ngx_stream_weir_module", NULL };
NGX_WEIR_SHOWN char *ngx_module_order[] = { "ngx_stream_weir_module",
                                            "ngx_stream_limit_conn_module", NULL };
