/* status.c -- weir_status: the table, its limits and guards, as JSON or for Prometheus.
 *
 * All of it comes from the table, so it is the same whichever worker answers.  JSON, or with
 * ?format=prometheus the figures alone. */
#include <stdarg.h>
#include <stdio.h>

#include "module.h"
#include "weir-fleet.h"

#define PAGE 16384

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

static void put_limiters(struct pen *pen, struct weir_table *table)
{
    struct weir_limiter_info info;
    const char *comma = "";
    char name[64];

    put(pen, ",\n\"limits\":[");
    for (int64_t at = 0; weir_limiter_next(table, &at, &info); comma = ",")
        put(pen, "%s\n {\"name\":\"%s\",\"limit\":\"%s\"}", comma,
            ngx_weir_quotable(info.name, name), info.limit);
    put(pen, "]");
}

static void put_guards(struct pen *pen, struct weir_table *table, weir_time now)
{
    struct weir_guard_info info;
    struct weir_guard *guard;
    const char *comma = "";
    char name[64];

    put(pen, ",\n\"guards\":[");
    for (int64_t at = 0; weir_guard_next(table, &at, &guard); comma = ",") {
        weir_guard_get(guard, now, &info);
        put(pen,
            "%s\n {\"name\":\"%s\",\"in_flight\":%lld,\"limit\":%lld,\"breaker\":\"%s\","
            "\"entered\":%lld,\"failed\":%lld,\"timed_out\":%lld,\"reclaimed\":%lld,"
            "\"refused_busy\":%lld,\"refused_open\":%lld,\"refused_key_busy\":%lld}",
            comma, ngx_weir_quotable(info.name, name), (long long)info.in_flight,
            (long long)info.limit, weir_breaker_state_name(info.breaker), (long long)info.entered,
            (long long)info.failed, (long long)info.timed_out, (long long)info.reclaimed,
            (long long)info.refused_busy, (long long)info.refused_open,
            (long long)info.refused_key_busy);
    }
    put(pen, "]");
}

/* As this worker sees it. */
static void put_fleet(struct pen *pen)
{
    struct weir_fleet_info f;

    if (ngx_weir_fleet_look(&f))
        put(pen,
            ",\n\"fleet\":{\"name\":\"%s\",\"node\":\"%s\",\"agent\":%s,\"connected\":%s,"
            "\"alone\":%s,\"part\":%lld,\"members\":%lld}",
            f.name, f.node, f.agent ? "true" : "false", f.connected ? "true" : "false",
            f.alone ? "true" : "false", (long long)f.part, (long long)f.members);
}

static void put_json(struct pen *pen, struct weir_table *table, weir_time now)
{
    struct weir_table_stats s;

    weir_table_stats(table, -1, &s);
    put(pen,
        "{\"version\":\"%s\",\n\"table\":{\"slots\":%lld,\"keys\":%lld,\"evicted_idle\":%lld,"
        "\"evicted_early\":%lld,\"no_room\":%lld,\"bytes\":%lld}",
        weir_version(), (long long)s.slots, (long long)s.keys, (long long)s.evicted_idle,
        (long long)s.evicted_early, (long long)s.no_room, (long long)s.bytes);
    put_fleet(pen);
    put_limiters(pen, table);
    put_guards(pen, table, now);
    put(pen, "}\n");
}

/* ------------------------------------------------------------ Prometheus ---- */

static const struct metric {
    const char *name, *kind;
    size_t at; /* in struct weir_guard_info */
} metrics[] = {
#define METRIC(name, kind, member)                                         \
    {                                                                      \
        "weir_guard_" name, kind, offsetof(struct weir_guard_info, member) \
    }
    METRIC("in_flight", "gauge", in_flight),
    METRIC("limit", "gauge", limit),
    METRIC("entered_total", "counter", entered),
    METRIC("failed_total", "counter", failed),
    METRIC("timed_out_total", "counter", timed_out),
    METRIC("reclaimed_total", "counter", reclaimed),
    METRIC("refused_busy_total", "counter", refused_busy),
    METRIC("refused_open_total", "counter", refused_open),
    METRIC("refused_key_busy_total", "counter", refused_key_busy),
};

static void put_metric(struct pen *pen, struct weir_table *table, weir_time now,
                       const struct metric *metric)
{
    struct weir_guard_info info;
    struct weir_guard *guard;
    int64_t value;
    char name[64];

    put(pen, "# TYPE %s %s\n", metric->name, metric->kind);
    for (int64_t at = 0; weir_guard_next(table, &at, &guard);) {
        weir_guard_get(guard, now, &info);
        ngx_memcpy(&value, (const char *)&info + metric->at, sizeof(value));
        put(pen, "%s{guard=\"%s\"} %lld\n", metric->name, ngx_weir_quotable(info.name, name),
            (long long)value);
    }
}

static void put_prometheus(struct pen *pen, struct weir_table *table, weir_time now)
{
    struct weir_table_stats s;

    weir_table_stats(table, -1, &s);
    put(pen,
        "# TYPE weir_table_slots gauge\nweir_table_slots %lld\n"
        "# TYPE weir_table_keys gauge\nweir_table_keys %lld\n"
        "# TYPE weir_table_evicted_early_total counter\nweir_table_evicted_early_total %lld\n"
        "# TYPE weir_table_no_room_total counter\nweir_table_no_room_total %lld\n",
        (long long)s.slots, (long long)s.keys, (long long)s.evicted_early, (long long)s.no_room);
    for (size_t i = 0; i < sizeof(metrics) / sizeof(*metrics); i++)
        put_metric(pen, table, now, &metrics[i]);
}

/* ---------------------------------------------------------------- answer ---- */

static bool wants_prometheus(ngx_http_request_t *r)
{
    ngx_str_t format;

    return ngx_http_arg(r, (u_char *)"format", 6, &format) == NGX_OK && format.len == 10 &&
           ngx_strncmp(format.data, "prometheus", 10) == 0;
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
    struct weir_table *table = ngx_weir_conf_of((ngx_cycle_t *)ngx_cycle)->table;
    struct pen pen = { .request = r, .last = &pen.first };
    bool prometheus = wants_prometheus(r);

    if (!(r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)))
        return NGX_HTTP_NOT_ALLOWED;
    ngx_int_t code = ngx_http_discard_request_body(r);
    if (code != NGX_OK)
        return code;
    if (table == NULL)
        put(&pen, prometheus ? "\n" : "{}\n");
    else if (prometheus)
        put_prometheus(&pen, table, weir_table_now(table));
    else
        put_json(&pen, table, weir_table_now(table));
    return pen.failed ? NGX_HTTP_INTERNAL_SERVER_ERROR : send_page(r, &pen, prometheus);
}

char *ngx_weir_status_set(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    ngx_http_core_loc_conf_t *core = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    (void)command;
    (void)data;
    core->handler = answer;
    return NGX_CONF_OK;
}
