/* agent.h -- this process's part in a fleet, between the files of this room.
 *
 *     agent.c     joining and leaving; the agent's turns
 *     beats.c     the host as a member of the fleet: its part of every limit
 *     follow.c    the rules of the fleet, and their copy on disk
 *
 * Threads, and what is theirs:
 *
 *     the agent      the thread of a client of Redis (cluster/redis/thread.h), with a duty: all but
 *                    the following
 *     the follower   `follow`; it applies rules, and may wait for a disk
 *     any            `info`, under the mutex
 */
#ifndef WEIR_CLUSTER_AGENT_AGENT_H
#define WEIR_CLUSTER_AGENT_AGENT_H

#include <pthread.h>

#include "cluster/fleet/centre.h"
#include "cluster/fleet/members.h"
#include "cluster/redis/thread.h"
#include "weir-fleet.h"

struct weir_fleet {
    struct weir *weir;
    struct weir_redis *redis;
    struct weir__redis_client *client; /* of its thread */
    char name[WEIR__MEMBER_ID_MAX + 1], node[WEIR__MEMBER_ID_MAX + 1];
    weir_time heard; /* Redis, last */

    struct weir__member member;
    struct weir__redis_ask beat; /* one at a time */
    struct weir__redis_script members_script;

    struct {
        int (*apply)(void *context, const char *text, size_t len, struct weir_error *error);
        void *context;
        char *copy; /* the file, or NULL */
        struct weir__follower state;
        struct weir__buffer text; /* the last that was fetched: */
        struct weir__edition fetched;
        weir_time copied; /* since 1970: the copy was written */
        pthread_t thread;
        bool started;
        uint32_t ending; /* a word that it sleeps on */
        /* The agent's: */
        struct weir__redis_ask *asking;
        bool over; /* it asks no more */
    } follow;

    pthread_mutex_t mutex;
    struct weir_fleet_info info;

    bool leaving;       /* what is under way is waited for ... */
    weir_time leave_by; /* ... until then */
    uint32_t left;      /* a word that weir_fleet_leave sleeps on */
    bool stirred;       /* asks were sent in this turn */
};

/* Sends it, in the agent's thread. */
void weir__agent_send(struct weir_fleet *fleet, struct weir__redis_ask *ask, weir_time now);

/* beats.c */
void weir__beats_begin(struct weir_fleet *fleet, int64_t weight);
weir_time weir__beats_turn(struct weir_fleet *fleet, weir_time now); /* when to come again */
void weir__beats_leave(struct weir_fleet *fleet, weir_time now);
bool weir__beats_over(const struct weir_fleet *fleet);

/* follow.c */
int weir__follow_begin(struct weir_fleet *fleet, const struct weir_fleet_options *options,
                       struct weir_error *error);
void weir__follow_end(struct weir_fleet *fleet);

#endif
