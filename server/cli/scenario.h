/* scenario.h -- one burst of traffic through each algorithm, for `weir demo` and the pictures in
 * docs/. */
#ifndef WEIR_SERVER_SCENARIO_H
#define WEIR_SERVER_SCENARIO_H

#include "weir.h"

#define WEIR__SCENARIO_BUCKET (100 * WEIR_MILLISECOND) /* one column of a picture */
#define WEIR__SCENARIO_LIMIT  "10/1s"
#define WEIR__SCENARIO_PERIOD WEIR_SECOND
#define WEIR__SCENARIO_WAIT   (500 * WEIR_MILLISECOND)

enum { WEIR__SCENARIO_BUCKETS = 64 };

struct weir__scenario {
    char limit[64]; /* as given to the algorithm */
    int offered[WEIR__SCENARIO_BUCKETS];
    int admitted[WEIR__SCENARIO_BUCKETS]; /* where they are used: after the wait */
    int waited[WEIR__SCENARIO_BUCKETS];   /* of those, how many had to wait */
    int refused[WEIR__SCENARIO_BUCKETS];
    int offered_all, admitted_all, waited_all;
    int most; /* admitted in any one period */
};

/* Runs the algorithm on virtual time. */
int weir__scenario_run(struct weir__scenario *out, const char *algorithm, struct weir_error *error);

#endif
