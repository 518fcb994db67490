/* module.c -- the core module: the table, and when a configuration comes into force.
 *
 * nginx reads a configuration, opens logs and sockets, and only then is certain to use it.
 * init_conf prepares whatever can fail: then the old configuration simply stays.  init_module
 * cannot fail: a master would exit and leave its workers behind.  `nginx -t` and `nginx -s` read
 * the configuration too, and must touch nothing. */
#include "module.h"

ngx_connection_t ngx_weir_nobody = { .fd = (ngx_socket_t)-1 };

static void *create_conf(ngx_cycle_t *cycle)
{
    struct ngx_weir_conf *conf = ngx_pcalloc(cycle->pool, sizeof(*conf));

    ngx_weir_compat_set(false);
    if (conf == NULL ||
        ngx_array_init(&conf->zones, cycle->pool, 4, sizeof(struct ngx_weir_zone *)) != NGX_OK ||
        ngx_array_init(&conf->limits, cycle->pool, 4, sizeof(struct ngx_weir_limit *)) != NGX_OK ||
        ngx_array_init(&conf->attributes, cycle->pool, 4, sizeof(ngx_str_t)) != NGX_OK)
        return NULL;
    conf->pool = cycle->pool;
    return conf;
}

/* 0, or the library's code and the reason in the log. */
static int prepare(ngx_cycle_t *cycle, struct ngx_weir_conf *conf, bool anew)
{
    if (ngx_weir_table_open(cycle, conf, anew) != NGX_OK)
        return WEIR_SYSTEM;
    int code = ngx_weir_zones_prepare(cycle, conf);
    return code == 0 && conf->rules != NULL ? ngx_weir_rules_prepare(cycle, conf) : code;
}

static char *init_conf(ngx_cycle_t *cycle, void *data)
{
    struct ngx_weir_conf *conf = data;

    if (ngx_weir_zones_check(cycle, conf) != NGX_OK)
        return NGX_CONF_ERROR;
    (void)ngx_weir_table_look(cycle->old_cycle);
    if ((conf->zones.nelts == 0 && conf->rules == NULL) || ngx_test_config ||
        ngx_process == NGX_PROCESS_SIGNALLER)
        return NGX_CONF_OK;
    int code = prepare(cycle, conf, false);
    if (ngx_weir_table_retries(conf, code)) {
        ngx_weir_zones_release(conf);
        code = prepare(cycle, conf, true);
    }
    return code == 0 ? NGX_CONF_OK : NGX_CONF_ERROR;
}

static ngx_int_t init_module(ngx_cycle_t *cycle)
{
    struct ngx_weir_conf *conf = ngx_weir_conf_of(cycle);

    if (conf->table == NULL)
        return NGX_OK;
    ngx_weir_table_commit(cycle, conf);
    ngx_weir_zones_commit(cycle, conf);
    if (conf->rules != NULL)
        ngx_weir_rules_commit(conf->rules, weir_table_now(conf->table));
    return NGX_OK;
}

static ngx_int_t init_process(ngx_cycle_t *cycle)
{
    struct weir_table *table = ngx_weir_conf_of(cycle)->table;

    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
        return NGX_OK;
    bool whole = ngx_weir_table_look(cycle);
    if (!whole)
        ngx_log_error(NGX_LOG_CRIT, cycle->log, 0,
                      "weir: the table was truncated: requests are refused until a reload");
    if (table == NULL || !whole)
        return NGX_OK;
    if (ngx_weir_held_start(cycle, table) != NGX_OK)
        return NGX_ERROR;
    ngx_weir_fleet_start(cycle, ngx_weir_conf_of(cycle));
    ngx_weir_breakers_start(cycle, ngx_weir_conf_of(cycle));
    return ngx_weir_table_start(cycle);
}

static void exit_process(ngx_cycle_t *cycle)
{
    if (!ngx_weir_table_look(cycle))
        return;
    ngx_weir_counts_share();
    ngx_weir_fleet_stop();
}

static void exit_master(ngx_cycle_t *cycle)
{
    (void)ngx_weir_table_look(cycle);
}

void ngx_weir_stream_begins(ngx_cycle_t *cycle)
{
    ngx_weir_conf_of(cycle)->streams = true;
}

bool ngx_weir_is_compat(ngx_cycle_t *cycle)
{
    return ngx_weir_conf_of(cycle)->compat;
}

/* The blocks are read when they come, so they must know. */
static char *set_compat(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct ngx_weir_conf *conf = data;
    ngx_str_t *words = cf->args->elts;

    (void)command;
    if (conf->compat_set)
        return "is duplicate";
    if (cf->cycle->conf_ctx[ngx_http_module.index] != NULL || conf->streams)
        return "must stand before \"http\" and \"stream\"";
    if (ngx_strcmp(words[1].data, "on") != 0 && ngx_strcmp(words[1].data, "off") != 0)
        return "must be \"on\" or \"off\"";
    conf->compat_set = true;
    conf->compat = ngx_strcmp(words[1].data, "on") == 0;
    ngx_weir_compat_set(conf->compat);
    return NGX_CONF_OK;
}

static ngx_command_t commands[] = {
    { ngx_string("weir_table"), NGX_MAIN_CONF | NGX_DIRECT_CONF | NGX_CONF_TAKE1,
      ngx_conf_set_str_slot, 0, offsetof(struct ngx_weir_conf, path), NULL },
    { ngx_string("weir_compat"), NGX_MAIN_CONF | NGX_DIRECT_CONF | NGX_CONF_TAKE1, set_compat, 0, 0,
      NULL },
    ngx_null_command
};

static ngx_core_module_t context = { ngx_string("weir"), create_conf, init_conf };

ngx_module_t ngx_weir_module = { NGX_MODULE_V1, &context,     commands,     NGX_CORE_MODULE,
                                 NULL,          init_module,  init_process, NULL,
                                 NULL,          exit_process, exit_master,  NGX_MODULE_V1_PADDING };

/* What nginx looks for in the file.  The http module comes before those whose directives it can
 * take over, and before realip: handlers run in the reverse order, and must see the client's
 * address.  The filter is not named, so it comes last: filters run in the reverse order too, and it
 * must see an answer before the slice filter does. */
#define SHOWN __attribute__((visibility("default")))
extern ngx_module_t *ngx_modules[];
extern char *ngx_module_names[], *ngx_module_order[];
SHOWN ngx_module_t *ngx_modules[] = { &ngx_weir_module, &ngx_http_weir_module,
                                      &ngx_http_weir_filter_module, NULL };
SHOWN char *ngx_module_names[] = { "ngx_weir_module", "ngx_http_weir_module",
                                   "ngx_http_weir_filter_module", NULL };
SHOWN char *ngx_module_order[] = { "ngx_http_weir_module", "ngx_http_limit_conn_module",
                                   "ngx_http_limit_req_module", "ngx_http_realip_module", NULL };
