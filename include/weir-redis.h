/* weir-redis.h -- limits whose states live in Redis: alone, under Sentinels, or a cluster.  Read
 * weir.h first.
 *
 * A client has a thread of its own, which connects at the first ask, pipelines concurrent asks,
 * follows redirections, and reconnects with back-off.  Link with -lweir-redis.
 *
 *     struct weir_redis *redis;
 *     weir_redis_create(&redis, "redis://localhost", NULL, &error);
 *
 *     struct weir_redis_limit *limit;
 *     weir_redis_limit_create(&limit, &(struct weir_limit){ .count = 10, .period = WEIR_SECOND },
 *                             &error);
 *
 *     struct weir_redis_item item = { .key = WEIR_REDIS_TEXT("{ann}"), .limit = limit, .cost = 1 };
 *     struct weir_redis_request ask = { .items = &item, .n = 1, .timeout = WEIR_SECOND };
 *     struct weir_redis_result result;
 *     if (weir_redis_take(redis, &ask, &result) != WEIR_REDIS_ANSWERED)
 *         ... Redis is away: result.why
 *     else if (result.allowed)
 *         ...
 */
#ifndef WEIR_REDIS_H
#define WEIR_REDIS_H

#include "weir.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weir_redis;

struct weir_redis_options {
    int32_t connections;   /* to each server, 8 at most; 0: 2 */
    weir_time connect_max; /* to connect and log in; 0: 1 s */
    weir_time stall_max;   /* a server that does not answer for this long is left; 0: 1 s */
    int64_t asks_max;      /* unanswered ones; more are undone at once; 0: 65536 */
};

/* Does not connect yet: Redis may be away.  A child of fork needs a client of its own: its parent's
 * leaves all that it asks undone.  The URL:
 *
 *     redis://[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]...][/DB][?OPTION=VALUE&...]
 *     rediss://...                   the same with TLS
 *     unix://[[USER]:PASSWORD@]PATH
 *     redis-sentinel://[[USER]:PASSWORD@]HOST[:PORT][,...]/MASTER[/DB]; rediss-sentinel://...
 *
 * Several hosts are seeds: each will do to find the others.  Options: db, protocol (2 or 3),
 * sentinel-user, sentinel-password, and of TLS ca, certificate and key (PEM files). */
WEIR_API int weir_redis_create(struct weir_redis **out, const char *url,
                               const struct weir_redis_options *options, struct weir_error *error);
/* Unanswered asks are answered first: undone or unknown.  So are those that their callbacks make
 * then: one that asks anew each time has to stop.  Not to be called by a callback. */
WEIR_API void weir_redis_destroy(struct weir_redis *redis);

enum weir_redis_outcome {
    WEIR_REDIS_ANSWERED = 0, /* the reply may be an error */
    WEIR_REDIS_UNDONE = 1,   /* Redis has not carried it out, and will not */
    WEIR_REDIS_UNKNOWN = 2,  /* sent, not answered: perhaps carried out, perhaps still to be */
};

/* ----------------------------------------------------------------- limits ---- */

/* A server with Weir's module is asked through it, others by scripts: the answers are the same. */
struct weir_redis_limit;
WEIR_API int weir_redis_limit_create(struct weir_redis_limit **out, const struct weir_limit *limit,
                                     struct weir_error *error);
/* No ask with it may be unanswered. */
WEIR_API void weir_redis_limit_destroy(struct weir_redis_limit *limit);

#define WEIR_REDIS_ITEMS_MAX 32

struct weir_redis_item {
    struct weir_key key; /* of Redis: in a cluster those of one ask need a common {tag} */
    const struct weir_redis_limit *limit;
    int64_t cost; /* of a draw: of the first ask that waits; of repay: the units */
    weir_time wait_max;
};

/* Units for a node to spend by itself: docs/redis.md. */
struct weir_redis_draw {
    struct weir_key demand; /* a key of Redis, with the same {tag}: what all nodes ask */
    int64_t waiting, have;  /* units of all asks that wait; not yet spent */
    int64_t asked;          /* units, since the last draw */
    int64_t fast, slow;     /* asked, in units per 1000 s, over a short and a long span */
    weir_time drawn_at;     /* of repay: from the result of the draw */
};

struct weir_redis_request {
    const struct weir_redis_item *items; /* all or nothing */
    size_t n;
    weir_time timeout; /* the answer comes by then, whatever Redis does */
    /* Makes a repeat harmless: a key of Redis, with the same {tag}, of this ask alone.  Then it is
     * sent again by itself if its answer was lost, and may be asked again if it is unknown.  The id
     * is remembered for the timeout, at most a day, and id_life more; 0: 10 s.  No bytes: none */
    struct weir_key id;
    weir_time id_life;
    struct weir_redis_draw draw;
};

struct weir_redis_result {
    enum weir_redis_outcome outcome;
    char why[120]; /* not answered, or refused by Redis, which is undone: the reason */
    bool allowed;  /* all items are */
    struct weir_decision decisions[WEIR_REDIS_ITEMS_MAX]; /* of take, peek and draw */
    int64_t units, share; /* drawn, or paid back; this node's part of the supply */
    bool spent;           /* there is nothing more to draw soon */
    weir_time drawn_at;   /* of a draw, by Redis's clock */
    weir_time life;       /* units may be spent for this long after the draw was sent */
    int64_t found;        /* keys that were reset */
};

/* Each asks and waits, and returns result->outcome.  If a turn was promised (decision.wait), the
 * caller sleeps until then. */
WEIR_API enum weir_redis_outcome weir_redis_take(struct weir_redis *redis,
                                                 const struct weir_redis_request *request,
                                                 struct weir_redis_result *result);
WEIR_API enum weir_redis_outcome weir_redis_peek(struct weir_redis *redis,
                                                 const struct weir_redis_request *request,
                                                 struct weir_redis_result *result);
WEIR_API enum weir_redis_outcome weir_redis_give(struct weir_redis *redis,
                                                 const struct weir_redis_request *request,
                                                 struct weir_redis_result *result);
/* From one key. */
WEIR_API enum weir_redis_outcome weir_redis_draw(struct weir_redis *redis,
                                                 const struct weir_redis_request *request,
                                                 struct weir_redis_result *result);
/* Units of one draw that are not needed; result->units of them count again. */
WEIR_API enum weir_redis_outcome weir_redis_repay(struct weir_redis *redis,
                                                  const struct weir_redis_request *request,
                                                  struct weir_redis_result *result);
/* Makes keys fresh; their items need no limit. */
WEIR_API enum weir_redis_outcome weir_redis_reset(struct weir_redis *redis,
                                                  const struct weir_redis_request *request,
                                                  struct weir_redis_result *result);

enum weir_redis_verb {
    WEIR_REDIS_TAKE,
    WEIR_REDIS_PEEK,
    WEIR_REDIS_GIVE,
    WEIR_REDIS_DRAW,
    WEIR_REDIS_REPAY,
    WEIR_REDIS_RESET,
};

/* Asks and goes on; keys are copied, limits must stay.  `done` is called once, in the client's
 * thread (or before this returns, if there is nothing to ask or no memory): it must not wait. */
WEIR_API void weir_redis_decide(struct weir_redis *redis, enum weir_redis_verb verb,
                                const struct weir_redis_request *request,
                                void (*done)(void *context, const struct weir_redis_result *result),
                                void *context);

/* ------------------------------------------------------------------ locks ---- */

/* A lock that one caller in the whole fleet holds at a time; docs/fleet.md says what it does not
 * promise.  It ends by itself after its lifetime unless it is renewed, so nobody waits for a holder
 * that is gone.  Waiters get it in order of arrival; one that is killed or stopped loses its place
 * within 2 s.
 *
 * Each grant has a token, larger than all before it.  Send it along with every write to the thing
 * that the lock protects, and refuse writes with a smaller one there: that stops a holder that was
 * asleep while its lock ended.
 *
 *     struct weir_redis_lock lock = { .name = WEIR_REDIS_TEXT("nightly") };
 *     weir_redis_lock_acquire(redis, &lock, 10 * WEIR_SECOND, &result);
 *     if (result.held) {
 *         ... work; now and then weir_redis_lock_renew(redis, &lock, WEIR_SECOND, &result)
 *         weir_redis_lock_release(redis, &lock, WEIR_SECOND, &result);
 *     }
 */
struct weir_redis_lock {
    struct weir_key name;
    weir_time lifetime; /* 10 ms to 24 h; 0: 30 s, and to renew it: as it had */
    /* Set by the calls */
    int64_t token;
    weir_time until; /* see weir_redis_lock_left */
    char owner[64];  /* host, process and a random number */
};

struct weir_redis_lock_result {
    enum weir_redis_outcome outcome;
    char why[120]; /* not answered: the reason */
    bool held;     /* by this caller; of a release: it was not given back */
    int64_t token; /* of the present or the last holder */
    weir_time left;
    int64_t place, waiters; /* in line: 1 is next, 0 is not there */
    char holder[64];        /* "": nobody */
};

/* Waits in line for at most `wait` if another has it, and for Redis if it is away; its first answer
 * may take a second, however short `wait` is.  0: asks once.  If it is not held in the end, up to
 * 0.2 s more are for leaving the line; if Redis does not answer then, a place may stay for 2 s or a
 * grant for its lifetime. */
WEIR_API enum weir_redis_outcome weir_redis_lock_acquire(struct weir_redis *redis,
                                                         struct weir_redis_lock *lock,
                                                         weir_time wait,
                                                         struct weir_redis_lock_result *result);
/* Restarts its lifetime; it never ends sooner than it would have.  After an answer that it is lost,
 * or when none is left, it cannot be renewed, and its holder has to stop. */
WEIR_API enum weir_redis_outcome weir_redis_lock_renew(struct weir_redis *redis,
                                                       struct weir_redis_lock *lock,
                                                       weir_time timeout,
                                                       struct weir_redis_lock_result *result);
/* Gives it back, if this caller has it. */
WEIR_API enum weir_redis_outcome weir_redis_lock_release(struct weir_redis *redis,
                                                         struct weir_redis_lock *lock,
                                                         weir_time timeout,
                                                         struct weir_redis_lock_result *result);
/* For how long its holder may rely on it, by the host's clock; 0: not held. */
WEIR_API weir_time weir_redis_lock_left(const struct weir_redis_lock *lock);

WEIR_API enum weir_redis_outcome weir_redis_lock_look(struct weir_redis *redis,
                                                      struct weir_key name, weir_time timeout,
                                                      struct weir_redis_lock_result *result);
/* By hand: takes it from the holder that has it under this token, and from no later one. */
WEIR_API enum weir_redis_outcome weir_redis_lock_break(struct weir_redis *redis,
                                                       struct weir_key name, int64_t token,
                                                       weir_time timeout,
                                                       struct weir_redis_lock_result *result);

/* ----------------------------------------------------------- any command ---- */

/* A Lua script.  It is called by its SHA-1; a server that does not know it is sent the text. */
struct weir_redis_script;
WEIR_API int weir_redis_script_create(struct weir_redis_script **out, const char *text,
                                      struct weir_error *error);
/* No ask with it may be unanswered. */
WEIR_API void weir_redis_script_destroy(struct weir_redis_script *script);

#define WEIR_REDIS_TEXT(text)                    \
    {                                            \
        .bytes = (text), .len = sizeof(text) - 1 \
    }

struct weir_redis_ask {
    const struct weir_key *words; /* the command; of a script: number of keys, keys, arguments */
    size_t n;
    size_t key; /* which of the words is a key, and so decides about the server; 0: none is */
    weir_time timeout; /* the answer comes by then, whatever Redis does */
    /* Doing it twice is harmless: it is sent again if its answer was lost */
    bool repeatable;
    const struct weir_redis_script *script; /* or NULL */
};

struct weir_redis_answer {
    enum weir_redis_outcome outcome;
    const char *reply; /* one value of RESP; NULL: not answered */
    size_t len;
    char why[120]; /* not answered: the reason */
};

/* Asks and waits.  Returns answer->outcome; free the answer in any case.  All asks share the
 * client's connections: a command that would change one for the others (MULTI, SELECT, SUBSCRIBE,
 * AUTH ...) is undone, and one that waits in Redis (BLPOP, WAIT) makes others wait. */
WEIR_API enum weir_redis_outcome weir_redis_call(struct weir_redis *redis,
                                                 const struct weir_redis_ask *ask,
                                                 struct weir_redis_answer *answer);
WEIR_API void weir_redis_answer_free(struct weir_redis_answer *answer);

/* Asks and goes on; the words are copied.  `done` is called once, in the client's thread (or before
 * this returns, if it may not be asked or there is no memory): it must not wait, and the answer is
 * gone when it returns. */
WEIR_API void weir_redis_submit(struct weir_redis *redis, const struct weir_redis_ask *ask,
                                void (*done)(void *context, const struct weir_redis_answer *answer),
                                void *context);

/* ---------------------------------------------------------------- replies ---- */

struct weir_redis_value {
    /* '+' simple, '-' error, ':' integer, '$' text, '*' list, '%' map, '~' set, '_' null,
     * ',' double, '#' boolean, '(' big number */
    char kind;
    int64_t integer;      /* of ':' and '#' */
    size_t n;             /* values that follow and are part of it; of a map twice its pairs */
    struct weir_key text; /* of + - $ , ( */
};

/* The values of a reply, each list before its members, from a cursor of 0 until false. */
WEIR_API bool weir_redis_value_next(const struct weir_redis_answer *answer, size_t *cursor,
                                    struct weir_redis_value *out);

#ifdef __cplusplus
}
#endif
#endif
