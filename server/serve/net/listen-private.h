/* listen-private.h -- shared by listen.c and inherited-sockets.c. */
#ifndef WEIR_SERVER_SERVE_NET_LISTEN_PRIVATE_H
#define WEIR_SERVER_SERVE_NET_LISTEN_PRIVATE_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "server/serve/net/listen.h"

/* Behind a door's name in LISTEN_FDNAMES: the unix socket's file is the successor's to remove. */
#define WEIR__LISTEN_OWNED "-own"

union weir__socket_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un path;
    struct sockaddr_storage room;
};

struct weir__opening {
    struct weir__listen listen;
    const struct weir__settings *settings;
    size_t loops;
    struct weir_error *error;
    enum weir__door door;
    int number; /* errno of the last bind that failed */
    bool inherited[WEIR__DOORS];
};

/* listen.c */
struct weir__listen_address weir__listen_describe(const struct weir__opening *o,
                                                  const union weir__socket_address *a,
                                                  socklen_t len);
struct weir__listen_address *weir__listen_find_address(struct weir__listen *listen,
                                                       const char *text);
int weir__listen_add_address(struct weir__opening *o, const struct weir__listen_address *address);
int weir__listen_add_socket(struct weir__opening *o, const struct weir__listen_socket *socket);
int weir__listen_add_duplicates(struct weir__opening *o, size_t address, size_t first);

/* inherited-sockets.c -- those that LISTEN_FDS gives us. */
int weir__listen_inherit(struct weir__opening *o);

#endif
