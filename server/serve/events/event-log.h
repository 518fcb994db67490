/* event-log.h -- where events go by themselves: a file of JSON lines, and a webhook.  Both on the
 * main thread's loop. */
#ifndef WEIR_SERVER_SERVE_EVENTS_EVENT_LOG_H
#define WEIR_SERVER_SERVE_EVENTS_EVENT_LOG_H

#include <uv.h>

#include "server/serve/events/events.h"
#include "server/serve/events/webhook.h"
#include "weir.h"

struct weir__event_log_options {
    uv_loop_t *loop;
    struct weir__events *events;
    const char *log;             /* a file; "-": standard output; "": none */
    const char *webhook, *token; /* "": none.  All of these must last */
    weir_time (*now)(void *context);
    void *context;
};

struct weir__event_log_counts {
    int64_t log_written, log_lost; /* lines */
    struct weir__webhook_counts webhook;
};

struct weir__event_log;

/* SIGPIPE must be ignored: an output without a reader loses lines. */
int weir__event_log_create(struct weir__event_log **out,
                           const struct weir__event_log_options *options, struct weir_error *error);

/* There are events.  From any thread, until weir__event_log_stop is called. */
void weir__event_log_wake(struct weir__event_log *event_log);

/* Opens the file anew, for log rotation; from the loop's thread.  If that fails it is said on
 * stderr, and the old one stays. */
void weir__event_log_reopen(struct weir__event_log *event_log);

/* Delivers the rest: the webhook has `drain` for that.  `done` is called from the loop when all is
 * closed; it may come later only if the webhook's host is being looked up and nobody answers. */
void weir__event_log_stop(struct weir__event_log *event_log, weir_time drain,
                          void (*done)(void *context), void *context);
void weir__event_log_destroy(struct weir__event_log *event_log); /* after `done` */

void weir__event_log_counts(const struct weir__event_log *event_log,
                            struct weir__event_log_counts *out); /* from any thread */

#endif
