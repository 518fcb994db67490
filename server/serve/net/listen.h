/* listen.h -- the sockets that clients come to: opened before the threads start, or inherited.
 *
 * Each loop gets sockets of its own.  On TCP they are bound to one port (SO_REUSEPORT), and the
 * kernel spreads the connections; of a unix socket, and of inherited ones that are fewer than the
 * loops, the loops get duplicates of one.
 *
 * Sockets are inherited from systemd, or from a server that hands over to its successor: LISTEN_FDS
 * is their number, from 3 on, LISTEN_FDNAMES their doors, "resp" or "http"; with "-own" behind it,
 * a unix socket's file is removed in the end.  A door that inherits sockets opens no others.
 */
#ifndef WEIR_SERVER_SERVE_NET_LISTEN_H
#define WEIR_SERVER_SERVE_NET_LISTEN_H

#include "server/serve/serve.h"

enum weir__door { WEIR__DOOR_RESP, WEIR__DOOR_HTTP, WEIR__DOORS };
extern const char
    *const weir__door_names[WEIR__DOORS]; /* "resp", "http": the settings' names too */

#define WEIR__LISTEN_MAX 32 /* addresses */

struct weir__listen_address {
    enum weir__door door;
    char text[160]; /* as it really is: "127.0.0.1:7379", "[::1]:7379", "/run/weir/resp.sock" */
    int port;       /* 0: a unix socket */
    bool is_unix;
    bool loopback; /* only this host can reach it; unix sockets too */
    bool inherited;
    bool owned; /* a unix socket whose file this server has made, or one that handed over to it:
                   removed at the end.  Not systemd's */
    enum weir__role role; /* of clients that have shown no secret */
};

struct weir__listen_socket {
    int fd;         /* listening, non-blocking, close-on-exec */
    size_t loop;    /* whose it is */
    size_t address; /* which */
    bool duplicate; /* of another one here: not handed over */
    bool taken;     /* somebody else closes it: set by the maker of a handle */
};

struct weir__listen {
    struct weir__listen_address addresses[WEIR__LISTEN_MAX];
    size_t n_addresses;
    struct weir__listen_socket *sockets;
    size_t n_sockets;
};

/* Whether a setting's text can be read as addresses; they need not exist. */
int weir__listen_check(const char *text, struct weir_error *error);

/* Opens the settings' addresses for `loops` loops; closes them again on failure.  Call
 * it before there are threads. */
int weir__listen_open(struct weir__listen *out, const struct weir__settings *settings, size_t loops,
                      struct weir_error *error);

/* Closes all that were not taken.  `remove`: files that are owned go too; not after a handover,
 * when they are the successor's. */
void weir__listen_close(struct weir__listen *listen, bool remove);

/* The role of clients that have shown no secret. */
enum weir__role weir__listen_role(const struct weir__settings *settings, bool loopback);

/* For the successor: each socket once, the caller frees them; `names` gets LISTEN_FDNAMES,
 * "resp:resp:http-own".  NULL: no memory. In its environment set LISTEN_FDS=n and LISTEN_FDNAMES,
 * and unset LISTEN_PID; the sockets must be its 3, 4, ...: uv_spawn's stdio does that. */
int *weir__listen_fds(const struct weir__listen *listen, size_t *n, struct weir__buffer *names);

#endif
