/* loop.h -- a thread that serves. */
#ifndef WEIR_SERVER_SERVE_NET_LOOP_H
#define WEIR_SERVER_SERVE_NET_LOOP_H

#include "server/serve/serve.h"

/* A listening socket as a loop has it. */
struct weir__listener {
    union weir__stream uv;
    struct weir__loop *loop;
    const struct weir__protocol *protocol;
    enum weir__role role; /* of clients that have shown no secret */
    int fd;               /* the loop closes it */
    bool unix_socket;
    bool missed; /* a connection waits to be accepted: there was no memory for it */
    bool closed;
};

/* Everything that can fail; then its thread.  `listeners` become the loop's. */
int weir__loop_create(struct weir__loop *loop, struct weir__server *server, size_t index,
                      struct weir_error *error);
int weir__loop_listen(struct weir__loop *loop, struct weir__listener *listener,
                      struct weir_error *error);
int weir__loop_start(struct weir__loop *loop, struct weir_error *error);

/* From any thread: look at server->draining and at the events. */
void weir__loop_wake(struct weir__loop *loop);

/* Waits for its thread to end: after server->draining = 2 it does at once. */
void weir__loop_join(struct weir__loop *loop);
void weir__loop_destroy(struct weir__loop *loop);

#endif
