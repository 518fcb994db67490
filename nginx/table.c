/* table.c -- the table, kept from one configuration to the next.
 *
 * It is a file beside the pid file (or as weir_table says), so a new binary finds it again, and so
 * does nginx after a restart.  The master opens it before it forks, with the right to; workers go
 * on with what they inherit.  A file of our own that has become too small, or much too large, or
 * that this version cannot read, is replaced: the new one is made beside it, and takes its place
 * with the commit.  Workers that use the old one go on with it.
 *
 * If somebody cuts the file, a process that touches what is missing dies.  The worker that follows
 * it sees that, and refuses whatever it cannot decide until a reload has made another table. */
#include <sys/stat.h>

#include "module.h"

#define TEND_EVERY   10000 /* ms */
#define SLOT_BYTES   32
#define KEY_BYTES    39 /* of a slot, with its share of those that stay empty */
#define LIMITERS     1024
#define GUARDS_SPARE 4   /* times as many as there are: for zones to come, ... */
#define GUARDS_LEAST 512 /* ... or renamed; 5 KB each until it is used */

/* Of this process: the master's, or a worker's copy. */
struct ngx_weir_opened {
    struct weir_table *table;
    struct weir *weir; /* rules at work on it; NULL: there were none yet */
    struct stat file;
    ngx_uint_t cycles;         /* that use it */
    const char *beside, *path; /* where it lies until the commit, and then; NULL: in its place */
};
static struct ngx_weir_opened *current; /* of the configuration in force */

/* ------------------------------------------------------------------ size ---- */

static struct weir_table_options choose_sizes(const struct ngx_weir_conf *conf)
{
    struct ngx_weir_zone **zones = conf->zones.elts;
    struct weir_table_options o = { .limiters = LIMITERS };

    for (ngx_uint_t i = 0; i < conf->zones.nelts; i++) {
        o.keys += zones[i]->keys;
        o.slab += zones[i]->slab;
        o.guards += ngx_weir_is_conn(zones[i]->kind) ? NGX_WEIR_GUARDS * GUARDS_SPARE : 0;
        o.limiters += !ngx_weir_is_conn(zones[i]->kind);
    }
    if (conf->rules != NULL)
        ngx_weir_rules_size(conf->rules, &o);
    o.limiters = ngx_min(o.limiters, NGX_WEIR_LIMITERS_MAX);
    o.guards = ngx_min(ngx_max(o.guards, GUARDS_LEAST), NGX_WEIR_GUARDS_MAX);
    return o;
}

/* Near enough to keep what it knows.  An eighth is room that KEY_BYTES leaves empty: a small zone
 * more is no reason to forget all bans. */
static bool fits(const struct weir_table *table, const struct weir_table_options *wanted)
{
    struct weir_table_stats stats;
    int64_t slots = wanted->keys * KEY_BYTES / SLOT_BYTES;

    weir_table_stats(table, -1, &stats);
    return stats.slots >= slots - slots / 8 && stats.slots / 2 <= slots + 1024 &&
           stats.slab >= wanted->slab - wanted->slab / 8;
}

/* ------------------------------------------------------------------ open ---- */

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool ngx_weir_table_gone;

static void close_table(void *data)
{
    struct ngx_weir_opened *open = data;

    if (--open->cycles > 0)
        return;
    if (current == open)
        current = NULL;
    bool whole = !weir_table_is_cut(open->table);
    if (open->weir != NULL && whole)
        weir_destroy(open->weir);
    if (whole)
        weir_table_destroy(open->table);
    if (open->beside != NULL) /* its configuration never came into force */
        (void)ngx_delete_file(open->beside);
    free(open);
}

static int make_beside(ngx_cycle_t *cycle, struct ngx_weir_opened *open,
                       const struct weir_table_options *options, struct weir_error *error)
{
    struct weir_table_options o = *options;
    size_t size = ngx_strlen(o.path) + sizeof(".next");
    u_char *beside = ngx_pnalloc(cycle->pool, size);

    if (beside == NULL)
        return WEIR_NO_MEMORY;
    (void)ngx_snprintf(beside, size, "%s.next%Z", o.path);
    (void)ngx_delete_file(beside); /* of a master that was killed */
    open->path = o.path;
    open->beside = o.path = (const char *)beside;
    return weir_table_create(&open->table, &o, error);
}

/* At its path or, if it is ours and does not do, beside it. */
static int find_place(ngx_cycle_t *cycle, struct ngx_weir_opened *open,
                      const struct weir_table_options *o, bool ours, struct weir_error *error)
{
    int code = weir_table_create(&open->table, o, error);

    if (!ours || (code != 0 && code != WEIR_CORRUPT) || (code == 0 && fits(open->table, o)))
        return code;
    if (code == 0)
        weir_table_destroy(open->table);
    else
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0, "weir: %s", error->text);
    return make_beside(cycle, open, o, error);
}

/* NULL: the reason is in the log. */
static struct ngx_weir_opened *open_anew(ngx_cycle_t *cycle, const struct weir_table_options *o,
                                         bool ours, bool replaces)
{
    struct ngx_weir_opened *open = calloc(1, sizeof(*open));
    struct weir_error error = { .text = "no memory" };
    int code = open == NULL ? WEIR_NO_MEMORY
               : replaces   ? make_beside(cycle, open, o, &error)
                            : find_place(cycle, open, o, ours, &error);

    if (code == 0 && stat(open->beside != NULL ? open->beside : o->path, &open->file) == 0)
        return open;
    if (code == 0)
        weir_table_destroy(open->table);
    ngx_log_error(NGX_LOG_EMERG, cycle->log, 0, "weir: %s", error.text);
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

ngx_int_t ngx_weir_table_open(ngx_cycle_t *cycle, struct ngx_weir_conf *conf, bool anew)
{
    struct weir_table_options options = choose_sizes(conf);
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(cycle->pool, 0);
    bool ours = conf->path.len == 0;
    struct ngx_weir_opened *open = current;
    struct stat there;
    ngx_str_t path;

    if (cleanup == NULL || choose_path(cycle, conf, &path) != NGX_OK)
        return NGX_ERROR;
    options.path = (const char *)path.data;
    choose_owner(cycle, &options);
    bool known =
        open != NULL && stat(options.path, &there) == 0 && is_same_file(&there, &open->file);
    bool cut = open != NULL && weir_table_is_cut(open->table);
    if (cut)
        ngx_log_error(NGX_LOG_CRIT, cycle->log, 0, "weir: \"%s\" was truncated%s", options.path,
                      known && !ours ? ": stop everything that uses it, and remove it" : "");
    if (cut && known && !ours)
        return NGX_ERROR; /* others use it, and only they can tell */
    bool keeps = known && !anew && !cut && (!ours || fits(open->table, &options));
    if (!keeps && (open = open_anew(cycle, &options, ours, known || anew)) == NULL)
        return NGX_ERROR;
    open->cycles++;
    cleanup->handler = close_table;
    cleanup->data = conf->opened = open;
    conf->table = open->table;
    return NGX_OK;
}

bool ngx_weir_table_retries(const struct ngx_weir_conf *conf, int code)
{
    return (code == WEIR_NO_MEMORY || code == WEIR_CORRUPT) && conf->path.len == 0 &&
           conf->opened->beside == NULL;
}

void ngx_weir_table_lacks(ngx_cycle_t *cycle, const struct ngx_weir_conf *conf, int code,
                          const ngx_str_t *name, const struct weir_error *error)
{
    ngx_uint_t level = ngx_weir_table_retries(conf, code) ? NGX_LOG_WARN : NGX_LOG_EMERG;

    ngx_log_error(level, cycle->log, 0, "weir: \"%V\": %s", name, error->text);
}

void ngx_weir_table_commit(ngx_cycle_t *cycle, struct ngx_weir_conf *conf)
{
    struct ngx_weir_opened *open = current = conf->opened;

    if (open->beside != NULL)
        ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0, "weir: \"%s\" begins anew", open->path);
    if (open->beside != NULL && ngx_rename_file(open->beside, open->path) != 0)
        ngx_log_error(NGX_LOG_CRIT, cycle->log, ngx_errno,
                      "weir: cannot rename \"%s\" to \"%s\": a restart will not find it",
                      open->beside, open->path);
    open->beside = NULL;
}

int ngx_weir_engine(struct ngx_weir_conf *conf, struct weir **out, struct weir_error *error)
{
    struct ngx_weir_opened *open = conf->opened;
    int code = 0;

    if (open->weir == NULL)
        code = weir_create(&open->weir, &(struct weir_options){ .table = open->table }, error);
    *out = open->weir;
    return code;
}

bool ngx_weir_table_look(ngx_cycle_t *cycle)
{
    ngx_weir_table_gone = current != NULL && weir_table_is_cut(current->table);
    if (ngx_weir_table_gone)
        ngx_weir_zones_forget(ngx_weir_conf_of(cycle));
    return !ngx_weir_table_gone;
}

/* ------------------------------------------------------------------ tend ---- */

static void tend(ngx_event_t *event)
{
    struct weir_table *table = ngx_weir_conf_of((ngx_cycle_t *)ngx_cycle)->table;

    if (table != NULL) /* a reload of one process may leave none */
        weir_table_tend(table, weir_table_now(table));
    ngx_add_timer(event, TEND_EVERY);
}

ngx_int_t ngx_weir_table_start(ngx_cycle_t *cycle)
{
    static ngx_event_t event;

    if (ngx_worker != 0)
        return NGX_OK;
    event.handler = tend;
    event.log = cycle->log;
    event.data = &ngx_weir_nobody;
    event.cancelable = 1;
    ngx_add_timer(&event, TEND_EVERY);
    return NGX_OK;
}
