/* status.c -- weir_status: the table, its rules, limits and guards, as JSON or for Prometheus.
 *
 * All of it comes from the table, so it is the same whichever worker answers; but only the agent of
 * a fleet knows its members.  JSON, or with ?format=prometheus the figures alone. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "module.h"
#include "weir-admin.h"
#include "weir-fleet.h"

#define PAGE 16384

/* ------------------------------------------------------------------- pen ---- */

/* A text that grows. */
struct pen {
    ngx_http_request_t *request;
    ngx_chain_t *first, **last;
    ngx_buf_t *buf;
    off_t len;
    bool failed;
};

static bool add_page(struct pen *pen)
{
    ngx_chain_t *link = ngx_alloc_chain_link(pen->request->pool);

    if (link == NULL || (link->buf = ngx_create_temp_buf(pen->request->pool, PAGE)) == NULL)
        return false;
    link->next = NULL;
    *pen->last = link;
    pen->last = &link->next;
    pen->buf = link->buf;
    return true;
}

/* At most 1,000 bytes at a time. */
static __attribute__((format(printf, 2, 3))) void put(struct pen *pen, const char *format, ...)
{
    char text[1000];
    va_list list;

    va_start(list, format);
    int n = vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    if (n < 0 || n >= (int)sizeof(text))
        pen->failed = true;
    if (!pen->failed && (pen->buf == NULL || pen->buf->end - pen->buf->last < n))
        pen->failed = !add_page(pen);
    if (pen->failed)
        return;
    pen->buf->last = ngx_cpymem(pen->buf->last, text, (size_t)n);
    pen->len += n;
}

/* ------------------------------------------------------------------ JSON ---- */

/* A name of any length. */
static void put_name(struct pen *pen, const ngx_str_t *name)
{
    char piece[64], out[64];

    for (size_t at = 0; at < name->len; at += sizeof(piece) - 1) {
        (void)ngx_cpystrn((u_char *)piece, name->data + at,
                          ngx_min(sizeof(piece), name->len - at + 1));
        put(pen, "%s", ngx_weir_quotable(piece, out));
    }
}

static void put_limiters(struct pen *pen, struct weir_table *table)
{
    struct weir_limiter_info info;
    const char *comma = "";
    char words[96];

    put(pen, ",\n\"limits\":[");
    for (int64_t at = 0; weir_limiter_next(table, &at, &info);) {
        if (!weir_limiter_words(&info, words))
            continue;
        put(pen, "%s\n {\"name\":\"", comma);
        put_name(pen, &(ngx_str_t){ ngx_strlen(words), (u_char *)words });
        put(pen, "\",\"limit\":\"%s\"}", info.limit);
        comma = ",";
    }
    put(pen, "]");
}

/* As the status variables name them, in small letters. */
static const char *const outcomes[] = { NULL,       "passed",          "delayed",
                                        "rejected", "delayed_dry_run", "rejected_dry_run" };

static const char *kind_of(const struct ngx_weir_zone *zone)
{
    static const char *const kinds[] = { "req", "conn", "stream-req", "stream-conn" };

    return kinds[zone->kind];
}

/* Connections and requests of a zone of weir_conn. */
static long long zone_in_flight(const struct ngx_weir_zone *zone, weir_time now)
{
    struct weir_guard_info info;
    int64_t sum = 0;

    for (ngx_uint_t i = 0; i < NGX_WEIR_GUARDS; i++) {
        weir_guard_get(zone->guards[i], now, &info);
        sum += info.in_flight;
    }
    return (long long)sum;
}

static void put_zones(struct pen *pen, const ngx_array_t *all, weir_time now)
{
    struct ngx_weir_zone **zones = all->elts;
    uint64_t counts[NGX_WEIR_STATUSES];

    put(pen, ",\n\"zones\":[");
    for (ngx_uint_t i = 0; i < all->nelts; i++) {
        ngx_weir_counts_get(zones[i], counts);
        put(pen, "%s\n {\"name\":\"", i == 0 ? "" : ",");
        put_name(pen, &zones[i]->name);
        put(pen, "\",\"kind\":\"%s\"", kind_of(zones[i]));
        for (ngx_uint_t j = 1; j < NGX_WEIR_STATUSES; j++)
            put(pen, ",\"%s\":%llu", outcomes[j], (unsigned long long)counts[j]);
        if (ngx_weir_is_conn(zones[i]->kind))
            put(pen, ",\"in_flight\":%lld", zone_in_flight(zones[i], now));
        put(pen, "}");
    }
    put(pen, "]");
}

/* Figures of a guard.  Metrics have the names and labels of weir serve, so the same alerts hold. */
static const struct figure {
    const char *json;
    const char *name, *kind, *help; /* kind NULL: another sample of the metric before */
    const char *label;              /* besides the guard, or "" */
    size_t at;                      /* in struct weir_guard_info */
} figures[] = {
#define FIGURE(member, name, kind, help, label)                                                  \
    {                                                                                            \
#member, "weir_guard_" name, kind, help, label, offsetof(struct weir_guard_info, member) \
    }
    FIGURE(in_flight, "in_flight", "gauge", "Permits that are out.", ""),
    FIGURE(limit, "limit", "gauge",
           "Permits there are now; for an adaptive rate, permits per second.", ""),
    FIGURE(entered, "entered_total", "counter", "How many were let in.", ""),
    FIGURE(refused_open, "refused_total", "counter", "How many were refused, and why.",
           ",reason=\"open\""),
    FIGURE(refused_busy, "refused_total", NULL, NULL, ",reason=\"busy\""),
    FIGURE(refused_limited, "refused_total", NULL, NULL, ",reason=\"limited\""),
    FIGURE(refused_shed, "refused_total", NULL, NULL, ",reason=\"shed\""),
    FIGURE(refused_degraded, "refused_total", NULL, NULL, ",reason=\"degraded\""),
    FIGURE(refused_full, "refused_total", NULL, NULL, ",reason=\"full\""),
    FIGURE(refused_late, "refused_total", NULL, NULL, ",reason=\"late\""),
    FIGURE(refused_key_busy, "refused_total", NULL, NULL, ",reason=\"key-busy\""),
    FIGURE(shadow_refused, "shadow_refused_total", "counter",
           "How many would have been refused, but were let in by mode shadow.", ""),
    FIGURE(succeeded, "exits_total", "counter", "Permits given back, by outcome.",
           ",outcome=\"ok\""),
    FIGURE(failed, "exits_total", NULL, NULL, ",outcome=\"error\""),
    FIGURE(timed_out, "exits_total", NULL, NULL, ",outcome=\"timeout\""),
    FIGURE(dropped, "exits_total", NULL, NULL, ",outcome=\"dropped\""),
    FIGURE(reclaimed, "reclaimed_total", "counter",
           "Permits that were not given back in time, or whose holder has died.", ""),
#undef FIGURE
};

#define FIGURES (sizeof(figures) / sizeof(*figures))

static long long figure_of(const struct weir_guard_info *info, const struct figure *figure)
{
    int64_t value;

    ngx_memcpy(&value, (const char *)info + figure->at, sizeof(value));
    return (long long)value;
}

/* Those that zones are made of (zones.c: name_of) are left out. */
static bool next_guard(struct weir_table *table, weir_time now, int64_t *at,
                       struct weir_guard_info *info)
{
    struct weir_guard *guard;

    while (weir_guard_next(table, at, &guard)) {
        weir_guard_get(guard, now, info);
        const char *digest = strrchr(info->name, ':');
        if (digest == NULL || ngx_strncmp(info->name, "nginx", 5) != 0 ||
            ngx_strlen(digest) != 10 || strspn(digest + 1, "0123456789abcdef") != 9)
            return true;
    }
    return false;
}

static void put_guards(struct pen *pen, struct weir_table *table, weir_time now)
{
    struct weir_guard_info info;
    const char *comma = "";
    char name[64];

    put(pen, ",\n\"guards\":[");
    for (int64_t at = 0; next_guard(table, now, &at, &info); comma = ",") {
        put(pen, "%s\n {\"name\":\"%s\",\"breaker\":\"%s\"", comma,
            ngx_weir_quotable(info.name, name), weir_breaker_state_name(info.breaker));
        for (size_t i = 0; i < FIGURES; i++)
            put(pen, ",\"%s\":%lld", figures[i].json, figure_of(&info, &figures[i]));
        put(pen, "}");
    }
    put(pen, "]");
}

static void put_requests(struct pen *pen, struct weir *weir)
{
    struct weir_totals t;

    weir_totals_shared(weir, &t);
    put(pen,
        ",\n\"requests\":{\"checked\":%lld,\"allowed\":%lld,\"refused\":%lld,\"denied\":%lld,"
        "\"allow_listed\":%lld,\"unmatched\":%lld,\"shadow_refused\":%lld}",
        (long long)t.checked, (long long)t.allowed, (long long)t.refused, (long long)t.denied,
        (long long)t.allow_listed, (long long)t.unmatched, (long long)t.shadow_refused);
}

static void put_rules(struct pen *pen, struct weir *weir)
{
    struct weir_rule_info info;
    const char *comma = "";
    char name[64];

    put_requests(pen, weir);
    put(pen, ",\n\"rules\":[");
    for (int64_t at = 0; weir_rule_next_shared(weir, &at, &info); comma = ",")
        put(pen,
            "%s\n {\"name\":\"%s\",\"mode\":\"%s\",\"allowed\":%lld,\"refused\":%lld,"
            "\"banned\":%lld,\"shadow_refused\":%lld}",
            comma, ngx_weir_quotable(info.name, name), weir_mode_name(info.mode),
            (long long)info.allowed, (long long)info.refused, (long long)info.banned,
            (long long)info.shadow_refused);
    put(pen, "]");
}

/* What the table has; the agent, which asks Redis, knows more. */
static void put_fleet(struct pen *pen)
{
    struct weir_fleet_info f;

    if (!ngx_weir_fleet_look(&f))
        return;
    put(pen,
        ",\n\"fleet\":{\"name\":\"%s\",\"node\":\"%s\",\"alone\":%s,\"part\":%lld,\"agent\":%s",
        f.name, f.node, f.alone ? "true" : "false", (long long)f.part, f.agent ? "true" : "false");
    if (f.agent) {
        put(pen, ",\"members\":%lld,\"connected\":%s,\"why\":", (long long)f.members,
            f.connected ? "true" : "false");
        put(pen, f.why[0] == '\0' ? "null" : "\"");
        put_name(pen, &(ngx_str_t){ ngx_strlen(f.why), (u_char *)f.why });
        put(pen, f.why[0] == '\0' ? "" : "\"");
    }
    put(pen, "}");
}

static void put_json(struct pen *pen, const struct ngx_weir_conf *conf, struct weir *weir,
                     weir_time now)
{
    struct weir_table *table = conf->table;
    struct weir_table_stats s;

    weir_table_stats(table, -1, &s);
    put(pen,
        "{\"version\":\"%s\",\n\"table\":{\"slots\":%lld,\"keys\":%lld,\"evicted_idle\":%lld,"
        "\"evicted_early\":%lld,\"no_room\":%lld,\"bytes\":%lld}",
        weir_version(), (long long)s.slots, (long long)s.keys, (long long)s.evicted_idle,
        (long long)s.evicted_early, (long long)s.no_room, (long long)s.bytes);
    put_fleet(pen);
    if (weir != NULL)
        put_rules(pen, weir);
    put_zones(pen, &conf->zones, now);
    put_limiters(pen, table);
    put_guards(pen, table, now);
    put(pen, "}\n");
}

/* ------------------------------------------------------------ Prometheus ---- */

static void put_head(struct pen *pen, const char *name, const char *kind, const char *help)
{
    put(pen, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
}

static void put_metric(struct pen *pen, struct weir_table *table, weir_time now,
                       const struct figure *metric)
{
    struct weir_guard_info info;
    char name[64];

    if (metric->kind != NULL)
        put_head(pen, metric->name, metric->kind, metric->help);
    for (int64_t at = 0; next_guard(table, now, &at, &info);)
        put(pen, "%s{guard=\"%s\"%s} %lld\n", metric->name, ngx_weir_quotable(info.name, name),
            metric->label, figure_of(&info, metric));
}

static bool has_breaker(const struct weir_breaker_options *o)
{
    return o->errors != 0 || o->error_percent != 0 || o->slow != 0;
}

static void put_breakers(struct pen *pen, struct weir_table *table, weir_time now)
{
    struct weir_guard_info info;
    char name[64];

    put_head(pen, "weir_guard_breaker", "gauge", "1 for the state that each breaker is in.");
    for (int64_t at = 0; next_guard(table, now, &at, &info);)
        if (has_breaker(&info.options.breaker))
            put(pen, "weir_guard_breaker{guard=\"%s\",state=\"%s\"} 1\n",
                ngx_weir_quotable(info.name, name), weir_breaker_state_name(info.breaker));
    put_head(pen, "weir_degradation", "gauge", "The degradation, 0 (none) to 9.");
    put(pen, "weir_degradation %d\n", weir_degradation_get(table, NULL));
}

static void put_checks(struct pen *pen, struct weir *weir)
{
    struct weir_totals t;

    weir_totals_shared(weir, &t);
    put_head(pen, "weir_checks_total", "counter", "Requests decided by the rules.");
    put(pen,
        "weir_checks_total{outcome=\"allowed\"} %lld\n"
        "weir_checks_total{outcome=\"refused\"} %lld\n",
        (long long)t.allowed, (long long)t.refused);
    put_head(pen, "weir_checks_listed_total", "counter", "Of these, decided by a list.");
    put(pen,
        "weir_checks_listed_total{list=\"allow\"} %lld\n"
        "weir_checks_listed_total{list=\"deny\"} %lld\n",
        (long long)t.allow_listed, (long long)t.denied);
    put_head(pen, "weir_checks_unmatched_total", "counter",
             "Of these, allowed because no rule applies.");
    put(pen, "weir_checks_unmatched_total %lld\n", (long long)t.unmatched);
    put_head(pen, "weir_checks_shadow_refused_total", "counter",
             "Of these, allowed but would have been refused by a rule in shadow.");
    put(pen, "weir_checks_shadow_refused_total %lld\n", (long long)t.shadow_refused);
}

static void put_decisions(struct pen *pen, struct weir *weir)
{
    struct weir_rule_info i;
    char name[64];

    put_checks(pen, weir);
    put_head(pen, "weir_decisions_total", "counter", "Decisions, by rule and outcome.");
    for (int64_t at = 0; weir_rule_next_shared(weir, &at, &i);) {
        ngx_weir_quotable(i.name, name);
        put(pen,
            "weir_decisions_total{rule=\"%s\",outcome=\"allowed\"} %lld\n"
            "weir_decisions_total{rule=\"%s\",outcome=\"refused\"} %lld\n"
            "weir_decisions_total{rule=\"%s\",outcome=\"shadow_refused\"} %lld\n",
            name, (long long)i.allowed, name, (long long)i.refused, name,
            (long long)i.shadow_refused);
    }
    put_head(pen, "weir_decisions_banned_total", "counter",
             "Of the refused, those of keys that are banned.");
    for (int64_t at = 0; weir_rule_next_shared(weir, &at, &i);)
        put(pen, "weir_decisions_banned_total{rule=\"%s\"} %lld\n", ngx_weir_quotable(i.name, name),
            (long long)i.banned);
}

/* Draws and asks are counted by each worker for itself: no figures of the host. */
static void put_fleet_metrics(struct pen *pen)
{
    struct weir_fleet_info f;

    if (!ngx_weir_fleet_look(&f))
        return;
    put_head(
        pen, "weir_fleet_alone", "gauge",
        "1 while the fleet's Redis does not answer and rules go by when_alone; 0 in no fleet.");
    put(pen, "weir_fleet_alone %lld\n", (long long)f.alone);
    put_head(pen, "weir_fleet_part_ratio", "gauge",
             "This host's part of every limit while Redis is away.");
    put(pen, "weir_fleet_part_ratio %lld.%06lld\n", (long long)(f.part / 1000000),
        (long long)(f.part % 1000000));
    if (!f.agent)
        return;
    put_head(pen, "weir_fleet_members", "gauge", "Hosts of the fleet.");
    put(pen, "weir_fleet_members %lld\n", (long long)f.members);
}

static void put_zones_in_flight(struct pen *pen, const ngx_array_t *all, weir_time now)
{
    struct ngx_weir_zone **zones = all->elts;
    bool headed = false;

    for (ngx_uint_t i = 0; i < all->nelts; i++) {
        if (!ngx_weir_is_conn(zones[i]->kind))
            continue;
        if (!headed)
            put_head(pen, "weir_zone_in_flight", "gauge",
                     "Requests and connections that weir_conn counts now, by zone.");
        headed = true;
        put(pen, "weir_zone_in_flight{zone=\"");
        put_name(pen, &zones[i]->name);
        put(pen, "\",kind=\"%s\"} %lld\n", kind_of(zones[i]), zone_in_flight(zones[i], now));
    }
}

static void put_answers(struct pen *pen, const ngx_array_t *all)
{
    struct ngx_weir_zone **zones = all->elts;
    uint64_t counts[NGX_WEIR_STATUSES];

    if (all->nelts > 0)
        put_head(pen, "weir_zone_requests_total", "counter",
                 "Requests and connections under weir_req and weir_conn, by zone and outcome.");
    for (ngx_uint_t i = 0; i < all->nelts; i++) {
        ngx_weir_counts_get(zones[i], counts);
        for (ngx_uint_t j = 1; j < NGX_WEIR_STATUSES; j++) {
            put(pen, "weir_zone_requests_total{zone=\"");
            put_name(pen, &zones[i]->name);
            put(pen, "\",kind=\"%s\",outcome=\"%s\"} %llu\n", kind_of(zones[i]), outcomes[j],
                (unsigned long long)counts[j]);
        }
    }
}

static void put_table(struct pen *pen, struct weir_table *table)
{
    struct weir_table_stats s;

    weir_table_stats(table, -1, &s);
    put_head(pen, "weir_table_slots", "gauge", "Places for keys.");
    put(pen, "weir_table_slots %lld\n", (long long)s.slots);
    put_head(pen, "weir_table_keys", "gauge", "Places in use, including those of idle keys.");
    put(pen, "weir_table_keys %lld\n", (long long)s.keys);
    put_head(
        pen, "weir_table_evicted_total", "counter",
        "Keys that made room: idle ones for nothing, early ones because the table is too small.");
    put(pen,
        "weir_table_evicted_total{when=\"idle\"} %lld\n"
        "weir_table_evicted_total{when=\"early\"} %lld\n",
        (long long)s.evicted_idle, (long long)s.evicted_early);
    put_head(pen, "weir_table_no_room_total", "counter",
             "Asks for new keys refused because the table was full: when_full: closed.");
    put(pen, "weir_table_no_room_total %lld\n", (long long)s.no_room);
    put_head(pen, "weir_table_no_disk_total", "counter",
             "Blocks for windows, logs and bans that were wanted while the disk was full.");
    put(pen, "weir_table_no_disk_total %lld\n", (long long)s.no_disk);
}

static void put_prometheus(struct pen *pen, const struct ngx_weir_conf *conf, struct weir *weir,
                           weir_time now)
{
    struct weir_table *table = conf->table;

    put_table(pen, table);
    if (weir != NULL)
        put_decisions(pen, weir);
    put_fleet_metrics(pen);
    put_answers(pen, &conf->zones);
    put_zones_in_flight(pen, &conf->zones, now);
    for (size_t i = 0; i < FIGURES; i++)
        put_metric(pen, table, now, &figures[i]);
    put_breakers(pen, table, now);
}

/* ---------------------------------------------------------------- answer ---- */

/* False: there is no such format. */
static bool read_format(ngx_http_request_t *r, bool *prometheus)
{
    ngx_str_t format;
    bool none = ngx_http_arg(r, (u_char *)"format", 6, &format) != NGX_OK;

    *prometheus = !none && format.len == 10 && ngx_strncmp(format.data, "prometheus", 10) == 0;
    return none || *prometheus || (format.len == 4 && ngx_strncmp(format.data, "json", 4) == 0);
}

static ngx_int_t refuse_format(ngx_http_request_t *r)
{
    ngx_http_complex_value_t body = { .value = ngx_string("format is json or prometheus\n") };
    ngx_str_t type = ngx_string("text/plain");

    return ngx_http_send_response(r, NGX_HTTP_BAD_REQUEST, &type, &body);
}

static ngx_int_t send_page(ngx_http_request_t *r, struct pen *pen, bool prometheus)
{
    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = pen->len;
    if (prometheus) {
        ngx_str_set(&r->headers_out.content_type, "text/plain; version=0.0.4");
    } else {
        ngx_str_set(&r->headers_out.content_type, "application/json");
    }
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    pen->buf->last_buf = r == r->main;
    pen->buf->last_in_chain = 1;
    ngx_int_t code = ngx_http_send_header(r);
    return code == NGX_ERROR || code > NGX_OK || r->header_only
               ? code
               : ngx_http_output_filter(r, pen->first);
}

static ngx_int_t answer(ngx_http_request_t *r)
{
    const struct ngx_weir_conf *conf = ngx_weir_conf_for(r);
    struct weir *weir = conf->rules == NULL ? NULL : conf->rules->weir;
    struct weir_table *table = conf->table;
    struct pen pen = { .request = r, .last = &pen.first };
    bool prometheus;

    if (!(r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)))
        return NGX_HTTP_NOT_ALLOWED;
    if (ngx_weir_table_gone)
        return NGX_HTTP_SERVICE_UNAVAILABLE;
    if (!read_format(r, &prometheus))
        return refuse_format(r);
    ngx_int_t code = ngx_http_discard_request_body(r);
    if (code != NGX_OK)
        return code;
    ngx_weir_counts_share();
    if (table == NULL)
        put(&pen, prometheus ? "\n" : "{}\n");
    else if (prometheus)
        put_prometheus(&pen, conf, weir, weir_table_now(table));
    else
        put_json(&pen, conf, weir, weir_table_now(table));
    return pen.failed ? NGX_HTTP_INTERNAL_SERVER_ERROR : send_page(r, &pen, prometheus);
}

char *ngx_weir_status_set(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    ngx_http_core_loc_conf_t *core = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    struct ngx_weir_loc *loc = data;

    (void)command;
    if (loc->shows_status)
        return "is duplicate";
    core->handler = answer;
    loc->shows_status = true;
    return NGX_CONF_OK;
}
