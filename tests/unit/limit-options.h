/* limit-options.h -- each option of a limit, once: whatever copies, compares or stores limits must
 * not lose one.  unit/algo/limit.c tells if an option is missing here. */
#ifndef WEIR_TESTS_UNIT_LIMIT_OPTIONS_H
#define WEIR_TESTS_UNIT_LIMIT_OPTIONS_H

static const struct {
    const char *name, *without, *with;
} limit_options[] = {
    { "burst", "gcra 5/1s", "gcra 5/1s burst 3" },
    { "queue", "leaky-bucket 5/1s", "leaky-bucket 5/1s queue 7" },
    { "buckets", "sliding-window 5/1s", "sliding-window 5/1s buckets=3" },
    { "align", "fixed-window 5/1s", "fixed-window 5/1s align=first" },
    { "edge", "sliding-window 5/1s", "sliding-window 5/1s edge=loose" },
    { "warmup", "warm-up 5/1s", "warm-up 5/1s warmup=3s" },
    { "cold", "warm-up 5/1s", "warm-up 5/1s cold=5" },
    { "zone", "calendar 5/day", "calendar 5/day zone=Europe/Berlin" },
};

#endif
