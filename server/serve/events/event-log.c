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

struct weir__event_log {
    struct weir__event_log_options o;
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
static bool next_lines(struct weir__event_log *event_log, struct log *log)
{
    enum weir__event_kind kind;
    uint64_t lost;

    log->event.len = log->lines.len = 0;
    if (!weir__events_next(event_log->o.events, &log->heard, &kind, &log->event, &lost))
        return false;
    if (log->torn)
        weir__buffer_text(&log->lines, "\n");
    if (lost > 0) {
        count_lost(log, (int64_t)lost, 0);
        weir__event_print(&log->lines, 0, WEIR__EVENT_LOST, event_log->o.now(event_log->o.context),
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

static void tell_log(struct weir__event_log *event_log)
{
    struct log *log = &event_log->log;

    while (log->fd >= 0 && (log->lines.len > 0 || next_lines(event_log, log))) {
        if (log->lines.len == 0 || write_lines(log))
            continue;
        uv_timer_start(&event_log->again, on_again, AGAIN_MS, 0);
        return;
    }
}

static void on_again(uv_timer_t *timer)
{
    tell_log(timer->data);
}

void weir__event_log_reopen(struct weir__event_log *event_log)
{
    if (event_log->log.fd < 0)
        return;
    int fd = open_log(event_log->o.log);
    if (fd < 0) {
        weir__complain("serve",
                       "the log of events cannot be opened again, the old one stays: %s: %s",
                       event_log->o.log, strerror(errno));
        return;
    }
    close_log(&event_log->log);
    event_log->log.fd = fd;
    event_log->log.torn = event_log->log.failing = false;
}

/* ------------------------------------------------------------- creation ---- */

static void on_wake(uv_async_t *waker)
{
    struct weir__event_log *event_log = waker->data;

    tell_log(event_log);
    if (event_log->webhook != NULL)
        weir__webhook_wake(event_log->webhook);
}

static int open_all(struct weir__event_log *event_log, struct weir_error *error)
{
    const struct weir__event_log_options *o = &event_log->o;

    event_log->log.fd = *o->log ? open_log(o->log) : -1;
    if (*o->log && event_log->log.fd < 0)
        return weir__fail_errno(error, "open", o->log);
    if (*o->webhook == '\0')
        return WEIR_OK;
    return weir__webhook_create(&event_log->webhook,
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

static int start(struct weir__event_log *event_log, struct weir_error *error)
{
    int uv = uv_async_init(event_log->o.loop, &event_log->waker, on_wake);

    if (uv < 0) {
        if (event_log->webhook != NULL)
            weir__webhook_stop(event_log->webhook, 0, forget_webhook, event_log->webhook);
        return weir__fail(error, WEIR_SYSTEM, "uv_async_init: %s", uv_strerror(uv));
    }
    uv_timer_init(event_log->o.loop, &event_log->again);
    event_log->waker.data = event_log->again.data = event_log;
    event_log->handles = 2;
    return WEIR_OK;
}

int weir__event_log_create(struct weir__event_log **out,
                           const struct weir__event_log_options *options, struct weir_error *error)
{
    struct weir__event_log *event_log = calloc(1, sizeof(*event_log));

    if (event_log == NULL)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for the log of events");
    event_log->o = *options;
    event_log->log.fd = -1;
    int code = open_all(event_log, error);
    if (code == WEIR_OK)
        code = start(event_log, error);
    if (code != WEIR_OK) {
        close_log(&event_log->log);
        free(event_log);
        return code;
    }
    *out = event_log;
    return WEIR_OK;
}

void weir__event_log_wake(struct weir__event_log *event_log)
{
    uv_async_send(&event_log->waker);
}

/* ------------------------------------------------------------- stopping ---- */

static void done_if_closed(struct weir__event_log *event_log)
{
    if (event_log->handles == 0 && event_log->webhook_ended)
        event_log->done(event_log->done_context);
}

static void on_close(uv_handle_t *handle)
{
    struct weir__event_log *event_log = handle->data;

    event_log->handles--;
    done_if_closed(event_log);
}

static void on_webhook_ended(void *context)
{
    struct weir__event_log *event_log = context;

    event_log->webhook_ended = true;
    done_if_closed(event_log);
}

void weir__event_log_stop(struct weir__event_log *event_log, weir_time drain,
                          void (*done)(void *context), void *context)
{
    event_log->done = done;
    event_log->done_context = context;
    tell_log(event_log);
    event_log->webhook_ended = event_log->webhook == NULL;
    uv_close((uv_handle_t *)&event_log->waker, on_close);
    uv_close((uv_handle_t *)&event_log->again, on_close);
    if (event_log->webhook != NULL)
        weir__webhook_stop(event_log->webhook, (uint64_t)(drain / WEIR_MILLISECOND),
                           on_webhook_ended, event_log);
}

void weir__event_log_destroy(struct weir__event_log *event_log)
{
    if (event_log == NULL)
        return;
    close_log(&event_log->log);
    weir__buffer_free(&event_log->log.event);
    weir__buffer_free(&event_log->log.lines);
    weir__webhook_destroy(event_log->webhook);
    free(event_log);
}

void weir__event_log_counts(const struct weir__event_log *event_log,
                            struct weir__event_log_counts *out)
{
    *out = (struct weir__event_log_counts){
        .log_written = __atomic_load_n(&event_log->log.written, __ATOMIC_RELAXED),
        .log_lost = __atomic_load_n(&event_log->log.lost, __ATOMIC_RELAXED)
    };
    if (event_log->webhook != NULL)
        weir__webhook_counts(event_log->webhook, &out->webhook);
}
