/* weir-redis.h -- a client of Redis: alone, under Sentinels, or a cluster.  Read weir.h first.
 *
 * A client has a thread of its own, which connects when it is first asked, pipelines what is asked
 * at the same time, follows redirections, and reconnects with back-off.  Link with -lweir-redis.
 *
 *     struct weir_redis *redis;
 *     weir_redis_create(&redis, "redis://localhost", NULL, &error);
 *
 *     struct weir_key words[] = { WEIR_REDIS_TEXT("INCR"), WEIR_REDIS_TEXT("visits") };
 *     struct weir_redis_ask ask = { .words = words, .n = 2, .key = 1, .timeout = WEIR_SECOND };
 *     struct weir_redis_answer answer;
 *     if (weir_redis_call(redis, &ask, &answer) == WEIR_REDIS_ANSWERED)
 *         ...
 *     weir_redis_answer_free(&answer);
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

/* Does not connect yet: Redis may be away.  The URL:
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
/* Unanswered asks are answered first: undone or unknown. */
WEIR_API void weir_redis_destroy(struct weir_redis *redis);

/* ----------------------------------------------------------------- asking ---- */

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
    /* To be done twice is harmless: it is sent again if its answer was lost */
    bool repeatable;
    const struct weir_redis_script *script; /* or NULL */
};

enum weir_redis_outcome {
    WEIR_REDIS_ANSWERED = 0, /* the reply may be an error */
    WEIR_REDIS_UNDONE = 1,   /* Redis has not carried it out, and will not */
    WEIR_REDIS_UNKNOWN = 2,  /* sent, not answered: perhaps carried out, perhaps still to be */
};

struct weir_redis_answer {
    enum weir_redis_outcome outcome;
    const char *reply; /* one value of RESP; NULL: not answered */
    size_t len;
    char why[120]; /* not answered: the reason */
};

/* Asks and waits.  Returns answer->outcome; free the answer in any case. */
WEIR_API enum weir_redis_outcome weir_redis_call(struct weir_redis *redis,
                                                 const struct weir_redis_ask *ask,
                                                 struct weir_redis_answer *answer);
WEIR_API void weir_redis_answer_free(struct weir_redis_answer *answer);

/* Asks and goes on; the words are copied.  `done` is called once, in the client's thread (or, if
 * there is no memory, before this returns): it must not wait, and the answer is gone when it
 * returns. */
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
