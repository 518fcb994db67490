/* share.c -- a node's part of a limit, while it cannot reach the account. */
#include "algo/share.h"

static int64_t part_of(int64_t n, uint32_t part)
{
    return (int64_t)((weir__i128)n * part / WEIR__FLEET_WHOLE);
}

bool weir__fleet_has_share(const struct weir_limit *limit, bool meter, uint32_t part)
{
    if (part == 0)
        return false;
    return meter ? limit->period / part <= INT64_MAX / WEIR__FLEET_WHOLE - 1
                 : limit->count >= (WEIR__FLEET_WHOLE + part - 1) / part;
}

/* count * part in period * a million.  False: the numbers are too large. */
static bool share_exactly(struct weir_limit *l, uint32_t part)
{
    uint64_t common = weir__common_divisor(part, WEIR__FLEET_WHOLE);
    struct weir_plan plan;

    return !__builtin_mul_overflow(l->count, (int64_t)(part / common), &l->count) &&
           !__builtin_mul_overflow(l->period, (int64_t)(WEIR__FLEET_WHOLE / common), &l->period) &&
           weir__plan_make(&plan, l, NULL) == WEIR_OK;
}

/* The burst is rounded down, but to one unit at least, or nothing could ever pass; the rate is
 * exact, or the period is up to a nanosecond too long. */
static void share_meter(struct weir_limit *l, uint32_t part)
{
    int64_t burst = part_of(l->burst != 0 ? l->burst : l->count, part);

    l->burst = burst > 0 ? burst : 1;
    if (l->queue > 0)
        l->queue = part_of(l->queue, part);
    struct weir_limit exact = *l;
    if (share_exactly(&exact, part))
        *l = exact;
    else
        l->period = (weir_time)(((weir__i128)l->period * WEIR__FLEET_WHOLE + part - 1) / part);
}

bool weir__fleet_share_limit(struct weir_limit *out, const struct weir_limit *limit, uint32_t part)
{
    struct weir_plan plan;
    struct weir_limit l = *limit;

    if (weir__plan_make(&plan, limit, NULL) != WEIR_OK ||
        !weir__fleet_has_share(limit, plan.capacity > 0, part))
        return false;
    if (plan.capacity > 0)
        share_meter(&l, part);
    else
        l.count = l.burst = part_of(limit->count, part); /* a window's burst is its count */
    if (weir__plan_make(&plan, &l, NULL) != WEIR_OK)
        return false;
    *out = l;
    return true;
}

int64_t weir__fleet_share_begin(const struct weir_plan *share, uint32_t part, int64_t left)
{
    int64_t mine = part_of(left < 0 ? 0 : left, part);

    return mine < share->most ? share->most - mine : 0;
}

int64_t weir__fleet_share_owed(const struct weir_plan *share, const void *state, weir_time now)
{
    struct weir_decision d;

    weir_step_peek(share, state, &(struct weir_ask){ .now = now }, &d);
    return share->most > d.remaining ? share->most - d.remaining : 0;
}
