/* random.h -- random numbers for tests: splitmix64, so that a run is the same everywhere, and its
 * seed brings it back.
 *
 *     random64(&seed)            for callers with a seed of their own, as threads have
 *     roll, between, one_in      from the one of the program
 */
#ifndef WEIR_TESTS_RANDOM_H
#define WEIR_TESTS_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

static uint64_t random_state;

static inline uint64_t random64(uint64_t *seed)
{
    return weir__mix64(*seed += WEIR__GOLDEN);
}

static inline uint64_t roll(void)
{
    return random64(&random_state);
}

static inline int64_t between(int64_t low, int64_t high)
{
    return low + (int64_t)(roll() % (uint64_t)(high - low + 1));
}

static inline int int_between(int low, int high)
{
    return (int)between(low, high);
}

static inline bool one_in(int64_t n)
{
    return between(1, n) == 1;
}

#endif
