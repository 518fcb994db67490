/* shared.h -- what http {} and stream {} share: zones, limits, and deciding.
 *
 * All of it is in ngx_http_weir_module.so; ngx_stream_weir_module.so finds the functions there that
 * are shown. */
#ifndef WEIR_NGINX_SHARED_H
#define WEIR_NGINX_SHARED_H

#include <stdbool.h>

#include <ngx_config.h>
#include <ngx_core.h>

#include "weir-queue.h"

#define NGX_WEIR_SHOWN __attribute__((visibility("default")))

enum ngx_weir_kind {
    NGX_WEIR_REQ = 0,
    NGX_WEIR_CONN = 1,
    NGX_WEIR_STREAM = 2, /* a bit */
    NGX_WEIR_STREAM_REQ = NGX_WEIR_STREAM | NGX_WEIR_REQ,
    NGX_WEIR_STREAM_CONN = NGX_WEIR_STREAM | NGX_WEIR_CONN,
};

static inline bool ngx_weir_is_conn(enum ngx_weir_kind kind)
{
    return (kind & NGX_WEIR_CONN) != 0;
}

/* A guard has 16,384 permits at most.  Keys are spread over several guards, so that many keys
 * together can have more. */
#define NGX_WEIR_GUARDS   8
#define NGX_WEIR_CONN_MAX 16384

struct ngx_weir_zone {
    enum ngx_weir_kind kind;
    ngx_str_t name;
    size_t bytes;                /* 0: a limit has named it, but it is not described yet */
    ngx_str_t written;           /* its key */
    void *http_key, *stream_key; /* compiled: that of its kind */
    const ngx_uint_t *variables; /* of http_key, up to -1, if it is nothing else; NULL: it is */
    int64_t keys;                /* that `bytes` have room for ... */
    int64_t slab;                /* ... with this much for large states */
    struct weir_limit limit;     /* of weir_req_zone */
    bool paced;   /* one after the other, as limit_req: bursts are asks that can wait */
    bool changes; /* the limiter has another limit, until the commit */
    struct weir_table *table;
    struct weir_limiter *limiter;
    struct weir_guard *guards[NGX_WEIR_GUARDS];
    ngx_shm_zone_t *counts; /* of answers, for the status page */
};

/* A weir_req or weir_conn. */
struct ngx_weir_limit {
    struct ngx_weir_zone *zone;
    int64_t burst;            /* requests beyond the rate ... */
    int64_t delay;            /* ... of which this many need not wait */
    weir_time wait_max, free; /* the same as times, once the zone is known */
    ngx_int_t max;            /* of weir_conn */
    u_char *file;             /* where it stands, for a zone that never comes */
    ngx_uint_t line;
};

/* Limits of one kind at one place, and what a refusal does. */
struct ngx_weir_part {
    ngx_array_t *limits; /* of pointers to struct ngx_weir_limit */
    ngx_uint_t status, log_level;
    ngx_flag_t dry_run;
};

static inline bool ngx_weir_part_refuses(const struct ngx_weir_part *part) /* or it may */
{
    return part->limits != NULL && !part->dry_run;
}

enum ngx_weir_status {
    NGX_WEIR_NONE, /* in the order of limit_req's and limit_conn's own, of which nginx keeps a
                      number in the request */
    NGX_WEIR_PASSED,
    NGX_WEIR_DELAYED,
    NGX_WEIR_REJECTED,
    NGX_WEIR_DELAYED_DRY_RUN,
    NGX_WEIR_REJECTED_DRY_RUN,
};
#define NGX_WEIR_STATUSES 6
/* For $weir_req_status and $weir_conn_status. */
NGX_WEIR_SHOWN void ngx_weir_status_show(enum ngx_weir_status status, ngx_variable_value_t *v);

/* A permit that a request or a session holds. */
struct ngx_weir_held {
    ngx_queue_t queue; /* of all that this worker holds */
    struct weir_guard *guard;
    struct weir_table *table; /* the guard's */
    struct weir_permit permit;
    weir_time lease, renewed; /* how long, and since when */
    void *request;            /* of a rule's guard, which learns from it */
    bool idle;                /* it was found to wait for its client */
};

/* table.c.  Somebody has cut the table: this worker can decide nothing. */
NGX_WEIR_SHOWN extern bool ngx_weir_table_gone;

/* module.c.  stream {} begins: weir_compat can come no more. */
NGX_WEIR_SHOWN void ngx_weir_stream_begins(ngx_cycle_t *cycle);
NGX_WEIR_SHOWN bool ngx_weir_is_compat(ngx_cycle_t *cycle); /* weir_compat on */

/* zones.c.  All of a zone's directive but its key. */
NGX_WEIR_SHOWN char *ngx_weir_zone_read(ngx_conf_t *cf, enum ngx_weir_kind kind,
                                        struct ngx_weir_zone **out);

/* counts.c */
NGX_WEIR_SHOWN void ngx_weir_count(const struct ngx_weir_zone *zone, enum ngx_weir_status status);

/* limit-directives.c */
NGX_WEIR_SHOWN extern ngx_conf_enum_t ngx_weir_log_levels[];
NGX_WEIR_SHOWN char *ngx_weir_req_read(ngx_conf_t *cf, struct ngx_weir_part *part,
                                       enum ngx_weir_kind kind);
NGX_WEIR_SHOWN char *ngx_weir_conn_read(ngx_conf_t *cf, struct ngx_weir_part *part,
                                        enum ngx_weir_kind kind);
NGX_WEIR_SHOWN void ngx_weir_part_unset(struct ngx_weir_part *part);
NGX_WEIR_SHOWN void ngx_weir_part_merge(struct ngx_weir_part *from, struct ngx_weir_part *into,
                                        ngx_uint_t status);
/* All or nothing, and at once; false: *which of them has refused. */
NGX_WEIR_SHOWN bool ngx_weir_take(const struct ngx_weir_limit *const *limits,
                                  const struct weir_key *keys, ngx_uint_t n, ngx_uint_t *which);

/* conn.c.  A permit of the limit's zone, which is renewed until it is given back.  False: refused;
 * *d says why. */
NGX_WEIR_SHOWN bool ngx_weir_enter(const struct ngx_weir_limit *limit, const ngx_str_t *key,
                                   struct ngx_weir_held *held, struct weir_decision *d);
NGX_WEIR_SHOWN void ngx_weir_exit(struct ngx_weir_held *held);

#endif
