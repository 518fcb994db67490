/* progress.h -- a line on a terminal that says how far a long reading has come. */
#ifndef WEIR_SERVER_REPLAY_PROGRESS_H
#define WEIR_SERVER_REPLAY_PROGRESS_H

#include <stdbool.h>
#include <stdio.h>

#include "weir.h"

struct weir__progress {
    FILE *out;
    bool on;        /* `out` is a terminal */
    bool drawn;     /* there is a line to wipe */
    weir_time from; /* when it began */
    weir_time last; /* when it was drawn */
};

/* Zeroed is valid: nothing is ever drawn. */
void weir__progress_begin(struct weir__progress *progress, FILE *out, weir_time now);

struct weir__progress_made {
    const char *what; /* the log's name */
    int64_t lines;
    int64_t done, all; /* bytes; all < 0: not known */
};

/* Draws, if it is time to: not in the first half second, and ten times a second at most. */
void weir__progress_tell(struct weir__progress *progress, weir_time now,
                         const struct weir__progress_made *made);

/* Wipes the line. */
void weir__progress_end(struct weir__progress *progress);

/* For the tests: the line without the terminal's part. */
int weir__progress_print(char *out, size_t size, weir_time spent,
                         const struct weir__progress_made *made);

#endif
