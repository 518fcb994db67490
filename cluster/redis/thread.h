/* thread.h -- work for the thread of a client, which thread.c has; take-and-draw.c asks on
 * accounts. */
#ifndef WEIR_CLUSTER_REDIS_THREAD_H
#define WEIR_CLUSTER_REDIS_THREAD_H

#include "cluster/redis/client.h"
#include "weir-redis.h"

struct weir__redis_job {
    struct weir__redis_job *next;
    /* Called once, in the thread. */
    void (*begin)(struct weir__redis_job *job, struct weir__redis_client *client, weir_time now);
};

void weir__redis_thread_put(struct weir_redis *redis, struct weir__redis_job *job);
/* Several at once, from the first to the last, whose `next` is NULL. */
void weir__redis_thread_put_all(struct weir_redis *redis, struct weir__redis_job *first,
                                struct weir__redis_job *last);

/* Something else that the thread does: called in each of its turns.  Returns when to come back;
 * `now` or earlier: at once, because it has asked something. */
struct weir__redis_duty {
    weir_time (*turn)(void *context, struct weir__redis_client *client, weir_time now);
    void *context;
};
/* As weir_redis_create. */
int weir__redis_thread_create(struct weir_redis **out, const char *url,
                              const struct weir_redis_options *options,
                              const struct weir__redis_duty *duty, struct weir_error *error);

/* By the thread, when all is there; and by a caller that waits for it. */
void weir__redis_ready_set(uint32_t *word);
void weir__redis_ready_wait(uint32_t *word);

/* A point from a span. */
weir_time weir__redis_deadline(weir_time timeout);

#endif
