/* answer.c -- answers to clients: the headers of a ruling, and a refusal by the rules.
 *
 *     limited, banned   429 with Retry-After
 *     denied            403
 *     a guard           its fallback; else 503 with Retry-After
 *
 * If the location has an error_page for the status, that is the answer; else it is a problem in
 * JSON, with the same codes as at Weir's other doors. */
#include <stdio.h>

#include "module.h"

#define BODY_MAX 512

/* ---------------------------------------------------------------- headers ---- */

static void add_header(ngx_http_request_t *r, const char *name, const char *value)
{
    ngx_table_elt_t *header = ngx_list_push(&r->headers_out.headers);

    if (header == NULL)
        return;
    ngx_memzero(header, sizeof(*header));
    header->key.data = (u_char *)name;
    header->key.len = ngx_strlen(name);
    header->value.len = ngx_strlen(value);
    header->value.data = ngx_pnalloc(r->pool, header->value.len + 1);
    if (header->value.data == NULL)
        return; /* hash 0: nginx leaves it out */
    ngx_memcpy(header->value.data, value, header->value.len + 1);
    header->hash = 1;
}

/* Rounded up. */
static long long seconds_of(weir_time t, int least)
{
    long long seconds = t / WEIR_SECOND + (t % WEIR_SECOND > 0);

    return seconds < least ? least : seconds;
}

void ngx_weir_retry_after(ngx_http_request_t *r, weir_time retry)
{
    char text[32];

    if (retry == WEIR_NEVER)
        return;
    snprintf(text, sizeof(text), "%lld", seconds_of(retry, 1));
    add_header(r, "Retry-After", text);
}

const char *ngx_weir_quotable(const char *name, char out[64])
{
    size_t i = 0;

    for (; i < 63 && name[i] != '\0'; i++)
        out[i] =
            name[i] == '"' || name[i] == '\\' || name[i] < ' ' || name[i] > '~' ? '_' : name[i];
    out[i] = '\0';
    return out;
}

void ngx_weir_ruling_headers(ngx_http_request_t *r, const struct weir_ruling *ruling)
{
    const struct weir_decision *d = &ruling->decision;
    weir_time t = d->allowed ? d->reset : d->retry;
    char name[64], text[160];

    if (ruling->rule == NULL)
        return;
    ngx_weir_quotable(ruling->rule, name);
    int len = snprintf(text, sizeof(text), "\"%s\";r=%lld", name, (long long)d->remaining);
    if (t != WEIR_NEVER)
        snprintf(text + len, sizeof(text) - (size_t)len, ";t=%lld",
                 seconds_of(t, d->allowed ? 0 : 1));
    add_header(r, "RateLimit", text);
    if (ruling->count > 0) {
        snprintf(text, sizeof(text), "\"%s\";q=%lld;w=%lld", name, (long long)ruling->count,
                 seconds_of(ruling->window, 1));
        add_header(r, "RateLimit-Policy", text);
    }
}

/* ----------------------------------------------------------------- answer ---- */

static const struct refusal {
    uint8_t reason;
    ngx_uint_t status;
    const char *title;
} refusals[] = {
    { WEIR_DENIED, NGX_HTTP_FORBIDDEN, "Denied" },
    { WEIR_BANNED, NGX_HTTP_TOO_MANY_REQUESTS, "Banned" },
    { WEIR_KEY_BUSY, NGX_HTTP_TOO_MANY_REQUESTS, "Too much at once" },
    { WEIR_OPEN, NGX_HTTP_SERVICE_UNAVAILABLE, "Breaker open" },
    { WEIR_BUSY, NGX_HTTP_SERVICE_UNAVAILABLE, "Busy" },
    { WEIR_FULL, NGX_HTTP_SERVICE_UNAVAILABLE, "Queue full" },
    { WEIR_LATE, NGX_HTTP_SERVICE_UNAVAILABLE, "Waited in vain" },
    { WEIR_CANCELLED, NGX_HTTP_SERVICE_UNAVAILABLE, "Busy" },
    { WEIR_ALONE, NGX_HTTP_SERVICE_UNAVAILABLE, "Fleet unknown" },
    { WEIR_DRY, NGX_HTTP_SERVICE_UNAVAILABLE, "Fleet unknown" },
    { WEIR_SHED, NGX_HTTP_SERVICE_UNAVAILABLE, "Overloaded" },
    { WEIR_DEGRADED, NGX_HTTP_SERVICE_UNAVAILABLE, "Switched off" },
    { WEIR_TOO_MANY, NGX_HTTP_SERVICE_UNAVAILABLE, "Too many limits" },
    { WEIR_NO_ROOM, NGX_HTTP_SERVICE_UNAVAILABLE, "No room" },
    { WEIR_LIMITED, NGX_HTTP_TOO_MANY_REQUESTS, "Too many requests" }, /* and all others */
};

static const struct refusal *refusal_of(const struct weir_ruling *ruling)
{
    const struct refusal *row = refusals;

    while (row->reason != ruling->decision.reason &&
           row < refusals + sizeof(refusals) / sizeof(*refusals) - 1)
        row++;
    return row;
}

static bool has_page(ngx_http_request_t *r, ngx_uint_t status)
{
    ngx_http_core_loc_conf_t *core = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    ngx_http_err_page_t *pages = core->error_pages == NULL ? NULL : core->error_pages->elts;

    for (ngx_uint_t i = 0; pages != NULL && i < core->error_pages->nelts; i++)
        if (pages[i].status == (ngx_int_t)status)
            return true;
    return false;
}

/* It has been answered, whatever becomes of the answer. */
static ngx_int_t reply(ngx_http_request_t *r, ngx_uint_t status, ngx_str_t type, ngx_str_t *body)
{
    ngx_http_complex_value_t value = { .value = *body };

    ngx_http_finalize_request(r, ngx_http_send_response(r, status, &type, &value));
    return NGX_DONE;
}

static ngx_int_t send_fallback(ngx_http_request_t *r, struct weir *weir, const char *guard)
{
    struct weir_fallback fallback;
    ngx_str_t body, type;

    if (guard == NULL || !weir_fallback_get(weir, guard, &fallback, NULL, 0))
        return NGX_DECLINED;
    body.data = ngx_pnalloc(r->pool, fallback.len + 1);
    if (body.data == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    if (!weir_fallback_get(weir, guard, &fallback, (char *)body.data, fallback.len))
        return NGX_DECLINED;
    body.len = fallback.len;
    type.data = (u_char *)fallback.type;
    type.len = type.data == NULL ? 0 : ngx_strlen(fallback.type);
    return reply(r, (ngx_uint_t)fallback.status, type, &body);
}

static ngx_int_t send_problem(ngx_http_request_t *r, const struct refusal *refusal,
                              const struct weir_ruling *ruling)
{
    const char *who = ruling->guard != NULL ? ruling->guard : ruling->rule;
    ngx_str_t type = ngx_string("application/problem+json"), body;
    char name[64] = "";

    body.data = ngx_pnalloc(r->pool, BODY_MAX);
    if (body.data == NULL)
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    if (who != NULL)
        ngx_weir_quotable(who, name);
    body.len = (size_t)snprintf(
        (char *)body.data, BODY_MAX,
        "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%d,\"code\":\"weir-%s\","
        "\"violated-policies\":[%s%s%s]}\n",
        refusal->title, (int)refusal->status, weir_reason_name(ruling->decision.reason),
        who == NULL ? "" : "\"", name, who == NULL ? "" : "\"");
    return reply(r, refusal->status, type, &body);
}

ngx_int_t ngx_weir_answer(ngx_http_request_t *r, struct weir *weir,
                          const struct weir_ruling *ruling)
{
    const struct refusal *refusal = refusal_of(ruling);

    if (refusal->status != NGX_HTTP_FORBIDDEN)
        ngx_weir_retry_after(r, ruling->decision.retry);
    ngx_int_t code = send_fallback(r, weir, ruling->guard);
    if (code != NGX_DECLINED)
        return code;
    return has_page(r, refusal->status) ? (ngx_int_t)refusal->status
                                        : send_problem(r, refusal, ruling);
}
