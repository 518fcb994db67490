/* possible-results.c -- the results that a scenario's backend could give at best. */
#include "server/sim/sim.h"

#include "base/base.h"

#define STEP (10 * WEIR_MILLISECOND)

/* Good results per second when every worker is busy.  Failures may take another time; a cold cache
 * warms by the results possible so far. */
static double capacity_at(const struct weir__sim_backend_plan *b, weir_time at, double results)
{
    const struct weir__sim_change *errors = weir__sim_plan_find(b, WEIR__SIM_CHANGE_ERRORS, at);
    double slow = (double)weir__sim_plan_slowness(b, at) / 1e6 *
                  (double)weir__sim_plan_coldness(b, (int64_t)results) / 1e6;
    double good = errors ? 1 - (double)errors->factor / 1e6 : 1, work = (double)b->work.mean * slow;
    double fails_in = errors && errors->after ? (double)errors->after : work;

    if (weir__sim_plan_find(b, WEIR__SIM_CHANGE_SILENT, at))
        return 0;
    return (double)weir__sim_plan_workers(b, at) * 1e9 / (good * work + (1 - good) * fails_in) *
           good;
}

/* Arrivals per second; a loop's clients come as fast as they are served, so there is no bound. */
static double demand_at(const struct weir__sim_plan *plan, weir_time at)
{
    double sum = 0;

    for (size_t i = 0; i < plan->n_groups; i++) {
        if (plan->groups[i].loop)
            return 1e18;
        sum += (double)weir__sim_plan_rate(&plan->groups[i], at) / 1000;
    }
    return sum;
}

double weir__sim_plan_possible(const struct weir__sim_plan *plan, weir_time width,
                               struct weir__sim_bucket *buckets, size_t n)
{
    double sum = 0, results = 0;

    for (weir_time at = 0; at < plan->length; at += STEP) {
        double capacity = capacity_at(&plan->backend, at, results), demand = demand_at(plan, at);
        double part = (capacity < demand ? capacity : demand) * (double)STEP / 1e9;
        results += part;
        if (at >= plan->warmup)
            sum += part;
        if ((size_t)(at / width) < n)
            buckets[at / width].possible += part;
    }
    return sum;
}
