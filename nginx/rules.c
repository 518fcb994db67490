/* rules.c -- weir_rules: a rule file.
 *
 * A rule file is read with the configuration, so `nginx -t` names its mistakes.  There it is put to
 * work on a private table first, which tells all that would be wrong with it, and which attributes
 * it looks at: a request's others are never fetched. */
#include "module.h"
#include "weir-admin.h"

#define KEYS         65536 /* of all rules; 0: weir_rules FILE keys=N */
#define KEYS_MAX     ((int64_t)1 << 30)
#define SLAB_PER_KEY 256
#define PROBLEM_MAX  700

/* ---------------------------------------------------------------- reading ---- */

static void tell_problem(void *context, const struct weir_problem *problem)
{
    ngx_conf_t *cf = context;
    ngx_str_t *words = cf->args->elts;
    char text[PROBLEM_MAX];

    (void)weir_problem_print(text, sizeof(text), (const char *)words[1].data, problem);
    ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "%s", text);
}

static int read_rules(ngx_conf_t *cf, const ngx_str_t *path, bool tell, struct weir_rules **out,
                      struct weir_error *error)
{
    struct weir_rules_options options = { .problem = tell ? tell_problem : NULL, .context = cf };

    return weir_rules_read(out, (const char *)path->data, &options, error);
}

static ngx_int_t list_attributes(ngx_conf_t *cf, struct weir *weir, ngx_array_t *out)
{
    char name[64];

    for (int64_t at = 0; weir_attribute_next(weir, &at, name);) {
        struct ngx_weir_source *source = ngx_array_push(out);
        if (source == NULL)
            return NGX_ERROR;
        ngx_memzero(source, sizeof(*source));
        source->name.len = ngx_strlen(name);
        source->name.data = ngx_pnalloc(cf->pool, sizeof(name));
        if (source->name.data == NULL)
            return NGX_ERROR;
        ngx_memcpy(source->name.data, name, sizeof(name));
    }
    return NGX_OK;
}

/* The first limit with a queue, in words; NULL: there is none. */
static const char *find_queue(ngx_conf_t *cf, const struct weir_table *table)
{
    struct weir_limiter_info info;
    struct weir_limit limit;
    char words[96];

    for (int64_t at = 0; weir_limiter_next(table, &at, &info);)
        if (weir_limit_parse(&limit, info.limit, NULL) == 0 && limit.queue > 0 &&
            weir_limiter_words(&info, words)) {
            ngx_str_t text = { ngx_strlen(words) + 1, (u_char *)words };
            return (const char *)ngx_pstrdup(cf->pool, &text);
        }
    return NULL;
}

/* On a private table.  0, or the library's code. */
static int try_rules(ngx_conf_t *cf, struct ngx_weir_rules *rules, struct weir_error *error)
{
    struct weir_table_options options = { .keys = 64,
                                          .limiters = NGX_WEIR_LIMITERS_MAX,
                                          .guards = NGX_WEIR_GUARDS_MAX };
    struct weir_table_stats stats;
    struct weir_table *table = NULL;
    struct weir_rules *read = NULL;
    struct weir *weir = NULL;
    int code = read_rules(cf, &rules->path, true, &read, error);

    if (code == 0)
        code = weir_table_create(&table, &options, error);
    if (code == 0)
        code = weir_create(&weir, &(struct weir_options){ .table = table }, error);
    if (code == 0)
        code = weir_use(weir, read, weir_table_now(table), error);
    if (code == 0) {
        read = NULL; /* the engine's */
        weir_table_stats(table, -1, &stats);
        rules->limiters = stats.limiters;
        rules->guards = stats.guards;
        rules->queue = find_queue(cf, table);
        const char *across = weir_fleet_rule(weir);
        if (across != NULL) {
            ngx_str_t name = { ngx_strlen(across) + 1, (u_char *)across };
            rules->across = (const char *)ngx_pstrdup(cf->pool, &name);
        }
        code = list_attributes(cf, weir, &rules->sources) == NGX_OK ? 0 : WEIR_NO_MEMORY;
    }
    if (read != NULL)
        weir_rules_destroy(read);
    if (weir != NULL)
        weir_destroy(weir);
    if (table != NULL)
        weir_table_destroy(table);
    return code;
}

static void forget_parsed(void *data)
{
    struct ngx_weir_rules *rules = data;

    if (rules->parsed != NULL)
        weir_rules_destroy(rules->parsed);
    rules->parsed = NULL;
}

static void forget_prepared(void *data)
{
    struct ngx_weir_rules *rules = data;

    if (rules->prepared != NULL)
        weir_prepared_destroy(rules->prepared);
    rules->prepared = NULL;
}

/* weir_rules FILE [keys=N] */
char *ngx_weir_rules_set(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct ngx_weir_conf *conf = ngx_weir_conf_of(cf->cycle);
    struct ngx_weir_rules *rules = ngx_pcalloc(cf->pool, sizeof(*rules));
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(cf->cycle->pool, 0);
    ngx_str_t *words = cf->args->elts;
    struct weir_error error = { .text = "" };

    (void)command;
    (void)data;
    if (conf->rules != NULL)
        return "is duplicate";
    if (rules == NULL || cleanup == NULL ||
        ngx_array_init(&rules->sources, cf->pool, 8, sizeof(struct ngx_weir_source)) != NGX_OK)
        return NGX_CONF_ERROR;
    rules->path = words[1];
    rules->keys = KEYS;
    if (cf->args->nelts == 3) {
        bool named = ngx_strncmp(words[2].data, "keys=", 5) == 0;
        rules->keys = named ? ngx_atoi(words[2].data + 5, words[2].len - 5) : -1;
        if (rules->keys <= 0 || rules->keys > KEYS_MAX)
            return "needs FILE [keys=N], with N from 1 to 2^30";
    }
    if (ngx_conf_full_name(cf->cycle, &rules->path, 1) != NGX_OK)
        return NGX_CONF_ERROR;
    cleanup->handler = forget_parsed;
    cleanup->data = rules;
    if (try_rules(cf, rules, &error) != 0 ||
        read_rules(cf, &rules->path, false, &rules->parsed, &error) != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "weir_rules: %s", error.text);
        return NGX_CONF_ERROR;
    }
    conf->rules = rules;
    return NGX_CONF_OK;
}

/* --------------------------------------------------------------- doubts ---- */

ngx_int_t ngx_weir_rules_resolve(ngx_conf_t *cf)
{
    struct ngx_weir_conf *conf = ngx_weir_conf_of(cf->cycle);

    if (conf->rules == NULL && conf->fleet != NULL)
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "weir: weir_fleet does nothing: it is for rules, and there is no weir_rules");
    if (conf->rules == NULL)
        return NGX_OK;
    if (conf->rules->across != NULL && conf->fleet == NULL)
        ngx_log_error(
            NGX_LOG_WARN, cf->log, 0,
            "weir: rule \"%s\" is across the fleet, and there is no weir_fleet: it counts "
            "on this host alone",
            conf->rules->across);
    if (conf->rules->queue != NULL && !conf->waits)
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "weir: %s has a queue, and there is no weir_wait: nobody waits in it, and "
                      "requests that come too early are refused",
                      conf->rules->queue);
    ngx_weir_attributes_resolve(cf, conf);
    return NGX_OK;
}

/* -------------------------------------------------------- prepare, commit ---- */

void ngx_weir_rules_size(const struct ngx_weir_rules *rules, struct weir_table_options *o)
{
    o->keys += rules->keys;
    o->slab += rules->keys * SLAB_PER_KEY;
    o->limiters += 4 * rules->limiters;
    o->guards += 4 * rules->guards;
}

int ngx_weir_rules_prepare(ngx_cycle_t *cycle, struct ngx_weir_conf *conf)
{
    struct ngx_weir_rules *rules = conf->rules;
    struct ngx_weir_source *sources = rules->sources.elts;
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(cycle->pool, 0);
    struct weir_error error = { .text = "" };

    if (cleanup == NULL)
        return WEIR_SYSTEM;
    cleanup->handler = forget_prepared; /* before the table's: the last one added runs first */
    cleanup->data = rules;
    int code = ngx_weir_engine(conf, &rules->weir, &error);
    if (code == 0)
        code = weir_prepare(&rules->prepared, rules->weir, rules->parsed, &error);
    if (code != 0)
        ngx_weir_table_lacks(cycle, conf, code, &rules->path, &error);
    for (ngx_uint_t i = 0; code == 0 && i < rules->sources.nelts; i++)
        sources[i].id = weir_attribute(rules->weir, (const char *)sources[i].name.data);
    return code;
}

void ngx_weir_rules_commit(struct ngx_weir_rules *rules, weir_time now)
{
    weir_commit(rules->prepared, now);
    rules->prepared = NULL;
    rules->parsed = NULL; /* the engine's */
}
