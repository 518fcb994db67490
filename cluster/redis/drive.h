/* drive.h -- a client of Redis with its sockets: one descriptor to watch, and one moment.
 *
 * The owner of a loop calls weir__redis_drive_turn when the descriptor is readable, when the moment
 * that the last turn returned has come, and after asking.  thread.c has a thread for a loop, uv.c
 * has libuv's.  One thread at a time.
 */
#ifndef WEIR_CLUSTER_REDIS_DRIVE_H
#define WEIR_CLUSTER_REDIS_DRIVE_H

#include "cluster/redis/client.h"

struct weir__redis_drive;

int weir__redis_drive_create(struct weir__redis_drive **out,
                             const struct weir__redis_options *options, struct weir_error *error);
void weir__redis_drive_destroy(struct weir__redis_drive *drive); /* ended first */
/* All asks are answered now, and so will any others be. */
void weir__redis_drive_end(struct weir__redis_drive *drive);

struct weir__redis_client *weir__redis_drive_client(struct weir__redis_drive *drive);
int weir__redis_drive_fd(const struct weir__redis_drive *drive);
/* Everything that can be done now, without waiting. */
weir_time weir__redis_drive_turn(struct weir__redis_drive *drive, weir_time now);
/* Makes the descriptor readable; from any thread. */
void weir__redis_drive_wake(struct weir__redis_drive *drive);

#endif
