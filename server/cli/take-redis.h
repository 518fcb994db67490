/* take-redis.h -- take, peek and give on an account in Redis, from a shell. */
#ifndef WEIR_SERVER_CLI_TAKE_REDIS_H
#define WEIR_SERVER_CLI_TAKE_REDIS_H

#include "cluster/account/call.h"

struct weir__take_redis {
    const char *command, *url; /* url "": that of WEIR_REDIS */
    enum weir__account_verb verb;
    struct weir_limit limit;
    const char *name, *key; /* the account's: weir:{name:key} */
    int64_t cost;
    weir_time wait_max, timeout;
};

/* WEIR__GO_ON, with a decision, or an exit code after a complaint.  Waits are slept. */
int weir__take_redis(const struct weir__take_redis *take, struct weir_decision *out);

#endif
