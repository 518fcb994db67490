/* module.h -- Weir inside nginx: what the files of the module share.
 *
 *     module.c   the core module: weir_table, weir_compat; a configuration is prepared, which may
 *                fail and changes nothing that is in force, and committed, which cannot fail
 *     table.c    the table, kept from one configuration to the next
 *     zones.c    weir_req_zone and weir_conn_zone: a key, and its limiter or guards in the table
 *     counts.c   what zones and rules did, for the status page
 *     key.c      the key of a request
 *     http.c     the http module: directives, variables, a request's way through the limits
 *     limit-directives.c
 *                weir_req and weir_conn as they are written; asking several rates at once
 *     stream.c   the module for stream {}, a file of its own
 *     req.c      weir_req: asks, waits in a timer, gives back
 *     conn.c     weir_conn: permits by key
 *     leases.c   permits that requests hold: renewed while they last
 *     wait.c     requests that wait, for their turn or in the queue of a guard
 *     fleet.c    weir_fleet: units of the fleet, for rules across it
 *     rules.c    weir_rules: a rule file
 *     attributes.c
 *                weir_attribute; where a request's attributes come from, and what they are
 *     check.c    a request and the rules
 *     feedback.c how its upstreams did, for guards
 *     answer.c   headers and refusals
 *     status.c   weir_status: the table, for people and Prometheus
 *
 * nginx calls a configuration and all that was made from it a cycle.  The master makes cycles and
 * opens the table; workers inherit both.  A worker is one thread: nothing here is locked. */
#ifndef WEIR_NGINX_MODULE_H
#define WEIR_NGINX_MODULE_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "shared.h"

extern ngx_module_t ngx_weir_module, ngx_http_weir_module, ngx_http_weir_filter_module;

#define NGX_WEIR_ATTRIBUTES_MAX 64    /* that the rules of a file can look at */
#define NGX_WEIR_LIMITERS_MAX   65536 /* of a table */
#define NGX_WEIR_GUARDS_MAX     4096  /* likewise */

/* Where an attribute is found, unless the location has a weir_attribute for it. */
enum ngx_weir_place {
    NGX_WEIR_VARIABLE, /* of nginx; -1: it does not know it */
    NGX_WEIR_HEADER,   /* under the name `rest`, as are the next two */
    NGX_WEIR_COOKIE,
    NGX_WEIR_ARGUMENT
};

struct ngx_weir_source {
    ngx_str_t name; /* with a NUL behind it */
    uint32_t id;
    enum ngx_weir_place kind;
    ngx_int_t variable;
    ngx_str_t rest;
};

/* A weir_attribute. */
struct ngx_weir_given {
    ngx_str_t name;
    ngx_http_complex_value_t value;
};

struct ngx_weir_rules {
    ngx_str_t path;
    int64_t keys, limiters, guards; /* for which the table has room */
    const char *across;             /* one across the fleet; NULL: none */
    const char *queue;              /* a limit that lets requests wait; likewise */
    ngx_array_t sources;            /* of what the rules look at: struct ngx_weir_source */
    struct weir *weir;              /* the engine; it belongs to the table */
    struct weir_rules *parsed;      /* until the commit */
    struct weir_prepared *prepared;
};

/* weir_fleet. */
struct ngx_weir_fleet {
    const char *url, *name, *node; /* NULL: the library's own */
    ngx_int_t weight, nodes;
};

/* The core module's part of a cycle. */
struct ngx_weir_conf {
    ngx_pool_t *pool;
    bool compat, compat_set;   /* weir_compat on; on or off */
    bool streams;              /* stream {} has come */
    bool waits;                /* weir_wait stands somewhere */
    ngx_str_t path;            /* of the table; empty: beside the pid file */
    ngx_array_t zones, limits; /* of pointers */
    ngx_array_t attributes;    /* names that weir_attribute gives somewhere: ngx_str_t */
    struct ngx_weir_rules *rules;
    struct ngx_weir_fleet *fleet; /* NULL: none */
    struct ngx_weir_opened *opened;
    struct weir_table *table; /* NULL: there are no zones and rules, or nothing is to run */
};

static inline struct ngx_weir_conf *ngx_weir_conf_of(ngx_cycle_t *cycle)
{
    return (struct ngx_weir_conf *)ngx_get_conf(cycle->conf_ctx, ngx_weir_module);
}

/* module.c.  The data of a timer that is no connection's: nginx's debug log reads a descriptor. */
extern ngx_connection_t ngx_weir_nobody;

/* table.c.  Sets conf->table, or says in the log why not.  It stays open until the cycle's pool is
 * gone.  Anew: the one that is there has no room for this configuration, or is damaged. */
ngx_int_t ngx_weir_table_open(ngx_cycle_t *cycle, struct ngx_weir_conf *conf, bool anew);
/* Whether a table begun anew may do where this one failed with `code`. */
bool ngx_weir_table_retries(const struct ngx_weir_conf *conf, int code);
/* Says so in the log, about a zone or a rule file. */
void ngx_weir_table_lacks(ngx_cycle_t *cycle, const struct ngx_weir_conf *conf, int code,
                          const ngx_str_t *name, const struct weir_error *error);
void ngx_weir_table_commit(ngx_cycle_t *cycle, struct ngx_weir_conf *conf);
/* False: somebody has cut it, and whoever touches what is missing dies; the zones are forgotten. */
bool ngx_weir_table_look(ngx_cycle_t *cycle);
int ngx_weir_engine(struct ngx_weir_conf *conf, struct weir **out, struct weir_error *error);
ngx_int_t ngx_weir_table_start(ngx_cycle_t *cycle); /* in a worker */

/* zones.c */
char *ngx_weir_req_zone(ngx_conf_t *cf, ngx_command_t *command, void *conf);
char *ngx_weir_conn_zone(ngx_conf_t *cf, ngx_command_t *command, void *conf);
/* The zone of that name, described or not; NULL: no memory. */
struct ngx_weir_zone *ngx_weir_zone_get(ngx_cycle_t *cycle, enum ngx_weir_kind kind,
                                        const ngx_str_t *name);
/* Whether every limit has its zone. */
ngx_int_t ngx_weir_zones_check(ngx_cycle_t *cycle, struct ngx_weir_conf *conf);
/* 0, or the library's code and the reason in the log. */
int ngx_weir_zones_prepare(ngx_cycle_t *cycle, struct ngx_weir_conf *conf);
void ngx_weir_zones_release(struct ngx_weir_conf *conf);
void ngx_weir_zones_forget(struct ngx_weir_conf *conf); /* likewise, but the table is gone */
void ngx_weir_zones_commit(ngx_cycle_t *cycle, struct ngx_weir_conf *conf);

/* limit-directives.c.  An option stands there once: nobody would see which of two counts.  From
 * that word of the directive on. */
char *ngx_weir_options_check(ngx_conf_t *cf, ngx_uint_t first);

/* key.c */
char *ngx_weir_key_set(ngx_conf_t *cf, ngx_str_t *text, struct ngx_weir_zone *zone);
/* It lasts as long as the request. */
ngx_int_t ngx_weir_key(ngx_http_request_t *r, const struct ngx_weir_zone *zone, ngx_str_t *out);

/* counts.c */
ngx_int_t ngx_weir_counts_add(ngx_conf_t *cf, struct ngx_weir_zone *zone);
/* Of all workers. */
void ngx_weir_counts_get(const struct ngx_weir_zone *zone, uint64_t out[NGX_WEIR_STATUSES]);
void ngx_weir_counts_soon(struct weir *weir); /* there is something to share */
void ngx_weir_counts_share(void);

/* rules.c */
char *ngx_weir_rules_set(ngx_conf_t *cf, ngx_command_t *command, void *data);
/* When all of http has been read: warns, and has the attributes found. */
ngx_int_t ngx_weir_rules_resolve(ngx_conf_t *cf);
/* Adds the room that they need. */
void ngx_weir_rules_size(const struct ngx_weir_rules *rules, struct weir_table_options *o);
/* 0, or the library's code and the reason in the log. */
int ngx_weir_rules_prepare(ngx_cycle_t *cycle, struct ngx_weir_conf *conf);
void ngx_weir_rules_commit(struct ngx_weir_rules *rules, weir_time now);

/* http.c.  On: limit_req's and limit_conn's names are Weir's too. */
void ngx_weir_compat_set(bool on);

/* Of a location. */
struct ngx_weir_loc {
    struct ngx_weir_part req, conn;
    ngx_flag_t check;                  /* by the rules: written, or inherited */
    bool shows_status;                 /* it is not asked by inheritance */
    bool asks;                         /* the rules, after all that */
    ngx_flag_t headers;                /* of the ruling, in the answer */
    ngx_msec_t wait;                   /* for a turn by the rules' limits, at most */
    ngx_array_t *given;                /* of struct ngx_weir_given, the nearest first; NULL: none */
    ngx_http_complex_value_t **values; /* of the rules' sources; NULL: none is given */
};

/* What the rules said, and the guards that the request is in. */
struct ngx_weir_ruled {
    struct weir *weir; /* that decides it; a reload may leave no rules */
    struct weir_visit visit;
    struct ngx_weir_held *held; /* visit.entry.n of them */
    weir_time since;            /* it was asked, ... */
    weir_time waited;           /* ... and waited this long for the answer and its turn */
    struct weir_taken *taken;   /* to give back if it leaves before its turn; NULL: nothing */
    struct weir_ruling granted; /* visit.in_turn: by the limits ... */
    bool entering;              /* ... and its turn has come */
    bool open;                  /* it waits to be decided, or was and is about to go on */
    bool answered;              /* its answer has begun ... */
    ngx_uint_t broken;          /* ... and an upstream broke it off, which is like this status */
    void (*end_upstream)(ngx_http_request_t *r, ngx_int_t code); /* the upstream module's own */
    ngx_http_request_t *part; /* that asked the request's upstream too; NULL: none */
    ngx_msec_t body_late;     /* an upstream waited this long for the rest of the body, ... */
    ngx_msec_t body_seen;     /* ... of which a piece came then */
    bool drawn;               /* the fleet has decided last: it may have a queue yet */
    ngx_uint_t draws;         /* how often it was asked */
    struct ngx_weir_dry *dry; /* it is asked now */
    ngx_event_t event;        /* goes on */
};

/* A request that was limited, from the first limit to its end, through all redirects; one that has
 * nothing to do at its end has none. */
struct ngx_weir_ctx {
    ngx_pool_cleanup_t cleanup; /* of the request's pool: the end */
    struct weir_table *table;
    struct weir_reservation *taken; /* of weir_req: to give back if it is not let in after all */
    ngx_uint_t n_taken;
    ngx_http_request_t *waiter; /* it or a subrequest waits, for its turn or to be decided */
    ngx_queue_t behind;         /* subrequests that wait until it does so no more */
    weir_time turn;
    ngx_event_t timer;           /* until then */
    ngx_http_request_t *refused; /* it or a subrequest was */
    struct ngx_weir_held *held;  /* of weir_conn ... */
    struct ngx_weir_held only;   /* ... if there is one limit: it saves an allocation */
    ngx_uint_t n_held;
    bool in;                      /* it was let in with these, and holds them until its end */
    bool req_back, conn_back;     /* a refusal has given back what weir_req, weir_conn gave */
    struct ngx_weir_ruled *ruled; /* NULL: not asked */
};

/* http.c.  One for the whole http block. */
struct ngx_weir_main {
    struct ngx_weir_conf *conf; /* that it was read with */
    ngx_int_t memo;             /* the index of the variable whose place ngx_weir_memo has */
};

/* The request's own: with `master_process off` a connection outlives a reload. */
static inline struct ngx_weir_conf *ngx_weir_conf_for(const ngx_http_request_t *r)
{
    const struct ngx_weir_main *conf = ngx_http_get_module_main_conf(r, ngx_http_weir_module);

    return conf->conf;
}

/* What is known about a request.  It has the place of a variable that no configuration can name: a
 * redirect inside nginx forgets contexts, but not variables.  Zeros at first, and that costs
 * nothing. */
struct ngx_weir_memo {
    unsigned req : 3, conn : 3; /* enum ngx_weir_status */
    unsigned : 26;
    struct ngx_weir_ctx *ctx; /* NULL: none */
};

_Static_assert(sizeof(struct ngx_weir_memo) == sizeof(ngx_http_variable_value_t),
               "it takes the variable's place");

static inline struct ngx_weir_memo *ngx_weir_memo_of(const ngx_http_request_t *r)
{
    const struct ngx_weir_main *conf = ngx_http_get_module_main_conf(r, ngx_http_weir_module);

    return (struct ngx_weir_memo *)(void *)&r->main->variables[conf->memo];
}

static inline struct ngx_weir_ctx *ngx_weir_ctx_find(const ngx_http_request_t *r) /* NULL: none */
{
    return ngx_weir_memo_of(r)->ctx;
}

/* Made when it is first needed; NULL: no memory. */
struct ngx_weir_ctx *ngx_weir_ctx_get(ngx_http_request_t *r);

/* req.c, conn.c.  NGX_DECLINED: it passes. */
ngx_int_t ngx_weir_req_ask(ngx_http_request_t *r, const struct ngx_weir_loc *loc);
void ngx_weir_req_give_back(struct ngx_weir_ctx *ctx);
ngx_int_t ngx_weir_conn_enter(ngx_http_request_t *r, const struct ngx_weir_part *part);
void ngx_weir_conn_exit(struct ngx_weir_ctx *ctx);

/* leases.c */
void ngx_weir_hold(struct ngx_weir_held *h, ngx_http_request_t *r); /* it is renewed now */
void ngx_weir_hold_look(struct ngx_weir_held *h, weir_time now); /* does it wait for its client? */
ngx_int_t ngx_weir_held_start(ngx_cycle_t *cycle, struct weir_table *table); /* in a worker */

/* attributes.c */
char *ngx_weir_attribute_set(ngx_conf_t *cf, ngx_command_t *command, void *data);
ngx_int_t ngx_weir_attributes_merge(ngx_conf_t *cf, const struct ngx_weir_loc *from,
                                    struct ngx_weir_loc *into);
/* Where each comes from that the rules look at; warns of those that nobody gives. */
void ngx_weir_attributes_resolve(ngx_conf_t *cf, const struct ngx_weir_conf *conf);
/* NGX_OK, or a status. */
ngx_int_t ngx_weir_describe(ngx_http_request_t *r, const struct ngx_weir_rules *rules,
                            struct weir_attr attrs[NGX_WEIR_ATTRIBUTES_MAX], size_t *n);

/* check.c.  NGX_DECLINED: it passes. */
ngx_int_t ngx_weir_check(ngx_http_request_t *r, const struct ngx_weir_loc *loc);
/* Once at the end; NULL: it is not known how it ended. */
void ngx_weir_check_exit(struct ngx_weir_ctx *ctx, ngx_http_request_t *r);

/* feedback.c.  At the end of a request. */
enum weir_outcome ngx_weir_feedback(ngx_http_request_t *r, const struct ngx_weir_ruled *ruled,
                                    weir_time *took);
/* It may have asked the request's upstream. */
void ngx_weir_note_part(ngx_http_request_t *r, struct ngx_weir_ruled *ruled);
/* Before it asks upstreams, or after they have answered. */
bool ngx_weir_waits_for_client(const ngx_http_request_t *r, const struct ngx_weir_ruled *ruled);

/* wait.c.  NGX_AGAIN: the request goes on later, and comes here again. */
ngx_int_t ngx_weir_wait_turn(ngx_http_request_t *r, struct ngx_weir_ctx *ctx, weir_time wait);
/* For another one of the same request, which waits. */
ngx_int_t ngx_weir_wait_behind(ngx_http_request_t *r, struct ngx_weir_ctx *ctx);
ngx_int_t ngx_weir_wait_queued(ngx_http_request_t *r, struct ngx_weir_ruled *ruled);
/* The same, for a request that is not decided yet. */
ngx_int_t ngx_weir_wait_open(ngx_http_request_t *r, struct ngx_weir_ruled *ruled);
void ngx_weir_wait_over(struct weir_visit *visit);
/* The request ends. */
void ngx_weir_wait_leave(struct ngx_weir_ruled *ruled, weir_time now);
void ngx_weir_wait_poll(void); /* a permit has come free */

/* fleet.c */
char *ngx_weir_fleet_set(ngx_conf_t *cf, ngx_command_t *command, void *data);
void ngx_weir_fleet_start(ngx_cycle_t *cycle, const struct ngx_weir_conf *conf); /* in a worker */
void ngx_weir_fleet_stop(void);
/* The request found a purse dry.  NGX_AGAIN: it waits; NGX_DECLINED: it is decided, or stays so. */
ngx_int_t ngx_weir_fleet_ask(ngx_http_request_t *r, struct ngx_weir_ruled *ruled,
                             struct weir *weir);
void ngx_weir_fleet_leave(struct ngx_weir_ruled *ruled);
void ngx_weir_fleet_refused(const struct weir_ruling *ruling, const char *key);
struct weir_fleet_info;
bool ngx_weir_fleet_look(struct weir_fleet_info *out); /* false: not joined */

/* breakers.c */
void ngx_weir_breakers_start(ngx_cycle_t *cycle,
                             const struct ngx_weir_conf *conf); /* in a worker */

/* status.c */
char *ngx_weir_status_set(ngx_conf_t *cf, ngx_command_t *command, void *data);

/* answer.c.  A name as it can stand between quotes. */
const char *ngx_weir_quotable(const char *name, char out[64]);
void ngx_weir_retry_after(ngx_http_request_t *r, weir_time retry);
void ngx_weir_ruling_headers(ngx_http_request_t *r, const struct weir_ruling *ruling);
ngx_int_t ngx_weir_answer(ngx_http_request_t *r, struct weir *weir,
                          const struct weir_ruling *ruling);

#endif
