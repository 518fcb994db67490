/* attributes.c -- a request as the rules see it.
 *
 * Headers, cookies and arguments are read here and not by nginx's variables.  Those take the first
 * of several and, for arguments and cookies, any case; a backend takes another, and a client that
 * sends `?k=1&k=2` or `?%6b=2` would choose which of them is limited.  So names and values of
 * arguments are decoded, and a request that has two different values for one name which the rules
 * look at is a bad one. */
#include "module.h"

/* The one value of a name, while all that are there are gone through. */
struct found {
    const ngx_str_t *name;
    ngx_str_t value;
    bool twice;
};

static ngx_str_t trimmed(u_char *from, u_char *to)
{
    while (from < to && (*from == ' ' || *from == '\t'))
        from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
        to--;
    return (ngx_str_t){ (size_t)(to - from), from };
}

static void find(struct found *f, const ngx_str_t *value)
{
    if (value->len == 0)
        return;
    f->twice |= f->value.len > 0 && (f->value.len != value->len ||
                                     ngx_memcmp(f->value.data, value->data, value->len) != 0);
    f->value = f->value.len > 0 ? f->value : *value;
}

static bool is_named(const ngx_str_t *name, const ngx_str_t *other)
{
    return name->len == other->len && ngx_memcmp(name->data, other->data, name->len) == 0;
}

/* ---------------------------------------------------------------- headers ---- */

/* `-` and `_` are one letter to many backends. */
static bool is_header(const ngx_table_elt_t *header, const ngx_str_t *name)
{
    if (header->key.len != name->len || header->hash == 0)
        return false;
    for (size_t i = 0; i < name->len; i++) {
        u_char a = ngx_tolower(header->key.data[i]), b = ngx_tolower(name->data[i]);
        if ((a == '_' ? '-' : a) != (b == '_' ? '-' : b))
            return false;
    }
    return true;
}

/* Calls `each` with the value of every header of that name.  nginx leaves tabs around it. */
static void each_header(ngx_http_request_t *r, const ngx_str_t *name, struct found *f,
                        void (*each)(struct found *, const ngx_str_t *))
{
    for (ngx_list_part_t *part = &r->headers_in.headers.part; part != NULL; part = part->next) {
        ngx_table_elt_t *headers = part->elts;
        for (ngx_uint_t i = 0; i < part->nelts; i++)
            if (is_header(&headers[i], name)) {
                u_char *from = headers[i].value.data;
                ngx_str_t value = trimmed(from, from + headers[i].value.len);
                each(f, &value);
            }
    }
}

/* ---------------------------------------------------------------- cookies ---- */

static void find_in_cookies(struct found *f, const ngx_str_t *cookies)
{
    u_char *end = cookies->data + cookies->len, *next;

    for (u_char *at = cookies->data; at < end; at = next + 1) {
        next = ngx_strlchr(at, end, ';');
        next = next == NULL ? end : next;
        u_char *equals = ngx_strlchr(at, next, '=');
        ngx_str_t name = trimmed(at, equals == NULL ? at : equals);
        if (equals == NULL || !is_named(&name, f->name))
            continue;
        ngx_str_t value = trimmed(equals + 1, next);
        if (value.len >= 2 && value.data[0] == '"' && value.data[value.len - 1] == '"')
            value = (ngx_str_t){ value.len - 2, value.data + 1 };
        find(f, &value);
    }
}

/* -------------------------------------------------------------- arguments ---- */

/* As a form is: `+` is a blank.  Without memory, as it is. */
static ngx_str_t decoded(ngx_pool_t *pool, u_char *from, u_char *to)
{
    ngx_str_t text = { (size_t)(to - from), from };
    u_char *out, *source = from;

    if (ngx_strlchr(from, to, '%') == NULL && ngx_strlchr(from, to, '+') == NULL)
        return text;
    out = ngx_pnalloc(pool, text.len);
    if (out == NULL)
        return text;
    text.data = out;
    while (source < to) {
        ngx_int_t code = *source == '%' && to - source > 2 ? ngx_hextoi(source + 1, 2) : NGX_ERROR;
        *out++ = code != NGX_ERROR ? (u_char)code : *source == '+' ? ' ' : *source;
        source += code != NGX_ERROR ? 3 : 1;
    }
    text.len = (size_t)(out - text.data);
    return text;
}

static void find_in_arguments(ngx_http_request_t *r, struct found *f)
{
    u_char *end = r->args.data + r->args.len, *next;

    for (u_char *at = r->args.data; at < end; at = next + 1) {
        next = ngx_strlchr(at, end, '&');
        next = next == NULL ? end : next;
        u_char *equals = ngx_strlchr(at, next, '=');
        ngx_str_t name = decoded(r->pool, at, equals == NULL ? next : equals);
        if (equals == NULL || !is_named(&name, f->name))
            continue;
        ngx_str_t value = decoded(r->pool, equals + 1, next);
        find(f, &value);
    }
}

/* -------------------------------------------------------------------- all ---- */

static ngx_int_t fetch_variable(ngx_http_request_t *r, ngx_int_t variable, ngx_str_t *out)
{
    ngx_http_variable_value_t *v =
        variable < 0 ? NULL : ngx_http_get_indexed_variable(r, (ngx_uint_t)variable);

    ngx_str_null(out);
    if (v != NULL && !v->not_found)
        *out = (ngx_str_t){ v->len, v->data };
    return NGX_OK;
}

static ngx_int_t fetch(ngx_http_request_t *r, const struct ngx_weir_source *source, ngx_str_t *out)
{
    static const ngx_str_t cookie = ngx_string("cookie");
    struct found f = { .name = &source->rest };

    switch (source->kind) {
    case NGX_WEIR_VARIABLE:
        return fetch_variable(r, source->variable, out);
    case NGX_WEIR_HEADER:
        each_header(r, f.name, &f, find);
        break;
    case NGX_WEIR_COOKIE:
        each_header(r, &cookie, &f, find_in_cookies);
        break;
    default:
        find_in_arguments(r, &f);
    }
    if (f.twice) {
        ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                      "weir: \"%V\" comes twice, and the rules use it", &source->name);
        return NGX_HTTP_BAD_REQUEST;
    }
    *out = f.value;
    return NGX_OK;
}

ngx_int_t ngx_weir_describe(ngx_http_request_t *r, const struct ngx_weir_rules *rules,
                            struct weir_attr attrs[NGX_WEIR_ATTRIBUTES_MAX], size_t *n)
{
    const struct ngx_weir_source *sources = rules->sources.elts;
    const struct ngx_weir_loc *loc = ngx_http_get_module_loc_conf(r, ngx_http_weir_module);
    ngx_str_t value;

    *n = 0;
    for (ngx_uint_t i = 0; i < rules->sources.nelts && *n < NGX_WEIR_ATTRIBUTES_MAX; i++) {
        ngx_http_complex_value_t *given = loc->values == NULL ? NULL : loc->values[i];
        ngx_int_t code = given != NULL ? ngx_http_complex_value(r, given, &value)
                                       : fetch(r, &sources[i], &value);
        if (code != NGX_OK)
            return code == NGX_HTTP_BAD_REQUEST ? code : NGX_HTTP_INTERNAL_SERVER_ERROR;
        if (value.len == 0)
            continue;
        attrs[(*n)++] = (struct weir_attr){ .name = (const char *)sources[i].name.data,
                                            .name_len = sources[i].name.len,
                                            .value = (const char *)value.data,
                                            .value_len = value.len,
                                            .id = sources[i].id };
    }
    return NGX_OK;
}
