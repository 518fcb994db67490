/* http.h -- shared by the files of the HTTP protocol: a request that is whole, and how answers are
 * written.
 *
 *     http.c                  bytes to requests; which function answers
 *     http-access.c           who may ask: tokens, Host, Origin
 *     http-verbs.c            verbs whose row says all
 *     http-enter.c            enter
 *     http-check.c            check and batch: read and decided without asking for memory
 *     http-forward-auth.c     deciding for a proxy, about the request that it describes
 *     http-client-address.c   whose request that is: X-Forwarded-For and trusted proxies
 *     proxy-doubts.c          proxies that seem to be set up wrongly
 *     http-events.c           server-sent events
 *     http-answer.c           heads and bodies, and problems that are no refusals
 *     http-answer-decision.c  decisions as answers
 */
#ifndef WEIR_SERVER_SERVE_HTTP_HTTP_H
#define WEIR_SERVER_SERVE_HTTP_HTTP_H

#include "server/serve/verbs/verbs.h"
#include "wire/http1.h"

/* How to answer: everything an answer needs to know about its request. */
struct weir__http_manner {
    struct weir__loop *loop;
    struct weir__buffer *out;
    bool head_only; /* HEAD: no body, though its length is told */
    bool close;     /* it is the last one of the connection */
    bool old;       /* HTTP/1.0 */
};

struct weir__http_call {
    struct weir__conn *conn;
    const struct weir__http_request *request;
    const struct weir__verb *verb; /* found by method and path */
    struct weir__text body;
    struct weir__http_manner manner;
    enum weir__role role; /* of this request */
    bool own_token;       /* Authorization was for us, not for the service behind a proxy */
};

/* State of an HTTP connection, made when a request does not come in one piece, or for events. */
struct weir__http_session {
    size_t seen; /* bytes of a head that is not whole: nothing in them is wrong */
    size_t need; /* bytes of the whole request; 0: not known */
    size_t head; /* chunked: bytes of the head, ... */
    size_t raw;  /* ... bytes of the body that were read, ... */
    size_t data; /* ... and what they were, now right behind the head */
    struct weir__http_chunks chunks;
    bool chunked;
    bool continued; /* was told to go on */
    bool ticking;
    uv_timer_t timer; /* of events: something is said now and then, so that the connection is not
                         taken for dead */
};
struct weir__http_session *weir__http_session(struct weir__conn *conn); /* NULL: no memory */

static inline bool weir__http_is(struct weir__text text, const char *word, size_t len)
{
    return text.len == len && __builtin_memcmp(text.bytes, word, len) == 0;
}

/* Whatever the case; the word is a literal. */
#define weir__http_is_named(name, word) \
    ((name).len == sizeof(word) - 1 && strncasecmp((name).bytes, word, sizeof(word) - 1) == 0)

/* ----------------------------------------------------- http-answer.c ---- */

#define WEIR__HTTP_JSON    "application/json"
#define WEIR__HTTP_PROBLEM "application/problem+json"

/* `headers`: lines, each ended by CR LF. */
void weir__http_answer(const struct weir__http_manner *manner, int status, const char *type,
                       struct weir__text headers, struct weir__text body);
void weir__http_json(const struct weir__http_manner *manner, int status, const char *text);
/* Any error but a refusal: application/problem+json, with a code of the status.  `headers` may be
 * NULL. */
__attribute__((format(printf, 4, 5))) void
weir__http_problem(const struct weir__http_manner *manner, int status, const char *headers,
                   const char *format, ...);
void weir__http_bad(struct weir__http_call *call, int status,
                    const char *problem); /* the same, of a text as it is */
/* With more members, those of a JSON object; NULL or empty: none. */
void weir__http_problem_with(const struct weir__http_manner *manner, int status,
                             const char *headers, const char *detail,
                             const struct weir__buffer *object);

/* -------------------------------------------- http-answer-decision.c ---- */

/* A decision by rules.  `refuse`: the status of refusals, 0: the one they have.  `bare`: no body if
 * it is allowed. */
void weir__http_ruling(const struct weir__http_manner *manner, const struct weir_ruling *ruling,
                       int refuse, bool bare);
/* The same for a check that has just been decided, or has to wait: then it is answered later. */
struct weir__http_shape {
    int refuse;
    bool bare;
};
void weir__http_decided(struct weir__http_call *call, const struct weir__check *check,
                        struct weir_ruling *ruling, const struct weir__http_shape *shape);
#define WEIR__HTTP_RULING_MAX 1024
/* {"allowed":...}; `to` has room for WEIR__HTTP_RULING_MAX.  Returns the end. */
char *weir__http_ruling_json(char *to, const struct weir_ruling *ruling);

/* The answer to enter; a refusal by a guard carries its fallback. */
void weir__http_entered(const struct weir__http_manner *manner,
                        const struct weir__entered *entered);
/* As Retry-After has it: rounded up, at least 1. */
int64_t weir__http_retry_seconds(weir_time retry);
/* The answer to take, peek and reserve. */
void weir__http_decision(const struct weir__http_manner *manner,
                         const struct weir__verb_call *call);

/* ----------------------------------------------------- http-access.c ---- */

/* Finds the request's role.  False: it may not, and was told so. */
bool weir__http_admit(struct weir__http_call *call, enum weir__role needed, bool foreign);
/* Judges the token of a head that is whole. */
void weir__http_judge_token(struct weir__conn *conn, const struct weir__http_request *request);

/* --------------------------------------------- http-client-address.c ---- */

/* The address of the peer.  A unix socket is as near as the loopback. */
struct weir__text weir__http_peer(const struct weir__conn *conn);
/* Whether the peer is a trusted proxy, which is believed about a request's client. */
bool weir__http_is_from_proxy(const struct weir__conn *conn);
/* The client of a request that a trusted proxy describes.  False, and answered: two headers name
 * different ones. */
bool weir__http_client(struct weir__http_call *call, struct weir__text *client);

/* ------------------------------------------------------ http-verbs.c ---- */

/* Verbs whose row says all: reads the arguments, runs it here or elsewhere, answers. */
void weir__http_verb(struct weir__http_call *call);
/* Reads the parameters; false: the call has failed. */
bool weir__http_query(struct weir__verb_call *c, struct weir__text query);
void weir__http_answer_call(const struct weir__http_manner *manner,
                            const struct weir__verb_call *call);
/* For an answer that comes while the connection is held: as the manner of its request, into `out`;
 * then sends it. */
struct weir__http_manner weir__http_held(const struct weir__conn *conn,
                                         const struct weir__http_manner *manner,
                                         struct weir__buffer *out);
void weir__http_send_held(struct weir__conn *conn, const struct weir__http_manner *manner);

/* ------------------------------------------------------ verbs of HTTP ---- */

#define WEIR__HTTP_BATCH 1000 /* checks */
void weir__http_check(struct weir__http_call *call);
void weir__http_batch(struct weir__http_call *call);
void weir__http_auth(struct weir__http_call *call);
void weir__http_enter(struct weir__http_call *call);
void weir__http_events(struct weir__http_call *call);
void weir__http_root(struct weir__http_call *call);
void weir__http_index(struct weir__http_call *call);
void weir__http_healthz(struct weir__http_call *call);
void weir__http_readyz(struct weir__http_call *call);
void weir__http_openapi(struct weir__http_call *call);

void weir__http_events_wake(struct weir__conn *conn);
void weir__http_events_close(struct weir__http_session *session); /* frees it */

#endif
