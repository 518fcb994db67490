/* conn.h -- one connection to a Redis server, without its socket: bytes in, bytes out.
 *
 *   closed ─ begin ─► opening ─ opened ─► greeting ─ HELLO, AUTH, SELECT answered ─► ready
 *      ▲                 │                   │                                         │
 *      └─────────────────┴──── lost: by the network, an answer that makes no sense, time ─────┘
 *
 * A driver sees `phase` and `life` and does as they say: it connects if the connection is opening,
 * closes a socket whose `life` is over, writes `out` and tells how much (wrote), and hands in what
 * it reads (input).
 *
 * Replies come in the order of the commands, so each command leaves a note of what its reply is
 * for.  An ask whose time is over takes its name off the note; the reply is then thrown away.
 */
#ifndef WEIR_CLUSTER_REDIS_CONN_H
#define WEIR_CLUSTER_REDIS_CONN_H

#include "cluster/redis/ask.h"
#include "cluster/redis/url.h"
#include "wire/resp-reply.h"

enum weir__redis_phase {
    WEIR__REDIS_CLOSED,
    WEIR__REDIS_OPENING,
    WEIR__REDIS_GREETING,
    WEIR__REDIS_READY,
};

struct weir__redis_conn_options {
    struct weir__redis_login login;
    int64_t db;
    int64_t protocol;     /* 2 or 3; 0: 3 if the server has it */
    weir_time greet_max;  /* from begin to ready */
    weir_time stall_max;  /* without a byte while replies are due */
    weir_time ping_every; /* when idle */
    size_t reply_max;
    size_t pipeline_max; /* replies that may be due at once */
};

/* A server with as many clients as it may have says so unasked, and hangs up.  In a cluster it goes
 * on with " + cluster connections". */
#define WEIR__REDIS_FULL "ERR max number of clients"

/* What a reply will be for. */
struct weir__redis_note {
    struct weir__redis_ask *ask; /* NULL: nobody waits for it */
    uint64_t end;                /* the command's last byte, in all that was put into `out` */
};

/* What the server said of itself, in answer to HELLO; zeros: nothing. */
struct weir__redis_facts {
    int64_t protocol;
    char version[24];
    char mode[16]; /* standalone, cluster or sentinel */
    bool replica;
};

struct weir__redis_conn {
    const struct weir__redis_conn_options *options;
    struct weir__redis_node *node;
    enum weir__redis_phase phase;
    uint32_t life; /* counts begins */
    void *driver;  /* the driver's own */
    bool shaking;  /* hands: the server was reached, and owes its part of TLS */
    bool refused;  /* the server was reached, and did not let us in */
    bool served;   /* it has answered since the greeting */
    bool leaving;  /* no more asks: it is closed when the last reply is there */
    char why[160]; /* it was lost */
    struct weir__redis_facts facts;

    struct weir__buffer in, out; /* bytes; `out` is for the network */
    struct weir__resp_scan scan;
    uint64_t put, written;          /* bytes, in this life */
    struct weir__redis_note *notes; /* a ring */
    size_t notes_room;
    uint64_t first_note, next_note; /* replies are numbered */
    int greeting;                   /* the step that is due */
    weir_time begun, heard;         /* heard: the last byte, or the first command when idle */
};

/* What the owner of a connection does with replies.  `reply` is one whole value. */
struct weir__redis_listener {
    void *context;
    void (*ready)(void *context, struct weir__redis_conn *conn, weir_time now);
    void (*replied)(void *context, struct weir__redis_conn *conn, struct weir__redis_ask *ask,
                    struct weir__text reply, weir_time now);
    /* Its reply will never come.  `written`: all of the command was handed to the network */
    void (*orphaned)(void *context, struct weir__redis_conn *conn, struct weir__redis_ask *ask,
                     bool written, weir_time now);
};

void weir__redis_conn_begin(struct weir__redis_conn *conn, weir_time now);
void weir__redis_conn_opened(struct weir__redis_conn *conn, weir_time now);
/* False: it is broken, and `why` says how: call lost. */
bool weir__redis_conn_input(struct weir__redis_conn *conn, const char *bytes, size_t len,
                            const struct weir__redis_listener *listener, weir_time now);
void weir__redis_conn_wrote(struct weir__redis_conn *conn, size_t n);
/* It is closed, and all asks on it are orphaned.  `why` NULL: as the connection says itself. */
void weir__redis_conn_lost(struct weir__redis_conn *conn, const char *why,
                           const struct weir__redis_listener *listener, weir_time now);
void weir__redis_conn_free(struct weir__redis_conn *conn);

/* Puts the command into `out`, behind ASKING if the ask is to.  False: not ready, as many replies
 * are due as may be, or no memory. */
bool weir__redis_conn_send(struct weir__redis_conn *conn, struct weir__redis_ask *ask,
                           weir_time now);
/* Nobody waits for this ask's reply any longer. */
void weir__redis_conn_forget(struct weir__redis_conn *conn, struct weir__redis_ask *ask);

static inline size_t weir__redis_conn_due_replies(const struct weir__redis_conn *conn)
{
    return (size_t)(conn->next_note - conn->first_note);
}

/* Sends a PING if it is time.  False: it has taken too long, and `why` says what. */
bool weir__redis_conn_tick(struct weir__redis_conn *conn, weir_time now);
/* The next moment for a tick; WEIR_NEVER: none. */
weir_time weir__redis_conn_due(const struct weir__redis_conn *conn);

#endif
