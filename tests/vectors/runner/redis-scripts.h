/* redis-scripts.h -- the scripts of cluster/account in a redis-server, by a test's clock. */
#ifndef WEIR_TESTS_VECTORS_RUNNER_REDIS_SCRIPTS_H
#define WEIR_TESTS_VECTORS_RUNNER_REDIS_SCRIPTS_H

#include "cluster/account/call.h"
#include "server/cli/http-client.h"

struct redis_scripts {
    struct weir__client *client;
    char shas[WEIR__SCRIPTS][41];
    struct weir__buffer out, in;
    long sent[WEIR__SCRIPTS]; /* times that each was sent */
    long handed;              /* asks that a script was to decide, and left to the caller */
};

/* Their clock is two keys, and lives are seconds instead of milliseconds: nothing expires during a
 * test. */
int redis_scripts_load(struct redis_scripts *s, struct weir__client *client,
                       struct weir_error *error);
int redis_scripts_clock(struct redis_scripts *s, weir_time now, struct weir_error *error);
/* Sends the script that is due; WEIR__ACCOUNT_AGAIN: another is. */
int redis_scripts_step(struct redis_scripts *s, struct weir__account_call *call,
                       struct weir_error *error);
/* From the first script to the answer. */
int redis_scripts_run(struct redis_scripts *s, struct weir__account_call *call,
                      struct weir_error *error);
void redis_scripts_free(struct redis_scripts *s);

#endif
