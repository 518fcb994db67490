/* Counts by key beside a plain array, in a table so small that keys collide. */
#include "unit/test.h"

#include "queue/key-counts.h"
#include "random.h"

#include <stdlib.h>

#define KEYS 64

static uint64_t key_of(unsigned i)
{
    return 1 + (uint64_t)i * (i % 3 ? 0x9e3779b97f4a7c15u : 32); /* a third wants the same slots */
}

TEST(test_counts_by_key_are_exact)
{
    struct weir__key_counts counts;
    int64_t plain[KEYS] = { 0 }, all = 0;
    uint64_t random = 7;

    assert_true(weir__key_counts_make(&counts, 16));
    for (int step = 0; step < 20000; step++) {
        unsigned i = (unsigned)(random64(&random) % KEYS);
        if (plain[i] > 0 && (all == 16 || random64(&random) % 2 == 0)) {
            weir__key_counts_remove(&counts, key_of(i));
            plain[i]--;
            all--;
        } else if (all < 16) {
            weir__key_counts_add(&counts, key_of(i));
            plain[i]++;
            all++;
        }
        for (unsigned k = 0; k < KEYS; k++)
            assert_int_equal(weir__key_counts_get(&counts, key_of(k)), plain[k]);
    }
    free(counts.slots);
}
