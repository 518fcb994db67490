/* time-buckets.c -- the buckets of time of a replay: they grow wider with the length of the log. */
#include <string.h>

#include "server/replay/replay.h"

/* Widths that people think in; each is a multiple of the one before.  Beyond a week they double. */
static weir_time next_width(weir_time width)
{
    static const int64_t widths[] = { 1,    2,    10,    30,    60,    300,   600,
                                      1800, 3600, 10800, 21600, 43200, 86400, 604800 };

    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        if (widths[i] * WEIR_SECOND > width)
            return widths[i] * WEIR_SECOND;
    }
    return width * 2;
}

/* Each bucket is added to the one at (its place + shift) / factor. */
static void widen_one(int64_t at[WEIR__REPLAY_BUCKETS], size_t shift, size_t factor)
{
    int64_t wide[WEIR__REPLAY_BUCKETS] = { 0 };

    for (size_t i = 0; i < WEIR__REPLAY_BUCKETS; i++) {
        if (at[i] != 0)
            wide[(i + shift) / factor] += at[i];
    }
    memcpy(at, wide, sizeof(wide));
}

static void widen_side(struct weir__rule_set *side, size_t shift, size_t factor)
{
    widen_one(side->refused_at, shift, factor);
    widen_one(side->would_at, shift, factor);
    if (side->denied)
        widen_one(side->denied->at, shift, factor);
    for (size_t i = 0; i < side->n_rules; i++) {
        if (side->rules[i].trace)
            widen_one(side->rules[i].trace->at, shift, factor);
    }
}

static void widen(struct weir__replay *replay)
{
    weir_time width = next_width(replay->width), from = replay->from - replay->from % width;
    size_t shift = (size_t)((replay->from - from) / replay->width),
           factor = (size_t)(width / replay->width);

    widen_one(replay->at, shift, factor);
    for (size_t i = 0; i < replay->n_sides; i++)
        widen_side(&replay->sides[i], shift, factor);
    replay->buckets = (replay->buckets - 1 + shift) / factor + 1;
    replay->width = width;
    replay->from = from;
}

size_t weir__replay_bucket(struct weir__replay *replay, weir_time now)
{
    if (replay->width == 0) {
        replay->width = WEIR_SECOND;
        replay->from = now - now % WEIR_SECOND;
        replay->buckets = 1;
    }
    while ((now - replay->from) / replay->width >= WEIR__REPLAY_BUCKETS)
        widen(replay);
    size_t bucket = (size_t)((now - replay->from) / replay->width);
    if (bucket >= replay->buckets)
        replay->buckets = bucket + 1;
    return bucket;
}
