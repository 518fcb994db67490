/* trial.h -- what the simulated tests share: scenarios by name or from a text, and what came of a
 * trial. */
#ifndef WEIR_TESTS_SIM_TRIAL_H
#define WEIR_TESTS_SIM_TRIAL_H

#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/sim/sim.h"

#define S  WEIR_SECOND
#define MS WEIR_MILLISECOND

/* Too large for a stack that is watched. */
static struct weir__sim_plan plan;
static struct weir__sim_outcome outcome;

static inline void read_text(const char *name, const char *text, size_t len)
{
    struct weir_error error = { 0 };

    if (weir__sim_plan_parse(&plan, text, len, NULL, &error) != WEIR_OK)
        fail_msg("%s: %s", name, error.text);
    snprintf(plan.name, sizeof(plan.name), "%s", name);
}

/* One that is in the program. */
static inline void read_scenario(const char *name)
{
    const struct weir__embedded *e = weir__sim_files;

    while (e->name && strcmp(e->name, name) != 0)
        e++;
    assert_non_null(e->name);
    read_text(name, e->text, e->len);
}

static inline const struct weir__sim_outcome *run_plan(const char *controller, uint64_t seed)
{
    struct weir_error error = { 0 };

    if (weir__sim_run(&outcome, &plan,
                      &(struct weir__sim_options){ .controller = controller, .seed = seed },
                      &error) != WEIR_OK)
        fail_msg("%s, %s: %s", plan.name, controller, error.text);
    return &outcome;
}

static inline const struct weir__sim_outcome *run_scenario(const char *name, const char *controller,
                                                           uint64_t seed)
{
    read_scenario(name);
    return run_plan(controller, seed);
}

/* Per cent of what was possible, from one moment to another. */
static inline double goodput_between(const struct weir__sim_outcome *o, weir_time from,
                                     weir_time to)
{
    double ok = 0, possible = 0;

    for (size_t i = 0; i < o->n_buckets; i++) {
        weir_time at = (weir_time)i * o->bucket;
        if (at < from || at >= to)
            continue;
        ok += (double)o->buckets[i].ok;
        possible += o->buckets[i].possible;
    }
    return possible > 0 ? 100 * ok / possible : 0;
}

static inline double share(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

#define assert_at_least(value, least)                                                        \
    do {                                                                                     \
        double value_ = (double)(value), least_ = (double)(least);                           \
        if (!(value_ >= least_))                                                             \
            fail_msg("%s, %s, seed %llu: %s is %g, must be at least %g", outcome.plan->name, \
                     outcome.controller, (unsigned long long)outcome.seed, #value, value_,   \
                     least_);                                                                \
    } while (0)
#define assert_at_most(value, most)                                                                \
    do {                                                                                           \
        double value_ = (double)(value), most_ = (double)(most);                                   \
        if (!(value_ <= most_))                                                                    \
            fail_msg("%s, %s, seed %llu: %s is %g, must be at most %g", outcome.plan->name,        \
                     outcome.controller, (unsigned long long)outcome.seed, #value, value_, most_); \
    } while (0)

#endif
