/* redis-server.h -- a redis-server for one run of the vectors. */
#ifndef WEIR_TESTS_VECTORS_RUNNER_REDIS_SERVER_H
#define WEIR_TESTS_VECTORS_RUNNER_REDIS_SERVER_H

#include <sys/types.h>

#include "server/cli/http-client.h"

struct redis_server {
    pid_t pid; /* 0: none */
    char directory[96];
    struct weir__client *client;
};

/* On a unix socket in a directory of its own; `module` may be NULL. */
int redis_server_start(struct redis_server *server, const char *module, struct weir_error *error);
void redis_server_stop(struct redis_server *server);

#endif
