/* adaptive-belief.h -- a belief about the number of workers behind a guard.
 *
 * With N at work, w workers and work that takes S, a backend finishes
 *
 *     X = min(N, w) / S
 *
 * in a second.  There is a guess for w every 10 %; 40 of them are looked at, around the middle of
 * the belief.  Each has its own S, which follows the results if the guess is right.  When the limit
 * changes, N does; guesses whose S had to change to explain X lose belief, those whose S stayed
 * gain it (Bayes, with the tails of Student's t, so that one strange phase decides nothing).
 *
 *   - No base time is stored that could be wrong: S only counts as it changes with N.  Slower work
 *     changes the S of all guesses alike and moves nothing; a phase that surprises all of them
 *     begins with new S, and a broader belief.
 *   - Guesses below N cannot be told apart, so belief that leaks without a reason sinks: it leaks
 *     to neighbours as far as the results are off.
 */
#ifndef WEIR_GUARD_ADAPTIVE_BELIEF_H
#define WEIR_GUARD_ADAPTIVE_BELIEF_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR__GUESSES 40

struct weir__belief {
    float shares[WEIR__GUESSES]; /* their sum is 1 */
    float base[WEIR__GUESSES];   /* ln of the time that the work takes, if that guess is right */
    float drift;                 /* of ln of the time, in a phase: a backend that warms up */
    float noise;                 /* square of how much single times deviate */
    uint16_t first;              /* guess that is looked at */
    uint16_t phases;             /* since the times are learnt, as far as that matters */
};

/* A phase: permits out, of how many, results, and these per ns. */
struct weir__belief_phase {
    double out, limit, n, rate;
    bool clean; /* hardly anything was lost: its noise is that of the work */
};

double weir__ln(double x); /* natural logarithm, of 1e-18 to 1e18 */

/* Between these two, all alike. */
void weir__belief_start(struct weir__belief *b, double low, double high);
/* The point with this share of the belief below it. */
double weir__belief_at(const struct weir__belief *b, double share);
void weir__belief_learn(struct weir__belief *b, const struct weir__belief_phase *p);
void weir__belief_doubt(struct weir__belief *b, double above);
double weir__belief_work(const struct weir__belief *b); /* ns that the work takes */

#endif
