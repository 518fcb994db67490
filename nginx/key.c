/* key.c -- the key of a request, as its zone has it.
 *
 * Most keys are one variable or a few: $binary_remote_addr, $server_name$uri.  They are put
 * together here.  nginx's own way is for any text: it runs a small program for each request, and
 * copies even a single variable. */
#include "module.h"

#define VARIABLES_MAX 8

/* Whether nginx has compiled the key to a few variables and nothing else. */
static bool is_plain(const ngx_http_complex_value_t *key)
{
    const ngx_http_script_var_code_t *code = key->lengths;
    ngx_uint_t n = 0;

    if (code == NULL)
        return false;
    while (n < VARIABLES_MAX &&
           (uintptr_t)code[n].code == (uintptr_t)ngx_http_script_copy_var_len_code)
        n++;
    return code[n].code == NULL;
}

char *ngx_weir_key_set(ngx_conf_t *cf, ngx_str_t *text, struct ngx_weir_zone *zone)
{
    ngx_http_complex_value_t *key = ngx_pcalloc(cf->pool, sizeof(*key));
    ngx_http_compile_complex_value_t compile = { .cf = cf, .value = text, .complex_value = key };

    if (key == NULL || ngx_http_compile_complex_value(&compile) != NGX_OK)
        return NGX_CONF_ERROR;
    zone->http_key = key;
    zone->variables = is_plain(key) ? key->flushes : NULL;
    return NGX_CONF_OK;
}

static size_t length_of(const ngx_http_variable_value_t *v)
{
    return v->not_found ? 0 : v->len;
}

static ngx_int_t join(ngx_pool_t *pool, ngx_http_variable_value_t *const *values, ngx_uint_t n,
                      ngx_str_t *out)
{
    u_char *at;

    out->len = 0;
    for (ngx_uint_t i = 0; i < n; i++)
        out->len += length_of(values[i]);
    out->data = at = ngx_pnalloc(pool, out->len);
    if (at == NULL)
        return NGX_ERROR;
    for (ngx_uint_t i = 0; i < n; i++)
        if (length_of(values[i]) > 0)
            at = ngx_cpymem(at, values[i]->data, values[i]->len);
    return NGX_OK;
}

ngx_int_t ngx_weir_key(ngx_http_request_t *r, const struct ngx_weir_zone *zone, ngx_str_t *out)
{
    ngx_http_variable_value_t *values[VARIABLES_MAX], *v;
    const ngx_uint_t *index = zone->variables;
    ngx_uint_t n = 0;

    if (index == NULL)
        return ngx_http_complex_value(r, zone->http_key, out);
    for (; *index != (ngx_uint_t)-1; index++) /* all, before one is measured: the next may change
                                                 it */
        if ((v = ngx_http_get_flushed_variable(r, *index)) != NULL)
            values[n++] = v;
    if (n != 1)
        return join(r->pool, values, n, out);
    *out = (ngx_str_t){ length_of(values[0]), values[0]->data };
    return NGX_OK;
}
