/* rules.c -- weir_rules: a rule file, and where a request's attributes come from.
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

/* ------------------------------------------------------------- attributes ---- */

static bool is_same(const ngx_str_t *a, const ngx_str_t *b)
{
    return a->len == b->len && ngx_strncmp(a->data, b->data, a->len) == 0;
}

static struct ngx_weir_given *find_given(const ngx_array_t *given, const ngx_str_t *name)
{
    struct ngx_weir_given *all = given == NULL ? NULL : given->elts;

    for (ngx_uint_t i = 0; all != NULL && i < given->nelts; i++)
        if (is_same(&all[i].name, name))
            return &all[i];
    return NULL;
}

/* weir_attribute NAME VALUE */
char *ngx_weir_attribute_set(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct ngx_weir_conf *conf = ngx_weir_conf_of(cf->cycle);
    struct ngx_weir_loc *loc = data;
    ngx_str_t *words = cf->args->elts, *name = ngx_array_push(&conf->attributes);

    (void)command;
    if (find_given(loc->given, &words[1]) != NULL)
        return "is duplicate";
    if (loc->given == NULL)
        loc->given = ngx_array_create(cf->pool, 2, sizeof(struct ngx_weir_given));
    struct ngx_weir_given *given = loc->given == NULL ? NULL : ngx_array_push(loc->given);
    if (given == NULL || name == NULL)
        return NGX_CONF_ERROR;
    *name = given->name = words[1];
    ngx_memzero(&given->value, sizeof(given->value));
    ngx_http_compile_complex_value_t compile = { .cf = cf,
                                                 .value = &words[2],
                                                 .complex_value = &given->value };
    return ngx_http_compile_complex_value(&compile) == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR;
}

/* What is around it, for names that it does not give itself. */
static ngx_int_t inherit(ngx_conf_t *cf, const ngx_array_t *from, ngx_array_t **into)
{
    const struct ngx_weir_given *outer = from == NULL ? NULL : from->elts;
    ngx_array_t *own = *into;

    *into = ngx_array_create(cf->pool, 4, sizeof(*outer));
    if (*into == NULL)
        return NGX_ERROR;
    for (ngx_uint_t i = 0; own != NULL && i < own->nelts; i++) {
        struct ngx_weir_given *place = ngx_array_push(*into);
        if (place == NULL)
            return NGX_ERROR;
        *place = ((struct ngx_weir_given *)own->elts)[i];
    }
    for (ngx_uint_t i = 0; outer != NULL && i < from->nelts; i++) {
        if (find_given(own, &outer[i].name) != NULL)
            continue;
        struct ngx_weir_given *place = ngx_array_push(*into);
        if (place == NULL)
            return NGX_ERROR;
        *place = outer[i];
    }
    return NGX_OK;
}

ngx_int_t ngx_weir_attributes_merge(ngx_conf_t *cf, const struct ngx_weir_loc *from,
                                    struct ngx_weir_loc *into)
{
    const struct ngx_weir_rules *rules = ngx_weir_conf_of(cf->cycle)->rules;

    if (rules == NULL || (from->given == NULL && into->given == NULL))
        return NGX_OK;
    if (inherit(cf, from->given, &into->given) != NGX_OK)
        return NGX_ERROR;
    into->values = ngx_pcalloc(cf->pool, (rules->sources.nelts + 1) * sizeof(*into->values));
    if (into->values == NULL)
        return NGX_ERROR;
    const struct ngx_weir_source *sources = rules->sources.elts;
    for (ngx_uint_t i = 0; i < rules->sources.nelts; i++) {
        struct ngx_weir_given *given = find_given(into->given, &sources[i].name);
        into->values[i] = given == NULL ? NULL : &given->value;
    }
    return NGX_OK;
}

/* Attributes that nginx knows by itself; those with a dot are followed by a name. */
static const struct {
    const char *name;
    enum ngx_weir_place kind;
    ngx_str_t variable;
} known[] = {
    { "ip", NGX_WEIR_VARIABLE, ngx_string("remote_addr") },
    { "uri", NGX_WEIR_VARIABLE, ngx_string("request_uri") },
    { "method", NGX_WEIR_VARIABLE, ngx_string("request_method") },
    { "host", NGX_WEIR_VARIABLE, ngx_string("host") },
    { "scheme", NGX_WEIR_VARIABLE, ngx_string("scheme") },
    { "user", NGX_WEIR_VARIABLE, ngx_string("remote_user") },
    { "server", NGX_WEIR_VARIABLE, ngx_string("server_name") },
    { "header.", NGX_WEIR_HEADER, ngx_null_string },
    { "cookie.", NGX_WEIR_COOKIE, ngx_null_string },
    { "arg.", NGX_WEIR_ARGUMENT, ngx_null_string },
};

/* False: nginx does not know it. */
static bool find_known(ngx_conf_t *cf, struct ngx_weir_source *source)
{
    const char *name = (const char *)source->name.data;

    for (ngx_uint_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        size_t len = ngx_strlen(known[i].name);
        ngx_str_t variable = known[i].variable;
        if (ngx_strncmp(name, known[i].name, len) != 0 || (variable.len > 0 && name[len] != '\0'))
            continue;
        source->kind = known[i].kind;
        source->rest = (ngx_str_t){ source->name.len - len, source->name.data + len };
        source->variable = variable.len > 0 ? ngx_http_get_variable_index(cf, &variable) : -1;
        return true;
    }
    return false;
}

/* Somewhere: elsewhere the rules that need it do not apply. */
static bool is_given(const struct ngx_weir_conf *conf, const struct ngx_weir_source *source)
{
    const ngx_str_t *names = conf->attributes.elts;

    for (ngx_uint_t i = 0; i < conf->attributes.nelts; i++)
        if (is_same(&names[i], &source->name))
            return true;
    return false;
}

ngx_int_t ngx_weir_rules_resolve(ngx_conf_t *cf)
{
    static const ngx_str_t user = ngx_string("user");
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
    struct ngx_weir_source *sources = conf->rules->sources.elts;
    for (ngx_uint_t i = 0; i < conf->rules->sources.nelts; i++) {
        sources[i].variable = -1;
        bool found = find_known(cf, &sources[i]), given = is_given(conf, &sources[i]);
        if (found && !given && is_same(&sources[i].name, &user))
            ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                          "weir: rules in \"%V\" look at \"user\", which the client chooses: "
                          "no password has been checked yet, so with another name each time it "
                          "has another key; \"weir_attribute user $remote_user;\" if that is meant",
                          &conf->rules->path);
        if (!found && !given)
            ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                          "weir: rules in \"%V\" look at \"%V\", which nginx does not know: rules "
                          "that need it never apply, and where a key has a default for it, as in "
                          "{%V|none}, all clients share that; see weir_attribute",
                          &conf->rules->path, &sources[i].name, &sources[i].name);
    }
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
