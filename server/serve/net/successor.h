/* successor.h -- a new process takes the sockets of this one, so that no client is refused
 * meanwhile. */
#ifndef WEIR_SERVER_SERVE_NET_SUCCESSOR_H
#define WEIR_SERVER_SERVE_NET_SUCCESSOR_H

#include "server/serve/net/listen.h"

/* Zeroed, but for `ended` and its context, is none. */
struct weir__successor {
    uv_process_t process;
    bool is_there, has_ended;
    int64_t status; /* if it has ended */
    int signal;
    int channel; /* for connections, pass-connections.h; 0: none */
    void (*ended)(void *context, int64_t status, int signal);
    void *context;
};

/* Starts this program once more, as it is on disk now, with the same words.  When it is ready it
 * sends SIGTERM. */
int weir__successor_start(struct weir__successor *successor, uv_loop_t *loop,
                          const struct weir__listen *listen, char **argv, struct weir_error *error);
/* It lives on without being looked after. */
void weir__successor_leave(struct weir__successor *successor);

/* In the new process: the channel for its predecessor's connections; 0: there is none. */
int weir__successor_channel(void);
/* In the new process, when it is ready: its predecessor, if there is one, has nothing more to
 * do. */
void weir__successor_relieve(void);

#endif
