/* events.h -- events, rare enough for people: never one per request.
 *
 * Those of which one client can cause any number are told one by one while they are few, and then
 * counted: with requests that get many keys banned it would else push all others out of the ring.
 *
 * The last WEIR__EVENTS_KEPT are kept in a ring; a listener keeps the number of the last one it was
 * told, and asks for those behind it. Listeners: the log (event-log.c), the webhook (webhook.c),
 * connections that have subscribed.  Anybody may emit, from any thread; nobody waits.
 */
#ifndef WEIR_SERVER_SERVE_EVENTS_EVENTS_H
#define WEIR_SERVER_SERVE_EVENTS_EVENTS_H

#include "server/base/buffer.h"
#include "weir.h"

#define WEIR__EVENTS_KEPT 1024
#define WEIR__EVENT_MAX   1024 /* bytes of one, as JSON */

enum weir__event_kind {
    WEIR__EVENT_START,        /* the server is ready */
    WEIR__EVENT_STOP,         /* it drains */
    WEIR__EVENT_LIMITING,     /* a rule has begun to refuse */
    WEIR__EVENT_LIMITING_END, /* ... and has not for a while */
    WEIR__EVENT_BAN,
    WEIR__EVENT_UNBAN, /* lifted, or over */
    WEIR__EVENT_MODE,
    WEIR__EVENT_RELOAD,
    WEIR__EVENT_RELOAD_FAILED,
    WEIR__EVENT_LIMIT_DIFFERS, /* another process has other rules */
    WEIR__EVENT_LIST,
    WEIR__EVENT_RESET,
    WEIR__EVENT_AUTH_FAILED,
    WEIR__EVENT_SHARE_USED_UP, /* a client has its share of a pool */
    WEIR__EVENT_TABLE_FULL, /* nearly: keys will soon make room for others before their time, or do
                               so already */
    WEIR__EVENT_TABLE_ROOM, /* no more */
    WEIR__EVENT_BREAKER_OPENED,
    WEIR__EVENT_BREAKER_HALF_OPEN,
    WEIR__EVENT_BREAKER_CLOSED,
    WEIR__EVENT_GUARD_FORCED, /* by hand */
    WEIR__EVENT_SHEDDING_BEGAN,
    WEIR__EVENT_SHEDDING_ENDED,
    WEIR__EVENT_OVERLOAD_BEGAN,
    WEIR__EVENT_OVERLOAD_ENDED,
    WEIR__EVENT_PERMITS_RECLAIMED, /* from clients that died, or were too late */
    WEIR__EVENT_DEGRADATION_CHANGED,
    WEIR__EVENT_FLEET, /* its Redis answers, or does not */
    WEIR__EVENT_LOST,  /* a sink was too slow, and some were not told to it; or a guard changed more
                         often than it keeps */
    WEIR__EVENT_KINDS
};

const char *weir__event_name(enum weir__event_kind kind); /* "limiting", "limiting-end", ... */
/* Of what became of a guard; WEIR__EVENT_KINDS: it has no name. */
enum weir__event_kind weir__guard_event_kind(const struct weir_guard_event *change);

/* The members of an event; NULL or 0 is left out. */
struct weir__event_facts {
    const char *rule, *guard, *key, *address, *mode, *state, *list, *attribute, *source, *hash,
        *text;
    weir_time until;
    int64_t refused, count;
};

struct weir__events;
struct weir__events *weir__events_create(void); /* NULL: no memory */
void weir__events_destroy(struct weir__events *events);

/* `woken` is called after each emit, from the thread that emitted: it should do no more than wake a
 * loop.  Set before there are threads. */
void weir__events_on_emit(struct weir__events *events, void (*woken)(void *context), void *context);

/* `seen` is called with the facts of each, by the thread that emits.  Set before there are threads;
 * NULL: no more. */
void weir__events_on_facts(struct weir__events *events,
                           void (*seen)(void *context, enum weir__event_kind kind,
                                        const struct weir__event_facts *facts),
                           void *context);

/* Times are on this table's axis, and told as real ones.  Set before there are threads. */
void weir__events_on_table(struct weir__events *events, const struct weir_table *table);

/* `facts` may be NULL. */
void weir__events_emit(struct weir__events *events, enum weir__event_kind kind, weir_time now,
                       const struct weir__event_facts *facts);

/* The same for a `ban` and an `unban`, of which a client can cause many.  From any thread. */
void weir__events_emit_often(struct weir__events *events, enum weir__event_kind kind, weir_time now,
                             const struct weir__event_facts *facts);
/* Tells how many of those there were that were not told one by one.  Once a second. */
void weir__events_tell_more(struct weir__events *events, weir_time now);

uint64_t weir__events_latest(
    struct weir__events *events); /* the number of the last one; they begin with 1 */
/* Of each kind, with those that were not told one by one. */
void weir__events_counts(struct weir__events *events, int64_t out[WEIR__EVENT_KINDS]);

/* Appends the first event after number *after to `json` (one line, no newline), and moves *after on
 * to it.  False: there is none, or no memory for it.  *lost is how many there were in between that
 * are not kept any more.  A number that was never given, such as a client may bring from before a
 * restart, is taken for 0. */
bool weir__events_next(struct weir__events *events, uint64_t *after, enum weir__event_kind *kind,
                       struct weir__buffer *json, uint64_t *lost);

/* An event as JSON that is not recorded: a sink's own ("lost").  id 0: it has none. */
void weir__event_print(struct weir__buffer *json, uint64_t id, enum weir__event_kind kind,
                       weir_time now, const struct weir__event_facts *facts);

#endif
