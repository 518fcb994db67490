/* webhook.c -- events by POST, up to fifty at a time, tried again until they are taken.
 *
 *              events                       taken, or not wanted
 *     IDLE ------------> SENDING ----------------------------------> IDLE, or SENDING the next ones
 *                         |   ^
 *             no luck     v   |  the pause is over, or one last try before the end
 *                         PAUSED
 *
 * A batch is kept until it is taken, so that a try and its repetition are the same; the receiver
 * may get a batch twice (ids tell).
 */
#include "server/serve/events/webhook.h"

#include <stdlib.h>

#include "base/base.h"
#include "base/hash.h"
#include "server/serve/events/webhook-post.h"
#include "server/base/complain.h"
#include "server/base/token.h"

enum { PAUSE_MS = 1000, PAUSE_TIMES_MOST = 60 };

enum state { IDLE, SENDING, PAUSED, ENDED };

struct weir__webhook {
    struct weir__webhook_options o;
    struct weir__url url;
    struct weir__tls_context *tls; /* NULL: http */
    enum state state;
    uint64_t heard;            /* the number of the last event in the batch */
    struct weir__buffer batch; /* empty: none */
    struct weir__buffer line;  /* the event being added */
    int64_t in_batch;
    unsigned failures; /* in a row */
    uint64_t chance;
    struct weir__delivery *delivery;
    uv_timer_t pause, drain;
    int handles;
    bool stopping, late, complained; /* late: the time for stopping is over */
    void (*done)(void *context);
    void *done_context;
    struct weir__webhook_counts counts; /* written by the loop's thread, relaxed */
};

static void add(int64_t *count, int64_t n)
{
    __atomic_fetch_add(count, n, __ATOMIC_RELAXED);
}

uint64_t weir__webhook_pause_ms(uint64_t first_ms, unsigned failures, uint64_t random)
{
    uint64_t pause = first_ms, most = first_ms * PAUSE_TIMES_MOST;

    for (unsigned i = 1; i < failures && pause < most; i++)
        pause *= 2;
    pause = pause < most ? pause : most;
    return pause + random % (pause / 4 + 1);
}

/* ---------------------------------------------------------------- batch ---- */

/* Reads the next event to webhook->line, and one about those lost before it.
 * False: there is none. */
static bool add_event(struct weir__webhook *w, struct weir__buffer *batch, uint64_t *heard,
                      int64_t *all_lost)
{
    enum weir__event_kind kind;
    uint64_t lost;

    w->line.len = 0;
    if (!weir__events_next(w->o.events, heard, &kind, &w->line, &lost))
        return false;
    if (batch->len == 0)
        weir__buffer_open(batch, NULL, '[');
    if (lost > 0) {
        weir__event_print(batch, 0, WEIR__EVENT_LOST, w->o.now(w->o.context),
                          &(struct weir__event_facts){ .count = (int64_t)lost });
        *all_lost += (int64_t)lost;
    }
    weir__buffer_member_name(batch, NULL);
    weir__buffer_add(batch, w->line.bytes, w->line.len);
    return true;
}

/* True if there is something to send. */
static bool fill(struct weir__webhook *w)
{
    uint64_t heard = w->heard;
    int64_t n = 0, lost = 0;

    while (n < WEIR__WEBHOOK_BATCH && add_event(w, &w->batch, &heard, &lost))
        n++;
    weir__buffer_text(&w->batch, n > 0 ? "]" : "");
    if (w->batch.failed || n == 0) {
        weir__buffer_free(&w->batch); /* they are still in the ring */
        return false;
    }
    w->heard = heard;
    w->in_batch = n;
    add(&w->counts.lost, lost);
    return true;
}

static void clear(struct weir__webhook *w)
{
    weir__buffer_free(&w->batch);
    w->in_batch = 0;
}

/* ------------------------------------------------------------------ end ---- */

static void on_close(uv_handle_t *handle)
{
    struct weir__webhook *w = handle->data;

    if (--w->handles == 0)
        w->done(w->done_context);
}

static void end(struct weir__webhook *w)
{
    uint64_t latest = weir__events_latest(w->o.events);

    w->state = ENDED;
    add(&w->counts.lost, w->in_batch + (int64_t)(latest - w->heard));
    clear(w);
    uv_close((uv_handle_t *)&w->pause, on_close);
    uv_close((uv_handle_t *)&w->drain, on_close);
}

/* -------------------------------------------------------------- sending ---- */

static void post(struct weir__webhook *w);

static void on_pause(uv_timer_t *timer)
{
    post(timer->data);
}

static void go_on(struct weir__webhook *w)
{
    w->state = IDLE;
    if (!w->late && fill(w))
        post(w);
    else if (w->stopping)
        end(w);
}

static bool is_unwanted(int status)
{
    return status >= 400 && status <= 499 && status != 408 && status != 429;
}

/* Said when it begins to fail, and when it works again; the metrics tell the rest. */
static void complain(struct weir__webhook *w, int status, const char *why)
{
    const char *then = is_unwanted(status) ? "; its events are dropped"
                       : w->stopping       ? "; its events are lost"
                                           : "; trying again";

    if (w->complained)
        return;
    w->complained = true;
    if (status != 0)
        weir__complain("serve", "webhook %s answered %d%s", w->url.authority, status, then);
    else
        weir__complain("serve", "webhook %s: %s%s", w->url.authority, why, then);
}

static void wait_and_retry(struct weir__webhook *w)
{
    w->failures++;
    if (w->stopping) {
        end(w);
        return;
    }
    w->state = PAUSED;
    uint64_t chance = weir__mix64(w->chance += WEIR__GOLDEN);
    uv_timer_start(&w->pause, on_pause,
                   weir__webhook_pause_ms(w->o.pause_ms, w->failures, chance >> 33), 0);
}

static void on_done(void *context, int status, const char *why)
{
    struct weir__webhook *w = context;
    bool taken = status >= 200 && status <= 299;

    w->delivery = NULL;
    add(&w->counts.failures, !taken);
    if (!taken)
        complain(w, status, why);
    if (!taken && !is_unwanted(status)) {
        wait_and_retry(w);
        return;
    }
    if (taken && w->complained)
        weir__complain("serve", "webhook %s takes events again", w->url.authority);
    add(taken ? &w->counts.delivered : &w->counts.dropped, w->in_batch);
    w->complained = !taken;
    w->failures = 0;
    clear(w);
    go_on(w);
}

static void post(struct weir__webhook *w)
{
    w->state = SENDING;
    add(&w->counts.tries, 1);
    w->delivery = weir__delivery_start(&(struct weir__delivery_options){
        .loop = w->o.loop,
        .url = &w->url,
        .tls = w->tls,
        .token = w->o.token,
        .body = w->batch.bytes,
        .len = w->batch.len,
        .timeout_ms = w->o.timeout_ms,
        .done = on_done,
        .context = w,
    });
    if (w->delivery == NULL)
        on_done(w, 0, "no memory");
}

void weir__webhook_wake(struct weir__webhook *w)
{
    if (w->state == IDLE)
        go_on(w);
}

/* --------------------------------------------------- creation, stopping ---- */

int weir__webhook_create(struct weir__webhook **out, const struct weir__webhook_options *options,
                         struct weir_error *error)
{
    struct weir__url url;
    struct weir__tls_context *tls = NULL;
    const char *wrong = weir__token_wrong(options->token);
    int code = weir__url_parse(&url, options->url, error);

    if (code == WEIR_OK && wrong)
        code = weir__fail(error, WEIR_INVALID, "the webhook's token %s", wrong);
    if (code == WEIR_OK && url.tls)
        code = weir__tls_client_create(&tls, NULL, error);
    if (code != WEIR_OK)
        return code;
    struct weir__webhook *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        weir__tls_context_destroy(tls);
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for the webhook");
    }
    w->o = *options;
    w->url = url;
    w->tls = tls;
    w->o.pause_ms = options->pause_ms ? options->pause_ms : PAUSE_MS;
    weir__random_fill(&w->chance, sizeof(w->chance)); /* without it, it is 0 */
    uv_timer_init(options->loop, &w->pause);
    uv_timer_init(options->loop, &w->drain);
    w->pause.data = w->drain.data = w;
    w->handles = 2;
    *out = w;
    return WEIR_OK;
}

static void on_drain(uv_timer_t *timer)
{
    struct weir__webhook *w = timer->data;

    w->late = true;
    if (w->delivery != NULL)
        weir__delivery_cancel(w->delivery);
}

void weir__webhook_stop(struct weir__webhook *w, uint64_t drain_ms, void (*done)(void *context),
                        void *context)
{
    w->stopping = true;
    w->done = done;
    w->done_context = context;
    uv_timer_start(&w->drain, on_drain, drain_ms, 0);
    uv_timer_stop(&w->pause);
    if (w->state == PAUSED)
        post(w);
    else if (w->state == IDLE)
        go_on(w);
}

void weir__webhook_destroy(struct weir__webhook *w)
{
    if (w == NULL)
        return;
    weir__tls_context_destroy(w->tls);
    weir__buffer_free(&w->batch);
    weir__buffer_free(&w->line);
    free(w);
}

void weir__webhook_counts(const struct weir__webhook *w, struct weir__webhook_counts *out)
{
    out->delivered = __atomic_load_n(&w->counts.delivered, __ATOMIC_RELAXED);
    out->dropped = __atomic_load_n(&w->counts.dropped, __ATOMIC_RELAXED);
    out->lost = __atomic_load_n(&w->counts.lost, __ATOMIC_RELAXED);
    out->tries = __atomic_load_n(&w->counts.tries, __ATOMIC_RELAXED);
    out->failures = __atomic_load_n(&w->counts.failures, __ATOMIC_RELAXED);
}
