/* attributes.c -- a request as the rules see it: where its attributes come from, and what they are.
 *
 * Headers, cookies and arguments are read here and not by nginx's variables.  Those take the first
 * of several and, for arguments and cookies, any case; a backend takes another, and a client that
 * sends `?k=1&k=2` or `?%6b=2` would choose which of them is limited.  So names and values of
 * arguments are decoded, and a request that has two different values for one name which the rules
 * look at is a bad one. */
#include "module.h"

static bool is_named(const ngx_str_t *name, const ngx_str_t *other)
{
    return name->len == other->len && ngx_memcmp(name->data, other->data, name->len) == 0;
}

/* -------------------------------------------------------- weir_attribute ---- */

static struct ngx_weir_given *find_given(const ngx_array_t *given, const ngx_str_t *name)
{
    struct ngx_weir_given *all = given == NULL ? NULL : given->elts;

    for (ngx_uint_t i = 0; all != NULL && i < given->nelts; i++)
        if (is_named(&all[i].name, name))
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

/* -------------------------------------------------- where they come from ---- */

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
        if (is_named(&names[i], &source->name))
            return true;
    return false;
}

void ngx_weir_attributes_resolve(ngx_conf_t *cf, const struct ngx_weir_conf *conf)
{
    static const ngx_str_t user = ngx_string("user");
    struct ngx_weir_source *sources = conf->rules->sources.elts;

    for (ngx_uint_t i = 0; i < conf->rules->sources.nelts; i++) {
        sources[i].variable = -1;
        bool found = find_known(cf, &sources[i]), given = is_given(conf, &sources[i]);
        if (found && !given && is_named(&sources[i].name, &user))
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
}

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
