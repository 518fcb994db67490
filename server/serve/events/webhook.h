/* webhook.h -- events by POST, up to fifty at a time, tried again until they are taken.
 *
 * The ring of events is the queue: an event that falls out of it while the other side does not
 * answer is told as a number, in an event "lost".
 *     2xx                      taken
 *     4xx but for 408 and 429  not wanted: dropped, and counted
 *     everything else          tried again, after pauses of 1 s to 60 s that double
 */
#ifndef WEIR_SERVER_SERVE_EVENTS_WEBHOOK_H
#define WEIR_SERVER_SERVE_EVENTS_WEBHOOK_H

#include <uv.h>

#include "server/serve/events/events.h"
#include "weir.h"

#define WEIR__WEBHOOK_BATCH 50

struct weir__webhook_options {
    uv_loop_t *loop;
    struct weir__events *events;
    const char *url, *token; /* token "": none.  Must last */
    weir_time (*now)(void *context);
    void *context;
    uint64_t pause_ms;   /* the first pause; 0: 1000.  The longest is 60 times as long */
    uint64_t timeout_ms; /* of one try; 0: 10000 */
};

struct weir__webhook_counts {
    int64_t delivered;       /* events that were taken */
    int64_t dropped;         /* not wanted */
    int64_t lost;            /* fell out of the ring, or were left at the end */
    int64_t tries, failures; /* of posts */
};

struct weir__webhook;

/* All from the loop's thread, but for counts. */
int weir__webhook_create(struct weir__webhook **out, const struct weir__webhook_options *options,
                         struct weir_error *error);
void weir__webhook_wake(struct weir__webhook *webhook); /* there may be events */
/* One more try at once, and on while it goes well, for at most `drain_ms`.  `done` is called from
 * the loop when all is closed. */
void weir__webhook_stop(struct weir__webhook *webhook, uint64_t drain_ms,
                        void (*done)(void *context), void *context);
void weir__webhook_destroy(struct weir__webhook *webhook); /* after `done` */
void weir__webhook_counts(const struct weir__webhook *webhook, struct weir__webhook_counts *out);

/* The pause after `failures` in a row (from 1), with up to a quarter more by chance, so that
 * many servers do not come at once. */
uint64_t weir__webhook_pause_ms(uint64_t first_ms, unsigned failures, uint64_t random);

#endif
