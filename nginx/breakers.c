/* breakers.c -- breakers that open and close, in the error log.
 *
 * The first worker looks at the guards' latest changes: one line for a change, however many workers
 * there are, whichever of them or whatever other program of the table caused it.  A breaker that
 * tries its upstream in vain opens again in silence. */
#include "module.h"

#define LOOK_EVERY 1000 /* ms */
#define AT_ONCE    32   /* guards: each may have work due, 25 us, and the worker has requests */
#define GO_ON      20   /* ms later, with the next ones */

static weir_time since;  /* changes before are of the workers before */
static uint64_t *told;   /* the number of a guard's last change that was looked at, by its place */
static int64_t n_places; /* of `told` */

static bool make_room(int64_t place)
{
    if (place < n_places)
        return true;
    uint64_t *larger = realloc(told, (size_t)(place + 1) * sizeof(*larger));
    if (larger == NULL)
        return false;
    ngx_memzero(larger + n_places, (size_t)(place + 1 - n_places) * sizeof(*larger));
    told = larger;
    n_places = place + 1;
    return true;
}

/* At the level that logs show unless told otherwise. */
static void tell(ngx_log_t *log, const struct weir_guard_info *info,
                 const struct weir_guard_event *change)
{
    bool opens = change->from == WEIR_BREAKER_CLOSED && change->to == WEIR_BREAKER_OPEN,
         closes = change->to == WEIR_BREAKER_CLOSED;

    if (change->kind == WEIR_GUARD_EVENT_BREAKER && change->at >= since && (opens || closes))
        ngx_log_error(NGX_LOG_ERR, log, 0, "weir: guard \"%s\": the breaker %s", info->name,
                      opens ? "opens" : "closes");
}

/* The latest change comes first. */
static void look_at(ngx_log_t *log, const struct weir_guard_info *info, uint64_t *last)
{
    if (info->events[0].number < *last)
        *last = 0; /* another guard has the place */
    for (size_t i = sizeof(info->events) / sizeof(*info->events); i-- > 0;)
        if (info->events[i].number > *last)
            tell(log, info, &info->events[i]);
    *last = info->events[0].number;
}

static void look(ngx_event_t *event)
{
    static int64_t at; /* where it goes on */
    struct weir_table *table = ngx_weir_conf_of((ngx_cycle_t *)ngx_cycle)->table;
    struct weir_guard_info info;
    struct weir_guard *guard;
    ngx_uint_t n = 0;

    if (ngx_exiting)
        return;
    for (; n < AT_ONCE && table != NULL && weir_guard_next(table, &at, &guard); n++)
        if (make_room(at)) {
            weir_guard_get(guard, weir_table_now(table), &info);
            look_at(event->log, &info, &told[at]);
        }
    if (n < AT_ONCE)
        at = 0;
    ngx_add_timer(event, n < AT_ONCE ? LOOK_EVERY : GO_ON);
}

void ngx_weir_breakers_start(ngx_cycle_t *cycle, const struct ngx_weir_conf *conf)
{
    static ngx_event_t event;

    if (ngx_worker != 0 || conf->rules == NULL)
        return;
    since = weir_table_now(conf->table);
    event.handler = look;
    event.log = cycle->log;
    event.data = &ngx_weir_nobody;
    event.cancelable = 1;
    ngx_add_timer(&event, LOOK_EVERY);
}
