/* window.h -- units promised to windows to come: what fixed-window and calendar share.
 *
 * A window holds `count` units.  What is used beyond it is promised to the windows behind it, each
 * filled before the next.
 */
#ifndef WEIR_ALGO_WINDOW_H
#define WEIR_ALGO_WINDOW_H

#include "algo/algo.h"

/* Whole windows that so many units fill. */
static inline int64_t weir__windows_in(const struct weir_plan *plan, int64_t units)
{
    return (int64_t)weir__divide((uint64_t)units, &plan->by_count);
}

/* Where an ask goes: the first window, counted from the present one, that holds it whole; and what
 * is used up before it there. */
static inline int64_t weir__window_find(const struct weir_plan *plan, int64_t used, int64_t cost,
                                        int64_t *before)
{
    int64_t count = plan->limit.count;
    *before = used;
    if (used <= count - cost)
        return 0;
    int64_t full = weir__windows_in(plan, used);
    if (cost == 0) /* fits in the very last of what is promised */
        return weir__windows_in(plan, used - 1);
    if (used - full * count <= count - cost)
        return full;
    *before = (full + 1) * count;
    return full + 1;
}

#endif
