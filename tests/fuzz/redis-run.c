/* redis-run.c -- the input decides everything that happens to a client of Redis: what servers do,
 * what the network does, what is asked and when.  tests/redis-model.h has the laws. */
#include "fuzz/fuzz.h"

#include "redis-model.h"

enum { INPUT_MAX = 16 * 1024, STEPS = 200 };

struct input {
    const uint8_t *at, *end;
    uint64_t state; /* goes on when the input is used up */
};

static uint64_t dice(void *context, uint64_t n)
{
    struct input *in = context;
    uint64_t x = 0;

    if (n > 256 || in->at == in->end) {
        in->state = in->state * 6364136223846793005u + 1442695040888963407u;
        x = in->state >> 24;
    }
    return (in->at < in->end ? x + *in->at++ : x) % n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = { data, data + size, size };

    if (size <= INPUT_MAX)
        model_run(dice, &in, STEPS);
    return 0;
}
