/* resp.h -- shared by the files of the RESP protocol: a command as it came, and how replies are
 * written. */
#ifndef WEIR_SERVER_SERVE_RESP_RESP_H
#define WEIR_SERVER_SERVE_RESP_RESP_H

#include "server/serve/verbs/verbs.h"
#include "wire/resp.h"

#define WEIR__RESP_ARGS 1024

struct weir__resp_call {
    struct weir__conn *conn;
    const struct weir__text *args; /* args[0] is the command's name */
    size_t n;
    const struct weir__verb *verb; /* found by the name */
    bool put_off;                  /* it was not run: it comes again when conn is not held */
};

/* State of a RESP connection, made when it is first needed. */
#define WEIR__CHANNELS_MAX 64
struct weir__resp_session {
    char name[64], library[96];
    struct weir__channel {
        char *text;
        bool pattern;
    } channels[WEIR__CHANNELS_MAX];
    size_t n_channels;
    bool multi, multi_failed;
    bool executing;            /* what was kept, and in several turns perhaps: nothing can wait */
    size_t queued, executed;   /* commands; bytes of the queue that are done with */
    struct weir__buffer queue; /* commands between MULTI and EXEC, as they came */
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

/* resp-verbs.c -- finds call->verb by the command's name; false, and the reason is said: it cannot
 * be run. */
bool weir__resp_find(struct weir__resp_call *call);
/* Finds and runs one command, as feed does: also those that EXEC has gathered. */
void weir__resp_run(struct weir__resp_call *call);
/* Whether a command has the right number of words; says that it has not, and returns false. */
bool weir__resp_has_arity(int arity, size_t n);
bool weir__resp_say_usage(const struct weir__resp_call *call);
/* Verbs whose row says all: reads the arguments, runs it here or elsewhere, replies. */
void weir__resp_verb(struct weir__resp_call *call);
/* Begins a call and fills it in; false: it has failed.  weir__call_end in either case. */
bool weir__resp_read(struct weir__resp_call *call, struct weir__verb_call *out);
void weir__resp_reply(struct weir__conn *conn, const struct weir__verb_call *call);
void weir__resp_del(struct weir__resp_call *call);

/* resp-enter.c */
void weir__resp_enter(struct weir__resp_call *call);
void weir__resp_exit(struct weir__resp_call *call);
void weir__resp_renew(struct weir__resp_call *call);

/* resp-pubsub.c */
void weir__resp_subscribe(struct weir__resp_call *call);
void weir__resp_unsubscribe(struct weir__resp_call *call);
void weir__resp_wake(struct weir__conn *conn);

/* resp-throttle-check.c -- commands that are decided together: they are only noted, and answered by
 * weir__resp_flush, which holds the connection if some have to wait. */
void weir__resp_throttle(struct weir__resp_call *call);
void weir__resp_check(struct weir__resp_call *call);
void weir__resp_flush(struct weir__conn *conn);
/* Those before this command are answered first.  False: they wait, and it is put off. */
bool weir__resp_clear_way(struct weir__resp_call *call);
#define WEIR__RESP_RULING 512 /* bytes of a ruling's ten members, beside the names of rules */
char *weir__resp_put_ruling(char *to, const struct weir_ruling *ruling, int version);

/* resp-multi.c */
void weir__resp_multi(struct weir__resp_call *call);
void weir__resp_exec(struct weir__resp_call *call);
void weir__resp_discard(struct weir__resp_call *call);
void weir__resp_watch(struct weir__resp_call *call);
/* Between MULTI and EXEC a command is only kept, unless it is not `good`. */
bool weir__resp_is_queueing(const struct weir__resp_call *call);
void weir__resp_queue(struct weir__resp_call *call, bool good, const char *bytes, size_t len);

/* resp-redis-commands.c -- what every Redis client expects of a server. */
void weir__resp_auth(struct weir__resp_call *call);
void weir__resp_client(struct weir__resp_call *call);
void weir__resp_command_table(struct weir__resp_call *call);
void weir__resp_config(struct weir__resp_call *call);
void weir__resp_dbsize(struct weir__resp_call *call);
void weir__resp_echo(struct weir__resp_call *call);
void weir__resp_hello(struct weir__resp_call *call);
void weir__resp_help(struct weir__resp_call *call);
void weir__resp_info(struct weir__resp_call *call);
void weir__resp_ping(struct weir__resp_call *call);
void weir__resp_quit(struct weir__resp_call *call);
void weir__resp_reset(struct weir__resp_call *call);
void weir__resp_select(struct weir__resp_call *call);
void weir__resp_time(struct weir__resp_call *call);

#endif
