/* ask-redis.h -- the commands that ask a Redis: one question at a time, and waiting for its
 * answer. */
#ifndef WEIR_SERVER_CLI_ASK_REDIS_H
#define WEIR_SERVER_CLI_ASK_REDIS_H

#include "cluster/redis/account-asks.h"
#include "cluster/redis/drive.h"
#include "server/base/command.h"

#define WEIR__REDIS_URL_HELP                                                         \
    "Without a URL, the one in WEIR_REDIS is used. Put a URL with a password there " \
    "(redis://USER:PASSWORD@HOST): other users of the host can read a command's words."

struct weir__asker {
    const char *command; /* for complaints */
    struct weir__redis_drive *drive;
    struct weir__redis_client *client;
    weir_time timeout; /* of an ask */
    /* The last answer */
    bool waiting;
    enum weir__redis_outcome outcome;
    struct weir__buffer reply; /* one whole value of RESP */
    char why[240];
};

/* `url` NULL: that of WEIR_REDIS.  Returns WEIR__GO_ON, or an exit code after a complaint. */
int weir__asker_open(struct weir__asker *asker, const char *command, const char *url,
                     weir_time timeout);
void weir__asker_close(struct weir__asker *asker);

/* Sets the ask's deadline and waits for its answer.  False: there is none, and `why` says why. */
bool weir__asker_ask(struct weir__asker *asker, struct weir__redis_ask *ask);
/* The same for an ask on accounts. */
bool weir__asker_carry(struct weir__asker *asker, struct weir__carry *carry);

#endif
