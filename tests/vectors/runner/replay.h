/* replay.h -- runs the cases of a .vec file through a door and compares. */
#ifndef WEIR_TESTS_VECTORS_RUNNER_REPLAY_H
#define WEIR_TESTS_VECTORS_RUNNER_REPLAY_H

#include "vectors.h"

/* A way in to the algorithms.  `open` makes one fresh key under the case's limit; the rest act on
 * it. */
struct weir__door {
    const char *name;
    void *context;        /* the door's own */
    weir_time resolution; /* its clock's in the case that is open: times may be off by as much */
    int (*open)(const struct weir__door *self, void **run, const struct weir__vectors *vectors,
                const struct weir__vector_case *c, struct weir_error *error);
    bool (*ask)(void *run, enum weir__vector_verb verb, const struct weir_ask *ask,
                struct weir_decision *decision); /* take or peek */
    void (*give)(void *run, const struct weir_ask *ask);
    int (*change)(void *run, const struct weir_limit *limit, weir_time now,
                  struct weir_error *error);
    void (*close)(void *run);
};

/* All doors, ended by NULL; and one by its name, or NULL. */
const struct weir__door *const *weir__doors(void);
const struct weir__door *weir__door_find(const char *name);

/* Called for each line that went otherwise than expected; `text` is "expected ... got ...". */
typedef void weir__mismatch(void *context, int line, const char *text);

/* Runs one case to its end; true if all lines came out as expected. */
bool weir__vectors_replay(const struct weir__door *door, const struct weir__vectors *vectors,
                          const struct weir__vector_case *c, weir__mismatch *mismatch,
                          void *context);

#endif
