/* event-log.c -- where events go by themselves: a file of JSON lines, and a webhook (webhook.c).
 *
 * A line is one write, on the main thread, which serves nobody: a disk that is slow delays signals
 * and nothing else.  A full pipe would delay them for ever, so it is asked first whether it takes a
 * line; if not, the line waits, and the ring behind it. A line that cannot be written (the disk is
 * full) is lost, counted, and said once.
 */
#include "server/serve/events/event-log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "server/base/complain.h"

enum { AGAIN_MS = 200 };

struct log {
    int fd; /* -1: none */
    uint64_t heard;
    struct weir__buffer event; /* the one being written */
    struct weir__buffer lines; /* its line, behind one about lost events; empty: none waits */
    bool torn;             /* the last line was cut short: the next one begins with a line end */
    bool failing;          /* said already */
    int64_t written, lost; /* atomic */
};

struct weir__sinks {
    struct weir__sinks_options o;
    uv_async_t waker;
    uv_timer_t again; /* while the log's reader does not read */
    struct log log;
    struct weir__webhook *webhook; /* NULL: none */
    int handles;
    bool webhook_ended;
    void (*done)(void *context);
    void *done_context;
};

/* ------------------------------------------------------------------ log ---- */

/* Not blocking, so that a pipe without a reader is an error and no wait. */
static int open_log(const char *path)
{
    if (strcmp(path, "-") == 0)
        return STDOUT_FILENO;
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0640);
}

static void close_log(struct log *log)
{
    if (log->fd > STDOUT_FILENO)
        close(log->fd);
    log->fd = -1;
}

static void count_lost(struct log *log, int64_t n, int why)
{
    __atomic_fetch_add(&log->lost, n, __ATOMIC_RELAXED);
    if (why != 0 && !log->failing) {
        weir__complain("serve", "the log of events cannot be written, events are lost: %s",
                       strerror(why));
        log->failing = true;
    }
}

/* Makes the next lines.  False: there are none. */
static bool next_lines(struct weir__sinks *sinks, struct log *log)
{
    enum weir__event_kind kind;
    uint64_t lost;

    log->event.len = log->lines.len = 0;
    if (!weir__events_next(sinks->o.events, &log->heard, &kind, &log->event, &lost))
        return false;
    if (log->torn)
        weir__buffer_text(&log->lines, "\n");
    if (lost > 0) {
        count_lost(log, (int64_t)lost, 0);
        weir__event_print(&log->lines, 0, WEIR__EVENT_LOST, sinks->o.now(sinks->o.context),
                          &(struct weir__event_facts){ .count = (int64_t)lost });
        weir__buffer_text(&log->lines, "\n");
    }
    weir__buffer_add(&log->lines, log->event.bytes, log->event.len);
    weir__buffer_text(&log->lines, "\n");
    if (log->lines.failed) {
        weir__buffer_free(&log->lines);
        count_lost(log, 1, ENOMEM);
    }
    return true;
}

static bool takes_more(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLOUT };

    return poll(&p, 1, 0) != 0; /* an error is for write to tell */
}

/* False: not now. */
static bool write_lines(struct log *log)
{
    ssize_t n = -1;
    size_t len = log->lines.len;

    if (!takes_more(log->fd))
        return false;
    do
        n = write(log->fd, log->lines.bytes, len);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return false;
    log->lines.len = 0;
    if (n == (ssize_t)len) {
        __atomic_fetch_add(&log->written, 1, __ATOMIC_RELAXED);
        log->torn = log->failing = false;
        return true;
    }
    log->torn = log->torn || n > 0;
    count_lost(log, 1, n < 0 ? errno : ENOSPC);
    return true;
}

static void on_again(uv_timer_t *timer);

static void tell_log(struct weir__sinks *sinks)
{
    struct log *log = &sinks->log;

    while (log->fd >= 0 && (log->lines.len > 0 || next_lines(sinks, log))) {
        if (log->lines.len == 0 || write_lines(log))
            continue;
        uv_timer_start(&sinks->again, on_again, AGAIN_MS, 0);
        return;
    }
}

static void on_again(uv_timer_t *timer)
{
    tell_log(timer->data);
}

void weir__sinks_reopen(struct weir__sinks *sinks)
{
    if (sinks->log.fd < 0)
        return;
    int fd = open_log(sinks->o.log);
    if (fd < 0) {
        weir__complain("serve",
                       "the log of events cannot be opened again, the old one stays: %s: %s",
                       sinks->o.log, strerror(errno));
        return;
    }
    close_log(&sinks->log);
    sinks->log.fd = fd;
    sinks->log.torn = sinks->log.failing = false;
}

/* ------------------------------------------------------------- creation ---- */

static void on_wake(uv_async_t *waker)
{
    struct weir__sinks *sinks = waker->data;

    tell_log(sinks);
    if (sinks->webhook != NULL)
        weir__webhook_wake(sinks->webhook);
}

static int open_all(struct weir__sinks *sinks, struct weir_error *error)
{
    const struct weir__sinks_options *o = &sinks->o;

    sinks->log.fd = *o->log ? open_log(o->log) : -1;
    if (*o->log && sinks->log.fd < 0)
        return weir__fail_errno(error, "open", o->log);
    if (*o->webhook == '\0')
        return WEIR_OK;
    return weir__webhook_create(&sinks->webhook,
                                &(struct weir__webhook_options){ .loop = o->loop,
                                                                 .events = o->events,
                                                                 .url = o->webhook,
                                                                 .token = o->token,
                                                                 .now = o->now,
                                                                 .context = o->context },
                                error);
}

/* A loop that cannot be woken: its maker ends, and the webhook's handles go when the loop
 * runs. */
static void forget_webhook(void *context)
{
    weir__webhook_destroy(context);
}

static int start(struct weir__sinks *sinks, struct weir_error *error)
{
    int uv = uv_async_init(sinks->o.loop, &sinks->waker, on_wake);

    if (uv < 0) {
        if (sinks->webhook != NULL)
            weir__webhook_stop(sinks->webhook, 0, forget_webhook, sinks->webhook);
        return weir__fail(error, WEIR_SYSTEM, "uv_async_init: %s", uv_strerror(uv));
    }
    uv_timer_init(sinks->o.loop, &sinks->again);
    sinks->waker.data = sinks->again.data = sinks;
    sinks->handles = 2;
    return WEIR_OK;
}

int weir__sinks_create(struct weir__sinks **out, const struct weir__sinks_options *options,
                       struct weir_error *error)
{
    struct weir__sinks *sinks = calloc(1, sizeof(*sinks));

    if (sinks == NULL)
        return weir__fail(error, WEIR_NO_MEMORY, "out of memory for the events' sinks");
    sinks->o = *options;
    sinks->log.fd = -1;
    int code = open_all(sinks, error);
    if (code == WEIR_OK)
        code = start(sinks, error);
    if (code != WEIR_OK) {
        close_log(&sinks->log);
        free(sinks);
        return code;
    }
    *out = sinks;
    return WEIR_OK;
}

void weir__sinks_wake(struct weir__sinks *sinks)
{
    uv_async_send(&sinks->waker);
}

/* ------------------------------------------------------------- stopping ---- */

static void done_if_closed(struct weir__sinks *sinks)
{
    if (sinks->handles == 0 && sinks->webhook_ended)
        sinks->done(sinks->done_context);
}

static void on_close(uv_handle_t *handle)
{
    struct weir__sinks *sinks = handle->data;

    sinks->handles--;
    done_if_closed(sinks);
}

static void on_webhook_ended(void *context)
{
    struct weir__sinks *sinks = context;

    sinks->webhook_ended = true;
    done_if_closed(sinks);
}

void weir__sinks_stop(struct weir__sinks *sinks, weir_time drain, void (*done)(void *context),
                      void *context)
{
    sinks->done = done;
    sinks->done_context = context;
    tell_log(sinks);
    sinks->webhook_ended = sinks->webhook == NULL;
    uv_close((uv_handle_t *)&sinks->waker, on_close);
    uv_close((uv_handle_t *)&sinks->again, on_close);
    if (sinks->webhook != NULL)
        weir__webhook_stop(sinks->webhook, (uint64_t)(drain / WEIR_MILLISECOND), on_webhook_ended,
                           sinks);
}

void weir__sinks_destroy(struct weir__sinks *sinks)
{
    if (sinks == NULL)
        return;
    close_log(&sinks->log);
    weir__buffer_free(&sinks->log.event);
    weir__buffer_free(&sinks->log.lines);
    weir__webhook_destroy(sinks->webhook);
    free(sinks);
}

void weir__sinks_counts(const struct weir__sinks *sinks, struct weir__sinks_counts *out)
{
    *out = (struct weir__sinks_counts){ .log_written =
                                            __atomic_load_n(&sinks->log.written, __ATOMIC_RELAXED),
                                        .log_lost =
                                            __atomic_load_n(&sinks->log.lost, __ATOMIC_RELAXED) };
    if (sinks->webhook != NULL)
        weir__webhook_counts(sinks->webhook, &out->webhook);
}
