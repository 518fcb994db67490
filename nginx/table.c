/* table.c -- the table, kept from one configuration to the next.
 *
 * It is a file beside the pid file (or as weir_table says), so a new binary finds it again, and so
 * does nginx after a restart.  The master opens it before it forks, with the right to; workers go
 * on with what they inherit.  A file of our own that has become too small, or much too large, or
 * that this version cannot read, is replaced: who uses the old one goes on with it. */
#include <sys/stat.h>

#include "module.h"

#define TEND_EVERY   10000 /* ms */
#define SLOT_BYTES   32
#define KEY_BYTES    39 /* of a slot, with its share of those that stay empty */
#define LIMITERS     1024
#define GUARDS_SPARE 4 /* times as many as there are: for zones to come */

/* Of this process: the master's, or a worker's copy. */
struct open_table {
    struct weir_table *table;
    struct weir *weir; /* rules at work on it; NULL: there were none yet */
    struct stat file;
    ngx_uint_t cycles; /* that use it */
};
static struct open_table *current;

/* ------------------------------------------------------------------ size ---- */

static struct weir_table_options choose_sizes(const struct ngx_weir_conf *conf)
{
    struct ngx_weir_zone **zones = conf->zones.elts;
    struct weir_table_options o = { .limiters = LIMITERS };

    for (ngx_uint_t i = 0; i < conf->zones.nelts; i++) {
        o.keys += zones[i]->keys;
        o.slab += zones[i]->slab;
        o.guards += zones[i]->kind == NGX_WEIR_CONN ? NGX_WEIR_GUARDS * GUARDS_SPARE : 0;
    }
    if (conf->rules != NULL)
        ngx_weir_rules_size(conf->rules, &o);
    o.guards = ngx_min(ngx_max(o.guards, NGX_WEIR_GUARDS * GUARDS_SPARE), 4096);
    return o;
}

/* Near enough to keep what it knows. */
static bool fits(const struct weir_table *table, const struct weir_table_options *wanted)
{
    struct weir_table_stats stats;
    int64_t slots = wanted->keys * KEY_BYTES / SLOT_BYTES;

    weir_table_stats(table, -1, &stats);
    return stats.slots >= slots && stats.slots / 2 <= slots + 1024 && stats.slab >= wanted->slab;
}

/* ------------------------------------------------------------------ open ---- */

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static void close_table(void *data)
{
    struct open_table *open = data;

    if (--open->cycles > 0)
        return;
    if (current == open)
        current = NULL;
    if (open->weir != NULL)
        weir_destroy(open->weir);
    weir_table_destroy(open->table);
    free(open);
}

/* NULL: the reason is in the log. */
static struct open_table *open_anew(ngx_log_t *log, const struct weir_table_options *options,
                                    bool ours)
{
    struct open_table *open = calloc(1, sizeof(*open));
    struct weir_error error = { .text = "no memory" };
    int code = open == NULL ? WEIR_NO_MEMORY : weir_table_create(&open->table, options, &error);

    if (code == WEIR_CORRUPT && ours) {
        ngx_log_error(NGX_LOG_WARN, log, 0, "weir: %s; begins anew", error.text);
        (void)ngx_delete_file(options->path);
        code = weir_table_create(&open->table, options, &error);
    }
    if (code == 0 && ours && !fits(open->table, options)) {
        ngx_log_error(NGX_LOG_NOTICE, log, 0,
                      "weir: zones have other sizes now: \"%s\" begins anew", options->path);
        weir_table_destroy(open->table);
        (void)ngx_delete_file(options->path);
        code = weir_table_create(&open->table, options, &error);
    }
    if (code == 0 && stat(options->path, &open->file) == 0)
        return open;
    if (code == 0)
        weir_table_destroy(open->table);
    ngx_log_error(NGX_LOG_EMERG, log, 0, "weir: %s", error.text);
    free(open);
    return NULL;
}

/* Beside the pid file: nginx.weir for nginx.pid. */
static ngx_int_t default_path(ngx_cycle_t *cycle, ngx_str_t *out)
{
    ngx_core_conf_t *core = (ngx_core_conf_t *)ngx_get_conf(cycle->conf_ctx, ngx_core_module);
    ngx_str_t pid = core->pid;

    if (pid.len > 4 && ngx_strncmp(pid.data + pid.len - 4, ".pid", 4) == 0)
        pid.len -= 4;
    out->data = ngx_pnalloc(cycle->pool, pid.len + sizeof(".weir"));
    if (out->data == NULL)
        return NGX_ERROR;
    out->len = (size_t)(ngx_sprintf(out->data, "%V.weir%Z", &pid) - out->data) - 1;
    return NGX_OK;
}

static ngx_int_t choose_path(ngx_cycle_t *cycle, const struct ngx_weir_conf *conf, ngx_str_t *out)
{
    *out = conf->path;
    return out->len == 0 ? default_path(cycle, out) : ngx_conf_full_name(cycle, out, 0);
}

static void choose_owner(ngx_cycle_t *cycle, struct weir_table_options *o)
{
    ngx_core_conf_t *core = (ngx_core_conf_t *)ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    if (geteuid() == 0 && core->user != (ngx_uid_t)NGX_CONF_UNSET_UINT) {
        o->owner = (unsigned)core->user;
        o->group = (unsigned)core->group;
        o->mode = 0600;
    }
}

struct weir_table *ngx_weir_table_open(ngx_cycle_t *cycle, const struct ngx_weir_conf *conf)
{
    struct weir_table_options options = choose_sizes(conf);
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(cycle->pool, 0);
    bool ours = conf->path.len == 0;
    struct open_table *open = current;
    struct stat there;
    ngx_str_t path;

    if (cleanup == NULL || choose_path(cycle, conf, &path) != NGX_OK)
        return NULL;
    options.path = (const char *)path.data;
    choose_owner(cycle, &options);
    bool same = open != NULL && stat(options.path, &there) == 0 &&
                is_same_file(&there, &open->file) && (!ours || fits(open->table, &options));
    if (!same && (open = open_anew(cycle->log, &options, ours)) == NULL)
        return NULL;
    open->cycles++;
    cleanup->handler = close_table;
    cleanup->data = current = open;
    return open->table;
}

struct weir *ngx_weir_engine(ngx_log_t *log)
{
    struct weir_error error = { .text = "" };

    if (current->weir == NULL &&
        weir_create(&current->weir, &(struct weir_options){ .table = current->table }, &error) != 0)
        ngx_log_error(NGX_LOG_EMERG, log, 0, "weir: %s", error.text);
    return current->weir;
}

/* ------------------------------------------------------------------ tend ---- */

static void tend(ngx_event_t *event)
{
    struct weir_table *table = event->data;

    weir_table_tend(table, weir_table_now(table));
    ngx_add_timer(event, TEND_EVERY);
}

ngx_int_t ngx_weir_table_start(ngx_cycle_t *cycle, struct weir_table *table)
{
    static ngx_event_t event;

    if (ngx_worker != 0)
        return NGX_OK;
    event.handler = tend;
    event.log = cycle->log;
    event.data = table;
    event.cancelable = 1;
    ngx_add_timer(&event, TEND_EVERY);
    return NGX_OK;
}
