/* redis-client.c -- the client of Redis against a plain model of servers and network.
 *
 *     property-redis-client FIRST_SEED RUNS
 *
 * tests/redis-model.h has the laws.
 */
#include "redis-model.h"

#include "random.h"

static uint64_t dice(void *context, uint64_t n)
{
    return random64(context) % n;
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1,
             runs = argc > 2 ? strtoull(argv[2], NULL, 10) : 100;

    for (uint64_t seed = first; seed < first + runs; seed++) {
        uint64_t state = seed;
        if (argc > 3)
            fprintf(stderr, "seed %" PRIu64 "\n", seed);
        model_run(dice, &state, 300);
    }
    printf("%" PRIu64 " passed, 0 failed\n", runs);
    return 0;
}
