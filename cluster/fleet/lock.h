/* lock.h -- a lock in Redis, as one of its users sees it: a pure step, without sockets and clock.
 *
 *     (lock, event, now) -> (lock', the ask to send)
 *
 * The driver sends what the step says to lock.lua, one ask at a time, brings back the answer or the
 * news that there is none, and comes again at `due`.  lock-blocking.c is one with a thread that
 * waits; tests/property/fleet-lock.c is another, with a random network.
 *
 *     waiting   asks again and again, more often the nearer its turn is; over at its deadline
 *     held      until a moment of this node's clock that is before the one by Redis's clock: it
 *               counts from the sending of the ask, less a part in WEIR__LOCK_DRIFT
 *     over      refused, released, or lost: another begins anew
 *
 * Not promised: that a failover keeps the last grant, or that Redis's clock does not step.  Then
 * two holders may believe at the same time, and the larger token is the one to obey.
 */
#ifndef WEIR_CLUSTER_FLEET_LOCK_H
#define WEIR_CLUSTER_FLEET_LOCK_H

#include "weir.h"
#include "wire/buffer.h"
#include "wire/text.h"

#define WEIR__LOCK_ID_MAX   64
#define WEIR__LOCK_DRIFT    64 /* of a lifetime one part is left for clocks that differ in speed */
#define WEIR__LOCK_LIFE_MIN (10 * WEIR_MILLISECOND)
#define WEIR__LOCK_LIFE_MAX (24 * 3600 * WEIR_SECOND)
/* A waiter that Redis has not heard for this long has lost its place: PLACE of lock.lua. */
#define WEIR__LOCK_PLACE (2 * WEIR_SECOND)

enum weir__lock_phase {
    WEIR__LOCK_IDLE, /* zeroed: not begun */
    WEIR__LOCK_WAITING,
    WEIR__LOCK_HELD,
    WEIR__LOCK_REFUSED, /* not had by the deadline */
    WEIR__LOCK_LOST,
    WEIR__LOCK_RELEASED,
};

enum weir__lock_verb {
    WEIR__LOCK_NOTHING,
    WEIR__LOCK_TAKE,
    WEIR__LOCK_WAIT,
    WEIR__LOCK_KEEP,
    WEIR__LOCK_FREE,
    WEIR__LOCK_DROP,
    WEIR__LOCK_LOOK,
    WEIR__LOCK_QUIT, /* FREE, by an attempt whose caller was never told that it has the lock */
};

struct weir__lock {
    weir_time life; /* the caller's */
    enum weir__lock_phase phase;
    int64_t token;             /* HELD, LOST and RELEASED */
    weir_time until;           /* HELD: may be relied upon before this moment */
    weir_time due;             /* to come again, with WEIR__LOCK_TIME */
    weir_time deadline;        /* of waiting, or of the tries to release */
    weir_time hear_by;         /* of waiting: the first answer may come until then */
    bool waits;                /* stands in line; otherwise asks once */
    bool known;                /* Redis may take it for the holder, or for a waiter */
    enum weir__lock_verb verb; /* of the ask that is under way */
    weir_time sent;            /* when it was */
};

struct weir__lock_reply {
    bool held;
    int64_t token, place, waiters;
    weir_time left;
    struct weir__text holder; /* in the reply's own bytes */
};

struct weir__lock_event {
    enum {
        WEIR__LOCK_TIME,   /* it is due, or perhaps not */
        WEIR__LOCK_BEGIN,  /* to be had, waiting up to `span` */
        WEIR__LOCK_END,    /* to be given back, trying up to `span`; or the waiting ends */
        WEIR__LOCK_ANSWER, /* to the ask that is under way */
        WEIR__LOCK_FAILED, /* it has no answer, and may have been carried out or not */
    } kind;
    weir_time span; /* BEGIN, END */
    struct weir__lock_reply reply;
};

struct weir__lock_send {
    enum weir__lock_verb verb;
    weir_time timeout; /* of the ask: FAILED is due then */
};

struct weir__lock_send weir__lock_step(struct weir__lock *lock,
                                       const struct weir__lock_event *event, weir_time now);

/* Nothing more is to be sent or awaited. */
bool weir__lock_is_over(const struct weir__lock *lock);

/* lock-words.c -- what lock.lua is asked, and what it answers. */
struct weir__lock_ask {
    enum weir__lock_verb verb;
    struct weir_key name;
    const char *id;
    weir_time life;
    int64_t token;
    struct weir__text ask; /* TAKE, WAIT: the caller's name for what it wants; no bytes: none */
};

#define WEIR__LOCK_WORDS 9
/* The words of a script, as bulk strings of RESP: NUMKEYS KEY ... ARG ...  There are
 * WEIR__LOCK_WORDS, and the second is the first key. */
void weir__lock_words(const struct weir__lock_ask *ask, struct weir__buffer *out);
/* False: it is an error or nonsense, and *why says which. */
bool weir__lock_reply(struct weir__lock_reply *out, struct weir__text reply,
                      struct weir__text *why);

extern const char weir__lua_lock[], weir__lua_lock_sha[];
extern const size_t weir__lua_lock_len;

#endif
