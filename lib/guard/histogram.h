/* histogram.h -- times of finished work, without keeping every sample.
 *
 * A histogram whose bins grow with the time they stand for: 16 to each doubling, so a quantile is
 * at most 1/32 (3.2 %) off.  Times are from 1 us (shorter counts as that) to over an hour (longer
 * counts as that).  struct weir__recent holds histograms of the last parts of a sliding window.
 */
#ifndef WEIR_GUARD_HISTOGRAM_H
#define WEIR_GUARD_HISTOGRAM_H

#include "base/base.h"

#define WEIR__BINS         512
#define WEIR__RECENT_PARTS 10

struct weir__histogram {
    uint32_t counts[WEIR__BINS];
};

/* Since ever, in few buckets, the same in every guard: those of several nodes add up. */
#define WEIR__DURATIONS 14
struct weir__durations {
    int64_t counts[WEIR__DURATIONS]; /* the last: longer than all bounds */
    int64_t sum;                     /* ns */
};

weir_time weir__duration_bound(unsigned bucket); /* of all but the last */
/* Each time counts as its bin's middle: at most 3.2 % off. */
void weir__durations_add(struct weir__durations *d, const struct weir__histogram *h, int64_t sum);

/* Filled by one thread at a time. */
struct weir__recent {
    int64_t latest; /* number of the part being filled; parts are numbered by time */
    struct weir__histogram parts[WEIR__RECENT_PARTS];
};

unsigned weir__bin_of(weir_time took);    /* 0 to WEIR__BINS - 1 */
weir_time weir__bin_middle(unsigned bin); /* the time that stands for it */

/* Adds a histogram of results just before `now`; `window` is the length of all parts together.  A
 * quantile covers the last nine parts and the one being filled: 0.9 to 1 window. */
void weir__recent_add(struct weir__recent *recent, const struct weir__histogram *h,
                      weir_time window, weir_time now);
weir_time weir__recent_quantile(const struct weir__recent *recent, weir_time window, weir_time now,
                                int permille);

/* The same, from parts that began at or after `since` only. */
weir_time weir__recent_quantile_since(const struct weir__recent *recent, weir_time window,
                                      weir_time now, weir_time since, int permille);
int64_t weir__recent_count_since(const struct weir__recent *recent, weir_time window, weir_time now,
                                 weir_time since);

/* The number of the part that a result just before `at` belongs to. */
int64_t weir__recent_part(weir_time window, weir_time at);

#endif
