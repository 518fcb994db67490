/* fleet.c -- weir_fleet: rules across the fleet.
 *
 * Each worker joins the fleet with a thread of its own; of all processes on the table, weir serve
 * included, one is the host's agent.  A request that finds its purse dry is passed to that thread,
 * and goes on when a timer finds it decided: at its rule's `within` at the latest, and then by its
 * when_alone. */
#include "module.h"
#include "weir-fleet.h"

#define LOOK_EVERY  1   /* ms, while a request waits for units */
#define WATCH_EVERY 300 /* ms: is this worker to end?  Is Redis silent? */

struct ngx_weir_dry {
    struct ngx_weir_ruled *ruled; /* NULL: it has gone; the thread does not look at it */
    struct weir_entry entry;
    struct weir_asked asked;
    struct weir_ruling ruling;
    char key[WEIR_KEY_TEXT];
    uint64_t ticket;
    struct ngx_weir_dry *next;
};

/* Of this worker. */
static struct weir_fleet *fleet;
static ngx_uint_t asked;             /* that wait for units */
static struct ngx_weir_dry *decided; /* the latest first; atomic */
static ngx_event_t look_event, watch_event;

/* ---------------------------------------------------------------- waiting ---- */

/* In the fleet's thread. */
static void on_decided(void *context, const struct weir_ruling *ruling, const char *key)
{
    struct ngx_weir_dry *dry = context;

    dry->ruling = *ruling;
    (void)ngx_cpystrn((u_char *)dry->key, (u_char *)key, sizeof(dry->key));
    dry->next = __atomic_load_n(&decided, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&decided, &dry->next, dry, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        ;
}

static void finish(struct ngx_weir_dry *dry, struct weir *weir)
{
    struct ngx_weir_ruled *ruled = dry->ruled;

    asked--;
    if (ruled != NULL) {
        ruled->dry = NULL;
        ruled->visit.ruling = dry->ruling;
        ruled->visit.entry = dry->entry;
        ruled->visit.asked = dry->asked;
        ngx_memcpy(ruled->visit.key, dry->key, sizeof(dry->key));
        ruled->visit.ask.now = weir_table_now(weir_table_of(weir));
        ngx_post_event(&ruled->event, &ngx_posted_events);
    } else {
        (void)weir_check_exit(weir, &dry->entry, WEIR_IGNORED, weir_table_now(weir_table_of(weir)));
        ngx_weir_wait_poll();
    }
    free(dry);
}

static void look(ngx_event_t *event)
{
    struct ngx_weir_dry *next, *dry = __atomic_exchange_n(&decided, NULL, __ATOMIC_ACQUIRE);

    for (; dry != NULL; dry = next) {
        next = dry->next;
        finish(dry, event->data);
    }
    if (asked > 0)
        ngx_add_timer(event, LOOK_EVERY);
}

ngx_int_t ngx_weir_fleet_ask(ngx_http_request_t *r, struct ngx_weir_ruled *ruled, struct weir *weir)
{
    struct ngx_weir_dry *dry = fleet == NULL ? NULL : calloc(1, sizeof(*dry));
    struct weir_visit *visit = &ruled->visit;

    if (dry == NULL)
        return NGX_DECLINED;
    struct weir_fleet_ask ask = { .attrs = visit->attrs,
                                  .n = visit->n,
                                  .ask = visit->ask,
                                  .done = on_decided,
                                  .context = dry,
                                  .entry = &dry->entry,
                                  .asked = &dry->asked };
    dry->asked = visit->asked;
    ask.ask.wait_max = 0; /* it could not be undone */
    if (weir_fleet_ask(fleet, &ask, &visit->ruling, visit->key, &dry->ticket)) {
        visit->entry = dry->entry;
        visit->asked = dry->asked;
        free(dry);
        return NGX_DECLINED;
    }
    dry->ruled = ruled;
    ruled->dry = dry;
    asked++;
    look_event.data = weir;
    look_event.handler = look;
    look_event.log = ngx_cycle->log;
    if (!look_event.timer_set)
        ngx_add_timer(&look_event, LOOK_EVERY);
    return ngx_weir_wait_open(r, ruled);
}

void ngx_weir_fleet_leave(struct ngx_weir_ruled *ruled)
{
    struct ngx_weir_dry *dry = ruled->dry;

    if (dry == NULL)
        return;
    ruled->dry = NULL;
    dry->ruled = NULL;
    if (weir_fleet_cancel(fleet, dry->ticket)) {
        asked--;
        free(dry);
    }
}

void ngx_weir_fleet_refused(const struct weir_ruling *ruling, const char *key)
{
    if (fleet != NULL && ruling->fleet)
        weir_fleet_refused(fleet, ruling, key, 1);
}

/* ---------------------------------------------------------------- telling ---- */

/* The agent logs what it finds, once, at the level that logs show unless told otherwise; it alone
 * knows the reason.  A worker that becomes the agent while Redis is silent says so again. */
static void tell(ngx_log_t *log)
{
    static bool silent, named, denied;
    struct weir_fleet_info f;

    weir_fleet_look(fleet, &f);
    if (f.agent && f.alone && !f.connected && !silent) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "weir: fleet %s: Redis does not answer: %s; rules go by when_alone%s", f.name,
                      f.why,
                      f.part > 0 ? ""
                                 : ", and share lets nothing pass until Redis has told this "
                                   "host's part (nodes=N would make it 1/N)");
        silent = true;
    }
    if (!f.alone && silent) {
        if (f.agent)
            ngx_log_error(NGX_LOG_ERR, log, 0, "weir: fleet %s: Redis answers again", f.name);
        silent = false;
    }
    bool wrong = f.agent && f.connected && f.why[0] != '\0' && !f.draws_refused;
    if (wrong && !named)
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "weir: fleet %s: %s: each host needs a name of its own (node=)", f.name,
                      f.why);
    named = wrong;
    if (f.agent && f.draws_refused && !denied)
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "weir: fleet %s: Redis answers, but %s; rules go by when_alone", f.name,
                      f.why);
    denied = f.agent && f.draws_refused; /* for some seconds at least: no flood of lines */
}

/* ---------------------------------------------------------------- joining ---- */

static void watch(ngx_event_t *event)
{
    if (ngx_exiting && asked == 0)
        ngx_weir_fleet_stop();
    if (fleet == NULL)
        return;
    tell(event->log);
    ngx_add_timer(event, WATCH_EVERY);
}

static struct weir_fleet_options options_of(const struct ngx_weir_fleet *f)
{
    return (struct weir_fleet_options){
        .name = f->name, .node = f->node, .weight = f->weight, .nodes = f->nodes
    };
}

void ngx_weir_fleet_start(ngx_cycle_t *cycle, const struct ngx_weir_conf *conf)
{
    const struct ngx_weir_fleet *f = conf->fleet;
    struct weir_error error;

    if (f == NULL || conf->rules == NULL)
        return;
    struct weir_fleet_options o = options_of(f);
    if (weir_fleet_join(&fleet, conf->rules->weir, f->url, &o, &error) != 0) {
        ngx_log_error(NGX_LOG_CRIT, cycle->log, 0, "weir: cannot join the fleet: %s", error.text);
        return;
    }
    watch_event.handler = watch;
    watch_event.data = &ngx_weir_nobody;
    watch_event.log = cycle->log;
    watch_event.cancelable = 1;
    ngx_add_timer(&watch_event, WATCH_EVERY);
}

void ngx_weir_fleet_stop(void)
{
    struct weir_fleet *joined = fleet;

    fleet = NULL;
    if (joined != NULL)
        weir_fleet_leave(joined);
}

bool ngx_weir_fleet_look(struct weir_fleet_info *out)
{
    if (fleet != NULL)
        weir_fleet_look(fleet, out);
    return fleet != NULL;
}

/* -------------------------------------------------------------- directive ---- */

/* False: it is not that word. */
static bool read_word(const ngx_str_t *word, const char *name, const char **out)
{
    size_t len = ngx_strlen(name);

    if (word->len <= len || ngx_strncmp(word->data, name, len) != 0)
        return false;
    *out = (const char *)word->data + len;
    return true;
}

/* What no worker could join with: nobody would look for that in the log. */
static char *check(ngx_conf_t *cf, const struct ngx_weir_fleet *f)
{
    struct weir_fleet_options o = options_of(f);
    struct weir_redis *redis = NULL;
    struct weir_error error;

    if (weir_fleet_options_check(&o, &error) != 0 ||
        weir_redis_create(&redis, f->url, NULL, &error) != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "weir_fleet: %s", error.text);
        return NGX_CONF_ERROR;
    }
    weir_redis_destroy(redis);
    return NGX_CONF_OK;
}

/* False: it is not that word with a number. */
static bool read_count(const ngx_str_t *word, const char *name, ngx_int_t *out)
{
    const char *digits;

    return read_word(word, name, &digits) &&
           (*out = ngx_atoi((u_char *)digits, ngx_strlen(digits))) > 0;
}

/* weir_fleet URL [name=NAME] [node=NAME] [weight=N] [nodes=N] */
char *ngx_weir_fleet_set(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    struct ngx_weir_conf *conf = ngx_weir_conf_of(cf->cycle);
    struct ngx_weir_fleet *f = ngx_pcalloc(cf->pool, sizeof(*f));
    ngx_str_t *words = cf->args->elts;

    (void)command;
    (void)data;
    if (conf->fleet != NULL)
        return "is duplicate";
    if (f == NULL)
        return NGX_CONF_ERROR;
    conf->fleet = f;
    f->url = (const char *)words[1].data;
    if (ngx_weir_options_check(cf, 2) != NGX_CONF_OK)
        return NGX_CONF_ERROR;
    for (ngx_uint_t i = 2; i < cf->args->nelts; i++) {
        if (read_word(&words[i], "name=", &f->name) || read_word(&words[i], "node=", &f->node))
            continue;
        if (!read_count(&words[i], "weight=", &f->weight) &&
            !read_count(&words[i], "nodes=", &f->nodes))
            return "needs URL [name=NAME] [node=NAME] [weight=N] [nodes=N]";
    }
    return check(cf, f);
}
