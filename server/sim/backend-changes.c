/* backend-changes.c -- a scenario's backend at a moment: its workers, and how slow it is (changes,
 * drift, a cold cache). */
#include "server/sim/sim.h"

#include "base/base.h"

const struct weir__sim_change *weir__sim_plan_find(const struct weir__sim_backend_plan *b,
                                                   enum weir__sim_change_kind kind, weir_time at)
{
    const struct weir__sim_change *found = NULL;

    for (size_t i = 0; i < b->n_changes; i++) {
        const struct weir__sim_change *c = &b->changes[i];
        if (c->kind == kind && at >= c->from && at < c->to)
            found = c;
    }
    return found;
}

int64_t weir__sim_plan_workers(const struct weir__sim_backend_plan *b, weir_time at)
{
    const struct weir__sim_change *c = weir__sim_plan_find(b, WEIR__SIM_CHANGE_WORKERS, at);

    return c ? c->workers : b->workers;
}

/* From 1 to the factor in the first half, and back in the second. */
static int64_t drift_of(const struct weir__sim_change *c, weir_time at)
{
    weir_time length = c->to - c->from, gone = at - c->from;
    weir_time part = gone < length - gone ? gone : length - gone;

    return WEIR__SIM_ONE + (int64_t)((weir__i128)(c->factor - WEIR__SIM_ONE) * 2 * part / length);
}

int64_t weir__sim_plan_slowness(const struct weir__sim_backend_plan *b, weir_time at)
{
    const struct weir__sim_change *slower = weir__sim_plan_find(b, WEIR__SIM_CHANGE_SLOWER, at),
                                  *drift = weir__sim_plan_find(b, WEIR__SIM_CHANGE_DRIFT, at);
    int64_t factor = slower ? slower->factor : WEIR__SIM_ONE;

    return drift ? factor * drift_of(drift, at) / WEIR__SIM_ONE : factor;
}

/* Falls in a straight line with every result. */
int64_t weir__sim_plan_coldness(const struct weir__sim_backend_plan *b, int64_t results)
{
    if (results >= b->warm_after)
        return WEIR__SIM_ONE;
    return WEIR__SIM_ONE + (b->cold - WEIR__SIM_ONE) * (b->warm_after - results) / b->warm_after;
}

int64_t weir__sim_plan_capacity(const struct weir__sim_backend_plan *b)
{
    return b->workers * 1000 * WEIR_SECOND / b->work.mean;
}
