/* run-while-held.h -- runs a command while something is held and renewed: a permit, a lock.
 *
 * Signals are passed on to the command.  If this process is killed the command gets SIGTERM.
 */
#ifndef WEIR_SERVER_CLI_RUN_WHILE_HELD_H
#define WEIR_SERVER_CLI_RUN_WHILE_HELD_H

#include <pthread.h>

#include "weir.h"

/* Exit codes; others are the command's own. */
enum {
    WEIR__RUN_REFUSED = 75, /* EX_TEMPFAIL: try again later */
    WEIR__RUN_LOST = 76,
    WEIR__RUN_TIMED_OUT = 124, /* timeout(1) says so */
    WEIR__RUN_FAILED = 125,    /* no server, no such guard: the command was not run */
    WEIR__RUN_CANNOT_RUN = 126,
    WEIR__RUN_NOT_FOUND = 127,
    WEIR__RUN_KILLED = 128, /* and the signal */
};

struct weir__keeper {
    const char *command;                        /* for complaints: "run" */
    const char *thing;                          /* what is held: "permit" */
    bool ends;                                  /* if it is lost, the command gets SIGTERM */
    bool (*renew)(struct weir__keeper *keeper); /* false: try again before `until`; NULL: none */
    bool (*enter)(struct weir__keeper *keeper); /* again, without waiting */
    bool (*exit)(struct weir__keeper *keeper);  /* false: try again */
    weir_time lease, until; /* the end of the lease; 0 at first: a lease from now on */
    /* How the command ended, for `exit` */
    int code;                  /* as a shell has it */
    bool has_run, was_stopped; /* by SIGINT or SIGTERM, which were passed on */
    /* Its own */
    bool lost, is_kept;
    pthread_t thread;
    int ended, given; /* eventfds: the command has, the thing is */
};

/* Returns the exit code. */
int weir__keeper_run(struct weir__keeper *keeper, char **words);

#endif
