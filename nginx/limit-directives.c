/* limit-directives.c -- weir_req and weir_conn as they are written, in http {} and in stream {}. */
#include "module.h"

ngx_conf_enum_t ngx_weir_log_levels[] = { { ngx_string("info"), NGX_LOG_INFO },
                                          { ngx_string("notice"), NGX_LOG_NOTICE },
                                          { ngx_string("warn"), NGX_LOG_WARN },
                                          { ngx_string("error"), NGX_LOG_ERR },
                                          { ngx_null_string, 0 } };

void ngx_weir_status_show(enum ngx_weir_status status, ngx_variable_value_t *v)
{
    static const char *const names[] = { "",         "PASSED",          "DELAYED",
                                         "REJECTED", "DELAYED_DRY_RUN", "REJECTED_DRY_RUN" };

    v->not_found = status == NGX_WEIR_NONE;
    v->valid = !v->not_found;
    v->no_cacheable = 0;
    v->data = (u_char *)names[status];
    v->len = (unsigned)ngx_strlen(names[status]) & 0xfffffff;
}

/* What a word sets; empty: it belongs to the one before. */
static ngx_str_t option_of(const ngx_str_t *word)
{
    u_char *equals = ngx_strlchr(word->data, word->data + word->len, '=');

    if (ngx_strcmp(word->data, "nodelay") == 0)
        return (ngx_str_t)ngx_string("delay");
    return (ngx_str_t){ equals == NULL ? 0 : (size_t)(equals - word->data), word->data };
}

char *ngx_weir_options_check(ngx_conf_t *cf, ngx_uint_t first)
{
    const ngx_str_t *words = cf->args->elts;

    for (ngx_uint_t i = first; i < cf->args->nelts; i++)
        for (ngx_uint_t j = first; j < i; j++) {
            ngx_str_t a = option_of(&words[i]), b = option_of(&words[j]);
            if (a.len == 0 || a.len != b.len || ngx_strncmp(a.data, b.data, a.len) != 0)
                continue;
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "%V: \"%V\" and \"%V\": only one of them can stand here", words,
                               &words[j], &words[i]);
            return NGX_CONF_ERROR;
        }
    return NGX_CONF_OK;
}

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

char *ngx_weir_req_read(ngx_conf_t *cf, struct ngx_weir_part *part, enum ngx_weir_kind kind)
{
    ngx_str_t *words = cf->args->elts, name = ngx_null_string;
    int64_t burst = 0, delay = 0;

    if (ngx_weir_options_check(cf, 1) != NGX_CONF_OK)
        return NGX_CONF_ERROR;
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++)
        if (!read_req_word(&words[i], &name, &burst, &delay)) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\": it takes zone=NAME burst=N delay=N "
                               "nodelay, N from 1",
                               &words[i]);
            return NGX_CONF_ERROR;
        }
    if (name.len == 0)
        return "needs zone=NAME";
    if ((kind & NGX_WEIR_STREAM) != 0 && delay > 0)
        return "has no delay in stream: connections do not wait";
    struct ngx_weir_limit *limit = add_limit(cf, part, kind, &name);
    if (limit == NULL)
        return NGX_CONF_ERROR;
    limit->burst = burst;
    limit->delay = delay;
    return check_place(part, limit);
}

char *ngx_weir_conn_read(ngx_conf_t *cf, struct ngx_weir_part *part, enum ngx_weir_kind kind)
{
    ngx_str_t *words = cf->args->elts;
    ngx_int_t max = ngx_atoi(words[2].data, words[2].len);

    if (max <= 0 || max > 65535)
        return "needs a number of connections from 1 to 65535 (more than 16384 count as 16384)";
    if (max > NGX_WEIR_CONN_MAX)
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0, "%i connections are too many: %d are allowed", max,
                           NGX_WEIR_CONN_MAX);
    struct ngx_weir_limit *limit = add_limit(cf, part, kind, &words[1]);
    if (limit == NULL)
        return NGX_CONF_ERROR;
    limit->max = max;
    return check_place(part, limit);
}

/* ------------------------------------------------------------- inheritance ---- */

void ngx_weir_part_unset(struct ngx_weir_part *part)
{
    part->status = part->log_level = NGX_CONF_UNSET_UINT;
    part->dry_run = NGX_CONF_UNSET;
}

void ngx_weir_part_merge(struct ngx_weir_part *from, struct ngx_weir_part *into, ngx_uint_t status)
{
    if (into->limits == NULL)
        into->limits = from->limits;
    ngx_conf_merge_uint_value(into->status, from->status, status);
    ngx_conf_merge_uint_value(into->log_level, from->log_level, NGX_LOG_ERR);
    ngx_conf_merge_value(into->dry_run, from->dry_run, 0);
}

/* ------------------------------------------------------------------ asking ---- */

bool ngx_weir_take(const struct ngx_weir_limit *const *limits, const struct weir_key *keys,
                   ngx_uint_t n, ngx_uint_t *which)
{
    weir_time now = weir_table_now(limits[0]->zone->table);
    struct weir_item items[WEIR_ALL_MAX];
    struct weir_decision d;

    for (ngx_uint_t i = 0; i < n; i++)
        items[i] = (struct weir_item){
            limits[i]->zone->limiter,
            { .key = keys[i], .cost = 1, .wait_max = limits[i]->wait_max, .now = now }
        };
    bool taken = weir_take_all(items, n, &d);
    *which = n == 1 ? 0 : d.item;
    return taken;
}
