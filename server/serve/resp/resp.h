/* resp.h -- what the files of the RESP protocol share: a command as it came, the rows of commands,
 * and how replies are written. */
#ifndef WEIR_SERVE_RESP_H
#define WEIR_SERVE_RESP_H

#include "server/serve/serve.h"
#include "wire/resp.h"

#define WEIR__RESP_ARGS 1024

struct weir__resp_call {
    struct weir__conn *conn;
    const struct weir__resp_arg *args; /* args[0] is the command's name */
    size_t n;
};

struct weir__resp_row {
    const char *name;
    int arity;            /* with the name; -n: n or more */
    enum weir__role role; /* WEIR__ROLE_NONE: even before AUTH */
    const char *arguments, *summary;
    void (*run)(struct weir__resp_call *call);
};

/* resp-commands.c -- whatever the case of the name; NULL: there is none. */
const struct weir__resp_row *weir__resp_find(struct weir__resp_arg name);

/* What a connection has beyond what all have; made when it is first needed. */
#define WEIR__CHANNELS_MAX 64
struct weir__resp_session {
    char name[64], library[96];
    struct weir__channel {
        char *text;
        bool pattern;
    } channels[WEIR__CHANNELS_MAX];
    size_t n_channels;
    bool multi, multi_failed;
    size_t queued;
    struct weir__buffer queue; /* commands between MULTI and EXEC, as they came */
    struct weir__bound *bound; /* resp-guards.c: permits that end with the connection; NULL: none */
};
struct weir__resp_session *
weir__resp_session(struct weir__conn *conn); /* NULL: no memory, and the connection ends */

/* Replies, into the loop's buffer. */
void weir__reply_simple(struct weir__conn *conn, const char *text);
__attribute__((format(printf, 2, 3))) void weir__reply_error(struct weir__conn *conn,
                                                             const char *format, ...);
void weir__reply_integer(struct weir__conn *conn, int64_t n);
void weir__reply_bulk(struct weir__conn *conn, const char *bytes, size_t len);
void weir__reply_text(struct weir__conn *conn, const char *text); /* a bulk; NULL: null */
void weir__reply_header(struct weir__conn *conn, char kind, int64_t n);
void weir__reply_map(struct weir__conn *conn, int64_t pairs); /* RESP2: an array of twice as many */
void weir__reply_push(struct weir__conn *conn, int64_t n);    /* RESP2: an array */
void weir__reply_wrong_number(struct weir__resp_call *call);

/* resp-weir.c, resp-pubsub.c, resp-batch.c */
void weir__resp_take(struct weir__resp_call *call);
void weir__resp_peek(struct weir__resp_call *call);
void weir__resp_give(struct weir__resp_call *call);
void weir__resp_reserve(struct weir__resp_call *call);
void weir__resp_settle(struct weir__resp_call *call);
void weir__resp_forget(struct weir__resp_call *call);
void weir__resp_del(struct weir__resp_call *call);
void weir__resp_clock(struct weir__resp_call *call);
void weir__resp_admin(struct weir__resp_call *call); /* any row of admin.h */

/* resp-guards.c */
void weir__resp_enter(struct weir__resp_call *call);
void weir__resp_exit(struct weir__resp_call *call);
void weir__resp_renew(struct weir__resp_call *call);
void weir__resp_unbind(
    struct weir__conn *conn,
    struct weir__resp_session *session); /* gives back what is bound to the connection */

void weir__resp_subscribe(struct weir__resp_call *call);
void weir__resp_unsubscribe(struct weir__resp_call *call);
void weir__resp_wake(struct weir__conn *conn);

/* Commands that are decided together: they are only noted, and answered by weir__resp_flush. */
void weir__resp_throttle(struct weir__resp_call *call);
void weir__resp_check(struct weir__resp_call *call);
void weir__resp_flush(struct weir__loop *loop, struct weir__conn *conn);

/* Runs one command, as feed does: also those that EXEC has gathered. */
void weir__resp_run(struct weir__resp_call *call);

#endif
