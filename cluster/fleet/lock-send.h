/* lock-send.h -- asks to lock.lua that go on their way while the caller does something else. */
#ifndef WEIR_CLUSTER_FLEET_LOCK_SEND_H
#define WEIR_CLUSTER_FLEET_LOCK_SEND_H

#include "cluster/fleet/lock.h"
#include "cluster/redis/thread.h"

/* One ask at a time.  `done` is the caller's, and is called in the client's thread, when `result`
 * is there; the call may be gone as soon as it says so. */
struct weir__lock_call {
    struct weir__redis_job job;
    struct weir__redis_ask ask;
    struct weir__redis_script script;
    struct weir_redis_lock_result result;
    void (*done)(struct weir__lock_call *call);
};
void weir__lock_call(struct weir_redis *redis, struct weir__lock_call *call,
                     const struct weir__lock_ask *ask, weir_time timeout);

/* A result without an answer. */
void weir__lock_say_why(struct weir_redis_lock_result *result, enum weir_redis_outcome outcome,
                        struct weir__text why);
/* The event that a result is; a reply that is an error counts as none. */
struct weir__lock_event weir__lock_event_of(const struct weir_redis_lock_result *result);
/* An id for one attempt: host and process are for people to read, the rest makes it the only one.
 * False: no random numbers. */
bool weir__lock_owner(char out[WEIR__LOCK_ID_MAX]);

#define WEIR__LOCK_LEAVE_MAX (200 * WEIR_MILLISECOND) /* to leave the line */
#define WEIR__LOCK_STALE     WEIR_SECOND /* an older answer says nothing about who has it */

#endif
