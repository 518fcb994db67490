/* rounds.h -- a random test is played in rounds, each with a seed of its own that brings it back:
 *
 *     PROGRAM [SEED [ROUNDS]]
 */
#ifndef WEIR_TESTS_ROUNDS_H
#define WEIR_TESTS_ROUNDS_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "random.h"

static uint64_t seed_of_round;

/* From argv[1]; `rounds` of them if argv[2] does not say how many.  Returns their number. */
static inline uint64_t play_rounds(int argc, char **argv, uint64_t rounds, void (*play)(void))
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1,
             n = argc > 2 ? strtoull(argv[2], NULL, 10) : rounds;

    for (uint64_t i = 0; i < n; i++) {
        random_state = seed_of_round = first + i;
        play();
    }
    return n;
}

/* The same for stories that judge themselves: ends after three that failed.  Returns what main
 * does. */
static inline int play_stories(int argc, char **argv, bool (*play)(uint64_t seed))
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int64_t rounds = argc > 2 ? atoll(argv[2]) : 100;
    int failed = 0;

    for (int64_t i = 0; i < rounds && failed < 3; i++)
        failed += !play(seed + (uint64_t)i);
    printf("%" PRId64 " stories, %d failed\n", rounds, failed);
    return failed > 0;
}

#endif
