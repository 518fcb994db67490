/* zones.c -- zones: the key of a request, and its limiter or guards in the table.
 *
 * All zones live in one table, so several limits can be asked at once; a zone's size is its part of
 * the table.  Without an algorithm a rate is a cell-rate meter of single requests, and `burst` says
 * how long an ask can wait for its turn: the same as limit_req's burst, but exact, and it may
 * differ from location to location.
 *
 * A limiter's name ends in a hash of the zone's key and algorithm: with another one, the states
 * mean something else. */
#include <stdio.h>
#include <string.h>

#include "module.h"

#define SLOT_BYTES     40 /* of the table, for a key */
#define BYTES_MAX      ((ssize_t)1 << 40)
#define LEASE          (3600 * WEIR_SECOND) /* conn.c renews it */
#define NAME_MAX_SHOWN 40

static bool is_named(const struct ngx_weir_zone *zone, enum ngx_weir_kind kind,
                     const ngx_str_t *name)
{
    return zone->kind == kind && zone->name.len == name->len &&
           ngx_strncmp(zone->name.data, name->data, name->len) == 0;
}

struct ngx_weir_zone *ngx_weir_zone_get(ngx_cycle_t *cycle, enum ngx_weir_kind kind,
                                        const ngx_str_t *name)
{
    struct ngx_weir_conf *conf = ngx_weir_conf_of(cycle);
    struct ngx_weir_zone **zones = conf->zones.elts, **place;

    for (ngx_uint_t i = 0; i < conf->zones.nelts; i++)
        if (is_named(zones[i], kind, name))
            return zones[i];
    place = ngx_array_push(&conf->zones);
    if (place == NULL || (*place = ngx_pcalloc(conf->pool, sizeof(**place))) == NULL)
        return NULL;
    (*place)->kind = kind;
    (*place)->name = *name;
    return *place;
}

/* ------------------------------------------------------------ directives ---- */

/* zone=NAME:SIZE */
static char *read_name(ngx_conf_t *cf, enum ngx_weir_kind kind, const ngx_str_t *word,
                       struct ngx_weir_zone **out)
{
    ngx_str_t name = { word->len - 5, word->data + 5 }, size;
    u_char *colon;

    if (ngx_strncmp(word->data, "zone=", 5) != 0 ||
        (colon = (u_char *)ngx_strchr(name.data, ':')) == NULL || colon == name.data)
        return "needs zone=NAME:SIZE";
    name.len = (size_t)(colon - name.data);
    size.data = colon + 1;
    size.len = (size_t)(word->data + word->len - size.data);
    ssize_t bytes = ngx_parse_size(&size);
    if (bytes == NGX_ERROR)
        return "has an invalid size of its zone";
    if (bytes < (ssize_t)(8 * ngx_pagesize))
        return "has a zone that is too small: 32k is the least";
    if (bytes > BYTES_MAX)
        return "has a zone that is too large: 1048576m is the most";
    *out = ngx_weir_zone_get(cf->cycle, kind, &name);
    if (*out == NULL)
        return NGX_CONF_ERROR;
    if ((*out)->bytes != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "zone \"%V\" is already bound to key \"%V\"",
                           &name, &(*out)->written);
        return NGX_CONF_ERROR;
    }
    (*out)->bytes = (size_t)bytes;
    (*out)->keys = bytes / SLOT_BYTES;
    return NGX_CONF_OK;
}

/* Large states lie beside their slots. */
static void share_size(struct ngx_weir_zone *zone, size_t state)
{
    int64_t beside = state <= 16 ? 0 : (int64_t)state * 4 / 3;

    zone->keys = (int64_t)zone->bytes / (SLOT_BYTES + beside);
    zone->slab = zone->keys * beside;
}

/* rate=LIMIT, in the short syntax, up to the end; a number alone is per second. */
static char *read_rate(ngx_conf_t *cf, const ngx_str_t *words, ngx_uint_t n, char text[160])
{
    size_t len = 0;

    for (ngx_uint_t i = 0; i < n; i++) {
        bool first = len == 0;
        if (ngx_strncmp(words[i].data, "zone=", 5) == 0)
            continue;
        if (first && ngx_strncmp(words[i].data, "rate=", 5) != 0)
            return "needs rate=LIMIT";
        len += (size_t)snprintf(text + len, 160 - len, "%s%s", first ? "" : " ",
                                (const char *)words[i].data + (first ? 5 : 0));
        if (len >= 150) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "the rate \"%s\" is too long", text);
            return NGX_CONF_ERROR;
        }
    }
    if (len == 0)
        return "needs rate=LIMIT";
    if (strchr(text, '/') == NULL && text[len - 1] >= '0' && text[len - 1] <= '9')
        snprintf(text + len, 160 - len, "/s");
    return NGX_CONF_OK;
}

static char *make_limit(ngx_conf_t *cf, const char *text, struct ngx_weir_zone *zone)
{
    struct weir_error error = { .text = "" };
    struct weir_plan *plan;
    int code = weir_limit_parse(&zone->limit, text, &error);

    zone->paced = code == 0 && zone->limit.algorithm == NULL && zone->limit.burst == 0 &&
                  zone->limit.calendar == WEIR_NO_CALENDAR;
    if (zone->paced) {
        zone->limit.algorithm = "gcra";
        zone->limit.burst = 1;
    }
    if (code != 0 || weir_plan_create(&plan, &zone->limit, &error) != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid rate \"%s\": %s", text, error.text);
        return NGX_CONF_ERROR;
    }
    share_size(zone, weir_plan_state_size(plan));
    weir_plan_destroy(plan);
    return NGX_CONF_OK;
}

/* KEY zone=NAME:SIZE rate=LIMIT */
static char *read_req(ngx_conf_t *cf, enum ngx_weir_kind kind, struct ngx_weir_zone **zone)
{
    ngx_str_t *words = cf->args->elts;
    ngx_uint_t n = cf->args->nelts, at = 2;
    char text[160] = "";

    while (at + 1 < n && ngx_strncmp(words[at].data, "zone=", 5) != 0)
        at++;
    char *problem = ngx_weir_options_check(cf, 2);
    if (problem == NGX_CONF_OK)
        problem = read_name(cf, kind, &words[at], zone);
    if (problem == NGX_CONF_OK)
        problem = read_rate(cf, words + 2, n - 2, text);
    return problem == NGX_CONF_OK ? make_limit(cf, text, *zone) : problem;
}

char *ngx_weir_zone_read(ngx_conf_t *cf, enum ngx_weir_kind kind, struct ngx_weir_zone **out)
{
    ngx_str_t *words = cf->args->elts;
    char *problem =
        ngx_weir_is_conn(kind) ? read_name(cf, kind, &words[2], out) : read_req(cf, kind, out);

    if (problem != NGX_CONF_OK)
        return problem;
    (*out)->written = words[1];
    return ngx_weir_counts_add(cf, *out) == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR;
}

static char *set_zone(ngx_conf_t *cf, enum ngx_weir_kind kind)
{
    ngx_str_t *words = cf->args->elts;
    struct ngx_weir_zone *zone;
    char *problem = ngx_weir_zone_read(cf, kind, &zone);

    return problem != NGX_CONF_OK ? problem : ngx_weir_key_set(cf, &words[1], zone);
}

char *ngx_weir_req_zone(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
    (void)command;
    (void)conf;
    return set_zone(cf, NGX_WEIR_REQ);
}

char *ngx_weir_conn_zone(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
    (void)command;
    (void)conf;
    return set_zone(cf, NGX_WEIR_CONN);
}

/* ----------------------------------------------------------------- check ---- */

/* `units` at the zone's rate, rounded up as the library rounds. */
static weir_time span_of(const struct ngx_weir_zone *zone, int64_t units)
{
    __extension__ typedef __int128 wide;
    wide span = ((wide)units * zone->limit.period + zone->limit.count - 1) / zone->limit.count;

    return span > WEIR_FOREVER ? WEIR_FOREVER : (weir_time)span;
}

/* A zone that was not described; perhaps another directive's was. */
static const char *why_no_zone(const struct ngx_weir_conf *conf, const struct ngx_weir_zone *zone)
{
    struct ngx_weir_zone **zones = conf->zones.elts;

    for (ngx_uint_t i = 0; i < conf->zones.nelts; i++)
        if (zones[i]->bytes != 0 && is_named(zones[i], zone->kind ^ NGX_WEIR_CONN, &zone->name))
            return ngx_weir_is_conn(zones[i]->kind) ? "it is a zone for weir_conn"
                                                    : "it is a zone for weir_req";
    return "there is no such zone";
}

/* The zone is known now. */
static const char *finish_limit(const struct ngx_weir_conf *conf, struct ngx_weir_limit *limit)
{
    if (limit->zone->bytes == 0)
        return why_no_zone(conf, limit->zone);
    if (ngx_weir_is_conn(limit->zone->kind))
        return NULL;
    if (limit->burst == 0 && limit->delay <= 0)
        return NULL;
    if (!limit->zone->paced && limit->burst > 0)
        return "burst needs a zone with a plain rate; write it in the rate instead";
    limit->wait_max = span_of(limit->zone, limit->burst);
    limit->free = limit->delay < 0 ? WEIR_FOREVER : span_of(limit->zone, limit->delay);
    return NULL;
}

ngx_int_t ngx_weir_zones_check(ngx_cycle_t *cycle, struct ngx_weir_conf *conf)
{
    struct ngx_weir_limit **limits = conf->limits.elts;

    for (ngx_uint_t i = 0; i < conf->limits.nelts; i++) {
        const char *problem = finish_limit(conf, limits[i]);
        if (problem != NULL) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, 0, "zone \"%V\": %s, in %s:%ui",
                          &limits[i]->zone->name, problem, limits[i]->file, limits[i]->line);
            return NGX_ERROR;
        }
    }
    return NGX_OK;
}

/* --------------------------------------------------------- prepare, commit ---- */

static void name_of(const struct ngx_weir_zone *zone, ngx_uint_t part, char out[64])
{
    const char *algorithm = ngx_weir_is_conn(zone->kind) ? "" : zone->limit.algorithm;
    uint32_t sum;

    ngx_crc32_init(sum);
    ngx_crc32_update(&sum, zone->name.data, zone->name.len);
    ngx_crc32_update(&sum, zone->written.data, zone->written.len);
    ngx_crc32_update(&sum, (u_char *)algorithm, ngx_strlen(algorithm));
    *ngx_snprintf((u_char *)out, 63, "%s:%*s:%08xD%ui",
                  (zone->kind & NGX_WEIR_STREAM) != 0 ? "nginx-stream" : "nginx",
                  ngx_min(zone->name.len, NAME_MAX_SHOWN), zone->name.data, sum, part) = '\0';
}

static void forget(struct ngx_weir_zone *zone)
{
    zone->limiter = NULL;
    zone->changes = false;
    ngx_memzero(zone->guards, sizeof(zone->guards));
}

/* The guards are dropped: they have nothing to keep beyond their permits, and a name that comes
 * again finds them for another minute.  Merely released they would stay for an hour. */
static void release(void *data)
{
    struct ngx_weir_zone *zone = data;

    if (zone->limiter != NULL && !zone->changes)
        weir_limiter_release(zone->limiter);
    for (ngx_uint_t i = 0; i < NGX_WEIR_GUARDS; i++)
        if (zone->guards[i] != NULL)
            weir_guard_drop(zone->guards[i]);
    forget(zone);
}

void ngx_weir_zones_release(struct ngx_weir_conf *conf)
{
    struct ngx_weir_zone **zones = conf->zones.elts;

    for (ngx_uint_t i = 0; i < conf->zones.nelts; i++)
        release(zones[i]);
}

void ngx_weir_zones_forget(struct ngx_weir_conf *conf)
{
    struct ngx_weir_zone **zones = conf->zones.elts;

    for (ngx_uint_t i = 0; i < conf->zones.nelts; i++)
        forget(zones[i]);
}

static int prepare_guards(struct weir_table *table, struct ngx_weir_zone *zone,
                          struct weir_error *error)
{
    static const struct weir_guard_options options = { .max = NGX_WEIR_CONN_MAX,
                                                       .max_per_key = NGX_WEIR_CONN_MAX,
                                                       .lease = LEASE };
    char name[64];
    int code = 0;

    for (ngx_uint_t i = 0; code == 0 && i < NGX_WEIR_GUARDS; i++) {
        name_of(zone, i, name);
        code = weir_guard_create(&zone->guards[i], table, name, &options, error);
    }
    return code;
}

/* Another limit waits for the commit. */
static int prepare_limiter(struct weir_table *table, struct ngx_weir_zone *zone,
                           struct weir_error *error)
{
    char name[64];

    name_of(zone, 0, name);
    int code = weir_limiter_create(&zone->limiter, table, name, &zone->limit, error);
    if (code != WEIR_EXISTS)
        return code;
    zone->limiter = weir_limiter_find(table, name);
    zone->changes = zone->limiter != NULL;
    return zone->changes ? 0 : code;
}

int ngx_weir_zones_prepare(ngx_cycle_t *cycle, struct ngx_weir_conf *conf)
{
    struct ngx_weir_zone **zones = conf->zones.elts;

    for (ngx_uint_t i = 0; i < conf->zones.nelts; i++) {
        struct ngx_weir_zone *zone = zones[i];
        ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(cycle->pool, 0);
        struct weir_error error = { .text = "" };
        if (cleanup == NULL)
            return WEIR_SYSTEM;
        cleanup->handler = release; /* before the table's: the last one added runs first */
        cleanup->data = zone;
        zone->table = conf->table;
        int code = ngx_weir_is_conn(zone->kind) ? prepare_guards(conf->table, zone, &error)
                                                : prepare_limiter(conf->table, zone, &error);
        if (code != 0) {
            ngx_weir_table_lacks(cycle, conf, code, &zone->name, &error);
            return code;
        }
    }
    return 0;
}

/* Without memory for it the old limit stays. */
static void change(ngx_log_t *log, struct weir_table *table, struct ngx_weir_zone *zone)
{
    struct weir_limiter *same;
    struct weir_error error;
    char name[64];

    name_of(zone, 0, name);
    zone->changes =
        weir_limiter_change(zone->limiter, &zone->limit, weir_table_now(table), &error) != 0 ||
        weir_limiter_create(&same, table, name, &zone->limit, &error) != 0;
    if (zone->changes) {
        ngx_log_error(NGX_LOG_CRIT, log, 0, "weir: zone \"%V\" keeps its old rate: %s", &zone->name,
                      error.text);
    }
}

void ngx_weir_zones_commit(ngx_cycle_t *cycle, struct ngx_weir_conf *conf)
{
    struct ngx_weir_zone **zones = conf->zones.elts;

    for (ngx_uint_t i = 0; i < conf->zones.nelts; i++)
        if (zones[i]->changes)
            change(cycle->log, conf->table, zones[i]);
}
