/* http.h -- what the files of the HTTP protocol share: a request that is whole, the members of its
 * JSON, and how answers are written.
 *
 *     http.c          bytes to requests; who may; which function answers
 *     http-json.c     the body's members, by a table of those that are known
 *     http-check.c    deciding: check, batch, take, peek, give, reserve, settle
 *     http-guards.c   work in progress: enter, exit, renew
 *     http-auth.c     deciding for a proxy, about the request that it describes
 *     http-admin.c    the rows of admin.h, and metrics: on another thread
 *     http-events.c   server-sent events
 *     http-answer.c   heads and bodies
 */
#ifndef WEIR_SERVE_HTTP_H
#define WEIR_SERVE_HTTP_H

#include "server/serve/admin/admin.h"
#include "server/serve/decide/ask.h"
#include "server/serve/decide/enter.h"
#include "server/serve/serve.h"
#include "wire/http1.h"
#include "wire/json.h"

/* How an answer is to be given: all that it needs to know of the request. */
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
    struct weir__span body;
    struct weir__http_manner manner;
    enum weir__role role; /* of this request */
    bool own_token;       /* Authorization was for us, and not for what is behind a proxy */
};

/* What a connection has beyond what all have; made when a request does not come in one piece, or
 * for events. */
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

static inline struct weir__span weir__span_of(struct weir__http_text text)
{
    return (struct weir__span){ text.bytes, text.len };
}

static inline bool weir__http_is(struct weir__http_text text, const char *word, size_t len)
{
    return text.len == len && __builtin_memcmp(text.bytes, word, len) == 0;
}

/* ------------------------------------------------------- http-json.c ---- */

enum weir__member_kind {
    WEIR__MEMBER_TEXT,   /* a string, to a struct weir__span */
    WEIR__MEMBER_COUNT,  /* a whole number from 0, to an int64_t */
    WEIR__MEMBER_ANY,    /* a string, a number, true or false, as written, to a struct weir__span */
    WEIR__MEMBER_OBJECT, /* goes to `inner` */
    WEIR__MEMBER_ARRAY,  /* likewise, with its place for a name */
};

struct weir__member {
    const char *name;
    enum weir__member_kind kind;
    bool needed;
    size_t offset; /* in the target */
};

#define WEIR__MEMBERS_MAX 16

struct weir__members {
    const struct weir__member *rows;
    size_t n;
    void *target;
    /* A value directly in the object or array, no object or array itself.  False: it is wrong, and
     * `problem` says how. */
    bool (*inner)(struct weir__members *members, struct weir__span name,
                  const struct weir__json_value *value);
    bool attributes; /* of a request: a member that is not known may be one that belongs among them
                      */
    uint32_t given;  /* a bit for each row */
    char problem[320]; /* one line */
    char *scratch;     /* where strings with escapes go, as long as the text is; NULL: ... */
    char *heap;        /* ... here, if the text is longer than ... */
    char room[1024];
};

/* To be filled: what the rows say goes to `target`. */
void weir__members_begin(struct weir__members *members, const struct weir__member *rows, size_t n,
                         void *target);
/* Reads a JSON object.  What it is made of stays in the text or in `members`, until
 * weir__members_free.  null is as good as nothing.  False: `problem` says what is wrong and what
 * would be right. */
bool weir__members_read(struct weir__members *members, struct weir__span text);
/* One that came in another way, as a query's parameter does. */
bool weir__members_set(struct weir__members *members, struct weir__span name,
                       struct weir__span value);
/* Are those there that are needed?  (weir__members_read does not ask.) */
bool weir__members_whole(struct weir__members *members);
void weir__members_free(struct weir__members *members);
__attribute__((format(printf, 2, 3))) bool weir__members_wrong(struct weir__members *members,
                                                               const char *format, ...); /* false */

/* Attributes being gathered. */
struct weir__attributes_in {
    struct weir_attr *attrs;
    size_t n, max;
    char *names, *names_end; /* room for them: where the next one goes, and where it ends */
};
/* As weir__members.inner wants it, but for the second. */
bool weir__attribute_in(struct weir__members *members, struct weir__attributes_in *in,
                        struct weir__span name, const struct weir__json_value *value);
/* The same of a request, whose attributes go to the struct weir__attributes_in that `target` begins
 * with. */
void weir__members_begin_request(struct weir__members *members, const struct weir__member *rows,
                                 size_t n, void *target);
/* header.X-Plan is header.x-plan. */
void weir__attribute_lower(char *name, size_t len);
/* ip, uri, method, host, scheme, header.*: what a request is described by, whoever describes it. */
bool weir__attribute_describes(struct weir__span name);

/* ----------------------------------------------------- http-answer.c ---- */

#define WEIR__HTTP_JSON "application/json"

/* `headers`: lines, each ended by CR LF. */
void weir__http_answer(const struct weir__http_manner *manner, int status, const char *type,
                       struct weir__span headers, struct weir__span body);
void weir__http_json(const struct weir__http_manner *manner, int status, const char *text);
/* What is not a refusal by rules: application/problem+json, with a code of the status.  `headers`
 * may be NULL. */
__attribute__((format(printf, 4, 5))) void
weir__http_problem(const struct weir__http_manner *manner, int status, const char *headers,
                   const char *format, ...);
void weir__http_bad(struct weir__http_call *call, int status,
                    const char *problem); /* the same, of a text as it is */
/* With more members, those of a JSON object; NULL or empty: none. */
void weir__http_problem_with(const struct weir__http_manner *manner, int status,
                             const char *headers, const char *detail,
                             const struct weir__buffer *object);

/* A decision by rules.  `refuse`: the status of refusals, 0: the one they have.  `bare`: no body if
 * it is allowed. */
void weir__http_ruling(const struct weir__http_manner *manner, const struct weir_ruling *ruling,
                       int refuse, bool bare);
#define WEIR__HTTP_RULING_MAX 1024
/* {"allowed":...}; `to` has room for WEIR__HTTP_RULING_MAX.  Returns the end. */
char *weir__http_ruling_json(char *to, const struct weir_ruling *ruling);

/* The answer to take, peek and reserve. */
struct weir__http_taken {
    const struct weir__adhoc_answer *answer;
    struct weir__span policy; /* what the headers call it */
    bool ns;                  /* times in nanoseconds */
};
/* The answer to enter. */
void weir__http_entered(const struct weir__http_manner *manner,
                        const struct weir__entered *entered);
int64_t
weir__http_retry_seconds(weir_time retry); /* as Retry-After has it: rounded up, at least 1 */
void weir__http_decision(const struct weir__http_manner *manner,
                         const struct weir__http_taken *taken);

/* ----------------------------------------------------------- the routes ---- */

void weir__http_check(struct weir__http_call *call);
void weir__http_batch(struct weir__http_call *call);
void weir__http_take(struct weir__http_call *call);
void weir__http_peek(struct weir__http_call *call);
void weir__http_give(struct weir__http_call *call);
void weir__http_reserve(struct weir__http_call *call);
void weir__http_settle(struct weir__http_call *call);
void weir__http_enter(struct weir__http_call *call);
void weir__http_exit(struct weir__http_call *call);
void weir__http_renew(struct weir__http_call *call);
void weir__http_clock(struct weir__http_call *call);
void weir__http_auth(struct weir__http_call *call);
void weir__http_admin(struct weir__http_call *call, const struct weir__admin *row);
void weir__http_metrics(struct weir__http_call *call);
void weir__http_events(struct weir__http_call *call);

void weir__http_events_wake(struct weir__conn *conn);
void weir__http_events_close(struct weir__http_session *session); /* frees it */

/* openapi.json, made a C array by scripts/embed.py. */
extern const char weir__openapi[];
extern const size_t weir__openapi_len;

#endif
