/* conn.h -- a connection, as its loop uses it. */
#ifndef WEIR_SERVER_SERVE_NET_CONN_H
#define WEIR_SERVER_SERVE_NET_CONN_H

#include "server/serve/serve.h"

#define WEIR__READ_SIZE (64 * 1024)

void weir__conn_begin(struct weir__conn *conn); /* its stream was accepted, its members are set: it
                                                   is the loop's from now on */
/* The same for one that a predecessor has passed, with the beginning of a request. */
void weir__conn_continue(struct weir__conn *conn, const struct weir__passed *passed,
                         const char *in);
void weir__conn_close(struct weir__conn *conn); /* at once */
void weir__conn_sweep(struct weir__conn *conn, uint64_t now);
void weir__conn_drain(struct weir__conn *conn);

/* jobs.c -- nobody waits for it any more. */
void weir__job_abandon(struct weir__job *job);

#endif
