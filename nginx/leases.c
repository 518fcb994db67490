/* leases.c -- permits that a worker holds, for weir_conn and for rules' guards.
 *
 * A lease ends after a while, so a timer renews those of requests that last longer. */
#include "module.h"

#define LOOK_EVERY 5000 /* ms; more often for short leases, and breakers with a short `slow` */
#define SLOW_LEAST 200  /* ms: a shorter `slow` makes no difference here */

static ngx_queue_t held = { &held, &held }; /* by this worker */

static ngx_msec_t look_every = LOOK_EVERY;

static ngx_msec_t choose_interval(struct weir_table *table)
{
    weir_time now = weir_table_now(table), shortest = LOOK_EVERY * WEIR_MILLISECOND;
    struct weir_guard_info info;
    struct weir_guard *guard;

    for (int64_t at = 0; weir_guard_next(table, &at, &guard);) {
        weir_guard_get(guard, now, &info);
        shortest = ngx_min(shortest, info.options.lease / 8);
        weir_time slow = ngx_max(info.options.breaker.slow, SLOW_LEAST * WEIR_MILLISECOND);
        if (info.options.breaker.slow > 0)
            shortest = ngx_min(shortest, slow / 2);
    }
    return (ngx_msec_t)ngx_max(shortest / WEIR_MILLISECOND, 1);
}

static weir_time lease_of(struct ngx_weir_held *h, weir_time now)
{
    struct weir_guard_info info;

    if (h->lease == 0) { /* of a request that lasts */
        weir_guard_get(h->guard, now, &info);
        h->lease = info.options.lease;
    }
    return h->lease;
}

/* Half of a lease passes before it is renewed: a breaker sees work that hangs by the age of its
 * permit. */
void ngx_weir_hold_look(struct ngx_weir_held *h, weir_time now)
{
    ngx_http_request_t *r = h->request;
    struct ngx_weir_ctx *ctx = r == NULL ? NULL : ngx_weir_ctx_find(r);
    bool was = h->idle, idle = ctx != NULL && ngx_weir_waits_for_client(r, ctx->ruled);

    h->idle = idle;
    if (idle == was && (now - h->renewed < (weir_time)look_every * WEIR_MILLISECOND ||
                        now - h->renewed < lease_of(h, now) / (idle ? 4 : 2)))
        return;
    h->renewed = now;
    if (idle)
        (void)weir_permit_idle(h->guard, &h->permit, now);
    else
        (void)weir_permit_renew(h->guard, &h->permit, now);
}

static void look(ngx_event_t *event)
{
    for (ngx_queue_t *q = ngx_queue_head(&held); q != &held; q = ngx_queue_next(q)) {
        struct ngx_weir_held *h = ngx_queue_data(q, struct ngx_weir_held, queue);
        ngx_weir_hold_look(h, weir_table_now(h->table));
    }
    ngx_add_timer(event, look_every);
}

ngx_int_t ngx_weir_held_start(ngx_cycle_t *cycle, struct weir_table *table)
{
    static ngx_event_t event;

    look_every = choose_interval(table);
    event.handler = look;
    event.log = cycle->log;
    event.data = &ngx_weir_nobody;
    event.cancelable = 1;
    ngx_add_timer(&event, look_every);
    return NGX_OK;
}

void ngx_weir_hold(struct ngx_weir_held *h, ngx_http_request_t *r)
{
    h->lease = 0;
    h->renewed = h->permit.since;
    h->request = r;
    h->idle = false;
    ngx_queue_insert_tail(&held, &h->queue);
}
