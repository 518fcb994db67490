/* serve.h -- the server: the structs that its files share, and their owners.
 *
 *     struct weir__server   made before the threads, never changed after, except members marked
 *                           atomic; the things it points to look after themselves
 *     struct weir__loop     its own thread; but `counters`, which anybody may read, and `waker`,
 *                           which anybody may wake
 *     struct weir__conn     the thread of its loop
 *
 * One loop per thread, each with its own listening sockets (SO_REUSEPORT); the main thread has a
 * loop too, which serves nobody: signals, the rule file, the log of events, a tick every second.
 * All share the table and the engine.
 *
 * Bytes come in (conn.c), a protocol makes requests of them (resp.c, http.c), decisions are made
 * (decide.c), answers are gathered in loop->out and leave in one write.
 */
#ifndef WEIR_SERVER_SERVE_SERVE_H
#define WEIR_SERVER_SERVE_SERVE_H

#include <pthread.h>
#include <uv.h>

#include "cluster/agent/asks.h"
#include "server/base/buffer.h"
#include "server/serve/events/events.h"
#include "server/serve/rules/rules-in-force.h"
#include "server/serve/events/metrics.h"
#include "server/serve/settings/settings.h"
#include "weir.h"
#include "wire/text.h"

enum weir__role { WEIR__ROLE_NONE, WEIR__ROLE_CHECK, WEIR__ROLE_ADMIN };

struct weir__conn;
struct weir__loop;
struct weir__listener;
struct weir__listen;
struct weir__adhoc;
struct weir__ask_ids;
struct weir__reservations;
struct weir__wrong_tokens;
struct weir__proxy_doubts;
struct weir__fair_use;
struct weir__guards;
struct weir__lines;
struct weir__mailbox;
struct weir__units_wait;
struct weir__lock_wait;
struct weir__lock_waits;
struct weir__node;
struct weir_fleet;
struct weir__waiting;
struct weir__wait;
struct weir__bound;
struct weir__top;
struct weir__watch;
struct weir__cidr_set;
struct weir__event_log;
struct weir__tls_context;
struct weir__tls;
struct weir__job;
struct weir__pass;
struct weir__passed;
struct weir__arrival;

/* Turns bytes into requests. */
struct weir__protocol {
    const char *name; /* "resp", "http" */
    /* Deals with the whole requests at the beginning of the bytes, answers into loop->out, and
     * returns their length; the rest comes again with more behind it.  May stop early if
     * weir__turn_is_over.  It may write to them. */
    size_t (*feed)(struct weir__conn *conn, char *bytes, size_t len);
    void (*wake)(struct weir__conn *conn); /* there are events, and the connection has subscribed */
    void (*close)(struct weir__conn *conn); /* frees the session */
    /* For a successor, pass-connections.h: writes the session down, between two requests; false: it
     * cannot.  And makes it anew. */
    bool (*pack)(const struct weir__conn *conn, struct weir__passed *out);
    void (*unpack)(struct weir__conn *conn, const struct weir__passed *passed);
};

extern const struct weir__protocol weir__resp, weir__http;

struct weir__server {
    const struct weir__settings *settings;
    struct weir_table *table;
    struct weir *engine;
    struct weir__in_force *in_force;
    struct weir__events *events;
    struct weir__adhoc *adhoc;
    struct weir__ask_ids *ask_ids;
    struct weir__reservations *reservations;
    struct weir__fair_use *fair_use;         /* of pools; NULL: none */
    struct weir__wrong_tokens *wrong_tokens; /* NULL: wrong tokens are only counted */
    struct weir__proxy_doubts *proxy_doubts; /* NULL: proxies that seem wrong are only counted */
    struct weir__guards *guards;
    struct weir__lines *lines; /* where asks wait for a guard */
    struct weir_fleet *fleet;  /* NULL: it is in none */
    struct weir__node *node;   /* fleet.c */
    struct weir__top *top;
    struct weir__watch *watch;
    struct weir__event_log *event_log; /* of the main thread; others may read its counts */
    struct weir__tls_context *tls;     /* NULL: no TLS */
    struct weir__cidr_set
        *proxies; /* believed about forwarded requests: weir__proxies_parse; NULL: none */
    const struct weir__listen *listen; /* NULL: the settings' addresses are shown */
    struct weir__loop *loops;
    size_t n_loops;
    weir_time started;       /* on the table's axis */
    weir_time *test_clock;   /* NULL: the table's own; atomic */
    int64_t connections;     /* atomic */
    uint64_t connection_ids; /* given so far; atomic */
    int draining;  /* atomic.  1: no new connections, and those that are there end after the request
                     under way; 2: all end now */
    int successor; /* the channel to one that takes connections; 0: none.  Set before
                                draining */
    struct weir__pass *pass; /* of the main thread: where a predecessor's arrive; NULL: none */
    void (*tick)(struct weir__server *server,
                 weir_time now); /* every second, on the main thread; WEIR.CLOCK calls it too */
};

/* The time now, on the table's axis: a clock read. */
weir_time weir__server_now(const struct weir__server *server);
/* For tests, if server->test_clock: sets the time and runs a second's tick. */
void weir__server_set_clock(struct weir__server *server, weir_time now);

struct weir__loop {
    struct weir__server *server;
    size_t index;
    uv_loop_t uv;
    pthread_t thread;
    bool started;
    uv_async_t waker;   /* events, or draining */
    uv_timer_t sweeper; /* once a second: idle and slow connections */
    uint64_t swept_ms;  /* when it last came, */
    bool swept_late;    /* and whether that was too late to tell who is slow */
    uv_prepare_t turn;  /* before the loop waits: `now` will be old */
    weir_time now;      /* on the table's axis; use weir__loop_now */
    bool now_is_old;
    struct weir__listener *listeners;
    size_t n_listeners;
    struct weir__conn *conns;       /* all of them */
    const struct weir__conn *fed;   /* the one whose requests are being decided, or NULL */
    uint64_t adhoc_seen;            /* adhoc.c; atomic */
    struct weir__arrival *arrivals; /* atomic: of a predecessor, to be taken */
    struct weir__conn *due;         /* those that have had a turn, and may have more to say */
    unsigned asks;                  /* of the connection whose turn it is, since the last look */
    weir_time turn_since;           /* the first look at the clock in it; 0: none yet */
    bool turn_over;
    size_t jobs;             /* that are done elsewhere for its connections */
    struct weir__buffer out; /* answers of the connection being fed */
    char *in;                /* the last read */
    struct weir__counters counters;
    struct weir__mailbox *mailbox;       /* what other threads have done for it */
    struct weir__agent_list units_waits; /* asks for the fleet's agent, handed over once a turn */
    struct weir__waiting
        *waiting; /* asks of its connections in guards' queues; NULL: nobody has ever waited */
    struct weir__lock_waits *lock_waits; /* likewise for locks of the fleet */
    void *scratch;                       /* resp.c: room for a batch of commands */
    const struct weir__verb *verbs[32];  /* resp.c: some of those found before */
    struct weir__buffer openapi;         /* http.c: printed when it is first asked for */
    int64_t date_second;                 /* http-answer.c: of when the text is */
    char date[32];                       /* "Sun, 06 Nov 1994 08:49:37 GMT"; "": none yet */
};

/* What all loops have counted of one kind. */
static inline int64_t weir__server_count(const struct weir__server *server,
                                         enum weir__counter which)
{
    int64_t n = 0;

    for (size_t i = 0; i < server->n_loops; i++)
        n += __atomic_load_n(&server->loops[i].counters.counts[which], __ATOMIC_RELAXED);
    return n;
}

/* The time of this turn of the loop. */
static inline weir_time weir__loop_now(struct weir__loop *loop)
{
    if (loop->now_is_old) {
        loop->now = weir__server_now(loop->server);
        loop->now_is_old = false;
    }
    return loop->now;
}

/* A client as the pools count it: fair-use-per-client.h; zeros: nobody in particular. */
struct weir__fair_user {
    uint16_t address, connection;
};

/* The token that an HTTP request shows, judged once. */
struct weir__shown {
    bool judged;
    bool wrong;           /* meant for us, and not known */
    enum weir__role role; /* that it gives */
    weir_time wait;       /* above 0: tokens from this address are refused that long */
};

union weir__stream {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe; /* of a Unix socket */
};

struct weir__conn {
    union weir__stream uv;
    struct weir__loop *loop;
    struct weir__conn *next, **link;
    struct weir__conn *next_due, **due_link; /* NULL: it is not due */
    const struct weir__protocol *protocol;
    void *session;               /* the protocol's, or NULL until it needs one */
    struct weir__tls *tls;       /* NULL: plain */
    struct weir__buffer in;      /* the beginning of a request */
    struct weir__buffer pending; /* output that the client has not read yet */
    struct weir__buffer sending; /* output that the kernel has been given */
    uv_write_t write;
    size_t queued;                       /* bytes that the kernel had not taken yet, ... */
    uint64_t moved_ms;                   /* ... and the uv time when that last changed */
    struct weir__job *job;               /* work for it on another thread, or NULL */
    struct weir__wait *wait;             /* its ask is in a guard's queue, or NULL */
    struct weir__units_wait *units_wait; /* its checks wait for units of the fleet, or NULL */
    struct weir__units_wait_enter *units_wait_enter; /* likewise an enter */
    struct weir__lock_wait *lock_wait;               /* it asks for a lock of the fleet, or NULL */
    struct weir__bound *bound;        /* bound-permits.c: permits that end with it; NULL: none */
    uint64_t came_ms;                 /* uv time (ms) when it was accepted */
    uint64_t last_ms;                 /* uv time (ms) when it last said something */
    uint64_t since_ms;                /* uv time when the request under way began; 0: none */
    uint64_t heard;                   /* the number of the last event it was told */
    uint64_t id;                      /* of its own, since the server started */
    enum weir__role role, first_role; /* now; before AUTH */
    enum weir__role known;            /* the highest of a token that it has shown */
    int wrong_tokens;                 /* tokens that were wrong */
    struct weir__shown shown;         /* by the HTTP request under way */
    struct weir__fair_user fair_user;
    bool proven; /* it may ask: its listener lets everybody, or it has shown a token; others have
                    little time for that */
    bool subscribed; /* to events */
    bool held;       /* an answer is being made elsewhere: nothing is fed until weir__conn_resume */
    bool writing;
    bool reading;
    /* A buffer of input, or of output, or much time: others come first. */
    bool filled_in, had_turn;
    bool heard_all; /* the client has closed its side */
    bool ending;    /* closes when all output is out */
    bool lingers;   /* then further input is thrown away for a while, ... */
    bool lingering; /* ... and that is now */
    bool spoke;     /* the client has asked something; a handshake is not enough */
    bool closed;    /* uv_close was called */
    uint8_t resp;   /* 2 or 3: which RESP it speaks */
    char peer[48];  /* its address, "" for a unix socket */
};

/* conn.c */
#define WEIR__TURN_ASKS 16U                         /* between two looks at the clock */
bool weir__loop_is_late(struct weir__loop *loop);   /* the turn of the connection takes long */
void weir__loop_serve_due(struct weir__loop *loop); /* once for each look at the sockets */
/* Asked between two requests: its turn is over. */
static inline bool weir__turn_is_over(const struct weir__conn *conn)
{
    struct weir__loop *loop = conn->loop;

    return loop->out.len > 256 * 1024 ||
           (++loop->asks >= WEIR__TURN_ASKS && weir__loop_is_late(loop));
}
/* A request that may take as long as n others. */
static inline void weir__conn_took(struct weir__conn *conn, unsigned n)
{
    conn->loop->asks += n - 1;
}
void weir__conn_send(struct weir__conn *conn, const void *bytes, size_t len); /* outside of feed */
void weir__conn_send_out(struct weir__conn *conn); /* outside of feed: loop->out */
void weir__conn_end(struct weir__conn *conn);      /* after all output was sent */
void weir__conn_end_early(
    struct weir__conn *conn); /* likewise, though the client has not said all it wants to */
void weir__conn_resume(struct weir__conn *conn); /* the held answer was sent */
void weir__conn_watch(struct weir__conn *conn);  /* it waits for something else now */

/* jobs.c -- runs `work` on a thread of the pool and then `done` on the loop's thread, with the
 * connection held meanwhile; it may have been closed: then `done` is called with conn NULL.
 * `role`: who may ask for such work; half of it is the operator's.  False: too much is under
 * way. */
bool weir__conn_offload(struct weir__conn *conn, void (*work)(void *context),
                        void (*done)(struct weir__conn *conn, void *context), void *context,
                        enum weir__role role);
#define WEIR__TOO_MANY_JOBS "too many requests of this kind are under way; try again"

/* auth.c -- whether there is a token at all. */
bool weir__auth_has_tokens(const struct weir__settings *settings);
const char *weir__role_name(enum weir__role role);
/* Which role a secret gives; compared in constant time. */
enum weir__role weir__auth_role(const struct weir__settings *settings, const char *secret,
                                size_t len);
/* A client has shown a token that gives `role`; NONE: a wrong one, which is counted, and after a
 * few the connection ends.  0, or the token counts for nothing: there were too many wrong ones from
 * its address, and it may try again after this time. */
weir_time weir__auth_judge(struct weir__conn *conn, enum weir__role role);
/* An address that other hosts can reach needs a token, and one that cannot be guessed. */
int weir__auth_suffices(const struct weir__settings *settings, const char *address,
                        struct weir_error *error);

/* resp.c */
void weir__resp_scratch_free(struct weir__loop *loop);

#endif
