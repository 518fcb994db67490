/* share.c -- a node's part of a limit, while it cannot reach the account. */
#include "algo/share.h"

static int64_t part_of(int64_t n, uint32_t part)
{
    return (int64_t)((weir__i128)n * part / WEIR__FLEET_WHOLE);
}

/* The rate is exact: count * part in period * a million. The burst is rounded down, but to one
 * unit at least, or nothing could ever pass. */
static bool share_meter(struct weir_limit *l, uint32_t part)
{
    uint64_t common = weir__common_divisor(part, WEIR__FLEET_WHOLE);
    int64_t burst = part_of(l->burst != 0 ? l->burst : l->count, part);

    l->burst = burst > 0 ? burst : 1;
    if (l->queue > 0)
        l->queue = part_of(l->queue, part);
    return !__builtin_mul_overflow(l->count, (int64_t)(part / common), &l->count) &&
           !__builtin_mul_overflow(l->period, (int64_t)(WEIR__FLEET_WHOLE / common), &l->period);
}

bool weir__fleet_share_limit(struct weir_limit *out, const struct weir_limit *limit, uint32_t part)
{
    struct weir_plan plan;
    struct weir_limit l = *limit;

    if (part == 0 || weir__plan_make(&plan, limit, NULL) != WEIR_OK)
        return false;
    if (plan.capacity > 0) {
        if (!share_meter(&l, part))
            return false;
    } else {
        l.count = part_of(limit->count, part);
    }
    if (l.count < 1 || weir__plan_make(&plan, &l, NULL) != WEIR_OK)
        return false;
    *out = l;
    return true;
}

int64_t weir__fleet_share_begin(const struct weir_plan *share, uint32_t part, int64_t left)
{
    int64_t mine = part_of(left < 0 ? 0 : left, part);

    return mine < share->most ? share->most - mine : 0;
}

int64_t weir__fleet_share_end(const struct weir_plan *share, const void *state, int64_t passed,
                              weir_time now)
{
    struct weir_decision d;

    weir_step_peek(share, state, &(struct weir_ask){ .now = now }, &d);
    int64_t owed = share->most - d.remaining;
    return owed < passed ? owed : passed;
}
