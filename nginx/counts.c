/* counts.c -- counts for the status page, of all workers.
 *
 * How often a zone let requests pass, delayed or rejected them: each worker has a line of its own
 * in shared memory, so counting costs nothing between them.  The memory is nginx's: it stays over
 * reloads, and begins at 0 with a restart or a new binary.
 *
 * By rules a worker counts by itself, and adds its counts to the table's a moment after a request,
 * when it shows them, and at its end: a kill loses those of a tenth of a second. */
#include "module.h"
#include "weir-admin.h"

#define LINES        256 /* workers of a higher number share those of lower ones */
#define SHARE_WITHIN 100 /* ms */

/* ----------------------------------------------------------------- zones ---- */

struct line {
    ngx_atomic_t counts[8]; /* by enum ngx_weir_status */
};

static ngx_int_t init(ngx_shm_zone_t *shm, void *old)
{
    ngx_slab_pool_t *pool = (ngx_slab_pool_t *)(void *)shm->shm.addr;

    shm->data = old != NULL ? old : ngx_slab_calloc(pool, LINES * sizeof(struct line));
    return shm->data != NULL ? NGX_OK : NGX_ERROR;
}

ngx_int_t ngx_weir_counts_add(ngx_conf_t *cf, struct ngx_weir_zone *zone)
{
    ngx_str_t name = { zone->name.len + 8, ngx_pnalloc(cf->pool, zone->name.len + 8) };

    if (name.data == NULL)
        return NGX_ERROR;
    (void)ngx_snprintf(name.data, name.len, "weir-%ui: %V", (ngx_uint_t)zone->kind, &zone->name);
    zone->counts = ngx_shared_memory_add(cf, &name, 16 * ngx_pagesize, &ngx_http_weir_module);
    if (zone->counts == NULL)
        return NGX_ERROR;
    zone->counts->init = init;
    return NGX_OK;
}

void ngx_weir_count(const struct ngx_weir_zone *zone, enum ngx_weir_status status)
{
    struct line *lines = zone->counts->data;

    (void)ngx_atomic_fetch_add(&lines[ngx_worker % LINES].counts[status], 1);
}

void ngx_weir_counts_get(const struct ngx_weir_zone *zone, uint64_t out[NGX_WEIR_STATUSES])
{
    const struct line *lines = zone->counts->data;

    ngx_memzero(out, NGX_WEIR_STATUSES * sizeof(*out));
    for (ngx_uint_t i = 0; i < LINES; i++)
        for (ngx_uint_t j = 0; j < NGX_WEIR_STATUSES; j++)
            out[j] += lines[i].counts[j];
}

/* ----------------------------------------------------------------- rules ---- */

static ngx_event_t share_event;

static void share(ngx_event_t *event)
{
    weir_counts_share(event->data);
}

void ngx_weir_counts_soon(struct weir *weir)
{
    if (share_event.timer_set)
        return;
    share_event.handler = share;
    share_event.log = ngx_cycle->log;
    share_event.data = weir;
    share_event.cancelable = 1;
    ngx_add_timer(&share_event, SHARE_WITHIN);
}

void ngx_weir_counts_share(void)
{
    if (share_event.data != NULL)
        weir_counts_share(share_event.data);
}
