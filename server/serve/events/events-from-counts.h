/* events-from-counts.h -- makes events of counters: when a rule begins to refuse and when it ends,
 * bans that are over, a table that is full. */
#ifndef WEIR_SERVER_SERVE_EVENTS_EVENTS_FROM_COUNTS_H
#define WEIR_SERVER_SERVE_EVENTS_EVENTS_FROM_COUNTS_H

#include "server/serve/events/events.h"
#include "weir.h"

#define WEIR__WATCH_QUIET \
    (10 * WEIR_SECOND)        /* a rule without a refusal for this long is limiting no more */
#define WEIR__WATCH_BANS 4096 /* bans whose end is told; that of more is not */

struct weir__server;
struct weir__watch;

/* Hears the events of bans, and so knows when to report their end. */
struct weir__watch *
weir__watch_create(struct weir__events *events);     /* before there are threads; NULL: no memory */
void weir__watch_destroy(struct weir__watch *watch); /* before the events */

/* Once a second, from any thread; a second one waits for the first. */
void weir__watch_tick(struct weir__watch *watch, struct weir__server *server, weir_time now);

#endif
